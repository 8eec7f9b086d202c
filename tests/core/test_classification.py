"""What a failure proves false, row by row, and what it says about the effect of a write."""

import http.client
import json
import socket
import sqlite3
import urllib.error
from http import HTTPStatus
from typing import Any

import httpx
import pytest
from langchain_core.tools import ToolException

from agent.boundary import facts_of
from agent.core.classification import TABLE, classify, conclude, missing_name, outdated
from agent.core.failure import Classified, Effect, Failure, Origin, Scope, Trigger
from agent.core.value import digest
from tests.builders import failure

N, C, P, G = Scope.NOTHING, Scope.CALL, Scope.PRECONDITION, Scope.GOAL


def scope_of(given: Failure, view: dict[str, Any] | None = None, mutating: bool = False) -> Classified:
    found = classify(given, mutating, view or {})
    assert found is not None, f"no row knows {given.error}"
    return found


@pytest.mark.parametrize(
    ("status", "scope"),
    [
        *[(each, N) for each in (408, 421, 425, 429, 500, 502, 503, 504, 507, 509, 529)],
        *[(each, C) for each in (400, 405, 406, 411, 413, 414, 415, 416, 417, 422, 431, 501, 505)],
        *[(each, P) for each in (401, 402, 403, 404, 407, 409, 410, 412, 423, 424, 426, 428, 451)],
    ],
)
def test_a_status_is_routed_by_what_it_proves_false(status: int, scope: Scope) -> None:
    assert scope_of(failure(status=status)).scope is scope


def test_every_error_status_that_exists_is_known() -> None:
    for each in HTTPStatus:
        if each >= 400 and each not in (418, 506, 508, 510, 511):
            assert classify(failure(status=int(each)), False, {}) is not None, each


@pytest.mark.parametrize(
    ("thrown", "scope"),
    [
        (TimeoutError(), N),
        (ConnectionResetError("reset by peer"), N),
        (ConnectionRefusedError("refused"), N),
        (BrokenPipeError(), N),
        (EOFError(), N),
        (BlockingIOError(), N),
        (InterruptedError(), N),
        (OSError("connection aborted"), N),
        (socket.gaierror(-2, "Name or service not known"), N),
        (http.client.RemoteDisconnected("closed"), N),
        (urllib.error.URLError("unreachable"), N),
        (httpx.ReadTimeout("slow"), N),
        (httpx.ConnectError("no"), N),
        (httpx.RemoteProtocolError("no"), N),
        (sqlite3.OperationalError("database is locked"), N),
        (ValueError("date range too wide"), C),
        (TypeError("unexpected"), C),
        (KeyError("id"), C),
        (IndexError("list index out of range"), C),
        (ZeroDivisionError(), C),
        (AssertionError(), C),
        (NotImplementedError(), C),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"), C),
        (json.JSONDecodeError("Expecting value", "<html>", 0), C),
        (sqlite3.ProgrammingError("wrong number of bindings"), C),
        (sqlite3.OperationalError("no such column: revenue"), C),
        (ToolException("unsupported filter"), C),
        (PermissionError("denied"), P),
        (FileNotFoundError("config.toml"), P),
        (NotADirectoryError(), P),
        (ModuleNotFoundError("no module"), P),
        (sqlite3.OperationalError("no such table: users"), P),
    ],
    ids=lambda each: f"{type(each).__name__}: {each}" if isinstance(each, BaseException) else str(each),
)
def test_an_exception_is_routed_by_what_it_proves_false(thrown: BaseException, scope: Scope) -> None:
    assert scope_of(failure(error=facts_of(thrown))).scope is scope


@pytest.mark.parametrize(
    ("message", "scope"),
    [
        ("relation users does not exist", P),
        ("table 'orders' not found", P),
        ("The account was closed on Monday", P),
        ("permission denied for schema public", P),
        ("token has expired", P),
        ("the export format changed", P),
        ("the nightly job never ran", P),
        ("driver is not installed", P),
        ("API key revoked", P),
        ("service has been disabled", P),
        ("billing is not enabled for this project", P),
        ("column revenue_net not found", C),
        ("Unknown column 'a.b' in field list", C),
        ("field `total` was renamed", C),
        ("database table is locked", N),
        ("deadlock detected", N),
        ("could not serialize access", N),
        ("service temporarily unavailable", N),
        ("read timed out", N),
        ("Rate limit reached", N),
        ("Too many requests, slow down", N),
    ],
)
def test_an_error_in_words_is_routed_by_what_it_proves_false(message: str, scope: Scope) -> None:
    for kind in ("value", "exception"):
        assert scope_of(failure(kind=kind, message=message, type="RuntimeError")).scope is scope


@pytest.mark.parametrize("message", ["", "strange", "42", "something went wrong", "payload too odd"])
def test_what_the_table_does_not_know_is_left_to_a_model(message: str) -> None:
    assert classify(failure(message=message, type="RuntimeError", bases=()), False, {}) is None


@pytest.mark.parametrize(
    ("kind", "scope", "origin"),
    [
        ("need", G, Origin.AGENT),
        ("refused", C, Origin.AGENT),
        ("absent", N, Origin.ENVIRONMENT),
        ("lost", N, Origin.ENVIRONMENT),
        ("loop", C, Origin.AGENT),
        ("invalid", N, Origin.AGENT),
        ("probe", N, Origin.OBSERVATION),
        ("verdict", C, Origin.AGENT),
        ("stale", P, Origin.ENVIRONMENT),
        ("timeout", N, Origin.ENVIRONMENT),
    ],
)
def test_what_the_runtime_itself_found_has_a_row_of_its_own(kind: str, scope: Scope, origin: Origin) -> None:
    found = scope_of(failure(kind=kind, message="said"))
    assert (found.scope, found.origin) == (scope, origin)


def test_a_broken_precondition_is_the_worlds_and_one_nobody_looked_at_is_ours() -> None:
    broken = {"trigger": Trigger.PRECONDITION_VIOLATION, "kind": "verdict"}
    assert scope_of(failure(message="refuted: x", **broken)).origin is Origin.ENVIRONMENT
    assert scope_of(failure(message="unverifiable: x", **broken)).origin is Origin.OBSERVATION


# --- the three traps --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("table db already exists", None),
        ("invoice was already posted", 409),
        ("UNIQUE constraint failed: rows.id", None),
        ("duplicate key value", 400),
    ],
)
def test_a_write_that_says_it_was_done_is_looked_at_and_not_repaired(message: str, status: int | None) -> None:
    found = scope_of(failure(message=message, status=status, type="IntegrityError"), mutating=True)
    assert (found.rule, found.scope, found.effect) == ("already done", N, Effect.UNKNOWN)


@pytest.mark.parametrize(
    "thrown",
    [TimeoutError("timed out: the service is disabled"), ConnectionError("access denied by firewall")],
    ids=str,
)
def test_a_broken_precondition_is_seen_through_a_type_that_looks_transient(thrown: Exception) -> None:
    assert scope_of(failure(error=facts_of(thrown))).scope is P


def test_a_broken_precondition_is_seen_through_a_status_that_looks_transient() -> None:
    assert scope_of(failure(status=503, message="your account is suspended")).scope is P


def test_a_time_out_of_a_write_proves_nothing_about_it() -> None:
    found = scope_of(failure(error=facts_of(TimeoutError())), mutating=True)
    assert (found.scope, found.effect) == (N, Effect.UNKNOWN)
    assert scope_of(failure(error=facts_of(TimeoutError())), mutating=False).effect is Effect.ABSENT


# --- a name that an observation promised ------------------------------------------------------------------------


def test_a_missing_name_that_an_input_promised_falsifies_that_input_and_no_other() -> None:
    given = failure(message="column revenue_net not found", status=400, reads=("schema", "weeks"))
    found = scope_of(given, {"schema": {"columns": ["day", "revenue_net"]}, "weeks": [1, 2]})
    assert (found.scope, found.falsified) == (P, ("schema",))


def test_a_missing_name_that_nobody_promised_is_the_callers_mistake() -> None:
    given = failure(message="column revenue_net not found", reads=("schema",))
    assert scope_of(given, {"schema": {"columns": ["day"]}}).scope is C


def test_a_precondition_that_names_nothing_doubts_everything_it_read() -> None:
    given = failure(message="the account was closed", reads=("a", "b"))
    assert scope_of(given, {"a": 1, "b": 2}).falsified == ("a", "b")


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("no such column: users.email", "users.email"),
        ("Unknown column 'x' in 'where clause'", "x"),
        ("field 'total' of invoice is missing", "total"),
        ('attribute "a.b" does not exist', "a.b"),
        ("key `k` was removed", "k"),
        ("nothing of the kind", None),
    ],
)
def test_the_missing_name_is_read_from_the_error(message: str, name: str | None) -> None:
    assert missing_name(message) == name


# --- what a failed write left behind ----------------------------------------------------------------------------

A, U, X = Effect.ABSENT, Effect.UNKNOWN, Effect.PRESENT


@pytest.mark.parametrize(
    ("error", "effect"),
    [
        pytest.param({"status": 413}, A, id="refused by status"),
        pytest.param({"status": 429}, A, id="rate limit"),
        pytest.param({"status": 503}, A, id="unavailable"),
        pytest.param({"status": 500}, U, id="server error"),
        pytest.param({"status": 504}, U, id="gateway timeout"),
        pytest.param({"status": 409}, U, id="a conflict may be with our own earlier try"),
        pytest.param({"type": "ConnectionRefusedError", "bases": ("ConnectionError",)}, A, id="never sent"),
        pytest.param({"type": "ConnectionResetError", "bases": ("ConnectionError",)}, U, id="cut off"),
        pytest.param({"type": "ValueError", "message": "date range too wide"}, A, id="a refusal in words"),
        pytest.param({"type": "ToolException", "message": "unsupported filter"}, A, id="a tool's refusal"),
        pytest.param({"type": "JSONDecodeError", "bases": ("ValueError",)}, U, id="an answer that cannot be read"),
        pytest.param({"type": "KeyError", "bases": ("LookupError",)}, U, id="an answer without a key"),
        pytest.param({"type": "TypeError"}, U, id="an answer of another kind"),
        pytest.param({"type": "ValidationError", "bases": ("ValueError",)}, U, id="an answer that does not fit"),
        pytest.param(
            {"type": "ValidationError", "bases": ("ValueError",), "message": "1 validation error for Answer"},
            U,
            id="an answer that does not fit, in words",
        ),
        pytest.param({"type": "ValueError", "message": "odd"}, U, id="any code may raise it, before or after"),
        pytest.param({"type": "ToolException", "message": "odd"}, U, id="a tool that says nothing of use"),
        pytest.param(
            {"type": "PermissionError", "bases": ("OSError",), "message": "-"}, U, id="refused, nobody knows what"
        ),
        pytest.param(
            {
                "type": "FileNotFoundError",
                "bases": ("OSError",),
                "code": "ENOENT",
                "message": "[Errno 2] No such file or directory: 'log'",
            },
            U,
            id="a file that the tool itself stumbled over",
        ),
        pytest.param(
            {"type": "PermissionError", "bases": ("OSError",), "message": "access denied"}, A, id="said by hand"
        ),
        pytest.param(
            {"type": "ValueError", "status": 400, "message": "odd"}, A, id="refused by status, whatever the class"
        ),
        pytest.param({"type": "NothingDone", "bases": ("ValueError",), "message": "odd"}, A, id="a tool that says so"),
        pytest.param({"type": "Odd", "bases": ("NothingDone", "ValueError")}, A, id="one of its kind"),
        pytest.param({"kind": "refused", "type": "ValidationError"}, A, id="arguments that do not fit"),
        pytest.param({"type": "RuntimeError"}, U, id="unknown to the table"),
        pytest.param({"message": "no such table: x"}, A, id="precondition in words"),
        pytest.param({"kind": "absent"}, A, id="a probe saw nothing"),
        pytest.param({"kind": "lost"}, U, id="cannot be found out"),
        pytest.param({"kind": "loop", "message": "HTTP 400: bad day"}, U, id="a loop may have written before"),
        pytest.param({"kind": "lost", "message": "begun; the account was closed"}, U, id="whatever its words say"),
        pytest.param({"kind": "verdict"}, X, id="there, but not what was promised"),
        pytest.param({"kind": "probe"}, U, id="could not look"),
        pytest.param({"kind": "probe", "status": 503}, U, id="the look was refused, not the write"),
        pytest.param({"kind": "need"}, A, id="nothing was started"),
        pytest.param({"trigger": Trigger.PRECONDITION_VIOLATION, "kind": "verdict"}, A, id="judged before acting"),
    ],
)
def test_what_a_failed_write_left_behind(error: dict[str, Any], effect: Effect) -> None:
    given = failure(**error)
    found = classify(given, True, {}) or conclude(given, C, Origin.AGENT, "default", True, {})
    assert found.effect is effect
    assert (classify(given, False, {}) or conclude(given, C, Origin.AGENT, "default", False, {})).effect is A


def test_a_model_that_calls_a_write_wrong_proves_nothing_about_its_effect() -> None:
    assert conclude(failure(), C, Origin.AGENT, "model", True, {}).effect is U


# --- inputs that changed meanwhile ------------------------------------------------------------------------------


def test_an_attempt_over_inputs_that_changed_meanwhile_is_out_of_date() -> None:
    given = failure(inputs={"a": digest(1), "b": digest(2)})
    assert not outdated(given, {"a": digest(1), "b": digest(2), "c": digest(3)})
    assert outdated(given, {"a": digest(1), "b": digest(9)})
    assert outdated(given, {"a": digest(1)})
    assert not outdated(failure(), {})


def test_every_row_decides_something() -> None:
    reached = {
        row.name
        for row in TABLE
        for given in SAMPLES
        if (found := classify(given, False, {"schema": "revenue_net"})) and found.rule == row.name
    }
    assert reached == {row.name for row in TABLE}


VIOLATED: dict[str, Any] = {"trigger": Trigger.PRECONDITION_VIOLATION, "kind": "verdict"}
SAMPLES = [
    failure(message="unverifiable: x", **VIOLATED),
    failure(message="refuted: x", **VIOLATED),
    *(
        failure(kind=each, message="-")
        for each in ("stale", "loop", "invalid", "need", "refused", "absent", "lost", "probe", "verdict", "timeout")
    ),
    *(failure(kind="gave_up", code=f"scope:{each}", message="503 busy") for each in Scope),
    failure(message="already exists"),
    failure(message="column revenue_net not found", reads=("schema",)),
    failure(message="column other not found"),
    failure(message="account was closed"),
    *(failure(status=each, message="-") for each in (503, 400, 404)),
    *(failure(message=each) for each in ("2 validation errors for", "value is out of range", "database is locked")),
    *(failure(message=each) for each in ("rate limit reached", "connection refused", "try again")),
    *(failure(code=each, message="-") for each in ("sqlstate:08006", "rpc:-32602", "exit:127")),
    *(failure(type=each, message="-") for each in ("PermissionError", "ConnectionError", "ValueError")),
    failure(message="timed out"),
]


def test_a_fingerprint_knows_the_call_and_the_way_it_failed_and_no_ids_and_no_prose() -> None:
    one = failure(args={"n": 1}, type="ValueError", message="bad 17")
    same = failure(args={"n": 1}, type="ValueError", message="bad 18", step="other")
    assert one.fingerprint == same.fingerprint
    for other in (
        failure(args={"n": 2}, type="ValueError"),
        failure(args={"n": 1}, type="KeyError"),
        failure(args={"n": 1}, type="ValueError", status=400),
        failure(args={"n": 1}, type="ValueError", tool="another"),
        failure(args={"n": 1}, kind="verdict", type="ValueError"),
    ):
        assert other.fingerprint != one.fingerprint
