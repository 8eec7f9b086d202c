"""The boundary: whatever a tool throws or returns becomes facts and JSON values, never an exception further in."""

import asyncio
import re
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from pydantic import BaseModel, SecretStr

from agent.core.failure import ErrorFacts
from agent.core.value import JsonValue

T = TypeVar("T")

MESSAGE_LIMIT = 2000
"""Characters of an error text that are kept: head and tail."""
DEPTH_LIMIT = 100
"""Nesting of a returned value; deeper parts are kept as text."""

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


def as_json(value: object, depth: int = 0) -> JsonValue:
    """Make any returned object a JSON value; what has no JSON form is kept as text, never dropped."""
    if value is None or isinstance(value, bool | int | float | str):
        return value if type(value) in (type(None), bool, int, float, str) else _plain(value)
    if depth > DEPTH_LIMIT:
        return repr(value)[:MESSAGE_LIMIT]
    if isinstance(value, BaseModel):
        return as_json(value.model_dump(), depth + 1)
    if isinstance(value, Mapping):
        return {_key(key): as_json(each, depth + 1) for key, each in value.items()}
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "backslashreplace")
    if isinstance(value, Iterable):
        listed = sorted(value, key=repr) if isinstance(value, set | frozenset) else list(value)
        return [as_json(each, depth + 1) for each in listed]
    return str(value)


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
        return max(0.0, float(said))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(said) - now()).total_seconds())
    except (ValueError, TypeError):
        return None


def _plain(value: bool | int | float | str | None) -> JsonValue:
    """A subclass of a basic type (an enum, a numpy-like number) as the basic type itself."""
    for basic in (bool, int, float, str):
        if isinstance(value, basic):
            return basic(value.value if hasattr(value, "value") else value)
    return None


def _key(key: object) -> str:
    return key if type(key) is str else str(getattr(key, "value", key))


def secret(value: SecretStr | None) -> str | None:
    """The plain secret, at the one place that hands it to a client."""
    return value.get_secret_value() if value else None
