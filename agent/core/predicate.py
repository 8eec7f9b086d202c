"""What must hold: CEL expressions judged three-valued over artifacts, facts, args and result.

A missing observation is *unverifiable*, never false, and never true: the verifier fails closed.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Annotated

import cel
from pydantic import AfterValidator

from agent.core.predicate_cost import TEXT, too_costly, too_long
from agent.core.value import ArtifactName, JsonValue, Value

ROOTS = ("artifacts", "facts", "args", "result")
"""The only names an expression may read."""

_FIELD = re.compile(r"\s*(?:\.\s*([A-Za-z_]\w*)\b(?!\s*\()|\[\s*(['\"])([A-Za-z_]\w*)\2\s*\])")
_POSITION = re.compile(r"<input>:(\d+):(\d+): (?:Syntax error: )?([^\n]*)")
_EVALUATION_ERRORS = (KeyError, IndexError, TypeError, ValueError, RuntimeError, ArithmeticError)


class Verdict(StrEnum):
    """The answer of a predicate. Only `verified` completes anything."""

    VERIFIED = "verified"
    REFUTED = "refuted"
    UNVERIFIABLE = "unverifiable"


class Judgement(Value):
    """A verdict and why it was given."""

    predicate: str
    verdict: Verdict
    reason: str = ""


class PredicateError(ValueError):
    """The expression does not compile; the message shows the position."""


def checked(source: str) -> str:
    """Return the expression unchanged if it compiles and reads only known roots by name.

    Raises:
        PredicateError: with the expression and a caret under the position.
    """
    program = _program(source)
    unknown = sorted(set(program.variables()) - set(ROOTS) - _bound_names(source))
    if unknown:
        at = re.search(rf"\b{re.escape(unknown[0])}\b", source)
        raise PredicateError(
            _pointed(source, at.start() if at else 0, f"{unknown[0]!r} is not one of {', '.join(ROOTS)}")
        )
    reads(source)
    return source


Predicate = Annotated[str, AfterValidator(checked)]
"""A CEL expression that is known to compile."""


@lru_cache(maxsize=4096)
def reads(source: str, root: str = "artifacts") -> frozenset[ArtifactName]:
    """Names of the artifacts (or facts) the expression reads; these are dependency edges.

    Raises:
        PredicateError: when an artifact is chosen by a computed name, which would hide the edge.
    """
    masked = TEXT.sub(lambda m: m.group() if _is_key(source, m) else "_" * len(m.group()), source)
    found = set()
    for use in re.finditer(rf"(?<![\w.'\"]){root}\b", masked):
        field = _FIELD.match(masked, use.end())
        if field is None:
            raise PredicateError(_pointed(source, use.start(), f"{root} must be read by name: {root}.name"))
        found.add(field.group(1) or field.group(3))
    return frozenset(found)


def judge(
    source: str,
    artifacts: Mapping[str, JsonValue],
    facts: Mapping[str, JsonValue] | None = None,
    args: Mapping[str, JsonValue] | None = None,
    result: JsonValue = None,
) -> Judgement:
    """Judge an expression against observations; anything but a plain true or false is unverifiable."""
    seen = {name: artifacts[name] for name in reads(source) if name in artifacts}
    known, sent = dict(facts or {}), dict(args or {})
    context: dict[str, JsonValue] = {"artifacts": seen, "facts": known, "args": sent, "result": result}
    costly = too_costly(source, {**known, **seen, "args": sent, "result": result})
    if costly:
        return Judgement(predicate=source, verdict=Verdict.UNVERIFIABLE, reason=costly)
    try:
        answer = _program(source).execute(context)
    except _EVALUATION_ERRORS as error:
        missing = f"not observed: {error}" if isinstance(error, KeyError) else str(error).split(":")[0]
        return Judgement(predicate=source, verdict=Verdict.UNVERIFIABLE, reason=missing)
    if answer is True:
        return Judgement(predicate=source, verdict=Verdict.VERIFIED)
    if answer is False:
        return Judgement(predicate=source, verdict=Verdict.REFUTED, reason="evaluated to false")
    return Judgement(predicate=source, verdict=Verdict.UNVERIFIABLE, reason=f"gave {answer!r}, not true or false")


def worst(judgements: tuple[Judgement, ...]) -> Judgement | None:
    """The judgement that decides: a refuted one, else an unverifiable one, else none."""
    order = (Verdict.REFUTED, Verdict.UNVERIFIABLE)
    return next((j for verdict in order for j in judgements if j.verdict is verdict), None)


@lru_cache(maxsize=4096)
def _program(source: str) -> cel.Program:
    problem = too_long(source)
    if problem:
        raise PredicateError(problem)
    try:
        return cel.compile(source)
    except ValueError as error:
        at = _POSITION.search(str(error))
        if at is None:
            raise PredicateError(f"cannot read the predicate {source!r}: {error}") from None
        line, column = int(at.group(1)), int(at.group(2))
        offset = sum(len(text) + 1 for text in source.split("\n")[: line - 1]) + column - 1
        raise PredicateError(_pointed(source, offset, at.group(3))) from None


def _pointed(source: str, offset: int, problem: str) -> str:
    start = source.rfind("\n", 0, offset) + 1
    line = source[start:].split("\n")[0]
    return f"predicate does not compile at position {offset + 1}: {problem}\n  {line}\n  {' ' * (offset - start)}^"


def _bound_names(source: str) -> set[str]:
    """Names a comprehension macro binds: the first argument of all, exists, exists_one, filter, map."""
    return set(re.findall(r"\.\s*(?:all|exists|exists_one|filter|map)\s*\(\s*([A-Za-z_]\w*)\s*,", source))


def _is_key(source: str, match: re.Match[str]) -> bool:
    """Whether a string literal is a name and the whole of an index, as in artifacts['name']."""
    indexed = source[: match.start()].rstrip().endswith("[") and source[match.end() :].lstrip().startswith("]")
    return indexed and match.group()[1:-1].isidentifier()
