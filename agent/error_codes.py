"""Which machine-readable code does an error carry, and from which host? Found by looking, not by importing clients.

Every library keeps its code somewhere else: SQLSTATE in `sqlstate` or `pgcode`, SQLite's name, errno, the exit
status of a process, the number of an MCP error, the word of a provider. All of them become one text.
"""

import errno
import json
import re
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

_INSIDE = ("orig", "reason", "__cause__")
"""Where clients keep the error below theirs: SQLAlchemy, urllib, and Python's own chain."""
_DEPTH = 4
_SQLSTATE = re.compile(r"[0-9A-Z]{5}")


def layers(error: BaseException) -> Iterator[BaseException]:
    """The error and those inside it, outermost first."""
    seen: list[BaseException] = []
    left = [error]
    while left and len(seen) < _DEPTH:
        each = left.pop(0)
        if any(each is other for other in seen):
            continue
        seen.append(each)
        yield each
        left += [below for name in _INSIDE if isinstance(below := getattr(each, name, None), BaseException)]


def code_of(error: BaseException) -> str:
    """The code of an exception, or of the error inside it; empty when there is none."""
    return next((code for each in layers(error) if (code := _own_code(each))), "")


def told_code(told: object) -> str:
    """The code inside an error that came as data: JSON-RPC, a provider's word, AWS, gRPC spelled out."""
    if isinstance(told, str) and "_" in told:
        return _spelled(told)  # the whole error is one word: `token_revoked`
    if not isinstance(told, Mapping):
        return ""
    inner = told.get("Error")
    named = inner if isinstance(inner, Mapping) else told
    said = (named.get(each) for each in ("code", "Code", "errorCode", "error_code", "type", "name"))
    return next((code for each in said if (code := _spelled(each))), "")


def host_of(error: BaseException) -> str:
    """The host an error came from, as the client's request or answer names it; never from the error's words."""
    return next((host for each in layers(error) if (host := _own_host(each))), "")


def parsed(text: object) -> object:
    """What a text says as JSON; None when it is none."""
    if not isinstance(text, str) or not text.lstrip().startswith(("{", "[")):
        return None
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found


def body_of(error: BaseException) -> object:
    """What the other side said with an error, as data: a parsed body, MCP's error, AWS's mapping."""
    response = kept(error, "response")
    found = (kept(error, "body"), kept(error, "error"), response, parsed(kept(response, "text")))
    return next((each for each in map(_mapping, found) if each is not None), None)


def kept(holder: object, name: str) -> object:
    """An attribute of a foreign object; httpx throws for a request that was never set."""
    try:
        return getattr(holder, name, None)
    except Exception:  # the boundary: a foreign property may throw whatever it likes
        return None


def _own_code(error: BaseException) -> str:
    state = next((s for name in ("sqlstate", "pgcode") if isinstance(s := kept(error, name), str)), "")
    if _SQLSTATE.fullmatch(state):
        return f"sqlstate:{state}"
    lite = kept(error, "sqlite_errorname")
    if isinstance(lite, str):
        return lite
    ended = kept(error, "returncode")
    if isinstance(ended, int):
        return f"exit:{ended}"
    return _number_name(error) or _spelled(_called(kept(error, "code"))) or _told(error)


def _number_name(error: BaseException) -> str:
    number = error.errno if isinstance(error, OSError) else None
    return errno.errorcode.get(number, "") if isinstance(number, int) else ""


def _told(error: BaseException) -> str:
    body = body_of(error)
    inner = body.get("error") if isinstance(body, Mapping) else None
    return told_code(inner) or told_code(body)


def _called(code: object) -> object:
    """The clients of gRPC give their code by a method, and the code has a name."""
    if not callable(code):
        return code
    try:
        return getattr(code(), "name", "")
    except Exception:  # the boundary: a foreign method may throw whatever it likes
        return ""


def _spelled(code: object) -> str:
    if isinstance(code, bool) or code is None:
        return ""
    if isinstance(code, int):
        return f"rpc:{code}" if code < 0 else ""  # positive ones are HTTP statuses, or nobody knows what
    return code if isinstance(code, str) and re.fullmatch(r"[A-Za-z][\w.\-]{2,63}", code) else ""


def _own_host(error: BaseException) -> str:
    for holder in (kept(error, "request"), kept(error, "response"), kept(error, "request_info"), error):
        for name in ("url", "real_url"):
            host = _host(kept(holder, name))
            if host:
                return host
    return ""


def _host(url: object) -> str:
    if url is None or callable(url):
        return ""
    try:
        parts = urlsplit(str(url))
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    return f"{parts.hostname or ''}{port}" if parts.scheme else ""


def _mapping(value: object) -> object:
    """A body as a mapping: MCP's error is an object with `code`, `message` and `data`."""
    if isinstance(value, Mapping):
        return value
    named = {name: kept(value, name) for name in ("code", "message", "data")}
    return named if isinstance(named["message"], str) else None
