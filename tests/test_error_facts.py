"""From the errors of real clients, and from errors that came back as values, to facts and from there to a scope."""

import sqlite3
import ssl
import subprocess
import sys
import urllib.error
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import httpx
import openai
import pytest
import requests

from agent.boundary import error_in, facts_of
from agent.core.classification import classify
from agent.core.failure import ErrorFacts, Failure, Scope, Trigger
from agent.waits import in_body, in_headers, in_words

N, C, P = Scope.NOTHING, Scope.CALL, Scope.PRECONDITION
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
REQUEST: Any = httpx.Request("POST", "https://api.example:8443/v1/rows")


def routed(facts: ErrorFacts) -> Scope | None:
    found = classify(Failure(trigger=Trigger.TASK_FAILURE, error=facts), True, {})
    return found.scope if found else None


def raised(name: str, message: str = "-", base: type[Exception] = Exception, **kept: Any) -> Exception:
    """An error of a library that is not installed here, by its name and what it keeps."""
    error = type(name, (base,), {})(message)
    for field, value in kept.items():
        setattr(error, field, value)
    return error


def sqlite_error(*statements: str) -> sqlite3.Error:
    connection = sqlite3.connect(":memory:")
    try:
        for each in statements:
            connection.execute(each)
    except sqlite3.Error as error:
        return error
    finally:
        connection.close()
    raise AssertionError("nothing failed")


def ended(code: int, stderr: str = "") -> Exception:
    return subprocess.CalledProcessError(code, ["load", "--week", "7"], stderr=stderr.encode())


def openai_error(status: int, code: str | None, message: str, headers: dict[str, str] | None = None) -> Exception:
    response: Any = httpx.Response(status, headers=headers, request=REQUEST)
    body = {"message": message, "code": code}
    kind = openai.RateLimitError if status == 429 else openai.APIStatusError
    return kind(message, response=response, body=body)


def mcp_error(code: int, message: str, data: Any = None) -> Exception:
    return raised("McpError", message, error=SimpleNamespace(code=code, message=message, data=data))


def aws_error(code: str, status: int, headers: dict[str, str] | None = None) -> Exception:
    meta = {"HTTPStatusCode": status, "HTTPHeaders": headers or {}}
    return raised(
        "ClientError", f"An error occurred ({code})", response={"Error": {"Code": code}, "ResponseMetadata": meta}
    )


def grpc_error(name: str) -> Exception:
    return raised("_InactiveRpcError", "rpc failed", code=lambda: SimpleNamespace(name=name))


@pytest.mark.parametrize(
    ("thrown", "code", "scope"),
    [
        pytest.param(ended(127, "load: command not found"), "exit:127", P, id="command not there"),
        pytest.param(ended(126, "load: cannot execute"), "exit:126", P, id="not executable"),
        pytest.param(ended(124), "exit:124", N, id="timeout(1)"),
        pytest.param(ended(137), "exit:137", N, id="killed"),
        pytest.param(ended(-9), "exit:-9", N, id="killed, as Python says"),
        pytest.param(ended(2, "usage: load [--week N]"), "exit:2", C, id="usage"),
        pytest.param(ended(1, "FATAL: role report does not exist"), "exit:1", P, id="what it printed is read"),
        pytest.param(ended(1, "unrecognized option --weeks"), "exit:1", C, id="what it printed about the call"),
        pytest.param(subprocess.TimeoutExpired("load", 60), "", N, id="TimeoutExpired"),
        pytest.param(FileNotFoundError(2, "No such file or directory", "load"), "ENOENT", P, id="no program"),
        pytest.param(OSError(28, "No space left on device"), "ENOSPC", P, id="disk full"),
        pytest.param(OSError(30, "Read-only file system"), "EROFS", P, id="read-only"),
        pytest.param(OSError(24, "Too many open files"), "EMFILE", N, id="out of handles"),
        pytest.param(FileExistsError(17, "File exists", "out.csv"), "EEXIST", N, id="made already"),
        pytest.param(sqlite_error("select x from t"), "SQLITE_ERROR", P, id="sqlite: no table"),
        pytest.param(sqlite_error("create table t(a)", "select b from t"), "SQLITE_ERROR", C, id="sqlite: no column"),
        pytest.param(sqlite_error("selekt 1"), "SQLITE_ERROR", C, id="sqlite: syntax"),
        pytest.param(
            sqlite_error("create table t(a unique)", "insert into t values (1)", "insert into t values (1)"),
            "SQLITE_CONSTRAINT_UNIQUE",
            N,
            id="sqlite: there already",
        ),
        pytest.param(
            sqlite_error("create table t(a not null)", "insert into t values (null)"),
            "SQLITE_CONSTRAINT_NOTNULL",
            C,
            id="sqlite: null",
        ),
        pytest.param(raised("UniqueViolation", sqlstate="23505"), "sqlstate:23505", N, id="psycopg: there already"),
        pytest.param(raised("UndefinedTable", sqlstate="42P01"), "sqlstate:42P01", P, id="psycopg: no table"),
        pytest.param(raised("OperationalError", pgcode="40001"), "sqlstate:40001", N, id="psycopg2: serialization"),
        pytest.param(raised("OperationalError", sqlstate=None), "", None, id="psycopg: no state"),
        pytest.param(
            raised("IntegrityError", orig=raised("NotNullViolation", sqlstate="23502")),
            "sqlstate:23502",
            C,
            id="SQLAlchemy keeps the driver's",
        ),
        pytest.param(mcp_error(-32602, "week: must be a number"), "rpc:-32602", C, id="MCP: params"),
        pytest.param(mcp_error(-32602, "Unknown tool: load_rows"), "rpc:-32602", P, id="MCP: the tool is gone"),
        pytest.param(mcp_error(-32601, "Method not found"), "rpc:-32601", P, id="MCP: method"),
        pytest.param(mcp_error(-32603, "Internal error"), "rpc:-32603", N, id="MCP: internal"),
        pytest.param(mcp_error(-32603, "API key revoked"), "rpc:-32603", P, id="MCP: internal, and says why"),
        pytest.param(mcp_error(-32000, "Connection closed"), "rpc:-32000", N, id="MCP: closed"),
        pytest.param(mcp_error(-32002, "Resource not found"), "rpc:-32002", P, id="MCP: resource"),
        pytest.param(mcp_error(408, "Timed out while waiting for response"), "", N, id="MCP: time-out"),
        pytest.param(openai_error(429, "rate_limit_exceeded", "slow"), "rate_limit_exceeded", N, id="OpenAI: rate"),
        pytest.param(openai_error(429, "insufficient_quota", "no money"), "insufficient_quota", P, id="OpenAI: quota"),
        pytest.param(
            openai_error(400, "context_length_exceeded", "-"), "context_length_exceeded", C, id="OpenAI: long"
        ),
        pytest.param(openai_error(404, "model_not_found", "-"), "model_not_found", P, id="OpenAI: model"),
        pytest.param(openai.APITimeoutError(REQUEST), "", N, id="OpenAI: time-out"),
        pytest.param(openai.APIConnectionError(request=REQUEST), "", N, id="OpenAI: connection"),
        pytest.param(aws_error("ThrottlingException", 400), "ThrottlingException", N, id="AWS: throttled"),
        pytest.param(aws_error("AccessDeniedException", 400), "AccessDeniedException", P, id="AWS: access"),
        pytest.param(aws_error("NoSuchBucket", 404), "NoSuchBucket", P, id="AWS: bucket"),
        pytest.param(aws_error("ValidationException", 400), "ValidationException", C, id="AWS: validation"),
        pytest.param(grpc_error("UNAVAILABLE"), "UNAVAILABLE", N, id="gRPC: unavailable"),
        pytest.param(grpc_error("FAILED_PRECONDITION"), "FAILED_PRECONDITION", P, id="gRPC: precondition"),
        pytest.param(grpc_error("ALREADY_EXISTS"), "ALREADY_EXISTS", N, id="gRPC: there already"),
        pytest.param(httpx.UnsupportedProtocol("no scheme"), "", C, id="httpx: no scheme"),
        pytest.param(httpx.PoolTimeout("busy"), "", N, id="httpx: pool"),
        pytest.param(httpx.InvalidURL("bad"), "", C, id="httpx: URL"),
        pytest.param(requests.exceptions.ConnectTimeout("slow"), "", N, id="requests: connect"),
        pytest.param(requests.exceptions.MissingSchema("no scheme"), "", C, id="requests: no scheme"),
        pytest.param(requests.exceptions.ChunkedEncodingError("cut"), "", N, id="requests: cut"),
        pytest.param(requests.exceptions.SSLError("bad handshake"), "", N, id="requests: TLS"),
        pytest.param(ssl.SSLCertVerificationError(1, "certificate verify failed"), "EPERM", P, id="certificate"),
        pytest.param(
            urllib.error.URLError(ConnectionRefusedError(111, "Connection refused")), "ECONNREFUSED", N, id="urllib"
        ),
    ],
)
def test_an_error_of_a_real_client_keeps_its_code_and_finds_its_scope(
    thrown: Exception, code: str, scope: Scope | None
) -> None:
    facts = facts_of(thrown)
    if sys.platform == "linux":  # numbers of errors have other names elsewhere
        assert facts.code == code
    assert routed(facts) is scope


def test_what_a_process_printed_is_part_of_its_message() -> None:
    facts = facts_of(ended(1, "no rows were found for week 7"))
    assert "no rows were found" in facts.message
    assert "exit status 1" in facts.message


@pytest.mark.parametrize(
    ("thrown", "endpoint"),
    [
        (httpx.ConnectError("no", request=REQUEST), "api.example:8443"),
        (httpx.ConnectError("no"), ""),
        (openai_error(503, None, "see https://docs.example/errors"), "api.example:8443"),
        (urllib.error.HTTPError("https://files.example/a", 503, "-", {}, None), "files.example"),  # type: ignore[arg-type]  # as tests of urllib do
        (requests.HTTPError("503", response=SimpleNamespace(url="https://rows.example/v1")), "rows.example"),
        (ValueError("https://docs.example/errors"), ""),
        (raised("ClientResponseError", request_info=SimpleNamespace(real_url="https://a.example/x")), "a.example"),
        (raised("Odd", url="http://[half"), ""),
    ],
    ids=str,
)
def test_the_endpoint_is_the_host_that_was_asked_and_none_that_is_only_mentioned(
    thrown: Exception, endpoint: str
) -> None:
    assert facts_of(thrown).endpoint == endpoint


# --- how long to wait ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("thrown", "seconds"),
    [
        pytest.param(openai_error(429, None, "-", {"retry-after-ms": "1500"}), 1.5, id="milliseconds in a header"),
        pytest.param(openai_error(429, None, "-", {"X-RateLimit-Reset-After": "3"}), 3.0, id="reset after"),
        pytest.param(mcp_error(-32000, "busy", {"retry_after": 2}), 2.0, id="MCP's data"),
        pytest.param(mcp_error(-32000, "busy", {"details": [{"retryDelay": "12s"}]}), 12.0, id="Google's detail"),
        pytest.param(raised("RateLimitError", retry_after=4), 4.0, id="an attribute"),
        pytest.param(aws_error("SlowDown", 503, {"retry-after": "5"}), 5.0, id="AWS's headers"),
        pytest.param(
            httpx.HTTPStatusError(
                "429", request=REQUEST, response=httpx.Response(429, json={"error": {"retry_after_ms": 250}})
            ),
            0.25,
            id="a JSON body",
        ),
        pytest.param(ValueError("Rate limit reached. Please try again in 1m30s."), 90.0, id="words"),
        pytest.param(ValueError("Rate limit reached. Please try again in 340ms."), 0.34, id="words, milliseconds"),
        pytest.param(ValueError("retry after 7 seconds"), 7.0, id="words, spelled out"),
        pytest.param(ValueError("try again later"), None, id="no time"),
        pytest.param(ValueError("we retried 3 times"), None, id="a count is no time"),
    ],
)
def test_the_wait_that_is_asked_for_is_found_wherever_it_is_said(thrown: Exception, seconds: float | None) -> None:
    assert facts_of(thrown, now=lambda: NOW).retry_after == seconds


@pytest.mark.parametrize("body", [{"retry_after": True}, {"retry_after": "soon"}, {"retry_after": None}, [], "2", None])
def test_a_body_that_asks_for_no_time_asks_for_none(body: Any) -> None:
    assert in_body(body) is None


def test_a_body_inside_itself_ends_the_search() -> None:
    loop: dict[str, Any] = {}
    loop["again"] = loop
    assert in_body(loop) is None


def test_headers_may_be_missing_or_odd() -> None:
    assert in_headers(None, lambda: NOW) is None
    assert in_headers({"retry-after": "soon"}, lambda: NOW) is None
    assert in_words("") is None


# --- errors returned as values -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "status", "code", "wait", "scope"),
    [
        pytest.param({"error": {"code": 429, "message": "x"}, "retry_after": 2}, 429, "", 2.0, N, id="429 with a wait"),
        pytest.param({"error": "rate limited", "retryAfter": "3s"}, None, "", 3.0, N, id="a wait beside the words"),
        pytest.param(
            {"error": {"type": "overloaded_error", "message": "-"}}, None, "overloaded_error", None, N, id="typed"
        ),
        pytest.param({"ok": False, "error": "token_revoked"}, None, "token_revoked", None, P, id="a chat service"),
        pytest.param(
            {"ok": False, "error_code": 400, "description": "chat not found"}, 400, "", None, C, id="a bot API"
        ),
        pytest.param({"success": False, "message": "date range too wide"}, None, "", None, C, id="no success"),
        pytest.param({"status": "error", "message": "account was closed"}, None, "", None, P, id="status: error"),
        pytest.param({"status": 404, "title": "Not Found", "detail": "no week 7"}, 404, "", None, P, id="a problem"),
        pytest.param({"statusCode": 503, "body": "busy"}, 503, "", None, N, id="a response handed on"),
        pytest.param({"errors": [{"message": "Cannot query field"}], "data": None}, None, "", None, None, id="GraphQL"),
        pytest.param('{"error": {"status": 422, "message": "bad week"}}', 422, "", None, C, id="JSON as text"),
        pytest.param({"error": True, "message": "too many requests"}, None, "", None, N, id="a flag with words"),
        pytest.param(
            {"error": 17, "message": "no week 7 was found: no rows returned"}, None, "", None, C, id="a number"
        ),
        pytest.param({"error": 0, "ok": False, "detail": "busy: try again"}, None, "", None, N, id="no code, not ok"),
        pytest.param({"error": 503}, 503, "", None, N, id="a bare status"),
        pytest.param("Error: table weeks does not exist", None, "", None, P, id="Error:"),
        pytest.param("[error] connection refused", None, "", None, N, id="[error]"),
        pytest.param("ValueError: week must be between 1 and 13", None, "", None, C, id="an exception in words"),
        pytest.param("psycopg.errors.UndefinedTable_Error: -", None, "", None, None, id="a dotted name"),
        pytest.param("Error executing tool load: too many requests", None, "", None, N, id="an MCP server's words"),
        pytest.param("HTTP 503: try again", 503, "", None, N, id="HTTP 503"),
        pytest.param("Error code: 429 - slow down, retry in 2s", 429, "", 2.0, N, id="Error code"),
        pytest.param("Traceback (most recent call last):\n...", None, "", None, None, id="a traceback"),
        pytest.param(
            {"isError": True, "content": [{"type": "text", "text": "no such bucket: a"}]}, None, "", None, P, id="MCP"
        ),
        pytest.param(
            {"isError": True, "content": [], "structuredContent": {"code": "SlowDown", "retryAfterMs": 1500}},
            None,
            "SlowDown",
            1.5,
            N,
            id="MCP, structured",
        ),
        pytest.param({"returncode": 127, "stdout": "", "stderr": "load: -"}, None, "exit:127", None, P, id="a process"),
    ],
)
def test_an_error_in_the_guise_of_a_value_is_seen_and_routed(
    value: Any, status: int | None, code: str, wait: float | None, scope: Scope | None
) -> None:
    facts = error_in(value)
    assert facts is not None
    assert (facts.kind, facts.status, facts.code, facts.retry_after) == ("value", status, code, wait)
    assert routed(facts) is scope


@pytest.mark.parametrize(
    "value",
    [
        {"status": "error", "checks": 3},
        {"status": "failed", "message": "the job that was asked about failed"},
        {"success": False, "score": 0.3},
        {"error": 0.02, "description": "of the mean"},
        {"error": 3},
        {"error": "none", "rows": 2},
        {"error": {"code": 0, "message": ""}},
        {"errors": [], "data": {"a": 1}},
        {"errors": ["row 3"], "rows": 17},
        {"errors": [{"message": "one field"}], "data": {"a": 1}},
        {"status": 200, "body": "x"},
        {"status": 404, "count": 17},
        {"code": 503},
        {"returncode": 1, "stdout": "2 failed", "stderr": "warning"},
        {"returncode": 0, "stderr": "note"},
        {"exit_code": 1, "stderr": ""},
        {"isError": False, "content": []},
        '{"rows": 3}',
        "[1, 2",
        "{broken",
        "The errors: none",
        "Failed: 3, passed: 20",
        "errors=3",
        "HTTP requests: 503",
        "Exceptional: yes",
        "",
    ],
    ids=repr,
)
def test_a_value_that_speaks_of_errors_is_not_taken_for_one(value: Any) -> None:
    assert error_in(value) is None


def test_a_secret_in_a_returned_error_is_hidden() -> None:
    facts = error_in({"error": "login with password=hunter2secret failed"})
    assert facts is not None
    assert "hunter2" not in facts.message


class Hostile(Exception):
    @property
    def response(self) -> Any:
        raise RuntimeError("not yet read")

    def code(self) -> Any:
        raise RuntimeError("no")


def test_an_error_that_throws_when_it_is_looked_at_is_still_facts() -> None:
    assert facts_of(Hostile("x")).message == "x"


def test_an_error_that_is_its_own_cause_is_looked_at_once() -> None:
    error = ValueError("x")
    error.__cause__ = error
    assert facts_of(error).code == ""
