"""What is wrong with tools, contracts and settings is said when the graph is built, and names what is wrong."""

from typing import Any

import pytest
from langchain_core.tools import tool

from agent import Settings, build_graph, contract
from agent.tools.contracts import contract_of
from tests.builders import Calls, calm, goal, run, values


def test_two_tools_of_one_name_are_refused() -> None:
    calls = Calls()
    with pytest.raises(ValueError, match="two tools are named 'make_a'"):
        build_graph([calls.tool("a"), calls.tool("a")], settings=calm())


def test_a_stand_in_for_nobody_is_refused() -> None:
    with pytest.raises(ValueError, match="stands in for 'ghost', which is not registered"):
        build_graph([Calls().tool("a", stands_in_for="ghost")], settings=calm())


def test_a_parameter_that_langchain_would_swallow_is_refused() -> None:
    with pytest.raises(ValueError, match="LangChain keeps the parameter name 'config'"):
        build_graph([Calls().tool("a", "config")], settings=calm())


def test_a_predicate_that_does_not_compile_shows_where() -> None:
    with pytest.raises(ValueError, match="position 15"):
        Calls().tool("a", requires="artifacts.b ==")


@pytest.mark.parametrize(
    ("promised", "says"),
    [
        ({"effect": "harmless"}, "must be read_only or mutating"),
        ({"needs": "", "takes": "n"}, "parameter 'n' is bound by nothing"),
        ({"args": {"ghost": 1}}, "has no parameter 'ghost'"),
    ],
)
def test_a_contract_that_does_not_fit_its_tool_is_refused(promised: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Calls().tool("a", **promised)


def test_a_plain_function_is_a_tool_and_one_without_a_contract_counts_as_a_write() -> None:
    def helper(n: int) -> int:
        """Help. In some way."""
        return n

    promise = contract_of(tool(helper)).promise
    assert (promise.effect, promise.idempotent, promise.needs, promise.produces) == (
        "mutating",
        False,
        ("n",),
        ("helper",),
    )
    graph = build_graph([helper, Calls().tool("a")], settings=calm())
    assert run(graph, goal("a"))["outcome"].status == "satisfied"
    assert run(graph, goal("helper"), "2")["outcome"].status == "unreachable"


def test_needs_are_the_parameters_that_nothing_else_binds() -> None:
    @contract(args={"depth": 3}, alternatives={"by": ["week", "day"]}, effect="read_only")
    @tool
    def rows(tables: dict[str, Any], depth: int, by: str, note: str = "") -> str:
        """Read rows. Slowly."""
        return note

    promise = contract_of(rows).promise
    assert (promise.needs, promise.produces, promise.intent) == (("tables",), ("rows",), "Read rows")
    assert promise.args == {"depth": 3, "tables": "{{tables}}"}
    assert promise.idempotent


def test_a_reference_in_an_argument_is_a_need() -> None:
    calls = Calls()
    tools = [
        calls.tool("settings", "", lambda: {"db": "x.db"}),
        calls.tool("a", "", lambda path: path, takes="path", args={"path": "sqlite:{{settings.db}}"}),
    ]
    assert values(run(build_graph(tools, settings=calm()), goal("a")))["a"] == "sqlite:x.db"


def test_a_family_is_one_step_for_every_element_of_a_given_list() -> None:
    calls = Calls()
    tools = [
        calls.tool("w_{week}", "", lambda week: week * 10, name="load", takes="week", each={"week": "weeks"}),
        calls.tool("total", "w_*", lambda: 1, takes=""),
    ]
    end = run(build_graph(tools, settings=calm()), goal("total", given={"weeks": [1, 2, 3]}))
    assert values(end) == {"w_1": 10, "w_2": 20, "w_3": 30, "total": 1}
    assert calls == {"load": 3, "make_total": 1}


@pytest.mark.parametrize("wrong", [{"escalation": "maybe"}, {"jitter": 2}, {"ghost": 1}, {"limits": {"retry": -1}}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Settings(**wrong)
