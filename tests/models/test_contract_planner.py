"""Planning over contracts, and which planner is asked."""

import pytest

from agent.core.chaining import Unreachable
from agent.core.goal import Criterion
from agent.models.contract_planner import ContractPlanner
from agent.models.planners import choose_planner
from agent.ports import PlanDraft, PlanningFailed, PlanRequest, Usage
from agent.tools.contracts import contract
from agent.tools.registry import Registry
from tests.doubles import scripted
from tests.models.builders import REGISTRY, drafted, request, searching

PLANNER = ContractPlanner(REGISTRY)


def tools(draft: PlanDraft) -> list[str]:
    return [each.tools[0] for each in draft.steps]


async def test_wanted_artifacts_are_chained_for_nothing() -> None:
    draft = await PLANNER.draw(request(wants="summary"))
    assert tools(draft) == ["fetch_export", "read_rows", "post_summary"]
    assert (draft.planner, draft.usage) == ("contract", Usage())
    assert len({each.id for each in draft.steps}) == 3


async def test_what_criteria_read_is_wanted_too_and_each_step_says_what_it_serves() -> None:
    criteria = [Criterion(id="enough", predicate="artifacts.rows.size() > 3"), Criterion(id="nice", text="reads well")]
    draft = await PLANNER.draw(request(wants="summary", goal={"criteria": criteria}))
    assert [each.serves for each in draft.steps] == [
        ("summary", "rows", "enough"),
        ("summary", "rows", "enough"),
        ("summary",),
    ]


async def test_a_goal_of_criteria_alone_is_enough() -> None:
    assert tools(await PLANNER.draw(request(goal={"criteria": ["artifacts.export.ok"]}))) == ["fetch_export"]


async def test_a_part_is_drawn_for_its_products_and_not_for_the_goal() -> None:
    part = request(wants="summary", present={"export": "..."}).model_copy(update={"region": True, "wants": ("rows",)})
    assert tools(await PLANNER.draw(part)) == ["read_rows"]


async def test_a_goal_of_text_alone_needs_a_model_and_the_message_says_what_to_do() -> None:
    with pytest.raises(PlanningFailed, match=r"(?s)needs a model.*KINTSUGI_MODEL.*`wants`"):
        await PLANNER.draw(request("Summarise the export"))


async def test_what_no_tool_makes_is_proven() -> None:
    with pytest.raises(Unreachable, match="no tool produces 'dashboard'"):
        await PLANNER.draw(request(wants="dashboard"))


async def test_a_tool_without_a_written_contract_is_chained_under_its_own_name_and_needs_its_parameters() -> None:
    with pytest.raises(Unreachable, match=r"no tool produces 'query' \(needed by search\)"):
        await PLANNER.draw(request(wants="search"))
    (step,) = (await PLANNER.draw(request(wants="search", goal={"given": {"query": "q"}}))).steps
    assert step.call is not None
    assert step.call.args == {"query": "{{query}}"}


async def test_only_the_contracts_of_the_request_are_used() -> None:
    left = {name: each for name, each in REGISTRY.contracts.items() if name != "read_rows"}
    with pytest.raises(Unreachable, match="no tool produces 'rows'"):
        await PLANNER.draw(request(wants="summary").model_copy(update={"contracts": left}))


async def test_a_circle_and_a_wrong_contract_are_planning_failures() -> None:
    @contract(needs="b", produces="a")
    def make_a(b: int) -> int:
        """Make a."""
        return b

    @contract(needs="a", produces="b")
    def make_b(a: int) -> int:
        """Make b."""
        return a

    @contract(produces="c", args={"count": "many"})
    def make_c(count: int) -> int:
        """Make c."""
        return count

    registry = Registry([make_a, make_b, make_c])
    for wants, told in (("a", "needs are cyclic: a -> b -> a"), ("c", "argument 'count' must be integer")):
        asked = request(wants=wants).model_copy(update={"contracts": registry.contracts})
        with pytest.raises(PlanningFailed, match=told):
            await ContractPlanner(registry).draw(asked)


async def test_without_a_model_contracts_are_all_there_is() -> None:
    assert isinstance(choose_planner(REGISTRY), ContractPlanner)


@pytest.mark.parametrize(
    ("asked", "planner"),
    [
        pytest.param(request(wants="summary"), "contract", id="contracts reach the wants"),
        pytest.param(request("Find out", wants="rows"), "contract", id="text and wants"),
        pytest.param(request("Find out"), "model", id="text alone"),
        pytest.param(request(wants="found"), "model", id="contracts do not reach the wants"),
    ],
)
async def test_a_model_is_asked_only_where_contracts_do_not_reach(asked: PlanRequest, planner: str) -> None:
    replies = [drafted(searching(), wants=["found"])] if planner == "model" else []
    with scripted(*replies) as model:
        assert (await choose_planner(REGISTRY, model).draw(asked)).planner == planner


async def test_when_both_fail_both_are_told_and_the_model_is_paid_for() -> None:
    with scripted("no", "no", "no") as model, pytest.raises(PlanningFailed) as caught:
        await choose_planner(REGISTRY, model).draw(request(wants="dashboard"))
    assert "no JSON object" in str(caught.value)
    assert "no tool produces 'dashboard'" in str(caught.value)
    assert caught.value.usage.calls == 3
