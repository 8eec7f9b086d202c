"""The invariants of the design, over two thousand random runs; a million by hand with `make simulate`."""

from dataclasses import replace

import pytest

from agent.core.classification import conclude
from agent.core.effect import EffectIdentity, Fresh
from agent.core.limits import Limits
from agent.core.phase import Phase
from agent.nodes import classifier
from agent.ports import Result, Task
from agent.tools.inner import ToolCall
from agent.tools.runner import ToolRunner
from tests.simulation.campaign import campaign, shrunk, story
from tests.simulation.driving import simulate, virtual
from tests.simulation.invariants import Watch
from tests.simulation.minds import Obedient
from tests.simulation.outside import Broken, Journal, Outside
from tests.simulation.script import Event, Fault, GoalScript, Script, ToolScript, draw

RUNS = 2_000


def scripted(*faults: Fault, events: tuple[Event, ...] = (), **tool: object) -> Script:
    """One write that must not happen twice, and something made from it."""
    first = ToolScript("make_a0", ("a0",), (), writes=True, idempotent=False, **tool)  # type: ignore[arg-type]
    second = ToolScript("make_a1", ("a1",), ("a0",))
    return Script(1, (first, second), (GoalScript(("a1",)),), Limits(), faults, events=events, asks=False)


def test_every_invariant_holds_in_every_run() -> None:
    tally = campaign(RUNS)
    assert not tally.broken, story(tally.broken[0][0])
    assert tally.runs >= RUNS
    assert set(tally.statuses) == {
        "satisfied",
        "unreachable",
        "out_of_budget",
        "no_progress",
        "cancelled",
        "handed_over",
    }
    assert set(tally.rungs) == {"retry", "patch", "rewrite", "replan", "escalate"}
    assert tally.repeats > 0
    assert tally.families > 0


def test_a_seed_tells_the_same_story_every_time() -> None:
    with virtual() as loop:
        first = [simulate(draw(seed), loop).outside.happened for seed in range(30)]
    with virtual() as loop:
        again = [simulate(draw(seed), loop).outside.happened for seed in range(30)]
    assert first == again


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(219403, id="a late write uses up what a person has allowed"),
        pytest.param(224415, id="a read is as old as when it began"),
        pytest.param(226782, id="so is one that a person was asked about before"),
        pytest.param(3006651, id="a later plan's inner loop writes in no other way while a write may stand"),
        pytest.param(3029320, id="nor does one whose process was killed"),
        pytest.param(3009047, id="a patched call is not made from inputs from which another made the same before"),
        pytest.param(3048579, id="what a person let be made once more is settled by that"),
    ],
)
def test_what_broke_once_holds(seed: int) -> None:
    with virtual() as loop:
        simulate(draw(seed), loop)


# --- what looks on can see --------------------------------------------------------------------------------------


def test_a_write_whose_process_died_is_found_by_its_probe_and_not_made_again() -> None:
    with virtual() as loop:
        sim = simulate(scripted(Fault("make_a0", 1, "die-after"), probe="name", ensures=True), loop)
    assert (sim.outside.effects, sim.watch.statuses) == (1, {"satisfied": 1})


def test_a_family_is_made_part_by_part_and_only_what_is_new_when_the_list_grows() -> None:
    family = ToolScript("make_a0", ("a0_{part}",), (), writes=True, idempotent=False, ensures=True, fans=True)
    sum_ = ToolScript("make_a1", ("a1",), ("a0_*",))
    goals = (GoalScript(("a1",), parts=("x", "y")), GoalScript(("a1",), parts=("x", "y", "z")))
    with virtual() as loop:
        sim = simulate(Script(1, (family, sum_), goals, Limits(), asks=False), loop)
    assert (sim.outside.effects, sim.watch.statuses) == (3, {"satisfied": 2})


def test_a_runtime_that_forgets_its_journal_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    async def blank(self: Journal, identity: EffectIdentity, step: str, fence: object = None) -> Fresh:
        return Fresh()

    monkeypatch.setattr(Journal, "begin", blank)
    with virtual() as loop, pytest.raises(Broken, match=r"I2: make_a0 acted without an intent|KeyError"):
        simulate(scripted(), loop)


def test_a_runtime_that_repeats_a_write_blindly_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    call = Outside.call

    async def twice(self: Outside, name: str, args: dict) -> object:
        await call(self, name, args)
        return await call(self, name, args)

    monkeypatch.setattr(Outside, "call", twice)
    with virtual() as loop, pytest.raises(Broken, match="I2: make_a0 made a0 from the same inputs twice"):
        simulate(scripted(), loop)


def test_a_call_that_acts_after_its_time_is_waited_for_and_not_made_again() -> None:
    for kind in ("late", "very-late"):
        with virtual() as loop:
            sim = simulate(scripted(Fault("make_a0", 1, kind), probe="name", ensures=True), loop)
        assert (sim.outside.effects, sim.watch.statuses) == (1, {"satisfied": 1})


def test_an_inner_loop_that_obeys_what_it_reads_gets_no_other_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = ToolRunner._turns

    async def anything(self: ToolRunner, task: Task) -> Result:
        tools = tuple(self._registry.contracts)
        return await runner(self, task.model_copy(update={"step": task.step.model_copy(update={"tools": tools})}))

    with virtual() as loop:
        assert simulate(scripted(loop=True), loop).watch.statuses == {"satisfied": 1}
    own = Obedient._obeys

    async def obeys(self: Obedient, task: Task, call: ToolCall) -> None:
        await own(self, task.model_copy(update={"step": task.step.model_copy(update={"tools": ("make_a0",)})}), call)

    monkeypatch.setattr(ToolRunner, "_turns", anything)
    monkeypatch.setattr(Obedient, "_obeys", obeys)
    with virtual() as loop, pytest.raises(Broken, match="I9: a0 called make_a1, which is not its tool"):
        simulate(scripted(loop=True), loop)


def test_a_scope_that_does_not_follow_from_its_record_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classifier, "conclude", lambda *args: conclude(*args).model_copy(update={"origin": "agent"}))
    monkeypatch.setattr(classifier, "classify", lambda *_: None)
    with virtual() as loop, pytest.raises(Broken, match=r"I8: .* recomputed"):
        simulate(scripted(Fault("make_a1", 1, "busy")), loop)


def test_a_broken_script_shrinks_to_what_breaks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Outside._account

    def touchy(self: Outside, tool: ToolScript, args: dict) -> None:
        account(self, tool, args)
        if self.effects and len(self.happened) > 1:
            self.broken = "I2: an effect after another call"

    monkeypatch.setattr(Outside, "_account", touchy)
    script = scripted(Fault("make_a0", 1, "busy"), Fault("make_a1", 1, "busy"), events=(Event(3, "stop"),))
    with virtual() as loop:
        small = shrunk(replace(script, goals=script.goals * 2), loop, 10.0)
    assert (small.faults, small.events, len(small.goals)) == ((Fault("make_a0", 1, "busy"),), (), 1)


def test_the_story_of_a_seed_that_holds_says_so() -> None:
    assert story(0) == "seed 0 holds"


def test_a_mark_on_an_independent_branch_is_caught() -> None:
    watch = Watch(scripted(), None)  # type: ignore[arg-type]
    with pytest.raises(Broken, match="I4: b was marked, which no failed step stands on"):
        watch._roots({"b"}, {"phase": Phase.CLASSIFIER, "failures": ()})  # type: ignore[typeddict-item]
