"""Marks follow dependency edges and never execution order, delete nothing, and lift when nothing really changed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.invalidation import follow, invalidate, lifted, settle, unmet_assumptions
from agent.core.plan import Plan, StepStatus
from agent.core.value import digest
from agent.core.world import Assumption, World, commit
from tests.builders import artifact, plan, statuses, step, view, world

CAUSE = "the schema lacks the users table"


def seed() -> tuple[World, Plan]:
    """The plan of seed 2 when S1, S2, S3 are done: fetch, parse, fetch schema, provision, report."""
    inputs = {"settings": {"config_raw": digest("raw")}}
    made: dict[str, Any] = {"config_raw": "raw", "settings": {"a": 1}, "schema": {"tables": []}}
    artifacts = [artifact(name, value, inputs=inputs.get(name, {})) for name, value in made.items()]
    steps = plan(
        step("config_raw", status="done"),
        step("settings", "config_raw", status="done"),
        step("schema", status="done"),
        step("db", "settings schema"),
        step("report", "settings"),
    )
    return world(*artifacts), steps


def test_a_broken_precondition_marks_its_step_and_flags_the_observer_and_nothing_else() -> None:
    before, steps = seed()
    after, marked, what = invalidate(before, steps, ["schema"], CAUSE, "DB", frozenset({"SCHEMA"}))  # type: ignore[arg-type]
    assert statuses(marked) == {
        "config_raw": "done",
        "settings": "done",
        "schema": "invalid",
        "db": "invalid",
        "report": "pending",
    }
    assert (what.artifacts, what.steps, what.flagged) == (("schema",), ("DB",), ("SCHEMA",))
    assert marked.step("DB").reason == CAUSE  # type: ignore[arg-type]
    assert after.holds("settings")


def test_a_changed_source_takes_down_all_that_was_made_from_it_and_nothing_beside() -> None:
    before, steps = seed()
    done = commit(before, artifact("report", 1, inputs=before.digests(["settings"])))
    steps = steps.with_steps(step("report", "settings", status="done"))
    after, marked, what = invalidate(done, steps, ["config_raw"], "the file changed")
    assert what.artifacts == ("config_raw", "report", "settings")
    assert {name: value for name, value in statuses(marked).items() if value == "invalid"} == {
        "config_raw": "invalid",
        "settings": "invalid",
        "report": "invalid",
    }
    assert after.holds("schema")
    assert after.artifacts["config_raw"].mark and after.artifacts["config_raw"].mark.root
    assert after.artifacts["report"].mark and not after.artifacts["report"].mark.root


def test_a_mark_deletes_nothing() -> None:
    before, steps = seed()
    after, marked, _ = invalidate(before, steps, ["config_raw"], CAUSE)
    assert {name: each.value for name, each in after.artifacts.items()} == view(before)
    assert [each.id for each in marked.steps] == [each.id for each in steps.steps]


def test_early_cutoff_lifts_derived_marks_when_the_content_comes_back_equal() -> None:
    before, steps = seed()
    after, marked, _ = invalidate(before, steps, ["config_raw"], CAUSE)
    again = settle(commit(after, artifact("config_raw", "raw")))
    assert statuses(follow(again, marked)) == statuses(steps)
    assert again.holds("settings")
    assert again.artifacts["settings"].version == before.artifacts["settings"].version


def test_other_content_keeps_what_was_made_from_the_old_marked() -> None:
    before, steps = seed()
    after, _, _ = invalidate(before, steps, ["config_raw"], CAUSE)
    again = settle(commit(after, artifact("config_raw", "other")))
    assert again.holds("config_raw")
    assert not again.holds("settings")
    assert again.artifacts["config_raw"].version == 2


def test_a_root_that_nobody_has_made_marks_nothing() -> None:
    before, steps = seed()
    after, marked, what = invalidate(before, steps, ["ghost"], CAUSE)
    assert (statuses(marked), what.artifacts, what.steps) == (statuses(steps), (), ())
    assert view(after) == view(before)


def test_a_step_whose_artifact_was_remade_by_another_does_not_come_back() -> None:
    before = world(artifact("x", 1, producer="OTHER"))
    assert statuses(follow(before, plan(step("x", status="invalid")))) == {"x": "invalid"}


def test_a_done_step_without_its_artifact_is_invalid() -> None:
    followed = follow(world(), plan(step("x", status="done")), "")
    assert statuses(followed) == {"x": "invalid"}
    assert followed.steps[0].reason == "its artifact is gone"


def test_a_step_reopened_for_nothing_is_done_when_its_inputs_come_back_unchanged() -> None:
    before, steps = seed()
    after, marked, _ = invalidate(before, steps, ["config_raw"], CAUSE)
    reopened = plan(*(each.as_(StepStatus.PENDING) for each in marked.steps))
    again = settle(commit(after, artifact("config_raw", "raw")))
    assert statuses(follow(again, reopened))["settings"] == "done"


def test_a_step_whose_input_came_back_otherwise_is_to_be_done_again() -> None:
    before, steps = seed()
    after, marked, _ = invalidate(before, steps, ["config_raw"], CAUSE)
    other = settle(commit(after, artifact("config_raw", "other")))
    assert statuses(follow(other, marked))["settings"] == "pending"


def test_a_step_that_finished_on_an_input_that_changed_meanwhile_is_to_be_done_again() -> None:
    late = commit(world(artifact("a", 2)), artifact("b", inputs={"a": digest(1)}))
    followed = follow(settle(late), plan(step("a", status="done"), step("b", "a", status="done")))
    assert statuses(followed) == {"a": "done", "b": "pending"}


def test_a_step_that_was_itself_found_untrue_waits_for_its_repair() -> None:
    state = world("a", artifact("b", mark="root"))
    for status in ("done", "invalid"):
        assert statuses(follow(state, plan(step("b", "a", status=status)))) == {"b": "invalid"}


@pytest.mark.parametrize(
    ("predicate", "facts", "broken"),
    [
        pytest.param("facts.f == 1", {"f": 1}, False, id="still true"),
        pytest.param("facts.f == 1", {"f": 2}, True, id="not true any more"),
        pytest.param("facts.f == 1", {}, False, id="not observed is not refuted"),
        pytest.param("artifacts.y == 2", {}, False, id="what it reads of artifacts is among the inputs"),
    ],
)
def test_an_artifact_falls_with_the_facts_it_was_made_under(predicate: str, facts: Any, broken: bool) -> None:
    assumed = artifact("x", assumptions=(Assumption(predicate=predicate),))
    state = world(assumed, artifact("y", 1), **facts)
    assert unmet_assumptions(state, view(state)) == ({"x": predicate} if broken else {})


def test_a_marked_artifact_assumes_nothing_any_more() -> None:
    state = world(artifact("x", assumptions=(Assumption(predicate="facts.f == 1"),), mark="root"), f=2)
    assert unmet_assumptions(state, {}) == {}


# --- random graphs against naive twins --------------------------------------------------------------------------

NAMES = [f"a{each}" for each in range(8)]


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[str]]:
    """A random DAG: for every name what it is made from, only earlier ones."""
    count = draw(st.integers(1, len(NAMES)))
    return {
        name: draw(st.lists(st.sampled_from(NAMES[:index]), unique=True, max_size=3)) if index else []
        for index, name in enumerate(NAMES[:count])
    }


def built(graph: dict[str, list[str]]) -> tuple[World, Plan]:
    """All of it made: every step done, every artifact from its inputs."""
    state = world()
    for name, sources in graph.items():
        state = commit(state, artifact(name, name, inputs=state.digests(sources)))
    return state, plan(*(step(name, " ".join(sources), status="done") for name, sources in graph.items()))


def dependants(graph: dict[str, list[str]], roots: set[str]) -> set[str]:
    """Naive twin: go through the DAG in order and let everything fall that was made from a fallen one."""
    fallen = set(roots)
    for name, sources in graph.items():
        if fallen & set(sources):
            fallen.add(name)
    return fallen


@st.composite
def marked(draw: st.DrawFn) -> tuple[dict[str, list[str]], set[str]]:
    graph = draw(graphs())
    return graph, draw(st.sets(st.sampled_from(list(graph)), min_size=1))


@given(marked())
def test_exactly_the_dependants_fall_and_no_independent_branch(case: tuple[dict[str, list[str]], set[str]]) -> None:
    graph, roots = case
    state, steps = built(graph)
    after, marked_plan, what = invalidate(state, steps, roots, CAUSE)
    fallen = dependants(graph, roots)
    assert set(what.artifacts) == fallen
    assert {name for name in graph if not after.holds(name)} == fallen
    assert {name for name, value in statuses(marked_plan).items() if value == "invalid"} == fallen


@given(marked())
def test_marking_twice_is_marking_once(case: tuple[dict[str, list[str]], set[str]]) -> None:
    graph, roots = case
    once, once_plan, _ = invalidate(*built(graph), roots, CAUSE)
    twice, twice_plan, what = invalidate(once, once_plan, roots, CAUSE)
    assert twice.artifacts == once.artifacts
    assert twice_plan == once_plan
    assert (what.artifacts, what.steps) == ((), ())
    assert settle(once) == once


@given(marked())
def test_making_every_root_again_with_equal_content_brings_everything_back(
    case: tuple[dict[str, list[str]], set[str]],
) -> None:
    graph, roots = case
    state, steps = built(graph)
    after, fallen, _ = invalidate(state, steps, roots, CAUSE)
    for name in graph:
        if name in roots:
            old = state.artifacts[name]
            after = settle(commit(after, artifact(name, name, inputs=old.inputs)))
            fallen = follow(after, fallen)
    assert all(after.holds(name) for name in graph)
    assert statuses(fallen) == statuses(steps)


@given(marked())
def test_making_a_root_again_with_other_content_never_brings_a_direct_dependant_back(
    case: tuple[dict[str, list[str]], set[str]],
) -> None:
    graph, roots = case
    after, _, _ = invalidate(*built(graph), roots, CAUSE)
    for name in graph:
        if name in roots:
            after = settle(commit(after, artifact(name, "other")))
    for name, sources in graph.items():
        if name not in roots and roots & set(sources):
            assert not after.holds(name)


@given(graphs(), st.data())
def test_equal_content_under_one_name_never_invalidates(graph: dict[str, list[str]], data: st.DataObject) -> None:
    state, steps = built(graph)
    name = data.draw(st.sampled_from(list(graph)))
    again = settle(commit(state, artifact(name, name, inputs=state.artifacts[name].inputs)))
    assert statuses(follow(again, steps)) == statuses(steps)
    assert again.artifacts[name].version == 1


@given(graphs(), st.data())
def test_the_order_of_events_does_not_matter(graph: dict[str, list[str]], data: st.DataObject) -> None:
    roots = data.draw(st.lists(st.sampled_from(list(graph)), unique=True))
    state, steps = built(graph)
    one_by_one, each_plan = state, steps
    for root in data.draw(st.permutations(roots)):
        one_by_one, each_plan, _ = invalidate(one_by_one, each_plan, [root], CAUSE)
    at_once, plan_at_once, _ = invalidate(state, steps, roots, CAUSE)
    assert {n: one_by_one.holds(n) for n in graph} == {n: at_once.holds(n) for n in graph}
    assert statuses(each_plan) == statuses(plan_at_once)


@given(graphs())
def test_steps_in_other_states_are_not_touched_by_marks(graph: dict[str, list[str]]) -> None:
    state, steps = built(graph)
    others = (StepStatus.RUNNING, StepStatus.FAILED, StepStatus.SKIPPED)
    mixed = plan(*(each.as_(others[index % 3]) for index, each in enumerate(steps.steps)))
    _, after, _ = invalidate(state, mixed, list(graph)[:1], CAUSE)
    assert statuses(after) == statuses(mixed)


def test_a_step_planned_to_make_anew_what_holds_again_has_nothing_left_to_do() -> None:
    before, steps = seed()
    after, marked, _ = invalidate(before, steps, ["config_raw"], CAUSE)
    redrawn = marked.with_steps(marked.step("SETTINGS").as_(StepStatus.SUPERSEDED))  # type: ignore[arg-type]
    redrawn = redrawn.model_copy(update={"steps": (*redrawn.steps, step("settings", "config_raw", id="s2.1"))})
    unsettled = commit(after, before.artifacts["config_raw"])
    settled = settle(unsettled)
    assert lifted(unsettled, settled) == {"settings"}
    assert follow(settled, redrawn, back=lifted(unsettled, settled)).step("s2.1").status is StepStatus.DONE  # type: ignore[arg-type]
    assert follow(settled, redrawn).step("s2.1").status is StepStatus.PENDING  # type: ignore[arg-type]
