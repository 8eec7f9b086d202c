"""Which artifacts does a name like `loaded_*` stand for? A family: all that are called so, as many as there are."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from agent.core.value import ArtifactName

_FIELD = re.compile(r"\{\w*\}")


def expand(wanted: Iterable[ArtifactName], names: Iterable[ArtifactName]) -> tuple[ArtifactName, ...]:
    """Spell out `family_*`; a family nobody makes stays as it is, so that it is reported."""
    wanted = tuple(wanted)
    spelled: list[ArtifactName] = []
    known = tuple(names) if any(each.endswith("*") for each in wanted) else ()
    for name in wanted:
        members = belonging(name, known) if name.endswith("*") else ()
        spelled.extend(members or [name])
    return tuple(dict.fromkeys(spelled))


def belonging(pattern: str, names: Iterable[ArtifactName]) -> tuple[ArtifactName, ...]:
    """Those of the names that belong to a family."""
    return tuple(each for each in names if fnmatchcase(each, pattern))


def pattern_of(product: str) -> str:
    """The family that a product such as `loaded_{week}` is of."""
    return _FIELD.sub("*", product)
