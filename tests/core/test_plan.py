"""Steps, their dependencies, and which of them may start now."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.plan import Plan, StepId, StepStatus, cycle, downstream, edges, ready, upstream
from agent.core.world import World
from tests.builders import artifact, plan, step, world


def ids(*names: str) -> tuple[StepId, ...]:
    return tuple(StepId(each) for each in names)


def started(steps: Plan, state: World) -> list[str]:
    return [each.id for each in ready(steps, state)]


def test_a_step_reads_its_needs_its_references_and_what_its_predicates_read() -> None:
    made = step(
        "x",
        "a",
        call={"tool": "t", "args": {"q": ["{{b.c}}"]}},
        preconditions=["artifacts.d == 1"],
        effects=["artifacts.x == artifacts.e"],
    )
    assert made.reads() == {"a", "b", "d", "e"}


def test_what_a_step_is_for_does_not_depend_on_its_id_or_on_the_order_of_its_products() -> None:
    assert step("b a").key == step("a b", id="other").key == "a b"
    assert step("", intent="tidy up").key == "tidy up"


def test_a_plan_without_the_step_says_so() -> None:
    with pytest.raises(KeyError, match="no step 'ghost' in plan revision 1"):
        plan(step("x")).step(StepId("ghost"))


def test_superseded_steps_make_nothing() -> None:
    steps = plan(step("x", id="old", status="superseded"), step("x", id="new"))
    made = steps.producer("x")
    assert made is not None
    assert made.id == "new"
    assert [each.id for each in steps.live()] == ["new"]
    assert steps.producer("y") is None


def test_dependencies_come_from_artifacts_predicates_and_explicit_order_never_from_the_list() -> None:
    steps = [step("c", "a"), step("a"), step("b", preconditions=["artifacts.a == 1"]), step("d", after=["B", "GONE"])]
    assert edges(steps) == {"C": {"A"}, "A": set(), "B": {"A"}, "D": {"B"}}


def test_downstream_and_upstream_leave_out_the_roots() -> None:
    steps = [step("a"), step("b", "a"), step("c", "b"), step("d", "a"), step("e")]
    assert downstream(steps, ids("A")) == {"B", "C", "D"}
    assert upstream(steps, ids("C")) == {"A", "B"}
    assert downstream(steps, ids("E")) == frozenset()


def test_a_cycle_is_named_with_its_first_step_at_both_ends() -> None:
    loop = cycle([step("a", "c"), step("b", "a"), step("c", "b"), step("d", "c"), step("e")])
    assert loop[0] == loop[-1]
    assert set(loop) == {"A", "B", "C"}
    assert cycle([step("a"), step("b", "a")]) == ()
    assert cycle([step("a", after=["A"])]) == ("A", "A")


@pytest.mark.parametrize(
    ("before", "starts"),
    [
        pytest.param("done", True, id="done"),
        pytest.param("skipped", True, id="skipped"),
        pytest.param("superseded", True, id="superseded"),
        pytest.param("failed", False, id="failed"),
        pytest.param("invalid", False, id="invalid"),
        pytest.param("running", False, id="running"),
        pytest.param("pending", False, id="pending"),
    ],
)
def test_a_failed_dependency_satisfies_nothing(before: str, starts: bool) -> None:
    steps = plan(step("a", status=before), step("b", after=["A"]))
    assert ("B" in started(steps, world())) is starts


def test_a_skipped_maker_makes_nothing_that_could_be_needed() -> None:
    assert started(plan(step("a", status="skipped"), step("b", "a")), world()) == []


def test_a_marked_artifact_is_no_input() -> None:
    steps = plan(step("a", status="done"), step("b", "a"))
    assert started(steps, world("a")) == ["B"]
    assert started(steps, world(artifact("a", mark="root"))) == []
    assert started(steps, world(artifact("a", mark="derived"))) == []


STATUS = st.sampled_from([each.value for each in StepStatus])


@st.composite
def situations(draw: st.DrawFn) -> tuple[Plan, World]:
    """Any plan in any state over any world, sensible or not."""
    names = [f"a{each}" for each in range(draw(st.integers(1, 7)))]
    some = st.lists(st.sampled_from(names), unique=True, max_size=3)
    steps = [
        step(name, " ".join(draw(some)), status=draw(STATUS), after=[each.upper() for each in draw(some)])
        for name in names
    ]
    held = [artifact(name, mark=draw(st.sampled_from(["", "", "root", "derived"]))) for name in draw(some)]
    return plan(*steps), world(*held)


@given(situations())
def test_ready_steps_are_those_a_naive_twin_finds(situation: tuple[Plan, World]) -> None:
    steps, state = situation
    twin = []
    for each in steps.steps:
        if each.status is not StepStatus.PENDING:
            continue
        inputs = all(
            n in state.artifacts and state.artifacts[n].mark is None for n in each.needs if n not in each.produces
        )
        order = True
        for other in steps.steps:
            if other.id in each.after and other.status not in ("done", "skipped", "superseded"):
                order = False
        if inputs and order:
            twin.append(each.id)
    assert started(steps, state) == twin


@given(situations())
def test_downstream_is_the_mirror_of_upstream(situation: tuple[Plan, World]) -> None:
    steps = situation[0].steps
    for one in steps:
        for other in steps:
            if one.id != other.id:
                assert (one.id in downstream(steps, [other.id])) == (other.id in upstream(steps, [one.id]))


@given(situations())
def test_a_cycle_is_found_exactly_when_some_step_depends_on_itself(situation: tuple[Plan, World]) -> None:
    steps = situation[0].steps
    graph = edges(steps)

    def reaches(start: StepId) -> bool:
        seen: set[StepId] = set()
        frontier = set(graph[start])
        while frontier:
            each = frontier.pop()
            if each not in seen:
                seen.add(each)
                frontier |= graph[each]
        return start in seen

    loop = cycle(steps)
    assert bool(loop) == any(reaches(each.id) for each in steps)
    assert all(after in graph[before] for before, after in pairwise(loop))
