"""What is wrong with a value, in one sentence for whoever wrote it?"""

from collections.abc import Iterable

from pydantic import ValidationError

_LONGEST = 60
"""Characters of a value that a refusal repeats."""


def first_mistake(error: ValidationError, what: str, fields: Iterable[str] = ()) -> str:
    """Where the first mistake is, and what it is, without the library's words about itself.

    Args:
        error: what pydantic found.
        what: the name of what was read.
        fields: those it has, for whoever names another.
    """
    first = error.errors(include_url=False)[0]
    where = ".".join((what, *(str(each) for each in first["loc"])))
    known = ", ".join(fields) if len(first["loc"]) == 1 else ""
    cause = first.get("ctx", {}).get("error")
    match first["type"]:
        case "extra_forbidden":
            return f"{where}: there is no such field" + (f"; there are: {known}" if known else "")
        case "missing":
            return f"{where}: it has to be given"
        case _ if cause is not None:
            return f"{where}: {str(cause).splitlines()[0]}"
        case _:
            return f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}, not {_shown(first['input'])}"


def _shown(value: object) -> str:
    spelled = repr(value)
    return spelled if len(spelled) <= _LONGEST else f"{spelled[:_LONGEST]}..."
