"""What must hold after a schedule: nothing twice, nothing lost, nothing made again, and an end that says what is so."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.cli.home import Home
from agent.core.plan import Plan
from agent.core.record import AttemptEnded, Committed, Invalidated
from agent.scenarios import SCENARIOS
from agent.settings import Settings
from agent.store.database import open_database, place_of
from tests.simulation.kills.ledger import Ledger
from tests.simulation.kills.script import Script
from tests.simulation.kills.shop import ONCE, PRICED, product_of


@dataclass
class Verdict:
    """What came of one schedule; everything that is no number is a sentence about what does not hold."""

    status: str = ""
    effects: int = 0
    asked: int = 0
    doubled: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    remade: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    """A satisfied run that did not end where an undisturbed one does, or one that is not honest about its end."""

    @property
    def wrong(self) -> list[str]:
        """All that does not hold."""
        return [*self.doubled, *self.lost, *self.remade, *self.different]


def shop_verdict(script: Script, folder: Path, undisturbed: Mapping[str, Any]) -> Verdict:
    """Judge the shop by its ledger and by what the last process told.

    Args:
        script: what happened to it.
        folder: where ledger and result lie.
        undisturbed: the result of the same goal without any fault or kill.
    """
    ledger, result = Ledger(folder / "ledger.txt"), read(folder)
    effects = ledger.counts("effect")
    verdict = Verdict(result["status"], effects.total(), ledger.counts("asked").total())
    verdict.doubled = [f"{name} happened {effects[name]} times" for name in ONCE if effects[name] > 1]
    verdict.lost, verdict.remade = list(_lost(ledger, result)), list(_remade(ledger, result))
    verdict.different = list(
        _unlike(ledger, result, undisturbed) if result["status"] == "satisfied" else _dishonest(ledger, result)
    )
    return verdict


def scenario_verdict(subject: str, home: Path, told: Mapping[str, Any], undisturbed: Mapping[str, Any]) -> Verdict:
    """Judge a packaged scenario by its own check of its world, and by what the command told.

    Args:
        subject: the scenario with its event.
        home: the command's home folder.
        told: the document it printed last, and what was made again for no reason.
        undisturbed: the same of a run that nobody killed.
    """
    scenario, outcome = SCENARIOS[subject.partition(":")[0]], told["outcome"]
    workspace = home / "demo" / thread_of(subject)
    verdict = Verdict(outcome["status"] if outcome else "waiting", sum(scenario.counts(workspace).values()))
    verdict.asked = len(told["questions"])
    problems = scenario.check(workspace)
    verdict.doubled = [each for each in problems if "twice" in each or "once" in each] if outcome else []
    verdict.remade = [f"{each} was verified, and was made again" for each in told["again"]]
    if verdict.status == "satisfied":
        verdict.different = [each for each in problems if each not in verdict.doubled]
        mine, theirs = holding(told), holding(undisturbed)
        verdict.different += [
            f"{name} differs from the undisturbed end" for name in theirs if mine.get(name) != theirs[name]
        ]
    elif outcome and not (outcome["reason"] and (outcome["unfinished"] or outcome["missing"])):
        verdict.different = [f"ended {verdict.status} and does not say why"]
    elif not outcome and not told["questions"]:
        verdict.different = ["is at no end, and asks nothing"]
    return verdict


def told_by(output: Path, settings: Settings, subject: str) -> dict[str, Any]:
    """The document that `kintsugi --json` printed; under `again` what was made again for no reason."""
    with open_database(place_of(settings)) as database:
        state = Home(settings, database).values(thread_of(subject))
    return {**json.loads(output.read_text()), "again": list(_made_again(state["trace"], state["plan"]))}


def _made_again(trace: Iterable[Any], plan: Plan) -> Iterator[str]:
    """What a call made that came out as it was, and that no one doubted."""
    doubted: set[str] = set()
    called: set[str] = set()
    for each in trace:
        match each:
            case Invalidated(what=what):
                doubted |= {*what.artifacts, *(name for id_ in what.flagged for name in plan.step(id_).produces)}
            case AttemptEnded(step=step):
                called = {*called, step} if each.how == "called" else called - {step}
            case Committed(name=name):
                if each.unchanged and each.step in called and name not in doubted:
                    yield name
                doubted.discard(name)


def thread_of(subject: str) -> str:
    """The thread of a scenario's run, as the command names it."""
    return subject.replace(":", "-")


def holding(told: Mapping[str, Any]) -> dict[str, str]:
    """Digests of the artifacts that hold."""
    return {each["name"]: each["digest"] for each in told["artifacts"] if each["holds"]}


def read(folder: Path) -> dict[str, Any]:
    """What the last process told."""
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def _lost(ledger: Ledger, result: Mapping[str, Any]) -> Iterator[str]:
    """What was held at some time, and is not at the end, although nothing it was made from changed."""
    held = {each.name: each.detail for each in ledger.lines() if each.what == "held"}
    changed = PRICED if ledger.has("edit") else ()
    for name, digest in held.items():
        if name not in changed and name != "boxes" and result["digests"].get(name) != digest:
            yield f"{name} was verified, and is lost"


def _remade(ledger: Ledger, result: Mapping[str, Any]) -> Iterator[str]:
    """What was held, and was made after that, although nothing it was made from changed."""
    changed = {*PRICED, "address"} if ledger.has("edit") else {"address"}
    held: set[str] = set()
    for each in ledger.lines():
        if each.what == "held":
            held.add("send_mail" if each.name == "mail" else each.name)
        if each.what == "call" and each.name in held - changed:
            yield f"{each.name} was verified, and was made again"
    for name, times in result["committed"].items():
        if times > 1 and name not in changed:
            yield f"{name} was committed {times} times"


def _unlike(ledger: Ledger, result: Mapping[str, Any], undisturbed: Mapping[str, Any]) -> Iterator[str]:
    """How a satisfied end differs from the undisturbed one, prices apart, and from what the ledger says."""
    changed = PRICED if ledger.has("edit") else ()
    mine, theirs = result["digests"], undisturbed["digests"]
    for name in theirs:
        if name not in mine:
            yield f"{name} is missing"
        elif name not in changed and mine[name] != theirs[name]:
            yield f"{name} differs from the undisturbed end: {result['values'][name]}"
    prices = {name: result["values"][name]["cents"] for name in PRICED if name in mine}
    if len(set(prices.values())) > 1:
        yield f"made from different prices: {prices}"
    effects = ledger.counts("effect")
    for name in ONCE:
        if product_of(name) in theirs and not effects[name]:
            yield f"{name} never happened"


def _dishonest(ledger: Ledger, result: Mapping[str, Any]) -> Iterator[str]:
    """What an end that is not satisfied claims without its being so, or leaves unsaid."""
    if not result["reason"]:
        yield f"ended {result['status']} and does not say why"
    effects = ledger.counts("effect")
    for name in ONCE:
        if product_of(name) in result["values"] and not effects[name]:
            yield f"{product_of(name)} is said to be done, and never happened"
