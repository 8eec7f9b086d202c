"""What worlds and plans carry along is what would be computed anew: after any moves, and for every decision on it."""

from hypothesis import given
from hypothesis import strategies as st

from agent.core.dispatch import next_move
from agent.core.invalidation import invalidate, up_to_date
from agent.core.limits import Ledger, Limits
from agent.core.plan import Index, Plan, StepId, StepStatus
from agent.core.world import Assumption, World, commit, seen
from tests.builders import artifact, goal, plan, step, view

STEPS = ("a", "b a", "c a b", "d c", "e", "f d e")
"""What each makes, and then what it needs."""

PLAN = plan(*(step(each.split()[0], " ".join(each.split()[1:])) for each in STEPS))

moves = st.lists(
    st.tuples(
        st.sampled_from(["commit", "look", "break", "status", "patch", "follow"]), st.integers(0, 5), st.integers(0, 2)
    ),
    max_size=14,
)


def moved(world: World, steps: Plan, kind: str, which: int, value: int) -> tuple[World, Plan]:
    it = steps.steps[which]
    name = it.produces[0]
    match kind:
        case "commit" if all(world.holds(each) for each in it.reads()):
            leaning = (Assumption(predicate="facts.f == 1"),) if value else ()
            probed = {"seen": "x", "producer": it.id} if value == 1 else {}
            made = artifact(name, value, inputs=world.digests(it.reads()), assumptions=leaning, **probed)
            return up_to_date(commit(world.ticked(), made), steps.with_steps(it.as_(StepStatus.DONE)))
        case "look" if name in world.artifacts:
            return seen(world, name), steps
        case "break":
            return invalidate(world, steps, [name], "it broke")[:2]
        case "status":
            return world, steps.with_steps(it.as_(list(StepStatus)[value]))
        case "patch":
            return world, steps.with_steps(it.model_copy(update={"needs": ("e",) if name != "e" else ()}))
        case _:
            return up_to_date(world, steps)


def stranger(world: World, steps: Plan) -> tuple[World, Plan]:
    """The same, as a stored checkpoint brings them back: nothing is known but the fields."""
    return World.model_validate(world.model_dump()), Plan.model_validate(steps.model_dump())


@given(moves)
def test_what_is_carried_along_is_what_would_be_computed(made: list[tuple[str, int, int]]) -> None:
    world, steps = World().ticked().model_copy().knowing(news=frozenset()), PLAN.model_copy().knowing(news=frozenset())
    for each in made:
        world, steps = moved(world, steps, *each)
        anew, plan_anew = stranger(world, steps)
        assert steps.index == Index.of(steps.steps)
        known = ("marked", "mirrored", "leaning")
        assert [getattr(world, name) for name in known] == [getattr(anew, name) for name in known]
        assert {name: users for name, users in world.users.items() if users} == anew.users
        assert up_to_date(world, steps) == up_to_date(anew, plan_anew)
        wanted, spent = goal("f d"), Ledger()
        assert next_move(wanted, world, steps, view(world), Limits(), spent) == next_move(
            wanted, anew, plan_anew, view(anew), Limits(), spent
        )


def test_a_step_that_is_not_there_changes_nothing() -> None:
    assert PLAN.with_steps(step("z")) is PLAN
    assert StepId("Z") not in PLAN.index.places


def test_of_two_steps_with_one_id_the_first_is_meant() -> None:
    twice = plan(step("a"), step("a", status="done"))
    assert twice.step(StepId("A")).status is StepStatus.PENDING
