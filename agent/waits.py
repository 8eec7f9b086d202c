"""How long does the other side ask us to wait? Read from headers, from JSON bodies and, failing both, from words."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from math import isfinite, nan

_HEADERS = {"retry-after": 1.0, "retry-after-ms": 0.001, "x-ms-retry-after-ms": 0.001, "x-ratelimit-reset-after": 1.0}
"""Header -> seconds per unit."""
_KEYS = {
    "retryafter": 1.0,
    "retryafterseconds": 1.0,
    "retryafters": 1.0,
    "retryaftersecs": 1.0,
    "retryafterms": 0.001,
    "retryaftermillis": 0.001,
    "retrydelay": 1.0,
    "retryin": 1.0,
    "backoffseconds": 1.0,
}
"""Name in a body, letters only -> seconds per unit."""
_UNITS = {
    "ms": 0.001,
    "milli": 0.001,
    "": 1.0,
    "s": 1.0,
    "sec": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
}
_AMOUNT = r"(\d+(?:\.\d+)?)\s*(ms|milli|sec|min|hour|s|m|h|)(?:onds?|isecs?|liseconds?|seconds?|utes?|s)?(?![a-z])"
_WORDS = re.compile(
    rf"(?:try again|retry(?:ing)?|wait|back off|available|resets?)[\s-]*(?:in|after|for|at least|:|=)*\s*{_AMOUNT}"
    r"(?:\s*(\d+(?:\.\d+)?)\s*s\b)?",
    re.I,
)
_DEPTH = 5


def in_headers(headers: object, now: Callable[[], datetime]) -> float | None:
    """Seconds from response headers, whatever their case."""
    items = getattr(headers, "items", None)  # urllib's headers are no mapping
    if not callable(items):
        return None
    named = {str(name).lower(): str(value) for name, value in items()}
    found = (_seconds(named.get(name), unit, now) for name, unit in _HEADERS.items())
    return next((each for each in found if each is not None), None)


def in_body(body: object, depth: int = 0) -> float | None:
    """Seconds from a body: `retry_after` and its like at any place in it."""
    if depth > _DEPTH:
        return None
    if isinstance(body, Mapping):
        own = (_told(str(name), value) for name, value in body.items())
        found = next((each for each in own if each is not None), None)
        return found if found is not None else _first(body.values(), depth)
    return _first(body, depth) if isinstance(body, list | tuple) else None


def in_words(text: str) -> float | None:
    """Seconds from a sentence such as "try again in 1m30s"; a bare number counts as seconds."""
    found = _WORDS.search(text)
    if found is None:
        return None
    amount, unit, rest = found.groups()
    return _sane(float(amount) * _UNITS[unit.lower()] + float(rest or 0))


def _first(values: Iterable[object], depth: int) -> float | None:
    return next((found for each in values if (found := in_body(each, depth + 1)) is not None), None)


def _told(name: str, value: object) -> float | None:
    unit = _KEYS.get(re.sub(r"[^a-z]", "", name.lower()))
    if unit is None or isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _sane(value * unit)
    spelled = re.fullmatch(_AMOUNT, value.strip(), re.I) if isinstance(value, str) else None
    return _sane(float(spelled[1]) * (_UNITS[spelled[2].lower()] if spelled[2] else unit)) if spelled else None


def _seconds(said: str | None, unit: float, now: Callable[[], datetime]) -> float | None:
    if not said:
        return None
    try:
        return _sane(float(said) * unit)
    except ValueError:
        return _sane(_until(said, now))


def _until(date: str, now: Callable[[], datetime]) -> float:
    try:
        return (parsedate_to_datetime(date) - now()).total_seconds()
    except (ValueError, TypeError):
        return nan


def _sane(seconds: float) -> float | None:
    return max(0.0, seconds) if isfinite(seconds) else None
