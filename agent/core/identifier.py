"""What can be the name of something that is kept? Text that every database, terminal and file can spell."""

import unicodedata

LONGEST = 255
"""Characters. A key of Postgres may be a few times as long, in bytes; nobody reads a longer one."""

_UNFIT = {"Cc": "a control character", "Cs": "a lone surrogate"}


class BadIdentifier(ValueError):
    """It cannot be the name of something that is kept. Nothing was written."""


def identifier(given: object, what: str = "the id of a thread") -> str:
    """The name as it is kept; a number or a UUID is spelled as text.

    Raises:
        BadIdentifier: it is empty, too long, or holds what cannot be stored or shown; the message says which of what.
    """
    name = str(given)
    problem = _problem(name)
    if problem:
        raise BadIdentifier(f"{what} {problem}; it needs 1 to {LONGEST} characters that can be stored and shown")
    return name


def _problem(name: str) -> str:
    if not name:
        return "is empty"
    if len(name) > LONGEST:
        return f"has {len(name)} characters ({name[:20]!r}...)"
    unfit = next(((at, kind) for at, each in enumerate(name) if (kind := unicodedata.category(each)) in _UNFIT), None)
    return f"{name!r} holds {_UNFIT[unfit[1]]} at position {unfit[0] + 1}" if unfit else ""
