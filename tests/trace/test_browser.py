"""The page in a real browser: it draws, it answers to keys, it loads and runs nothing else. Any error on it fails.

Needs a Chromium: `CHROMIUM` names one, or it is on the PATH (on Debian: `apt-get install chromium`). Without one
these tests are skipped; what the page says is tested without a browser as well. `SHOTS=folder` keeps pictures.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from agent.cli.environment import load_settings
from agent.cli.home import open_home
from agent.cli.serving import Pages, listening
from agent.trace.html.model import Report
from agent.trace.html.page import page as html
from agent.trace.html.report import report_of
from agent.trace.html.steps import DRAWABLE
from tests.trace.conftest import ended
from tests.trace.materials import asking, hostile, killed, many

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
PATIENCE = 60_000
"""Milliseconds; the machine may be busy."""

Show = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium that is installed here."""
    wanted = os.environ.get("CHROMIUM")
    found = shutil.which(wanted) if wanted else next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        assert not wanted, f"CHROMIUM names {wanted!r}, which is not there"
        pytest.skip("no Chromium: install one (Debian: apt-get install chromium), or name it in CHROMIUM")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=[*OPTIONS, "--no-first-run"], timeout=PATIENCE)
        yield started
        started.close()


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Show]:
    """Open a report; whatever the page complains about, and whatever it asks the network for, fails the test."""
    wrong: list[str] = []
    contexts = []

    def open_(shown: Report | str, *, dark: bool = False, width: int = 1280, **more: Any) -> Page:
        address = shown if isinstance(shown, str) else _written(shown, tmp_path)
        context = browser.new_context(
            color_scheme="dark" if dark else "light",
            viewport={"width": width, "height": 900},
            reduced_motion="reduce",
            **more,
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
        page.on("request", lambda each: None if _is_own(each.url, address) else wrong.append(each.url))
        page.goto(address)
        return page

    yield open_
    for each in contexts:
        each.close()
    assert not wrong


def test_the_plan_is_drawn_and_its_revisions_are_walked_through_with_the_keyboard(show: Show, backfill: Report) -> None:
    page = show(backfill)
    assert _drawn(page) == 10
    says = page.locator("#says")
    expect(says).to_contain_text("Plan 3")
    page.locator("#revision").focus()
    page.keyboard.press("ArrowLeft")
    expect(says).to_contain_text("batch = 'day' instead of 'week'")
    assert page.locator("#revision").get_attribute("aria-valuetext") == says.text_content()
    assert "again" in _classes(page, "2025-W30")
    page.keyboard.press("ArrowLeft")
    assert set(_classes(page, "2025-W30")) >= {"failed", "broke"}

    page.locator("#graph").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#chosen")).to_contain_text("Read the schema of the export")
    expect(page.locator("tr.chosen")).to_contain_text("Read the schema of the export")
    before = _graph(page, "zoom()")
    page.keyboard.press("+")
    assert _graph(page, "zoom()") > before


def test_everything_can_be_reached_with_the_tab_key_and_shows_that_it_is(show: Show, backfill: Report) -> None:
    page = show(backfill)
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        found = page.evaluate(
            "() => { const e = document.activeElement;"
            " const name = e === document.body ? 'BODY' : e.id || e.textContent.trim();"
            " return [name, getComputedStyle(e).outlineStyle] }"
        )
        if found[0] == "BODY":
            break
        assert found[1] != "none", found
        reached.append(found[0])
    assert {"Skip to what was mended", "revision", "find", "nearer", "farther", "fit", "graph"} <= set(reached)


def test_what_is_looked_for_is_found_in_the_drawing_and_in_the_table(show: Show, backfill: Report) -> None:
    page = show(backfill)
    page.locator("#find").fill("w30")
    expect(page.locator("#steps tbody tr:visible")).to_have_count(1)
    assert _graph(page, "nodes().not('.faded').length") == 1
    page.locator("#find").fill("")
    expect(page.locator("#steps tbody tr:visible")).to_have_count(10)


def test_three_hundred_steps_are_bundled_and_can_be_taken_apart(show: Show) -> None:
    report = report_of(many(298, tool="load"))
    page = show(report)
    assert _drawn(page) == 6
    assert _graph(page, "zoom()") >= 0.75
    _graph(page, "nodes('.bundle').emit('tap')")
    page.get_by_role("button", name="Show each of them").is_visible()
    page.locator("#bundle").uncheck()
    assert _drawn(page) == 300
    assert _graph(page, "zoom()") >= 0.75
    page.locator("#fit").click()
    assert _graph(page, "zoom()") < 0.75


def test_thousands_of_steps_are_drawn_as_few(show: Show) -> None:
    page = show(report_of(many(1_500)))
    assert _drawn(page) <= DRAWABLE
    expect(page.locator("#bundle")).to_be_hidden()
    page.locator("#find").fill("part_1499")
    assert _graph(page, "nodes().not('.faded').length") == 1


def test_a_hostile_text_does_nothing(show: Show) -> None:
    page = show(hostile(report_of(many(5))))
    _graph(page, "nodes()[0].emit('tap')")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, iframe").count() == 0
    expect(page.locator("#chosen")).to_contain_text("<script>window.hacked=1</script>")


@pytest.mark.parametrize("width", [400, 1280])
def test_a_page_fits_its_window_in_light_and_dark(show: Show, backfill: Report, width: int) -> None:
    shown = {"hostile": hostile(report_of(many(2))), "killed": report_of(killed()), "asking": report_of(asking())}
    backs = set()
    for dark, each in (
        (False, backfill),
        (True, shown["hostile"]),
        (width > 1000, shown["killed"]),
        (False, shown["asking"]),
    ):
        page = show(each, dark=dark, width=width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert _graph(page, "zoom()") >= 0.75
        backs.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(backs) == 2


def test_a_change_of_scheme_recolours_the_drawing(show: Show, backfill: Report) -> None:
    page = show(backfill)
    light = _graph(page, "nodes()[0].style('color')")
    page.emulate_media(color_scheme="dark")
    # `wait_for_function` looks again by evaluating text, which the page's own policy forbids
    dark = page.evaluate(
        """async light => {
            const color = () => document.getElementById('graph')._cyreg.cy.nodes()[0].style('color');
            for (let frame = 0; frame < 600 && color() === light; frame++) await new Promise(requestAnimationFrame);
            return color();
        }""",
        light,
    )
    assert dark != light


def test_without_scripts_the_tables_are_there(show: Show, backfill: Report) -> None:
    page = show(backfill, java_script_enabled=False)
    expect(page.locator("#drawing")).to_be_hidden()
    expect(page.locator("#undrawn")).to_be_visible()
    expect(page.locator("#steps tbody tr")).to_have_count(10)
    expect(page.locator("svg rect").first).to_be_visible()


def test_a_watched_page_follows_the_run_and_says_when_it_no_longer_can(
    show: Show, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Callable[..., Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "numbers.json").write_text("[1, 2, 3]")
    (tmp_path / "goal.toml").write_text('wants = ["total"]')
    cli("run", "goal.toml", "--tools", "tests.cli.jobs:TOOLS", "--thread", "t")
    with open_home(load_settings(), make=False) as home, listening(Pages(home, "t"), 0) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        page = show(server.url)
        assert _drawn(page) == 2
        page.evaluate("window.stayed = true")
        page.locator("#told-list summary").click()
        cli("goal", "t", "--want", "notice")
        expect(page.locator("#steps")).to_contain_text("Post a notice", timeout=PATIENCE)
        assert _drawn(page) == 3
        assert page.evaluate("window.stayed")
        assert page.locator("#told-list").get_attribute("open") is not None
        server.shutdown()
        thread.join()


if "SHOTS" in os.environ:

    @pytest.mark.parametrize("name", ["backfill", "config-report", "closing"])
    def test_pictures_of_the_scenarios(show: Show, name: str, tmp_path: Path) -> None:
        report = report_of(ended(name, tmp_path))
        for dark in (False, True):
            for width in (1280, 400):
                shot = Path(os.environ["SHOTS"]) / f"{name}-{'dark' if dark else 'light'}-{width}.png"
                show(report, dark=dark, width=width).screenshot(path=shot, full_page=True)


def _written(report: Report, folder: Path) -> str:
    path = folder / "report.html"
    path.write_text(html(report))
    return path.as_uri()


def _is_own(url: str, address: str) -> bool:
    return url == address or url.startswith("data:")


def _graph(page: Page, asked: str) -> Any:
    """Ask the drawing; cytoscape leaves itself at its element."""
    return page.evaluate(
        f"(() => {{ const e = document.getElementById('graph')._cyreg.cy.{asked};"
        " return typeof e === 'object' ? null : e })()"
    )


def _drawn(page: Page) -> int:
    found: int = _graph(page, "nodes().length")
    return found


def _classes(page: Page, intent: str) -> list[str]:
    found: list[str] = page.evaluate(
        "intent => document.getElementById('graph')._cyreg.cy.nodes()"
        ".filter(n => n.data('label').includes(intent))[0].classes()",
        intent,
    )
    return found
