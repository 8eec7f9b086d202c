"""The boundary: whatever a tool throws becomes facts, never an exception further in. `plain` does it for values."""

import asyncio
import re
import traceback
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from subprocess import TimeoutExpired
from typing import TypeVar

from pydantic import SecretStr

from agent import returned, secrecy
from agent.core.failure import ErrorFacts
from agent.core.value import JsonValue
from agent.error_codes import body_of, code_of, host_of, kept
from agent.waits import in_body, in_headers, in_words

T = TypeVar("T")

MESSAGE_LIMIT = 2000
"""Characters of an error text that are kept: head and tail."""

_SECRETS = re.compile(
    r"(?i)(bearer\s+)[\w.~+/-]{8,}=*|\b(sk-)[\w-]{8,}|((?:api[_-]?key|token|password|passwd|secret)['\"]?\s*[=:]\s*['\"]?)[^\s'\"&,;]+"
    r"|(://[^/\s:@]+:)[^@\s/]+(?=@)"
)


def facts_of(error: BaseException, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> ErrorFacts:
    """Reduce an exception to facts. Duck-typed: knows HTTP clients, MCP, databases, processes and providers alike."""
    response = kept(error, "response")
    headers = kept(response, "headers") or kept(error, "headers")
    said = shortened(masked(_text(error)))
    return ErrorFacts(
        kind="timeout" if isinstance(error, TimeoutError | TimeoutExpired) else "exception",
        type=type(error).__name__,
        bases=tuple(
            each.__name__ for each in type(error).__mro__[1:] if each not in (object, BaseException, Exception)
        ),
        status=_status_of(error, response, said),
        code=code_of(error),
        endpoint=host_of(error),
        message=said,
        retry_after=_asked_to_wait(error, headers, said, now),
    )


LAST_WORDS = 1.0
"""Seconds that work which was cancelled may take to clean up; then nobody waits for it any more."""


async def guarded(
    work: Awaitable[T], seconds: float, late: Callable[[asyncio.Task[T | ErrorFacts]], object] | None = None
) -> T | ErrorFacts:
    """Await work that belongs to somebody else: whatever it throws is data, and it may not take for ever.

    Work that is cancelled, by us or because its time is up, has no success any more, whatever it makes of the
    cancellation; and nobody waits for work that goes on in spite of it. A keyboard interrupt passes through.

    Args:
        work: in a task of its own.
        seconds: how long it may take.
        late: told of work that goes on although it was cancelled.
    """
    task = asyncio.create_task(_contained(work))
    try:
        await asyncio.wait([task], timeout=seconds)
        if task.done():
            return task.result()
        return facts_of(TimeoutError())
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=LAST_WORDS)
            if late is not None and not task.done():
                late(task)
        if task.cancelled() and asyncio.iscoroutine(work):
            work.close()  # it never began


async def _contained(work: Awaitable[T]) -> T | ErrorFacts:
    try:
        return await work
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the boundary: nothing a tool throws may end the run
        return facts_of(error)


def error_in(value: JsonValue) -> ErrorFacts | None:
    """An error that a tool returned as an ordinary value: `{"error": ...}`, `"Error: ..."`, `isError`."""
    found = returned.error_in(value)
    return found.model_copy(update={"message": shortened(masked(found.message))}) if found else None


def masked(text: str) -> str:
    """Hide what is a credential, or looks like one; in a message of an error, rather too much than too little."""
    return _SECRETS.sub(lambda m: next((g for g in m.groups() if g), "") + "***", secrecy.masked(text))


def shortened(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """Keep head and tail of a long text, and say how much is left out."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


def _text(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_text(each) for each in error.exceptions)
    said = str(error) or "".join(traceback.format_exception_only(error)).strip()
    more = (_body_text(error), kept(error, "stderr"), kept(error, "stdout"))
    body = next((text for each in more if (text := _spelled(each))), "")
    return f"{said}\n{body}" if body and body not in said else said


def _body_text(error: BaseException) -> object:
    return kept(kept(error, "response"), "text") or kept(error, "body")


def _spelled(output: object) -> str:
    if isinstance(output, bytes):
        return output.decode("utf-8", "replace").strip()
    return output if isinstance(output, str) else ""


def _status_of(error: BaseException, response: object, said: str) -> int | None:
    """The status a client, an MCP error or AWS keeps; last the one that the words name as such."""
    body = body_of(error)
    meta = body.get("ResponseMetadata") if isinstance(body, Mapping) else None
    told = (body.get("code") if isinstance(body, Mapping) else None, _get(meta, "HTTPStatusCode"))
    own = (kept(each, name) for each in (error, response) for name in ("status_code", "status", "code"))
    found = (code for each in (*own, *told) if (code := returned.as_status(each)) is not None)
    return next(found, None) or returned.told_status(said)


def _asked_to_wait(error: BaseException, headers: object, said: str, now: Callable[[], datetime]) -> float | None:
    own = {"retry_after": kept(error, "retry_after")}
    meta = _get(body_of(error), "ResponseMetadata")
    found = (
        in_headers(headers, now),
        in_headers(_get(meta, "HTTPHeaders"), now),
        in_body(own),
        in_body(body_of(error)),
    )
    known = next((each for each in found if each is not None), None)
    return in_words(said) if known is None else known


def _get(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, Mapping) else None


def secret(value: SecretStr | None) -> str | None:
    """The plain secret, at the one place that hands it to a client."""
    return value.get_secret_value() if value else None
