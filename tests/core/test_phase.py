"""The phase table: complete, connected, and the only place where the machine is written down."""

from typing import get_args

from agent.core.move import LEADS_TO, Move
from agent.core.phase import LEGAL, START, Phase, mermaid, reachable


def test_every_phase_can_be_reached_from_the_start() -> None:
    assert reachable() == set(Phase)


def test_every_phase_can_reach_the_end() -> None:
    assert all(Phase.END in reachable(each) for each in LEGAL)


def test_every_phase_but_the_end_has_a_row() -> None:
    assert set(LEGAL) == set(Phase) - {Phase.END}
    assert all(LEGAL.values())
    assert START in LEGAL


def test_only_the_dispatcher_leads_to_the_planner() -> None:
    assert [each for each, targets in LEGAL.items() if Phase.PLANNER in targets] == [Phase.DISPATCHER]


def test_only_the_finisher_ends() -> None:
    assert [each for each, targets in LEGAL.items() if Phase.END in targets] == [Phase.FINISHER]


def test_every_move_leads_where_the_dispatcher_may_go() -> None:
    moves = {each.model_fields["move"].default for each in get_args(get_args(Move)[0])}
    assert set(LEADS_TO) == moves
    assert set(LEADS_TO.values()) == set(LEGAL[Phase.DISPATCHER])


def test_the_diagram_shows_every_edge_of_the_table() -> None:
    lines = mermaid().splitlines()
    assert lines[0] == "flowchart LR"
    assert f"    start([start]) --> {START}" in lines
    assert "    dispatcher --> planner" in lines
    assert "    finisher --> done([end])" in lines
    assert len(lines) == 2 + sum(len(targets) for targets in LEGAL.values())
