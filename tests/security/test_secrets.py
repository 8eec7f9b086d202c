"""Secrets: tools give them, raise them, callers state them; nothing of them is kept, shown, sent or told."""

import json
import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from pydantic import SecretStr

from agent import Goal, build_graph, contract
from agent.boundary import masked
from agent.secrecy import HIDDEN, hidden, said
from agent.trace.html.model import Material
from agent.trace.html.page import page
from agent.trace.html.report import report_of
from agent.trace.story import story
from tests.builders import calm, goal, run, thread
from tests.doubles import Reply, calling, scripted
from tests.graph.planning import drafted, instructs

LOOKS = {
    "a key": "sk-abcdef0123456789ABCD",
    "a token": "ghp_abcdefghij0123456789",
    "a cloud key": "AKIAABCDEFGHIJKLMNOP",
    "a JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "a header": "Bearer abcdefgh12345678",
    "basic": "Authorization: Basic dXNlcjpodW50ZXIyc2VjcmV0",
    "an address": "postgres://user:hunter2secret@db.example/x",
    "an address without a user": "redis://:hunter2secret@db.example",
    "a keyword string": "host=db password=hunter2secret dbname=x",
    "a variable": "DB_PASSWORD=hunter2secret",
    "YAML": "password: hunter2secret",
    "JSON": '{"api_key": "hunter2secret"}',
    "a private key": "-----BEGIN RSA PRIVATE KEY-----\nhunter2secret\n-----END RSA PRIVATE KEY-----",
}
CORES: tuple[str, ...] = ("abcdef0123456789ABCD", "abcdefghij0123456789", "AKIAABCDEFGHIJKLMNOP", "eyJzdWIiOiIxMjM0In0")
CORES += ("abcdefgh12345678", "dXNlcjpodW50ZXIyc2VjcmV0", "hunter2secret", "env-value-0001", "env-pass-0002")
CORES += ("settings-key-0003", "settings-pass-0004")


@pytest.mark.parametrize("text", LOOKS.values(), ids=LOOKS)
def test_what_looks_like_a_secret_is_marked_in_texts_values_and_statements(text: str) -> None:
    stated = said(Goal(text=text, given={"x": {"y": text}})).model_dump()
    shown = [masked(text), hidden({"a": [text]}), said(text), stated]
    assert not [core for core in CORES for each in shown if core in json.dumps(each)]
    assert HIDDEN in json.dumps(shown[1])


@pytest.mark.parametrize(
    "text",
    [
        "the passwords of week 3 were counted: 17 of 20 (see https://x.example:8080/a)",
        "sk-learn, mailto:kim@example.org, next_page_token: abc, monkey: see, secretary=Ann",
        "password = get_password()",
        "eyJ is how a token begins; Bearer of news",
    ],
)
def test_an_ordinary_text_stays_as_it_is(text: str) -> None:
    assert (hidden(text), said(text)) == (text, text)


def test_what_is_named_a_secret_is_one_whatever_it_looks_like() -> None:
    value: Any = {"password": "x", "api_key": "y", "next_page_token": "abc", "n": 1, "keys": ["k"], "secret": None}
    assert hidden(value) == {**value, "password": HIDDEN, "api_key": HIDDEN}


def test_the_trace_says_that_something_was_hidden_in_a_result() -> None:
    @contract(produces="config", effect="read_only")
    def read_config() -> dict[str, str]:
        """Read the config."""
        return {"user": "kim", "password": "hunter2secret"}

    end = run(build_graph([read_config], settings=calm()), goal("config"))
    (notes,) = [each.notes for each in end["trace"] if each.event == "attempt_ended"]
    assert notes == ("read_config: what is or looks like a secret was hidden, and is not kept",)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "env-value-0001")
    monkeypatch.setenv("DATABASE_URL", "mysql://root:env-pass-0002@127.0.0.1/shop")
    monkeypatch.setenv("OTHER_KEY", "short")
    monkeypatch.setenv("TLS_KEY", "/etc/tls/key.pem")
    monkeypatch.setenv("SHOP_NAME", "no-secret-at-all")


@pytest.mark.usefixtures("environment")
def test_the_environments_secrets_are_known_by_their_names() -> None:
    text = "env-value-0001 env-pass-0002 short /etc/tls/key.pem no-secret-at-all"
    assert hidden(text) == f"{HIDDEN} {HIDDEN} short /etc/tls/key.pem no-secret-at-all"


ALL = "\n".join([*LOOKS.values(), "env-value-0001", "env-pass-0002", "settings-key-0003", "settings-pass-0004"])


class Leaky:
    """Tools that give secrets, raise them, write them down and are asked to pass on what was hidden."""

    def __init__(self) -> None:
        self.given: list[Any] = []

    def tools(self) -> list[Any]:
        @contract(effect="read_only")
        @tool
        def look() -> dict[str, Any]:
            """Look."""
            return {"text": ALL, "rows": [{"dsn": ALL}], "password": "hunter2secret", "n": 7}

        @contract(effect="read_only")
        @tool
        def fall() -> str:
            """Fall."""
            raise RuntimeError(ALL)

        @contract(effect="mutating", needs="n")
        @tool
        def book(n: int) -> str:
            """Book."""
            return ALL

        @contract(effect="mutating", free="text")
        @tool
        def write(text: str) -> str:
            """Write."""
            self.given.append(text)
            return "written"

        return [look, fall, book, write]


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[SqliteSaver]:
    connection = sqlite3.connect(tmp_path / "runs.db", check_same_thread=False)
    yield SqliteSaver(connection)
    connection.close()


@pytest.mark.usefixtures("environment")
def test_no_secret_is_in_a_prompt_a_checkpoint_a_log_a_trace_or_a_report(
    saver: SqliteSaver, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    leaky = Leaky()
    plan = instructs("seen", "look", "fall", "book", "write", instruction="Look, fall, book 7, write")
    replies: list[Reply] = [
        drafted(plan, wants=["seen"]),
        calling("look"),
        calling("fall"),
        calling("book", n=7),
        calling("write", text=f"key {HIDDEN}"),
        calling("submit", seen="done"),
    ]
    settings = calm(
        api_key=SecretStr("settings-key-0003"),
        database_url=SecretStr("postgresql://me:settings-pass-0004@127.0.0.1/x"),
        inline_bytes=200,
    )
    given = {"goal": Goal(text=f"Do it. {ALL}", given={"base": {"dsn": ALL}}, constraints=(ALL,)), "facts": {"f": ALL}}
    with scripted(*replies) as model:
        graph = build_graph(leaky.tools(), model=model, settings=settings, checkpointer=saver)
        end = run(graph, given)
        graph.change_goal("t", Goal(text=ALL))
        graph.update_state(thread(), {"facts": {"g": ALL}})
    assert leaky.given == []
    told = Material(
        thread="t", standing="satisfied", **{each: end[each] for each in ("goal", "plan", "world", "trace")}
    )
    shown = {
        "prompts": "\n".join(str(each) for prompt in model.prompts for each in prompt),
        "log": caplog.text,
        "trace": "\n".join(each.model_dump_json() for each in end["trace"]),
        "story": str(list(story(end["trace"], end["plan"]))),
        "end": str(end),
        "page": page(report_of(told)),
    }
    for path in sorted(tmp_path.iterdir()):
        shown[path.name] = path.read_bytes().decode("latin-1")
    assert [(where, core) for where, text in shown.items() for core in CORES if core in text] == []
    assert HIDDEN in shown["prompts"]
    assert "holds the mark of a secret" in shown["prompts"]


def test_a_secret_in_an_answer_is_not_kept_either(saver: SqliteSaver, tmp_path: Path) -> None:
    leaky = Leaky()
    graph = build_graph(leaky.tools(), settings=calm(patch=0, rewrite=0, replan=0, retry=0), checkpointer=saver)
    run(graph, goal("fall"))
    end = run(graph, Command(resume={"choice": "answer", "value": ALL}))
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir()).decode("latin-1")
    assert [core for core in CORES if core in kept and core[:3] not in ("env", "set")] == []
    assert HIDDEN in str(end["outcome"].artifacts["fall"].value)
