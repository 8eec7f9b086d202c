"""Is a predicate cheap enough to be evaluated? Estimated before, for an evaluation cannot be stopped.

A predicate may come from a model, and its values from anywhere. Macros over macros, strings that grow in each
round and patterns with counted repetitions can take hours or all memory; very long expressions break the parser.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import prod
from typing import NamedTuple

from agent.core.value import JsonValue

_RAW = r"""'''[\s\S]*?'''|\"\"\"[\s\S]*?\"\"\"|'[^'\n]*'|"[^"\n]*\""""
_ESCAPED = r"""'''(?:\\[\s\S]|[^\\])*?'''|\"\"\"(?:\\[\s\S]|[^\\])*?\"\"\"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\""""
TEXT = re.compile(rf"(?:[bB]?[rR]|[rR][bB])(?:{_RAW})|[bB]?(?:{_ESCAPED})|//[^\n]*")
"""What is no code in an expression: strings of all spellings, and comments."""

SOURCE_LIMIT = 4_000
"""Characters of an expression."""
OPERATOR_LIMIT = 500
"""Operators, calls and fields of an expression: the parser recurses for each."""
COST_LIMIT = 3_000_000.0
"""Rounds of a simple macro, or what takes as long: some seconds."""
_GROWTH_LIMIT = 10_000.0
"""How many times larger than what it was made from a built value may be."""

_OPERATOR = re.compile(r"[-+*/%<>=!?.&|\[(,]")
_TOKEN = re.compile(r"\.\s*(all|exists|exists_one|existsOne|filter|map)\s*\(\s*([A-Za-z_]\w*)\s*,|\(|\)")
_RANGE = re.compile(r"([A-Za-z_]\w*)(?:\s*(?:\.\s*\w+|\[[^\[\]]*\]))*\s*$")
_ROOT = re.compile(r"(?<![\w.])(?:artifacts|facts)\s*\.\s*(\w+)|(?<![\w.])(args|result)\b")
_PATTERN = re.compile(r"matches\s*\(\s*(?:[rR]?('(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\")\s*\))?")
_REPEATED = re.compile(r"\{(\d{1,9})(?:,(\d{0,9}))?\}")


class _Macro(NamedTuple):
    builds: bool
    """It makes a list, which is copied in each round."""
    crossed: int
    """How many ranges, its own included, are run through in full for each element of the one before."""


class _Shape(NamedTuple):
    """What an expression does, as far as its text tells."""

    macros: tuple[_Macro, ...]
    plus: int
    made: int
    """Values that are put together: by `+`, and inside of lists and mappings."""
    inside: tuple[str, ...]
    """Names that are read in the body of a macro, again in each round."""
    patterns: tuple[str | None, ...]
    """Regular expressions; None: one that is computed."""
    weight: float
    """Of the heaviest pattern that could be put together from the text itself."""


class _Size(NamedTuple):
    parts: int
    longest: int
    """Elements of the largest list or mapping."""
    text: int
    """Characters of the longest string."""
    pattern: float
    """Weight of the heaviest string, if it were a pattern."""


def too_long(source: str) -> str:
    """Why an expression cannot be parsed safely; empty when it can."""
    if len(source) > SOURCE_LIMIT:
        return f"the predicate has {len(source)} characters, and may have {SOURCE_LIMIT}; split it in two"
    operators = len(_OPERATOR.findall(_masked(source)))
    if operators > OPERATOR_LIMIT:
        return f"the predicate has {operators} operators, and may have {OPERATOR_LIMIT}; split it in two"
    return ""


def too_costly(source: str, values: Mapping[str, JsonValue]) -> str:
    """Why an expression is not evaluated over these values, by name; empty when it is."""
    shape = _shape(source)
    if not (shape.macros or shape.plus or shape.patterns):
        return ""
    sizes = {name: _size(each) for name, each in values.items()}
    if _cost(shape, sizes) <= COST_LIMIT:
        return ""
    return "it would take too long over values of this size; check it in a tool, or over fewer elements"


def _cost(shape: _Shape, sizes: Mapping[str, _Size]) -> float:
    parts, text = sum(each.parts for each in sizes.values()), max((each.text for each in sizes.values()), default=0)
    longest = max((each.longest for each in sizes.values()), default=0) + 1
    nesting = max((each.crossed for each in shape.macros), default=0)
    growth = float(shape.made + 1) ** (nesting + sum(each.builds for each in shape.macros))
    if growth > _GROWTH_LIMIT or nesting > 5:
        return float("inf")
    rounds = 1.0 + sum(
        float(longest) ** each.crossed * (1 + longest / 10 if each.builds else 1) for each in shape.macros
    )
    heaviest = max((each.pattern for each in sizes.values()), default=0.0) + shape.weight
    one = (
        1
        + growth / 100
        + shape.plus * (text + 100) * growth / 10_000
        + sum(sizes[name].parts / 10 + sizes[name].text / 50_000 for name in shape.inside if name in sizes)
        + sum((text + 1_000) * (heaviest if each is None else _weight(each)) / 1_000 for each in shape.patterns)
    )
    return rounds * one + (parts if shape.macros else 0)


@lru_cache(maxsize=4096)
def _shape(source: str) -> _Shape:
    masked = _masked(source)
    macros, inside = [], []
    opened: list[tuple[str, int] | None] = []
    """What each open bracket belongs to: the variable of a macro and how many ranges are crossed in it, or nothing."""
    at = 0
    for token in _TOKEN.finditer(masked):
        around = [each for each in opened if each is not None]
        between = masked[at : token.start()]
        if around:  # what a macro runs through is counted as its rounds
            read = _RANGE.sub("", between) if token[1] else between
            inside += [each[1] or each[2] for each in _ROOT.finditer(read)]
        at = token.end()
        if token.group() == ")":
            if opened:
                opened.pop()
        elif token.group() == "(":
            opened.append(None)
        else:
            crossed = (around[-1][1] if around else 0) + (0 if _within(masked[: token.start()], around) else 1)
            macros.append(_Macro(token[1] in ("map", "filter"), crossed))
            opened.append((token[2], crossed))
    patterns = tuple(each[1] for each in _PATTERN.finditer(source))
    plus, made = masked.count("+"), masked.count("+") + masked.count(",") - len(macros)
    return _Shape(tuple(macros), plus, made, tuple(inside), patterns, _weight(source))


def _within(before: str, around: list[tuple[str, int]]) -> bool:
    """Whether a macro runs through a part of the element at hand: all of these together are no more than the whole."""
    found = _RANGE.search(before)
    return bool(around and found and found[1] == around[-1][0] and found.group().strip() != found[1])


def _size(value: JsonValue) -> _Size:
    parts, longest, text, pattern = 0, 0, 0, 0.0
    for each in _parts(value):
        parts += 1
        if isinstance(each, str):
            text = max(text, len(each))
            pattern = max(pattern, _weight(each) if len(each) <= SOURCE_LIMIT else len(each))
        elif isinstance(each, list | dict):
            longest = max(longest, len(each))
    return _Size(parts, longest, text, pattern)


def _parts(value: JsonValue) -> Iterator[JsonValue]:
    left: list[JsonValue] = [value]
    while left:
        each = left.pop()
        yield each
        if isinstance(each, list):
            left.extend(each)
        elif isinstance(each, dict):
            left.extend(each.keys())
            left.extend(each.values())


def _weight(pattern: str) -> float:
    """How large a pattern becomes when its counted repetitions are written out."""
    return len(pattern) * prod(max(1.0, float(each[2] or each[1])) for each in _REPEATED.finditer(pattern))


def _masked(source: str) -> str:
    return TEXT.sub(lambda match: "_" * len(match.group()), source)
