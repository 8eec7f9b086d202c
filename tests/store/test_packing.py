"""What is stored is packed, stays readable for every release, and lies in LangGraph's own tables."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from agent.core.limits import Ledger
from agent.store.database import open_database
from agent.store.example import EXAMPLE
from agent.store.packing import PACKED, SMALLEST, Packing, packing

ALLOWED = (("agent.core.limits", "Ledger"),)


def test_the_example_that_stored_values_were_packed_against_has_not_changed() -> None:
    plain = JsonPlusSerializer().dumps_typed(EXAMPLE)[1]
    assert hashlib.sha256(plain).hexdigest()[:16] == "aa19c895912b6bd4"


def test_what_an_earlier_release_packed_is_read() -> None:
    stored = bytes.fromhex("3bc1f89795608b9109b5c5c840518b9161b8b618e16353e0e6213ba4c5c880d46264c0682f320c7c7b1100")
    assert Packing(allowed_msgpack_modules=ALLOWED).loads_typed((PACKED, stored)) == Ledger(run=2, steps=7)


@pytest.mark.parametrize("value", [None, b"bytes", "x", "long " * 50, {"a": [1, 2.5, None]}, Ledger(steps=3), ""])
def test_every_value_comes_back(value: Any) -> None:
    packer = Packing(allowed_msgpack_modules=ALLOWED)
    assert packer.loads_typed(packer.dumps_typed(value)) == value


def test_a_value_is_packed_to_a_small_part_of_itself() -> None:
    plain, packed = (each.dumps_typed(Ledger(steps=3))[1] for each in (JsonPlusSerializer(), Packing()))
    assert len(packed) < len(plain) / 5


def test_what_packing_makes_no_smaller_stays_as_it_is() -> None:
    noise = hashlib.sha256(b"noise").hexdigest()[: SMALLEST - 10]
    assert Packing().dumps_typed(noise)[0] == "msgpack"


def test_what_was_stored_before_packing_is_read() -> None:
    assert Packing().loads_typed(JsonPlusSerializer().dumps_typed({"a": 1})) == {"a": 1}


def test_the_callers_own_saver_reads_what_the_graph_stores_with_it() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        saver = SqliteSaver(connection)
        assert packing(saver) is saver
        assert packing(saver).serde is saver.serde
        assert type(saver.serde) is Packing


def test_nothing_is_packed_in_memory_and_nothing_by_a_serialiser_of_the_callers() -> None:
    class Own(JsonPlusSerializer):
        pass

    with closing(sqlite3.connect(":memory:")) as connection:
        own = SqliteSaver(connection, serde=Own())
        assert type(packing(own).serde) is Own
    assert type(packing(InMemorySaver()).serde) is JsonPlusSerializer


def test_the_checkpoint_tables_are_those_of_the_installed_langgraph(tmp_path: Path) -> None:
    open_database(tmp_path / "ours.db").close()
    with closing(sqlite3.connect(":memory:")) as stock, closing(sqlite3.connect(tmp_path / "ours.db")) as ours:
        SqliteSaver(stock).setup()
        SqliteSaver(ours).setup()
        for table in ("checkpoints", "writes"):
            columns = [each.execute(f"PRAGMA table_info({table})").fetchall() for each in (stock, ours)]
            assert [row[1:3] for row in columns[0]] == [row[1:3] for row in columns[1]]
            assert not ours.execute(
                "SELECT 1 FROM sqlite_master WHERE tbl_name = ? AND type = 'index'", (table,)
            ).fetchall()


def test_versions_go_on_from_those_that_langgraph_counted_before() -> None:
    with closing(sqlite3.connect(":memory:")) as one, closing(sqlite3.connect(":memory:")) as other:
        stock, counted = SqliteSaver(one), packing(SqliteSaver(other)).get_next_version
        first = stock.get_next_version(None, None)
        assert first < counted(first, None) < stock.get_next_version(counted(first, None), None)
        assert counted(None, None) < counted(counted(None, None), None)
