"""Is a value that a tool returned an error in disguise? `{"error": ...}`, `"Error: ..."`, `isError`, a problem body.

A value that only speaks of errors is a value: a report of failed checks, a log, a job that is known to have failed.
"""

import re
from collections.abc import Mapping

from agent.core.failure import ErrorFacts
from agent.core.value import JsonValue
from agent.error_codes import parsed, told_code
from agent.waits import in_body, in_words

_OPENING = re.compile(
    r"\s*(?:[\W_]{0,4}(?:error(?: code)?|exception|traceback|fatal)\b\W{0,3}\s*[:(]|\[(?:error|exception|fatal)\]"
    r"|error (?:executing|calling|invoking|running|in) (?:the )?(?:tool|function)\b"
    r"|(?:[a-z_]\w*\.)*(?P<type>[A-Z]\w*(?:Error|Exception|Timeout))\s*:\s"
    r"|HTTP(?:/\d(?:\.\d)?)?(?: error| status)?\W{1,3}[45]\d\d\b)",
    re.I,
)
_STATUS = re.compile(
    r"(?:HTTP(?:/\d(?:\.\d)?)?(?: error| status)?(?: code)?|status(?:[ _]?code)?|error code)\W{1,3}([45]\d\d)\b"
    r"|\b([45]\d\d) (?:client|server) error\b|(?:client|server) error '?([45]\d\d)\b",
    re.I,
)
_NO_ERROR = re.compile(r"\s*(?:0|none|null|nil|false|no|no[ _]errors?|ok|success)?[\s.!]*", re.I)
_WORDS = (
    "message",
    "detail",
    "error_description",
    "description",
    "reason",
    "title",
    "errorMessage",
    "stderr",
    "content",
)
_LONGEST = 20_000
"""Characters of a text that is looked into; an error is short, data may not be."""


def told_status(text: str) -> int | None:
    """The HTTP status a text names as such; a bare number is none."""
    found = _STATUS.search(text)
    return int(next(each for each in found.groups() if each)) if found else None


def error_in(value: JsonValue) -> ErrorFacts | None:
    """The error that was returned as a value, if it is one; its words are not yet masked or cut."""
    if isinstance(value, str):
        return _in_text(value)
    return _in_mapping(value) if isinstance(value, dict) else None


def _in_text(text: str) -> ErrorFacts | None:
    if len(text) <= _LONGEST and isinstance(whole := parsed(text), dict):
        return _in_mapping(whole)
    opening = _OPENING.match(text)
    if opening is None:
        return None
    kind = opening["type"] or ""
    return ErrorFacts(
        kind="value", type=kind, message=text, status=told_status(text[:200]), retry_after=in_words(text[:_LONGEST])
    )


def _in_mapping(value: dict[str, JsonValue]) -> ErrorFacts | None:
    told = _told(value)
    if told is None:
        return None
    message = _said(told)
    waits = in_body(value)
    return ErrorFacts(
        kind="value",
        message=message,
        status=_status(told) or _status(value) or told_status(message),
        code=_ended(value) or told_code(told) or told_code(value),
        retry_after=in_words(message) if waits is None else waits,
    )


def _told(value: dict[str, JsonValue]) -> JsonValue | None:
    """The part of a mapping that tells of the error; None when it is an ordinary value."""
    told = value.get("error")
    if isinstance(told, int | float):
        # a flag, or a code with its words beside it; any other number is a measure or a count
        coded = told and isinstance(told, int) and (_worded(value) or (as_status(told) or 0) >= 400)
        if told is True or coded:
            return value
    elif _speaks(told):
        return told
    if value.get("isError") is True or value.get("is_error") is True:
        return value.get("structuredContent") or value
    return value if _failed(value) or _problem(value) or _ended(value) else _listed(value)


def _failed(value: dict[str, JsonValue]) -> bool:
    """A mapping that says of itself that it did not work, and why; without a why it may be a finding."""
    denied = any(value.get(name) is False for name in ("ok", "success", "succeeded"))
    named = value.get("status") in ("error", "ERROR") or value.get("type") == "error"
    return (denied or named) and _worded(value)


def _worded(value: dict[str, JsonValue]) -> bool:
    return any(isinstance(value.get(each), str) and value.get(each) for each in _WORDS)


def _speaks(told: JsonValue) -> bool:
    """Whether there is anything in an error field: some services always send it, empty or saying that all is well."""
    if isinstance(told, dict):
        return any(_speaks(each) for each in told.values())
    return bool(told) and not (isinstance(told, str) and _NO_ERROR.fullmatch(told))


def _problem(value: dict[str, JsonValue]) -> bool:
    """A problem body (RFC 9457), or a response that was handed on with its status."""
    status = _status({name: value.get(name) for name in ("status", "status_code", "statusCode")})
    return status is not None and status >= 400 and any(value.get(name) for name in (*_WORDS, "body"))


def _listed(value: dict[str, JsonValue]) -> JsonValue | None:
    """GraphQL and JSON:API tell errors in a list, with nothing or no data beside it."""
    alone = value.keys() <= {"errors", "data", "extensions", "meta", "jsonapi"}
    return value.get("errors") or None if alone and not value.get("data") else None


def _ended(value: dict[str, JsonValue]) -> str:
    """A process that ended badly and printed nothing but errors; with output, its exit status is a finding."""
    ended = next((e for name in ("returncode", "exit_code", "exitCode") if isinstance(e := value.get(name), int)), 0)
    mute = not value.get("stdout") and not value.get("output")
    return f"exit:{ended}" if ended and mute and value.get("stderr") else ""


def _said(told: JsonValue) -> str:
    """The words of an error: its own message and code where it has them, else all of it."""
    if isinstance(told, str):
        return told
    if not isinstance(told, dict):
        return str(told)
    content = told.get("content")
    parts = content if isinstance(content, list) else []
    return "\n".join(str(each["text"]) for each in parts if isinstance(each, dict) and "text" in each) or str(told)


def _status(value: object) -> int | None:
    if not isinstance(value, Mapping):
        return None
    names = ("status", "status_code", "statusCode", "code", "error_code", "error")
    found = (each for name in names if (each := as_status(value.get(name))) is not None)
    return next(found, None)


def as_status(value: object) -> int | None:
    """An HTTP status, if the value can be one; some servers spell it as text."""
    if isinstance(value, str) and re.fullmatch(r"[1-5]\d\d", value):
        return int(value)
    plausible = isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599
    return value if plausible and isinstance(value, int) else None
