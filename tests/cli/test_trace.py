"""`kintsugi trace --verify` makes every decision once more, of this release's threads and of earlier ones."""

import gzip
import json
from contextlib import closing
from pathlib import Path
from typing import Any

from agent.app import assemble
from agent.core.record import SCHEMA, Committed, Paused, TraceRecord
from agent.settings import Settings
from agent.store.checkpoints import open_saver
from agent.store.database import open_database
from tests.cli.conftest import JOBS, ROOT, Cli
from tests.cli.jobs import TOOLS

GOLDEN = ROOT / "tests" / "store" / "golden" / "schema-1.db.gz"


def recorded(thread: str, *records: TraceRecord) -> None:
    """Add records to a thread that no run has written."""
    with open_database(Path(".kintsugi/kintsugi.db")) as database, closing((saver := open_saver(database)).conn):
        graph = assemble(TOOLS, database, Settings(), checkpointer=saver)
        graph.update_state({"configurable": {"thread_id": thread}}, {"trace": list(records)}, as_node="finisher")


def lines(printed: str) -> list[dict[str, Any]]:
    return [json.loads(each) for each in printed.splitlines()]


def test_every_decision_of_a_run_follows_until_a_record_lies(cli: Cli) -> None:
    cli("run", "goal.toml", "--tools", JOBS, "--thread", "t")
    said = cli("trace", "t", "--verify").stdout
    assert said.endswith("decisions were made once more, and all follow from their records\n")
    made = lines(cli("trace", "t", "--verify", "--json").stdout)
    assert {each["event"] for each in made} == {"triaged", "planned", "committed", "ended"}
    assert all(each["differs"] == [] for each in made)
    written = lines(cli("trace", "t", "--json").stdout)
    assert [written[each["record"]]["event"] for each in made] == [each["event"] for each in made]
    recorded("t", Committed(at=0, step="S9", name="x", version=1, digest="0", unchanged=False))  # type: ignore[arg-type]
    told = cli("trace", "t", "--verify", code=1).stdout
    assert "x was committed, and no judgement of S9 verified it" in told
    (lie,) = [each for each in lines(cli("trace", "t", "--verify", "--json", code=1).stdout) if each["differs"]]
    assert lie["event"] == "committed"


def test_a_thread_of_the_first_record_format_is_told_and_verified(cli: Cli) -> None:
    Path(".kintsugi").mkdir()
    Path(".kintsugi/kintsugi.db").write_bytes(gzip.decompress(GOLDEN.read_bytes()))
    assert "all follow from their records" in cli("trace", "finished", "--verify").stdout
    told = lines(cli("trace", "finished", "--json").stdout)
    assert {each["schema_version"] for each in told} == {SCHEMA}
    assert "recovered" in {each["event"] for each in told}


def test_a_thread_with_records_of_a_later_format_is_refused_in_a_sentence(cli: Cli) -> None:
    cli("run", "goal.toml", "--tools", JOBS, "--thread", "t")
    recorded("t", Paused(at=0, reason="asked").model_copy(update={"schema_version": SCHEMA + 1}))
    for command in (("trace", "t"), ("trace", "t", "--verify"), ("resume", "t"), ("report", "t")):
        refused = cli(*command, code=2)
        assert f"trace records of schema {SCHEMA + 1}, and this release reads up to {SCHEMA}" in refused.stderr
        assert "upgrade" in refused.stderr
