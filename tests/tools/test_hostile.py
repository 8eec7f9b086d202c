"""None of the hostile list gets out, and each is answered by one clear sentence that a run can classify."""

import os
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agent.core.failure import ErrorFacts
from agent.core.predicate import PredicateError, Verdict, checked, judge
from agent.tools.builtin import command_tools, http_tools, sqlite_tools, workspace_tools
from tests.tools.calling import Hands
from tests.tools.hostile import (
    CHANGES,
    COMMANDS,
    ENDS,
    EVERY_USE,
    HARMLESS,
    NOT_PREDICATES,
    QUERIES,
    READING,
    TOO_COSTLY,
    UNKNOWN_FUNCTIONS,
    URLS,
)

SECRET = "the word is swordfish"


class World:
    """A workspace full of traps with a secret beside it, and a database."""

    def __init__(self, top: Path) -> None:
        self.top, self.work = top, top / "work"
        (self.work / "notes").mkdir(parents=True)
        (self.work / "notes" / "a.txt").write_text("plain")
        (top / "secret.txt").write_text(SECRET)
        links: dict[str, str | Path] = {
            "link": top,
            "root": "/",
            "secret-link.txt": top / "secret.txt",
            "dangling": top / "made-through-a-link",
            "loop": "loop",
            "notes/up": "../..",
        }
        for name, to in links.items():
            (self.work / name).symlink_to(to)
        os.mkfifo(self.work / "pipe")
        listening = socket.socket(socket.AF_UNIX)
        here = Path.cwd()
        os.chdir(self.work)  # the name of a socket may not be long
        listening.bind("socket")
        os.chdir(here)
        listening.close()
        self.database = top / "shop.db"
        with closing(sqlite3.connect(self.database)) as connection:
            connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT, b TEXT)")
            connection.executemany("INSERT INTO t (b) VALUES (?)", [("x",), ("y",)])
            connection.commit()
        self.before = self.seen()

    def seen(self) -> dict[str, str]:
        """All that is there, links as links."""
        found = {}
        for folder, _, names in os.walk(self.top):
            for path in (Path(folder) / each for each in names):
                plain = path.is_file() and not path.is_symlink()
                found[str(path)] = sha256(path.read_bytes()).hexdigest() if plain else "no file"
        return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module")
def hands(world: World) -> Hands:
    bounded = sqlite_tools(world.database, seconds=0.2, rows=1_000, size=100_000)
    return Hands([*workspace_tools(world.work), *bounded, *command_tools(["echo"], folder=world.work)])


def refused(hands: Hands, world: World, tool: str, **args: Any) -> ErrorFacts:
    """The call fails with one sentence that can be classified, tells nothing, and changes nothing."""
    error = hands.refused(tool, **args)
    assert hands.scope_of(tool, error) is not None, error
    assert SECRET not in error.message
    assert "\n" not in error.message or error.type == "ValidationError"
    assert 10 < len(error.message) < 1_000
    assert world.seen() == world.before
    return error


def name(value: object) -> str:
    return ascii(value)[:60]


@pytest.mark.parametrize("path", [*EVERY_USE, *ENDS], ids=name)
def test_no_path_leads_out(hands: Hands, world: World, path: str) -> None:
    refused(hands, world, "read_file", path=path)
    refused(hands, world, "write_file", path=path, text="x", replaces="*")
    if path not in ENDS:
        refused(hands, world, "move_file", path="notes/a.txt", to=path)


@pytest.mark.parametrize("path", READING, ids=name)
def test_no_path_reads_what_is_outside(hands: Hands, world: World, path: str) -> None:
    refused(hands, world, "read_file", path=path)


@pytest.mark.parametrize("sql", QUERIES, ids=name)
def test_no_query_changes_or_reaches_anything(hands: Hands, world: World, sql: str) -> None:
    started = time.monotonic()
    sql = sql.replace("{outside}", str(world.top / "secret.txt"))
    refused(hands, world, "query_database", sql=sql)
    refused(hands, world, "change_database", sql="INSERT INTO t VALUES (9, 'z')", check=sql)
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("sql", CHANGES, ids=name)
def test_no_change_does_more_than_change_rows(hands: Hands, world: World, sql: str) -> None:
    sql = sql.replace("{outside}", str(world.top / "secret.txt"))
    error = refused(hands, world, "change_database", sql=sql, check="SELECT count(*) = 99 FROM t")
    assert "check" not in error.message


@pytest.mark.parametrize("command", COMMANDS, ids=name)
def test_no_command_runs_another_program(hands: Hands, world: World, command: tuple[str, list[str]]) -> None:
    program, arguments = command
    refused(hands, world, "run_command", program=program, arguments=arguments)


@pytest.fixture(scope="module")
def listening() -> Iterator[Any]:
    hits: list[str] = []

    class Desk(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hits.append(self.path)
            self.send_response(200)
            self.end_headers()

    server = ThreadingHTTPServer(("0.0.0.0", 0), Desk)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield server.server_port, hits
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("url", URLS, ids=name)
def test_no_url_reaches_the_inside(world: World, listening: Any, url: str) -> None:
    port, hits = listening
    refused(Hands(http_tools(seconds=5)), world, "http_get", url=url.replace("{port}", str(port)))
    assert hits == []


@pytest.mark.parametrize("source", NOT_PREDICATES, ids=name)
def test_no_text_that_is_no_predicate_is_taken_for_one(source: str) -> None:
    with pytest.raises(PredicateError) as caught:
        checked(source)
    assert str(caught.value)


def costly() -> dict[str, Any]:
    return {"list": list(range(100_000)), "text": "a" * 1_000_000, "pattern": "(a{1000}){100}"}


@pytest.mark.parametrize("source", UNKNOWN_FUNCTIONS, ids=name)
def test_no_predicate_calls_what_is_no_function_of_the_language(source: str) -> None:
    assert judge(source, costly()).verdict is Verdict.UNVERIFIABLE


@pytest.mark.parametrize("source", TOO_COSTLY, ids=name)
def test_no_predicate_takes_all_time_or_memory(source: str) -> None:
    checked(source)
    found = judge(source, costly())
    assert (found.verdict, "too long" in found.reason) == (Verdict.UNVERIFIABLE, True)


@pytest.mark.parametrize("source", HARMLESS, ids=name)
def test_a_predicate_over_many_rows_is_judged(source: str) -> None:
    values: Any = {
        "rows": [{"region": "eu", "amount": 3.5, "cells": [1, 2, 3]} for _ in range(3_000)],
        "least": 1,
        "few": list(range(200)),
        "words": "some words " * 200,
        "text": "a" * 1_000_000,
    }
    assert judge(source, values).verdict is (Verdict.VERIFIED if HARMLESS[source] else Verdict.REFUTED)


def test_the_list_is_long() -> None:
    lists: tuple[list[Any], ...] = (
        EVERY_USE,
        READING,
        ENDS,
        QUERIES,
        CHANGES,
        URLS,
        COMMANDS,
        NOT_PREDICATES,
        TOO_COSTLY,
    )
    assert all(len(set(map(str, each))) == len(each) for each in lists)
    assert sum(map(len, lists)) >= 100
