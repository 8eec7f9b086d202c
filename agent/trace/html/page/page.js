"use strict";
// Draws the plan from the JSON in the page, and, where the page is served, asks for news. Texts only ever become text.

(() => {
  const byId = (id) => document.getElementById(id);
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const READABLE = 0.75; // zoom below which a label cannot be read
  const DRAWABLE = 400; // steps that are drawn one by one
  const MANY = 24; // steps from which like ones are bundled at first
  const MARKS = { done: "✓", failed: "✗", invalid: "!", running: "▸", pending: "·", skipped: "–", superseded: "×" };
  const CHANGES = { again: "again", found: "looked at, kept", new: "new", dropped: "dropped" };

  let data = JSON.parse(byId("data").textContent);
  let chosen = null;
  const opened = new Set(); // bundles that were taken apart
  const slider = byId("revision");
  const graph = cytoscape({
    container: byId("graph"),
    autoungrabify: true,
    boxSelectionEnabled: false,
    userZoomingEnabled: false, // the wheel belongs to the page until the drawing has the focus
    minZoom: 0.05,
    maxZoom: 3,
  });

  // --- what is shown ------------------------------------------------------------------------------------------

  function cellsAt(revision) {
    const cells = new Map();
    data.drawn.slice(0, revision + 1).forEach(({ cells: changes }) => {
      for (const [step, cell] of Object.entries(changes)) {
        if (cell) cells.set(step, { status: cell[0], change: cell[1], tries: cell[2], broke: cell[3] });
        else cells.delete(step);
      }
    });
    return cells;
  }

  function tally(members, cells) {
    const counts = {};
    for (const step of members) counts[cells.get(step.id).status] = (counts[cells.get(step.id).status] || 0) + 1;
    return Object.entries(counts).map(([status, number]) => `${number} ${status}`).join(", ");
  }

  function isBundled() {
    return byId("bundle").checked || data.steps.length > DRAWABLE;
  }

  function groups(cells) {
    const bundled = new Map();
    for (const step of data.steps) {
      if (!cells.has(step.id)) continue;
      const whole = isBundled() && step.bundle && !opened.has(step.bundle);
      const key = whole ? `bundle ${step.bundle}` : `step ${step.id}`;
      bundled.set(key, [...(bundled.get(key) || []), step]);
    }
    return bundled;
  }

  function label(members, cells) {
    const [first] = members;
    if (members.length > 1) {
      const alike = members.every((step) => step.does === first.does);
      return `${alike ? first.does : "steps"} × ${members.length}\n${tally(members, cells)}`;
    }
    const cell = cells.get(first.id);
    const intent = first.intent.length > 80 ? `${first.intent.slice(0, 77)}…` : first.intent;
    const notes = [`${MARKS[cell.status] || ""} ${cell.status}`, CHANGES[cell.change], cell.broke && "broke here"];
    if (cell.tries > 1 && cell.change === "kept") notes.push(`try ${cell.tries}`);
    return `${intent}\n${notes.filter(Boolean).join(" · ")}`;
  }

  function elements() {
    const cells = cellsAt(Number(slider.value));
    const nodes = [];
    const home = new Map();
    for (const [key, members] of groups(cells)) {
      members.forEach((step) => home.set(step.id, key));
      const each = cells.get(members[0].id);
      const same = members.every((step) => cells.get(step.id).status === each.status);
      const classes = [same ? each.status : "mixed", each.change, each.broke && "broke", members.length > 1 && "bundle"];
      const said = { id: key, label: label(members, cells), members, after: new Set() };
      nodes.push({ data: said, classes: classes.filter(Boolean).join(" ") });
    }
    const edges = new Map();
    for (const step of data.steps) {
      for (const before of step.after) {
        const [source, target] = [home.get(before), home.get(step.id)];
        if (source && target && source !== target) edges.set(`${source}\n${target}`, { data: { source, target } });
      }
    }
    return [...nodes, ...edges.values()];
  }

  function look() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const node = (selector, more) => ({ selector, style: more });
    return [
      node("node", {
        shape: "round-rectangle", width: 208, height: 74, label: "data(label)", "text-wrap": "wrap",
        "text-max-width": 194, "text-valign": "center", "font-size": 12, "line-height": 1.2, color: colour("text"),
        "font-family": style.getPropertyValue("font-family") || "sans-serif",
        "background-color": colour("card"), "border-width": 1.5, "border-color": colour("muted"),
      }),
      node("node.done", { "background-color": colour("line") }),
      node("node.pending", { "border-style": "dashed" }),
      node("node.running", { "border-color": colour("blue"), "background-color": colour("blue-soft") }),
      node("node.failed, node.invalid", { "border-color": colour("red"), "background-color": colour("red-soft") }),
      node("node.broke", { "border-color": colour("red"), "border-width": 4 }),
      node("node.again, node.new", { "border-color": colour("gold"), "border-width": 4, "border-style": "solid" }),
      node("node.found", { "border-color": colour("gold"), "border-width": 5, "border-style": "double" }),
      node("node.dropped", { "border-style": "dotted", opacity: 0.55 }),
      node("node.bundle", { "border-width": 3, shape: "rectangle" }),
      node("node.faded", { opacity: 0.2 }),
      node("node:selected", { "outline-width": 3, "outline-color": colour("blue"), "outline-offset": 3 }),
      node("edge", {
        width: 1.5, "line-color": colour("muted"), "line-opacity": 0.6, "curve-style": "bezier",
        "target-arrow-shape": "triangle", "target-arrow-color": colour("muted"), "arrow-scale": 0.8,
      }),
      node("edge.gold", { "line-color": colour("gold"), "target-arrow-color": colour("gold"), width: 2.5, "line-opacity": 1 }),
    ];
  }

  function draw(keep) {
    const view = keep && { zoom: graph.zoom(), pan: { ...graph.pan() } };
    graph.elements().remove();
    graph.add(elements());
    graph.edges().filter((edge) => edge.target().is(".again, .new") && edge.source().is(".again, .new, .found")).addClass("gold");
    graph.layout({ name: "dagre", rankDir: "LR", nodeSep: 14, rankSep: 60, edgeSep: 6, animate: false, fit: false }).run();
    if (view) graph.viewport(view);
    else whole();
    const revision = data.drawn[Number(slider.value)];
    byId("says").textContent = revision ? revision.says : "Nothing is planned yet.";
    slider.setAttribute("aria-valuetext", byId("says").textContent);
    if (chosen && graph.getElementById(chosen).nonempty()) choose(chosen, false);
    find();
  }

  function whole() {
    const all = graph.elements().boundingBox();
    const scale = Math.max(READABLE, Math.min(1, (graph.width() - 40) / (all.w || 1)));
    const tall = Math.min(Math.max(all.h * scale + 40, 180), innerHeight * 0.7);
    byId("graph").style.height = `${Math.round(tall)}px`;
    graph.resize();
    graph.fit(undefined, 16);
    if (graph.zoom() > 1.1) graph.zoom(1.1);
    if (graph.zoom() >= READABLE) return graph.center();
    // too large to be read as a whole: begin at the left, where the plan begins
    graph.zoom(READABLE);
    const box = graph.elements().boundingBox();
    const fits = box.h * READABLE < graph.height();
    return graph.pan({ x: 16 - box.x1 * READABLE, y: fits ? (graph.height() - box.h * READABLE) / 2 - box.y1 * READABLE : 16 - box.y1 * READABLE });
  }

  // --- choosing, finding, zooming ---------------------------------------------------------------------------------

  function facts(members) {
    const cells = cellsAt(Number(slider.value));
    if (members.length > 1) {
      const named = members.slice(0, 12).map((step) => step.intent).join("; ");
      return { Steps: members.length > 12 ? `${named}; and ${members.length - 12} more` : named, State: tally(members, cells) };
    }
    const [step] = members;
    const cell = cells.get(step.id);
    return {
      Step: `${step.id} ${step.intent}`, State: `${cell.status}${cell.tries > 1 ? `, try ${cell.tries}` : ""}`,
      "What happened": step.story || "as planned", Reason: step.reason, Tool: step.does, Makes: step.makes,
    };
  }

  function choose(key, look = true) {
    const node = graph.getElementById(key);
    chosen = key;
    graph.elements().unselect();
    node.select();
    const list = document.createElement("dl");
    const members = node.data("members");
    for (const [name, said] of Object.entries(facts(members)).filter(([, said]) => said)) {
      list.appendChild(document.createElement("dt")).textContent = name;
      list.appendChild(document.createElement("dd")).textContent = said;
    }
    byId("chosen").replaceChildren(list, ...apart(members));
    byId("chosen").hidden = false;
    for (const row of document.querySelectorAll("tr[data-step]")) {
      row.classList.toggle("chosen", members.some((step) => step.id === row.dataset.step));
    }
    if (look && !isSeen(node)) graph.animate({ center: { eles: node } }, { duration: calm.matches ? 0 : 150 });
  }

  function isSeen(node) {
    const box = node.renderedBoundingBox();
    return box.x1 >= 0 && box.y1 >= 0 && box.x2 <= graph.width() && box.y2 <= graph.height();
  }

  function apart(members) {
    if (members.length < 2) return [];
    if (members.length > DRAWABLE / 2) return [document.createTextNode("Too many to be drawn one by one; the table has them.")];
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Show each of them";
    button.addEventListener("click", () => {
      opened.add(members[0].bundle);
      draw(true);
      choose(`step ${members[0].id}`);
      byId("graph").focus();
    });
    return [button];
  }

  function find() {
    const wanted = byId("find").value.trim().toLowerCase();
    const fits = (step) => `${step.id} ${step.intent} ${step.makes} ${step.does}`.toLowerCase().includes(wanted);
    const hits = new Set(data.steps.filter(fits).map((step) => step.id));
    graph.nodes().forEach((node) => node.toggleClass("faded", Boolean(wanted) && !node.data("members").some((step) => hits.has(step.id))));
    for (const row of document.querySelectorAll("tr[data-step]")) row.hidden = Boolean(wanted) && !hits.has(row.dataset.step);
    return wanted && graph.nodes().not(".faded");
  }

  function walk(key) {
    const nodes = graph.nodes().sort((a, b) => a.position("x") - b.position("x") || a.position("y") - b.position("y"));
    if (nodes.empty()) return;
    const at = chosen ? graph.getElementById(chosen) : graph.collection();
    if (at.empty()) return choose(nodes[0].id());
    const near = { ArrowRight: () => at.outgoers("node")[0], ArrowLeft: () => at.incomers("node")[0] }[key];
    const order = nodes.toArray().findIndex((node) => node.id() === chosen);
    const step = key === "ArrowDown" ? 1 : -1;
    const next = near ? near() : nodes[(order + step + nodes.length) % nodes.length];
    if (next) choose(next.id());
  }

  function zoom(factor) {
    graph.zoom({ level: graph.zoom() * factor, renderedPosition: { x: graph.width() / 2, y: graph.height() / 2 } });
  }

  // --- news -------------------------------------------------------------------------------------------------------

  let last = null;

  async function news() {
    try {
      const answer = await fetch(location.href, { cache: "no-store", headers: last ? { "If-None-Match": last } : {} });
      if (answer.status === 304) return;
      if (!answer.ok) throw new Error(answer.statusText);
      last = answer.headers.get("ETag");
      take(new DOMParser().parseFromString(await answer.text(), "text/html"));
      byId("news").textContent = "Live: this page follows the run.";
    } catch {
      byId("news").textContent = "No news: `kintsugi watch` has ended, or cannot be reached. What is shown is the last that was heard.";
    }
  }

  async function follow() {
    await news();
    setTimeout(follow, 1000);
  }

  function take(page) {
    for (const part of page.querySelectorAll("[data-part]")) {
      const old = byId(part.id);
      const open = new Map([...old.querySelectorAll("details")].map((each) => [each.id, each.open]));
      part.querySelectorAll("details").forEach((each) => open.has(each.id) && (each.open = open.get(each.id)));
      if (old.isEqualNode(part) || old.contains(document.activeElement)) continue;
      const scrolled = [...old.querySelectorAll(".wide")].map((each) => each.scrollTop);
      old.replaceWith(document.adoptNode(part));
      part.querySelectorAll(".wide").forEach((each, index) => (each.scrollTop = scrolled[index] || 0));
    }
    document.title = page.title;
    const now = page.getElementById("data").textContent;
    if (now === byId("data").textContent) return;
    const atEnd = slider.value === slider.max;
    const planned = data.drawn.length;
    byId("data").textContent = now;
    data = JSON.parse(now);
    bound();
    if (atEnd) slider.value = slider.max;
    draw(planned > 0);
  }

  // --- beginning --------------------------------------------------------------------------------------------------

  function bound() {
    slider.max = Math.max(0, data.drawn.length - 1);
    byId("slider-label").hidden = data.drawn.length < 2;
    const counts = new Map();
    data.steps.forEach((step) => step.bundle && counts.set(step.bundle, (counts.get(step.bundle) || 0) + 1));
    byId("bundle-label").hidden = data.steps.length > DRAWABLE || ![...counts.values()].some((count) => count > 1);
  }

  bound();
  slider.value = slider.max;
  byId("bundle").checked = data.steps.length > MANY;
  byId("drawing").hidden = false;
  byId("undrawn").hidden = true;
  byId("steps-list").open = data.steps.length <= MANY;
  graph.style(look());
  draw(false);

  slider.addEventListener("input", () => draw(true));
  byId("find").addEventListener("input", () => {
    const found = find();
    if (found && found.nonempty()) graph.center(found);
  });
  byId("bundle").addEventListener("change", () => { opened.clear(); draw(false); });
  byId("nearer").addEventListener("click", () => zoom(1.25));
  byId("farther").addEventListener("click", () => zoom(0.8));
  byId("fit").addEventListener("click", () => graph.fit(undefined, 16));
  byId("graph").addEventListener("keydown", (event) => {
    const keys = { "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: () => graph.fit(undefined, 16) };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.startsWith("Arrow")) walk(event.key);
    else if (keys[event.key]) keys[event.key]();
    else return;
    event.preventDefault();
  });
  byId("graph").addEventListener("focusin", () => graph.userZoomingEnabled(true));
  byId("graph").addEventListener("focusout", () => graph.userZoomingEnabled(false));
  byId("graph").addEventListener("pointerdown", () => byId("graph").focus({ preventScroll: true }));
  graph.on("tap", "node", (event) => choose(event.target.id()));
  dark.addEventListener("change", () => graph.style(look()));
  addEventListener("resize", () => graph.resize());
  if ("live" in document.body.dataset) follow();
})();
