"""The boundary: whatever a tool throws becomes facts, never an exception further in. `plain` does it for values."""

import asyncio
import re
import traceback
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite, nan
from typing import TypeVar

from pydantic import SecretStr

from agent.core.failure import ErrorFacts
from agent.core.value import JsonValue

T = TypeVar("T")

MESSAGE_LIMIT = 2000
"""Characters of an error text that are kept: head and tail."""

_SECRETS = re.compile(
    r"(?i)(bearer\s+)[\w.~+/-]{8,}=*|\b(sk-)[\w-]{8,}|((?:api[_-]?key|token|password|passwd|secret)['\"]?\s*[=:]\s*['\"]?)[^\s'\"&,;]+"
    r"|(://[^/\s:@]+:)[^@\s/]+(?=@)"
)


def facts_of(error: BaseException, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> ErrorFacts:
    """Reduce an exception to facts. Duck-typed: knows httpx, requests, urllib, OpenAI and MCP errors alike."""
    response = getattr(error, "response", None)
    status = next((s for each in (error, response) if (s := _status(each)) is not None), None)
    headers = getattr(response, "headers", None) or getattr(error, "headers", None)
    return ErrorFacts(
        kind="timeout" if isinstance(error, TimeoutError) else "exception",
        type=type(error).__name__,
        bases=tuple(
            each.__name__ for each in type(error).__mro__[1:] if each not in (object, BaseException, Exception)
        ),
        status=status,
        message=shortened(masked(_text(error))),
        retry_after=_retry_after(headers, now),
    )


async def guarded(work: Awaitable[T], seconds: float) -> T | ErrorFacts:
    """Await work that belongs to somebody else: whatever it throws is data, and it may not take for ever.

    A cancellation of our own task and a keyboard interrupt are not failures of the work and pass through.
    """
    task = asyncio.current_task()
    try:
        async with asyncio.timeout(seconds):
            return await work
    except KeyboardInterrupt:
        raise
    except asyncio.CancelledError as error:
        if task is not None and task.cancelling():
            raise
        return facts_of(error)
    except BaseException as error:  # the boundary: nothing a tool throws may end the run
        return facts_of(error)


def error_in(value: JsonValue) -> ErrorFacts | None:
    """An error that a tool returned as an ordinary value: `{"error": ...}`, `"Error: ..."`, `isError`."""
    if isinstance(value, str) and re.match(r"\s*(?:error|exception|traceback)\b\s*[:(]", value, re.I):
        return ErrorFacts(kind="value", message=shortened(masked(value)))
    if not isinstance(value, dict):
        return None
    told = value.get("error") or (value if value.get("isError") is True or value.get("is_error") is True else None)
    if not told:
        return None
    codes = [each.get(k) for each in (told, value) if isinstance(each, dict) for k in ("status", "status_code", "code")]
    status = next((code for each in codes if (code := _as_status(each)) is not None), None)
    return ErrorFacts(
        kind="value", status=status, message=shortened(masked(told if isinstance(told, str) else str(told)))
    )


def masked(text: str) -> str:
    """Hide what looks like a credential."""
    return _SECRETS.sub(lambda m: next((g for g in m.groups() if g), "") + "***", text)


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
    body = getattr(getattr(error, "response", None), "text", "") or getattr(error, "body", "")
    return f"{said}\n{body}" if isinstance(body, str) and body and body not in said else said


def _status(source: object) -> int | None:
    codes = (_as_status(getattr(source, name, None)) for name in ("status_code", "status", "code"))
    return next((code for code in codes if code is not None), None)


def _as_status(value: object) -> int | None:
    plausible = isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599
    return value if plausible and isinstance(value, int) else None


def _retry_after(headers: object, now: Callable[[], datetime]) -> float | None:
    get = getattr(headers, "get", None)
    said = get("retry-after") or get("Retry-After") if callable(get) else None
    if not said:
        return None
    try:
        seconds = float(said)
    except ValueError:
        seconds = _until(said, now)
    return max(0.0, seconds) if isfinite(seconds) else None


def _until(date: str, now: Callable[[], datetime]) -> float:
    try:
        return (parsedate_to_datetime(date) - now()).total_seconds()
    except (ValueError, TypeError):
        return nan


def secret(value: SecretStr | None) -> str | None:
    """The plain secret, at the one place that hands it to a client."""
    return value.get_secret_value() if value else None
