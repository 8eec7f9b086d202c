"""What does a goal file say? TOML in, a `Goal` out; a mistake is named by file, line and field.

text = "Provision the reporting database"
wants = ["db", "report"]
criteria = ["artifacts.db.tables.size() > 0"]
constraints = ["touch nothing but the warehouse"]
[given]
quarter = "2025-Q3"
"""

import difflib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agent.core.goal import Goal

FIELDS = ("text", "wants", "criteria", "constraints", "given", "again")

_WORDS = {
    "a valid tuple": "a list",
    "a valid dictionary or instance of Criterion": "text or a table",
    "Extra inputs are not permitted": "unknown field",
    "was not a valid JSON value": "has no JSON form; write it in quotes",
}

Location = Sequence[int | str]
"""Where in the document: keys and list positions from the top."""


class GoalFileError(ValueError):
    """The file is not a goal; the message names file, line and field."""


def load_goal(path: Path) -> Goal:
    """Read a goal file.

    Raises:
        GoalFileError: it cannot be read, is not TOML, or does not state a goal.
    """
    source = _text(path)
    document = _document(path, source)
    for name in document:
        if name not in FIELDS:
            raise _mistake(path, source, [name], f"unknown field; {_meant(name)}")
    try:
        goal = Goal.model_validate(document)
    except ValidationError as error:
        raise _first_mistake(path, source, document, error) from None
    _refuse_unspeakable(path, source, goal)
    if goal.same_intent(Goal()):
        raise GoalFileError(f"{path}: states nothing to reach; give `wants`, `criteria` or, with a model, `text`")
    return goal


def _refuse_unspeakable(path: Path, source: str, goal: Goal) -> None:
    """TOML can say nan and inf, JSON cannot; such a value would never equal itself."""
    for name, value in goal.given.items():
        try:
            json.dumps(value, allow_nan=False)
        except ValueError:
            raise _mistake(path, source, ["given", name], "nan and inf have no JSON form") from None


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise GoalFileError(f"{path}, line {line}: not UTF-8 text (byte {error.object[error.start]:#04x})") from None
    except OSError as error:
        raise GoalFileError(f"{path}: cannot be read: {error.strerror or error}") from None


def _document(path: Path, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        said, _, at = str(error).partition(" (at ")
        line, comma, column = at.rstrip(")").partition(", ")
        # a file that ends too early has no line number of its own
        line = line if line.startswith("line") else f"line {max(1, source.rstrip().count(chr(10)) + 1)}"
        raise GoalFileError(f"{path}, {line}{comma}{column}: not TOML: {said}") from None


def _meant(name: str) -> str:
    close = difflib.get_close_matches(name, FIELDS, n=1)
    return f"did you mean {close[0]!r}?" if close else f"a goal has {', '.join(FIELDS)}"


def _first_mistake(path: Path, source: str, document: Mapping[str, Any], error: ValidationError) -> GoalFileError:
    first = error.errors()[0]
    # only one check looks at the whole goal: that the ids of the criteria differ
    # pydantic puts the kind of a nested JSON value into the location
    location: Location = [each for each in first["loc"] or ("criteria",) if each not in ("dict", "list")]
    if _is_bare(document, location):
        location = location[:2]
    cause = first.get("ctx", {}).get("error")
    return _mistake(path, source, location, str(cause or _plain(first["msg"])), first["input"])


def _plain(message: str) -> str:
    """The message in the words of the file: it has lists and tables, not tuples and models."""
    for theirs, ours in _WORDS.items():
        message = message.replace(theirs, ours)
    return message[:1].lower() + message[1:]


def _is_bare(document: Mapping[str, Any], location: Location) -> bool:
    """Whether the location lies inside a criterion that was given as a bare expression."""
    if len(location) < 3 or location[0] != "criteria":
        return False
    criteria = document["criteria"]
    return isinstance(criteria, list) and isinstance(criteria[int(location[1])], str)


def _mistake(path: Path, source: str, location: Location, problem: str, given: object = None) -> GoalFileError:
    return GoalFileError(f"{path}, line {_line(source, location, given)}, {_spelled(location)}: {problem}")


def _spelled(location: Location) -> str:
    """`criteria[2].predicate`; people count from 1."""
    parts = [f"[{each + 1}]" if isinstance(each, int) else f".{each}" for each in location]
    return "".join(parts).lstrip(".")


def _line(source: str, location: Location, given: object = None) -> int:
    """The line of a field: the nearest that can be found by its spelling, from the outside in."""
    at = 0
    for index, part in enumerate(location):
        following = location[index + 1] if index + 1 < len(location) else None
        at = _position(source, at, part, following)
    if isinstance(given, str | int | float) and (spelled := str(given)):
        literal = source.find(spelled.splitlines()[0][:60], at)
        at = literal if literal >= 0 else at
    return source.count("\n", 0, at) + 1


def _position(source: str, start: int, part: int | str, following: int | str | None) -> int:
    if isinstance(part, int):
        return start
    key = rf"[\"']?{re.escape(part)}[\"']?"
    tables = [each.start() for each in re.finditer(rf"^[ \t]*\[\[\s*{key}\s*\]\]", source, re.M)]
    if isinstance(following, int) and following < len(tables):
        return tables[following]
    found = re.compile(rf"(?:^[ \t]*\[?\s*|[{{,.]\s*){key}\s*[\].=]", re.M).search(source, start)
    return found.start() + len(found.group()) - len(found.group().lstrip("{,. \t\n")) if found else start
