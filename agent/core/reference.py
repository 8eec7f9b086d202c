"""References to artifacts inside arguments: `{{settings.database}}`. Resolved whole, or refused."""

import re
from collections.abc import Iterator, Mapping

from agent.core.value import ArtifactName, JsonValue, canonical, leaves

_REFERENCE = re.compile(r"\{\{\s*([A-Za-z_]\w*)((?:\.\w+)*)\s*\}\}")

_FIELD = re.compile(r"\w{1,60}")
_SHOWN = 12
"""Fields that are told to whoever asked for another one."""


class UnresolvedReference(ValueError):
    """A reference names an artifact or a field that is not there; raised before any call is made."""


def referenced(value: JsonValue) -> frozenset[ArtifactName]:
    """Names of all artifacts an argument refers to, at any depth."""
    return frozenset(match.group(1) for text in _texts(value) for match in _REFERENCE.finditer(text))


def references(value: JsonValue) -> tuple[str, ...]:
    """All references in a value as they are written, each once."""
    return tuple(dict.fromkeys(match.group() for text in _texts(value) for match in _REFERENCE.finditer(text)))


def resolve(value: JsonValue, view: Mapping[ArtifactName, JsonValue], wanted: str = "") -> JsonValue:
    """Replace every reference; one that is the whole string keeps its type.

    As a whole string `{{rows.name}}` is that field of each row, where the rows are a list of objects that have it.

    Args:
        value: what refers.
        view: the artifacts.
        wanted: what it is for, such as the name of an argument (`as_text`).

    Raises:
        UnresolvedReference: naming the reference and what exists.
    """
    if isinstance(value, dict):
        return {key: resolve(each, view, wanted) for key, each in value.items()}
    if isinstance(value, list):
        return [resolve(each, view, wanted) for each in value]
    if not isinstance(value, str):
        return value
    whole = _REFERENCE.fullmatch(value.strip())
    if whole:
        return _look_up(whole, view, spread=True)
    return _REFERENCE.sub(lambda match: _inside(as_text(_look_up(match, view), wanted)), value)


def as_text(value: JsonValue, wanted: str = "", lines: bool = False) -> JsonValue:
    """A value as it stands in a text, as JSON if it is none; null stays, for it says that nothing is given.

    Of an object the text that is called as what is `wanted`, such as the `text` of a file, is meant; and one that says
    no more than its field `value`, such as the answer to a query for one number, is written as that.

    Args:
        value: what to spell out.
        wanted: what it is for.
        lines: a list of texts is written one below the other.
    """
    if value is None or isinstance(value, str):
        return value
    if lines and isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return "\n".join(map(str, value))
    if isinstance(value, dict):
        named, single = value.get(wanted), value.get("value")
        if isinstance(named, str):
            return named
        if isinstance(single, str | int | float) and all(each == single for each in leaves(value)):
            return as_text(single)
    return canonical(value)


def _look_up(match: re.Match[str], view: Mapping[ArtifactName, JsonValue], spread: bool = False) -> JsonValue:
    name, path = match.group(1), [part for part in match.group(2).split(".") if part]
    if name not in view:
        known = ", ".join(sorted(view)) or "none"
        raise UnresolvedReference(f"{match.group()} refers to no valid artifact {name!r}; valid: {known}")
    found = view[name]
    for part in path:
        if isinstance(found, dict) and part in found:
            found = found[part]
        elif isinstance(found, list) and part.isdigit() and int(part) < len(found):
            found = found[int(part)]
        elif spread and found and isinstance(found, list) and all(isinstance(e, dict) and part in e for e in found):
            found = [each[part] for each in found if isinstance(each, dict)]
        else:
            raise UnresolvedReference(f"{match.group()} asks for {part!r}, which {name!r} does not have: {_has(found)}")
    return found


def _has(found: JsonValue) -> str:
    """What could have been asked for instead."""
    if isinstance(found, dict):
        fields = [each for each in found if _FIELD.fullmatch(each)]
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        return f"there the fields are {', '.join(fields[:_SHOWN])}{more}" if fields else "there are no such fields"
    if isinstance(found, list):
        return f"there is a list of {len(found)}, whose elements are .0, .1 and so on"
    return f"there is a {'text' if isinstance(found, str) else 'single value'}, which has no fields"


def _inside(value: JsonValue) -> str:
    return value if isinstance(value, str) else canonical(value)


def _texts(value: JsonValue) -> Iterator[str]:
    return (each for each in leaves(value) if isinstance(each, str))
