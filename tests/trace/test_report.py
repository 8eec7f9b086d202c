"""What does the report say? From it alone a stranger can tell what failed, and what was made of it."""

from typing import Any

import pytest

from agent.core.failure import ErrorFacts, Trigger
from agent.core.ladder import Options, choose_rung
from agent.core.limits import Ledger, Limits
from agent.core.merge import PlanDelta
from agent.core.plan import Plan, Step, StepId, downstream
from agent.core.record import (
    Answered,
    AttemptEnded,
    Escalated,
    Planned,
    Recovered,
    RunStarted,
    StepStarted,
    TraceRecord,
)
from agent.trace.html import ladder
from agent.trace.html.model import Material, Report
from agent.trace.html.report import MOST, report_of
from agent.trace.html.steps import DRAWABLE
from agent.trace.html.timeline import IDLE, ROWS, critical_chain, timeline, tries
from agent.trace.html.wording import count, listed, seconds, size
from tests.builders import classified, plan, step
from tests.trace.materials import BEGAN, artifact, asking, empty, killed, many


def _chain(count: int) -> list[Step]:
    return [step("x0"), *(step(f"x{n}", f"x{n - 1}") for n in range(1, count))]


def test_the_six_questions_about_a_run_are_answered(backfill: Report) -> None:
    first = {each.rung: each for each in reversed(backfill.mended)}
    retried, patched, replanned = first["retry"], first["patch"], first["replan"]

    assert "504" in retried.failed
    assert retried.proved.startswith("nothing")
    assert retried.rung == "retry"

    assert "413" in patched.failed
    assert patched.proved.startswith("the call")
    assert (patched.rung, patched.done) == ("patch", "batch = 'day' instead of 'week'")

    assert "revenue_net" in replanned.failed
    assert replanned.proved.startswith("a precondition")
    assert replanned.rung == "replan"
    assert dict(replanned.passed)["rewrite"].startswith("it would redo")
    assert "schema" in replanned.doubted
    assert "export" in replanned.kept

    assert all("failed attempt" in each.cost for each in backfill.mended)


def test_what_was_redone_is_told_apart_from_what_was_looked_at_and_kept(backfill: Report) -> None:
    replanned = next(each for each in backfill.mended if each.rung == "replan")
    stood = {each.intent for each in replanned.redone if each.stood}
    again = {each.intent: each.why for each in replanned.redone if not each.stood}
    assert stood
    assert all("2025-W" in each for each in stood)
    assert again["Read the schema of the export"] == "it looks again at what was in doubt"
    assert "it had failed" in again.values()
    loaded = [each for each in replanned.kept if each.startswith("loaded")]
    assert len(loaded) == len(stood)


def test_the_outcome_is_one_sentence_on_top(backfill: Report) -> None:
    assert report_of(many(5, broken=2)).outcome == (
        "Satisfied: every step and criterion is verified; on the way 2 calls were patched."
    )
    assert backfill.outcome.startswith("Satisfied: every step and criterion is verified; on the way ")
    assert backfill.outcome.endswith(" and the plan was drawn anew once.")


def test_each_revision_shows_what_it_kept_and_mended(config_report: Report) -> None:
    first, second = config_report.drawn
    broken = {step for step, cell in first.cells.items() if cell.broke}
    assert len(broken) == 1
    changes = {cell.change for cell in second.cells.values()}
    assert changes == {"kept", "again"}
    assert broken <= {step for step, cell in second.cells.items() if cell.change == "again"}
    assert {cell.status for cell in second.cells.values()} == {"done"}


def test_the_statuses_of_a_revision_are_those_when_the_next_was_drawn(config_report: Report) -> None:
    first = {each.makes[0]: config_report.drawn[0].cells[each.id] for each in config_report.steps}
    assert first["config_raw"].status == "done"
    assert first["schema"].status == "invalid"
    assert first["db_handle"].status != "done"


def test_an_artifact_names_its_inputs_their_versions_and_its_checks(config_report: Report) -> None:
    handle = next(each for each in config_report.artifacts if each.name == "db_handle")
    sources = {each.name: each.version for each in handle.sources}
    assert sources == {"schema": "version 2", "settings": "version 1"}
    assert ("artifacts.db_handle.tables == artifacts.schema.tables", "verified") in handle.checks
    assert handle.maker == "Provision the reporting database"


def test_an_input_that_has_changed_since_is_said_to_be_no_longer_current() -> None:
    material = many(1, broken=0)
    old = artifact("part_0000", "PART_0000", inputs={"source": "e" * 32})
    changed = material.world.model_copy(update={"artifacts": {**material.world.artifacts, "part_0000": old}})
    report = report_of(Material(thread="t", standing="satisfied", plan=material.plan, world=changed))
    (source,) = next(each for each in report.artifacts if each.name == "part_0000").sources
    assert not source.current


def test_the_longest_chain_is_found_over_real_dependencies(backfill: Report) -> None:
    chain = backfill.timeline.chain
    assert chain[:2] == ("Confirm that the export landed", "Read the schema of the export")
    assert chain[-1] == "Post the summary of the quarter"
    assert 0 < backfill.timeline.critical <= backfill.timeline.seconds
    marked = [bar for row in backfill.timeline.rows for bar in row.bars if bar.critical]
    assert len(marked) == len(chain)


def test_every_attempt_is_on_the_timeline_with_its_fate(backfill: Report) -> None:
    fates = [bar.fate for row in backfill.timeline.rows for bar in row.bars]
    assert "found" in fates
    numbers = {of: figure for figure, of in backfill.numbers}
    assert numbers["attempts"] == str(len(fates))
    assert numbers["of them failed"] == str(fates.count("failed"))


def test_the_chain_of_a_plan_with_a_cycle_leaves_the_cycle_out() -> None:
    drawn = plan(step("a", "b"), step("b", "a"), step("c"))
    assert critical_chain(drawn, {StepId("C"): 1.0}) == (StepId("C"),)


def test_pauses_in_which_nothing_ran_are_left_out_of_the_axis() -> None:
    away = 3600.0
    trace: list[TraceRecord] = [
        RunStarted(at=BEGAN, goal="x", goal_revision=1),
        StepStarted(at=BEGAN + 1, step=StepId("X"), intent="x", attempt=1),
        AttemptEnded(at=BEGAN + 1 + 2 * IDLE, step=StepId("X"), attempt=1, ok=True, how="called", seconds=2 * IDLE),
        RunStarted(at=BEGAN + away, goal="x", goal_revision=1, run=2),
    ]
    times = timeline(trace, tries(trace), plan(step("x")))
    assert times.seconds == pytest.approx(1 + 2 * IDLE)
    assert times.paused == pytest.approx(away - 1 - 2 * IDLE)


def test_a_killed_run_says_what_it_has_and_how_to_go_on() -> None:
    report = report_of(killed())
    assert report.outcome == (
        "Stopped in the middle (killed, or interrupted), 1 of 3 steps done, and what was verified is kept; "
        "nothing had to be recovered."
    )
    assert report.next == "kintsugi resume killed"
    assert [bar.fate for row in report.timeline.rows for bar in row.bars] == ["done", "open"]
    assert len(report.unfinished) == 2


def test_a_run_that_was_killed_before_it_began_has_a_report() -> None:
    report = report_of(empty())
    assert report.outcome == "Stopped before anything was planned."
    assert not report.steps
    assert not report.drawn


def test_an_open_question_comes_first_and_says_how_to_go_on() -> None:
    report = report_of(asking())
    (question,) = report.asked
    assert not question.answer
    assert "403" in question.question
    assert report.outcome.startswith("Waiting for a person to answer 1 question")
    (escalated,) = report.mended
    assert escalated.rung == "escalate"
    assert [rung for rung, _ in escalated.passed] == ["rewrite", "replan"]


def test_an_answer_stands_beside_its_question() -> None:
    trace = (
        RunStarted(at=BEGAN, goal="x", goal_revision=1),
        Escalated(at=BEGAN + 1, id="q", question="What now?"),
        Answered(at=BEGAN + 1, id="q", answer={"choice": "skip", "reason": "not needed"}),
    )
    (asked,) = report_of(Material(thread="t", standing="running", trace=trace)).asked
    assert (asked.question, asked.answer) == ("What now?", "skip: reason not needed")


def test_failures_that_went_along_are_told_with_the_one_they_joined() -> None:
    first, second = (
        classified("precondition", of=key, step=StepId(key.upper()), error=ErrorFacts(kind="exception", message=key))
        for key in ("x", "y")
    )
    options = Options(breadth=1.0, rewritable=True)
    records: list[TraceRecord] = [RunStarted(at=BEGAN, goal="x", goal_revision=1)]
    for failed, ordered in ((first, False), (second, True)):
        choice = choose_rung(failed, options, Limits(), Ledger(), ordered)
        records.append(
            Recovered(at=BEGAN, classified=failed, options=options, limits=Limits(), ledger=Ledger(), choice=choice)
        )
    drawn = plan(step("x"), step("y"))
    (told,) = report_of(Material(thread="t", standing="running", plan=drawn, trace=tuple(records))).mended
    assert told.along == (("y", "y"),)


def test_a_replan_of_a_large_plan_is_told_without_reading_the_plan_for_every_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    walks: list[object] = []

    def counted(*given: Any) -> frozenset[StepId]:
        walks.append(given)
        return downstream(*given)

    monkeypatch.setattr(ladder, "downstream", counted)
    drawn = plan(*_chain(300), revision=2)
    failed = classified("precondition", of="x0", error=ErrorFacts(kind="exception", message="gone"))
    options = Options(breadth=1.0, rewritable=True)
    choice = choose_rung(failed, options, Limits(), Ledger())
    fell = Recovered(at=BEGAN, classified=failed, options=options, limits=Limits(), ledger=Ledger(), choice=choice)
    delta = PlanDelta(reopened=tuple(each.id for each in drawn.steps))
    again = Planned(at=BEGAN, trigger=Trigger.TASK_FAILURE, planner="test", revision=2, delta=delta, reused=())
    (told,) = ladder.mended((fell, again), (), drawn)
    assert len(told.redone) == 300
    assert told.redone[-1].why == "it stands on the step that failed"
    assert len(walks) == 1


def test_a_dropped_step_is_seen_once_in_the_revision_that_drops_it() -> None:
    def drawn(revision: int, **delta: tuple[StepId, ...]) -> Planned:
        return Planned.model_validate(
            {
                "at": BEGAN,
                "trigger": "initial" if revision == 1 else "intent_change",
                "planner": "test",
                "revision": revision,
                "delta": PlanDelta(**delta),
                "reused": (),
            }
        )

    x, y, z = StepId("X"), StepId("Y"), StepId("Z")
    trace = (drawn(1, added=(x,)), drawn(2, superseded=(x,), added=(y,)), drawn(3, kept=(y,), added=(z,)))
    last = plan(step("x", status="superseded"), step("y"), step("z"), revision=3)
    first, second, third = report_of(Material(thread="t", standing="running", plan=last, trace=trace)).drawn
    assert {key: cell.change for key, cell in first.cells.items()} == {"X": "kept"}
    assert {key: cell.change for key, cell in second.cells.items()} == {"X": "dropped", "Y": "new"}
    assert {key: cell.change for key, cell in third.cells.items()} == {"Y": "kept", "Z": "new"}


def test_a_plan_that_a_person_wrote_into_the_state_is_shown_without_any_record() -> None:
    (drawn,) = report_of(Material(thread="t", standing="running", plan=plan(step("x")))).drawn
    assert list(drawn.cells) == ["X"]


def test_a_large_run_is_cut_with_the_number_of_what_is_left_out() -> None:
    report = report_of(many(1_000))
    assert len(report.artifacts) == MOST["artifacts"]
    assert report.left_out["artifacts"] == 1_002 - MOST["artifacts"]
    assert len(report.timeline.rows) == ROWS
    assert report.timeline.left_out == 1_002 - ROWS
    broken = [row for row in report.timeline.rows if any(bar.fate == "failed" for bar in row.bars)]
    assert len(broken) == 3


def test_arrows_that_follow_from_others_are_left_out() -> None:
    drawn = plan(step("a"), step("b", "a"), step("c", "a b"))
    lines = {each.id: each.after for each in report_of(Material(thread="t", standing="running", plan=drawn)).steps}
    assert lines == {"A": (), "B": ("A",), "C": ("B",)}


def test_like_steps_share_a_bundle_and_eventful_ones_stand_alone() -> None:
    lines = {each.makes[0]: each.bundle for each in report_of(many(5, broken=1)).steps}
    assert (lines["source"], lines["part_0000"]) == ("0 make_source", "")
    assert lines["part_0001"] == "1 make_part_0001"


@pytest.mark.parametrize(
    "drawn", [plan(*(step(f"x{n}") for n in range(600))), plan(*_chain(600))], ids=["wide", "deep"]
)
def test_a_large_plan_is_bundled_until_it_can_be_drawn_and_has_no_cycle_then(drawn: Plan) -> None:
    lines = report_of(Material(thread="t", standing="running", plan=drawn)).steps
    home = {each.id: each.bundle or each.id for each in lines}
    assert len(set(home.values())) <= DRAWABLE
    arrows = {(home[before], home[each.id]) for each in lines for before in each.after}
    remaining = set(home.values())
    while free := {each for each in remaining if not any(a in remaining for a, b in arrows if b == each and a != b)}:
        remaining -= free
    assert not remaining


def test_a_report_of_nothing_at_all_can_be_made() -> None:
    assert report_of(Material(thread="t", standing="running", plan=Plan())).outcome == (
        "Running, and nothing is planned yet."
    )


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (seconds(0.034), "0.03 s"),
        (seconds(59.7), "1 min"),
        (seconds(185), "3 min 5 s"),
        (seconds(7_800), "2 h 10 min"),
        (size(20_000_000), "20 MB"),
        (size(84), "84 B"),
        (count(1, "step"), "1 step"),
        (count(3_000, "step"), "3,000 steps"),
        (listed(("a", "b", "c"), 2), "a, b and 1 more"),
        (listed(()), "none"),
    ],
)
def test_figures_are_said_in_short(said: str, meant: str) -> None:
    assert said == meant
