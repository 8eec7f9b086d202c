"""The compiled graph is the phase table: no edge more, no edge less, and every phase is visited by some run."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agent import build_graph
from agent.core.phase import LEGAL, Phase
from tests.builders import Calls, always, calm, goal, once, run, thread
from tests.test_boundary import http


def edges_of(graph: Any) -> set[tuple[str, str]]:
    return {(each.source, each.target) for each in graph.get_graph().edges}


def test_compiled_edges_equal_the_table() -> None:
    graph = build_graph([], settings=calm())
    table = {(phase.value, target.value) for phase, targets in LEGAL.items() for target in targets}
    assert edges_of(graph) == table | {("__start__", "intake")}


def test_a_copy_under_another_configuration_is_the_same_graph() -> None:
    graph = build_graph([], settings=calm())
    copied = graph.copy({"name": "other"})
    assert type(copied) is type(graph)
    assert (edges_of(copied), copied.name) == (edges_of(graph), "other")
    assert copied.change_goal == graph.change_goal
    assert copied.grace == graph.grace


def visited(graph: Any, *inputs: Any, name: str = "t") -> list[str]:
    """Phases in the order they were left."""
    seen: list[str] = []
    for given in inputs:
        chunks: Iterable[dict[str, Any]] = graph.stream(given, thread(name), stream_mode="updates")
        seen += [phase for chunk in chunks for phase in chunk if not phase.startswith("__")]
    return seen


def runs() -> list[list[str]]:
    calls = Calls()
    plain = build_graph([calls.tool("a")], settings=calm())
    flaky = build_graph([calls.tool("a", "", once(http(503)))], settings=calm())
    stuck = build_graph(
        [calls.tool("a", "", always(RuntimeError("strange")), effect="mutating")],
        settings=calm(),
        checkpointer=InMemorySaver(),
    )
    wanted = {"goal": goal("a")}
    return [
        visited(plain, wanted),
        visited(flaky, wanted),
        visited(stuck, wanted, Command(resume={"choice": "abort"})),
        visited(plain, {"goal": goal("ghost")}),
        visited(plain, {}),
    ]


def test_every_phase_is_visited_by_some_run_and_every_step_of_a_run_is_legal() -> None:
    walked = runs()
    assert {phase for walk in walked for phase in walk} == {each.value for each in Phase} - {"__end__"}
    for walk in walked:
        for before, after in pairwise(walk):
            assert Phase(after) in LEGAL[Phase(before)], (before, after)


BEFORE = ["intake", "dispatcher", "planner", "dispatcher"]


def chain() -> tuple[Calls, list[Any]]:
    calls = Calls()
    return calls, [calls.tool("a"), calls.tool("b", "a"), calls.tool("c", "b")]


def test_a_plain_run_goes_the_shortest_way_with_one_super_step_for_each_step() -> None:
    _, tools = chain()
    walk = visited(build_graph(tools, settings=calm()), {"goal": goal("c")})
    assert walk == [*BEFORE, *["executor"] * 3, "dispatcher", "finisher"]


def test_a_failure_takes_the_long_way_and_only_a_failure() -> None:
    calls = Calls()
    tools = [calls.tool("a"), calls.tool("b", "a", once(http(503))), calls.tool("c", "b")]
    walk = visited(build_graph(tools, settings=calm()), {"goal": goal("c")})
    mended = ["verifier", "classifier", "repairer", "dispatcher"]
    assert walk == [*BEFORE, *["executor"] * 2, *mended, *["executor"] * 2, "dispatcher", "finisher"]


def test_whoever_stops_between_phases_finds_every_phase() -> None:
    calls, tools = chain()
    graph = build_graph(tools, settings=calm(), checkpointer=InMemorySaver())
    paused = graph.invoke({"goal": goal("c")}, thread(), interrupt_before=["verifier"])
    assert [each.step for each in paused["attempts"]] == ["s1.1"]
    assert not paused["world"].artifacts
    assert dict(calls) == {"make_a": 1}


def test_what_starts_is_stored_as_running_and_what_it_stands_on_as_verified() -> None:
    saver = InMemorySaver()
    stored: list[tuple[list[str], list[str]]] = []

    def seen(**_: Any) -> dict[str, int]:
        values = build_graph(tools, settings=calm(), checkpointer=saver).get_state(thread()).values
        stored.append((sorted(values["world"].artifacts), [each.id for each in values["plan"].with_status("running")]))
        return {"n": 1}

    calls = Calls()
    tools = [calls.tool("a", "", seen), calls.tool("b", "a", seen), calls.tool("c", "b", seen)]
    run(build_graph(tools, settings=calm(), checkpointer=saver), goal("c"))
    assert stored == [([], ["s1.1"]), (["a"], ["s1.2"]), (["a", "b"], ["s1.3"])]


def test_the_phase_is_in_the_state_at_every_step() -> None:
    graph = build_graph([Calls().tool("a")], settings=calm(), checkpointer=InMemorySaver())
    end = run(graph, goal("a"))
    assert end["phase"] is Phase.END
    for snapshot in graph.get_state_history(thread()):
        if snapshot.next and snapshot.next != ("__start__",) and "phase" in snapshot.values:
            assert snapshot.next == (snapshot.values["phase"],)
