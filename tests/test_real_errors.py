"""Errors of the real libraries, in their own classes: what they prove false, and what is known of the effect."""

from typing import Any

import anyio
import httpx
import openai
import psycopg
import pytest
from langchain_core.tools import ToolException
from mcp import McpError
from mcp.types import CallToolResult, ErrorData, TextContent
from psycopg import errors as pg

from agent.boundary import error_in, facts_of
from agent.core.classification import classify
from agent.core.failure import Failure, Trigger
from agent.plain import as_json

REQUEST: Any = httpx.Request("POST", "https://api.example/v1/rows")


def routed(found: Any) -> tuple[str, str]:
    """What an error, or an answer that is one, proves false, and what is known about the effect of a write."""
    facts = facts_of(found) if isinstance(found, BaseException) else error_in(found)
    assert facts is not None
    classified = classify(Failure(trigger=Trigger.TASK_FAILURE, error=facts), True, {})
    assert classified is not None
    return str(classified.scope), str(classified.effect)


def rpc(code: int, message: str) -> McpError:
    return McpError(ErrorData(code=code, message=message))


def told(text: str) -> Any:
    return as_json(CallToolResult(content=[TextContent(type="text", text=text)], isError=True).model_dump())


def answered(kind: Any, status: int) -> Exception:
    error: Exception = kind("said", response=httpx.Response(status, request=REQUEST), body=None)
    return error


NOTHING, CALL, PRECONDITION = "nothing", "call", "precondition"
ABSENT, UNKNOWN = "absent", "unknown"

POSTGRES = [
    (pg.UniqueViolation('duplicate key value violates unique constraint "t_pkey"'), NOTHING, UNKNOWN),
    (pg.DuplicateTable('relation "t" already exists'), NOTHING, UNKNOWN),
    (pg.SerializationFailure("could not serialize access due to concurrent update"), NOTHING, ABSENT),
    (pg.DeadlockDetected("deadlock detected"), NOTHING, ABSENT),
    (pg.LockNotAvailable("could not obtain lock on row"), NOTHING, ABSENT),
    (pg.TooManyConnections("sorry, too many clients already"), NOTHING, ABSENT),
    (pg.QueryCanceled("canceling statement due to statement timeout"), NOTHING, UNKNOWN),
    (pg.AdminShutdown("terminating connection due to administrator command"), NOTHING, UNKNOWN),
    (pg.InsufficientPrivilege("permission denied for table orders"), PRECONDITION, ABSENT),
    (pg.InvalidPassword('password authentication failed for user "etl"'), PRECONDITION, ABSENT),
    (pg.UndefinedTable('relation "orders" does not exist'), PRECONDITION, ABSENT),
    (pg.ForeignKeyViolation("violates foreign key constraint"), PRECONDITION, ABSENT),
    (pg.ReadOnlySqlTransaction("cannot execute INSERT in a read-only transaction"), PRECONDITION, ABSENT),
    (pg.UndefinedColumn('column "amuont" does not exist'), CALL, ABSENT),
    (pg.NotNullViolation('null value in column "a" violates not-null constraint'), CALL, ABSENT),
    (pg.SyntaxError('syntax error at or near "selekt"'), CALL, ABSENT),
    (psycopg.OperationalError("server closed the connection unexpectedly"), NOTHING, UNKNOWN),
    (psycopg.InterfaceError("the connection is closed"), NOTHING, UNKNOWN),
    (psycopg.ProgrammingError("the query has 1 placeholders but 2 parameters were passed"), CALL, ABSENT),
]
MCP = [
    (rpc(-32602, "Invalid params: week is required"), CALL, ABSENT),
    (rpc(-32601, "Method not found"), PRECONDITION, ABSENT),
    (rpc(-32002, "Resource not found"), PRECONDITION, ABSENT),
    (rpc(-32603, "Internal error"), NOTHING, UNKNOWN),
    (rpc(-32000, "Connection closed"), NOTHING, UNKNOWN),
    (rpc(408, "Timed out while waiting for response to ClientRequest. Waited 5.0 seconds."), NOTHING, UNKNOWN),
    (anyio.ClosedResourceError(), NOTHING, UNKNOWN),
    (anyio.BrokenResourceError(), NOTHING, UNKNOWN),
    (anyio.EndOfStream(), NOTHING, UNKNOWN),
    (ToolException("Error executing tool load: week 60 does not exist"), CALL, UNKNOWN),
    (told("Unknown tool: laod"), PRECONDITION, ABSENT),
    (told("Error executing tool load: 1 validation error for Load"), CALL, ABSENT),
    (told("upstream timed out"), NOTHING, UNKNOWN),
]
OPENAI = [
    (answered(openai.AuthenticationError, 401), PRECONDITION, ABSENT),
    (answered(openai.PermissionDeniedError, 403), PRECONDITION, ABSENT),
    (answered(openai.NotFoundError, 404), PRECONDITION, ABSENT),
    (answered(openai.BadRequestError, 400), CALL, ABSENT),
    (answered(openai.UnprocessableEntityError, 422), CALL, ABSENT),
    (answered(openai.RateLimitError, 429), NOTHING, ABSENT),
    (answered(openai.InternalServerError, 500), NOTHING, UNKNOWN),
    (openai.APIConnectionError(request=REQUEST), NOTHING, UNKNOWN),
    (openai.APITimeoutError(request=REQUEST), NOTHING, UNKNOWN),
]
HTTPX = [
    (httpx.ConnectTimeout("t", request=REQUEST), NOTHING, ABSENT),
    (httpx.ConnectError("c", request=REQUEST), NOTHING, ABSENT),
    (httpx.PoolTimeout("p", request=REQUEST), NOTHING, ABSENT),
    (httpx.ReadTimeout("t", request=REQUEST), NOTHING, UNKNOWN),
    (httpx.WriteError("w", request=REQUEST), NOTHING, UNKNOWN),
    (httpx.RemoteProtocolError("r", request=REQUEST), NOTHING, UNKNOWN),
    (httpx.UnsupportedProtocol("u", request=REQUEST), CALL, ABSENT),
    (httpx.InvalidURL("u"), CALL, ABSENT),
]


@pytest.mark.parametrize(
    ("found", "scope", "effect"),
    [*POSTGRES, *MCP, *OPENAI, *HTTPX],
    ids=lambda each: type(each).__name__ if not isinstance(each, str) else each,
)
def test_a_real_error_finds_its_scope_and_what_it_says_of_the_effect(found: Any, scope: str, effect: str) -> None:
    assert routed(found) == (scope, effect)


def test_a_server_that_is_not_there_was_not_reached() -> None:
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect("host=127.0.0.1 port=1 connect_timeout=2 dbname=x")
    assert routed(caught.value) == (NOTHING, ABSENT)
