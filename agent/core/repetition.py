"""Is this call the same again? Exact and near-duplicate calls within a window, told from real variation.

From inside a loop every call looks like a new try (seed 4), so it is counted outside. A cosmetic change is none:
case, spacing, key order, the spelling of a number, paging and request noise. But a call that told something new
is no repetition, whatever it looks like: real paging turns pages, and a write turns what was read before it.
"""

import re
from collections import Counter
from collections.abc import Sequence

from agent.core.failure import ErrorFacts
from agent.core.value import Digest, JsonValue, Value, digest

NUDGE_AT = 2
"""So many equal calls, and the model is told."""
FAIL_AT = 3
"""This one is not carried out any more: the step has failed, and time will not mend it."""
WINDOW = 20
"""Calls looked back on: others in between do not make a call new."""

_NOISE = """
page pageno pagenumber pageindex pagesize pagetoken nextpage nextpagetoken perpage offset skip cursor limit maxresults
timestamp ts now nonce requestid xrequestid traceid correlationid idempotencykey attempt retry retries
"""
NOISE = frozenset(_NOISE.split())
"""Arguments that say where or when one asks, not for what; compared without case, `_` and `-`."""

_NUMBER = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,15})?")
_VARYING = re.compile(r"\b[0-9a-f]{8,}\b|\d+(?:\.\d+)?", re.I)
"""Numbers and ids in the text of an error; equal errors differ in them."""


class Asked(Value):
    """A call about to be made, by what makes it equal to another."""

    tool: str
    writes: bool
    exact: Digest
    """Key order does not count."""
    plain: Digest
    """Nor does anything cosmetic."""
    near: Digest
    """Nor do paging and request noise."""


class Heard(Value):
    """A call that was answered, and what that told."""

    asked: Asked
    outcome: Digest
    """Equal when nothing new was told."""
    ok: bool
    empty: bool = False
    """It failed, or gave nothing."""
    text: str = ""
    """What the model was shown; a read that is repeated is answered with it."""


def asked(tool: str, args: dict[str, JsonValue], writes: bool) -> Asked:
    """The call, ready to be compared with others."""
    exact, plain, near = (digest([tool, each]) for each in (args, _plain(args), _plain(args, noisy=True)))
    return Asked(tool=tool, writes=writes, exact=exact, plain=plain, near=near)


def heard(call: Asked, told: JsonValue | ErrorFacts, text: str = "") -> Heard:
    """The call with what it told."""
    if isinstance(told, ErrorFacts):
        said = " ".join(_VARYING.sub("#", told.message).casefold().split())
        return Heard(asked=call, outcome=digest([told.type, told.status, said]), ok=False, empty=True, text=text)
    return Heard(asked=call, outcome=digest([_plain(told)]), ok=True, empty=told in ("", [], {}, None), text=text)


def repetitions(call: Asked, history: Sequence[Heard]) -> int:
    """How often the same was asked and answered in the same way, exactly or nearly."""
    kin = _kin(call, history)
    same = Counter(each.outcome for each in kin if each.asked.exact == call.exact)
    run = 0
    while run < len(kin) and kin[-1 - run].outcome == kin[-1].outcome:
        run += 1
    return max(run, *same.values(), 0)


def recalled(call: Asked, history: Sequence[Heard]) -> Heard | None:
    """The answer to exactly this read, when there is one and nothing was written since."""
    same = (each for each in reversed(_kin(call, history)) if each.asked.exact == call.exact and each.ok)
    return None if call.writes else next(same, None)


def nudge(tool: str, times: int) -> str:
    """What a model is told that repeats itself: what happens, and a way out (seed 4: a message, no exception)."""
    return (
        f"You have called {tool} {times} times with the same or nearly the same arguments, and learned nothing new. "
        "The arguments are not the problem: use another tool, submit what you have, or give up and say what is "
        "missing. One more such call ends this step."
    )


def looped(tool: str, times: int) -> str:
    """Why a step fails that went on repeating itself."""
    return f"{tool} was called {times} times with the same or nearly the same arguments and told nothing new"


def alike(one: JsonValue, other: JsonValue) -> bool:
    """Whether two values differ in nothing but spelling."""
    return _plain(one) == _plain(other)


def _kin(call: Asked, history: Sequence[Heard]) -> list[Heard]:
    """Equal calls within the window; for a read, those since the last write: it may read something else now."""
    recent = list(history[-WINDOW:])
    if not call.writes:
        writes = [index for index, each in enumerate(recent) if each.asked.writes and _first(each, recent[:index])]
        recent = recent[writes[-1] + 1 :] if writes else recent
    return [each for each in recent if _same(each, call)]


def _same(before: Heard, call: Asked) -> bool:
    """Nearly the same call. A write that went through keeps its paging: `offset` is then what it was about."""
    noise_counts = call.writes and not before.empty
    return before.asked.plain == call.plain if noise_counts else before.asked.near == call.near


def _first(write: Heard, before: Sequence[Heard]) -> bool:
    """Whether a write can have changed anything; one that went through before is not done twice."""
    return not any(each.ok and each.asked.exact == write.asked.exact for each in before)


def _plain(value: JsonValue, noisy: bool = False) -> JsonValue:
    """A value without what is cosmetic; with `noisy`, without paging and request noise too."""
    match value:
        case bool() | None:
            return value
        case int() | float():
            return _number(str(value), value)
        case str():
            said = " ".join(value.casefold().split())
            return _number(said, said)
        case list():
            return [_plain(each, noisy) for each in value]
        case _:
            kept = {name: each for name, each in value.items() if each is not None and not (noisy and _noise(name))}
            return {name: _plain(each, noisy) for name, each in kept.items()}


def _number(text: str, otherwise: JsonValue) -> JsonValue:
    """One spelling for 1, 1.0 and "1"."""
    if not _NUMBER.fullmatch(text):
        return otherwise
    whole, _, rest = text.lstrip("+-").partition(".")
    spelled = f"{int(whole)}.{rest.rstrip('0')}"
    return f"-{spelled}" if text.startswith("-") and spelled != "0." else spelled


def _noise(name: str) -> bool:
    return name.casefold().replace("_", "").replace("-", "") in NOISE
