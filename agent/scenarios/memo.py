"""Scenario `memo`: a two-page investment memo on a company, from documents and a source that goes down (seed 3).

    research (x 4: team, market, product, risks) ------------------+
    look_up_company -> read_funding_records -> traction -----------+-> write_memo

The funding source goes down between its two answers. By itself it comes back: a retry. With `funding-down` it does
not, and what the company published stands in for it. With `nothing-published` there is nothing of that either, and
the memo says that the part is missing. With `traction-required` the goal takes the records and nothing else: there
is no memo, and the run says why.
"""

import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool
from pydantic import JsonValue

from agent.core.goal import Criterion, Goal
from agent.scenarios.loopback import ServiceClient
from agent.scenarios.memo_funding import COMPANY, ROUNDS, FundingSource, serving
from agent.scenarios.memo_text import TOPICS, funding_notes, memo_text, no_notes, notes_of, published_notes
from agent.scenarios.report import as_written, written
from agent.scenarios.scenario import ChangeGoal, Conditions, Prepared, Scenario, conditions_in, tally_in
from agent.tools.contracts import contract

FUNDING_DOWN = "funding-down"
NOTHING_PUBLISHED = "nothing-published"
TRACTION_REQUIRED = "traction-required"

_FILE = "memo.md"
_DOCUMENTS = Path(__file__).parent / "memo_documents"
_PUBLISHED = "published"

GOAL = Goal(
    text=f"Prepare a 2-page investment memo on {COMPANY['name']}. Cover team, market, product, traction, and risks.",
    wants=("memo",),
    criteria=(
        Criterion(
            id="cited",
            text="the memo stands on what was read for it and on nothing else",
            predicate="artifacts.memo.sources == artifacts.notes_team.sources + artifacts.notes_market.sources + "
            "artifacts.notes_product.sources + artifacts.traction.sources + artifacts.notes_risks.sources",
        ),
    ),
    given={"company_name": COMPANY["name"], "topics": list(TOPICS)},
)
_RECORDED = "artifacts.traction.sources.exists(s, s.startsWith('funding records'))"
"""What a memo requires where traction is a hard requirement."""


_MISSING = no_notes("the funding records could not be reached, and the company published nothing about its traction.")


@contextmanager
def _open(workspace: Path, conditions: Conditions, _: ChangeGoal) -> Iterator[Prepared]:
    documents = workspace / "documents"
    if not documents.exists():
        _laid_out(documents, published=conditions.event != NOTHING_PUBLISHED)
    down_for = math.inf if conditions.event else 1 if conditions.faults else 0
    hard = (_RECORDED,) if conditions.event == TRACTION_REQUIRED else ()
    with serving(FundingSource(tally_in(workspace), down_for)) as port:
        yield Prepared(
            goal=GOAL,
            tools=[*_research(documents), *_traction(documents, ServiceClient(port)), _writing(workspace, hard)],
            notes=(f"funding source: http://127.0.0.1:{port}", f"files: {workspace}"),
        )


def _laid_out(documents: Path, *, published: bool) -> None:
    """Copy the documents; a kill in the middle leaves none."""
    beside = documents.with_name(".documents.new")
    shutil.rmtree(beside, ignore_errors=True)
    shutil.copytree(_DOCUMENTS, beside, ignore=None if published else shutil.ignore_patterns(_PUBLISHED))
    beside.rename(documents)


def _research(documents: Path) -> list[BaseTool]:
    def read(topic: str) -> JsonValue:
        return notes_of(documents / f"{topic}.md", f"{topic}.md")

    @contract(
        produces="notes_{topic}",
        each={"topic": "topics"},
        ensures="size(result.facts) > 0 && size(result.sources) == 1",
        effect="read_only",
        observe=read,
    )
    def research(topic: str) -> JsonValue:
        """Read what the documents say about one topic."""
        return read(topic)

    return [research]


def _traction(documents: Path, client: ServiceClient) -> list[BaseTool]:
    @contract(produces="company", ensures="artifacts.company.name == args.company_name", effect="read_only")
    def look_up_company(company_name: str) -> JsonValue:
        """Look the company up in the funding source."""
        found: Any = client.get("/companies", name=company_name)
        return found[0] if found else None

    @contract(produces="traction", ensures="size(artifacts.traction.sources) == 1", effect="read_only")
    def read_funding_records(company: dict[str, Any]) -> JsonValue:
        """Read from the funding records what was put into the company."""
        rounds: Any = client.get("/rounds", company=company["id"])
        return funding_notes(company, rounds)

    @contract(
        produces="traction",
        ensures="size(artifacts.traction.sources) > 0",
        effect="read_only",
        cost=2.0,
        stands_in_for="read_funding_records",
    )
    def read_published() -> JsonValue:
        """Search the company's blog and press releases for signs of traction."""
        return published_notes(documents / _PUBLISHED)

    @contract(produces="traction", effect="read_only", cost=9.0, stands_in_for="read_funding_records")
    def leave_traction_out() -> JsonValue:
        """Say in the memo that traction is missing, and why."""
        return _MISSING

    return [look_up_company, read_funding_records, read_published, leave_traction_out]


_NOTES: JsonValue = {"traction": "{{traction}}", **{topic: f"{{{{notes_{topic}}}}}" for topic in TOPICS}}
"""All sections by reference."""


def _writing(workspace: Path, requires: tuple[str, ...]) -> BaseTool:
    def present() -> JsonValue:
        return _with_sources(as_written(workspace / _FILE))

    @contract(
        produces="memo",
        args={"notes": _NOTES},
        requires=requires,
        ensures="artifacts.memo.sources == args.notes.team.sources + args.notes.market.sources + "
        "args.notes.product.sources + args.notes.traction.sources + args.notes.risks.sources",
        effect="mutating",
        idempotent=True,
        observe=present,
    )
    def write_memo(company: dict[str, Any], notes: dict[str, Any]) -> JsonValue:
        """Write the memo from verified notes, each fact under its source."""
        return _with_sources(written(workspace / _FILE, memo_text(company, notes)))

    return write_memo


def _with_sources(file: JsonValue) -> JsonValue:
    """The file with the sources that it names at its end."""
    if not isinstance(file, dict):
        return None
    listed = str(file["text"]).partition("## Sources")[2].split("\n")
    return {**file, "sources": [line.partition(". ")[2] for line in listed if ". " in line]}


def _check(workspace: Path) -> list[str]:
    """Compare the memo with documents and records, past all tools."""
    event, memo = conditions_in(workspace).event, as_written(workspace / _FILE)
    if event == TRACTION_REQUIRED:
        return ["there is a memo, though traction could not be had from where it must come"] if memo else []
    documents = workspace / "documents"
    traction: dict[str | None, JsonValue] = {
        None: funding_notes(COMPANY, ROUNDS),
        FUNDING_DOWN: published_notes(documents / _PUBLISHED),
        NOTHING_PUBLISHED: _MISSING,
    }
    notes: dict[str, Any] = {topic: notes_of(documents / f"{topic}.md", f"{topic}.md") for topic in TOPICS}
    notes["traction"] = traction[event]
    wrong = memo != {"file": _FILE, "text": memo_text(COMPANY, notes)}
    return ["the memo is not what documents and records say"] if wrong else []


MEMO = Scenario(
    name="memo",
    description="Write an investment memo from documents and a funding source that goes down.",
    open=_open,
    check=_check,
    events=(FUNDING_DOWN, NOTHING_PUBLISHED, TRACTION_REQUIRED),
)
