"""The world outside: tools that work, fail and lie in wait, probes, and a ledger of what really happened."""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random

from agent.boundary import error_in, guarded
from agent.core.contract import EffectClass, ToolContract
from agent.core.effect import Begun, EffectEntry, EffectIdentity, EffectStatus, Fresh, answer, happened
from agent.core.failure import ErrorFacts
from agent.core.value import Digest, JsonValue, digest
from agent.ports import Observation
from agent.tools.calling import Caller
from agent.tools.registry import Registry
from tests.simulation.script import LATE, Drift, Script, ToolScript

TIMEOUT = 1000.0


class Broken(AssertionError):
    """An invariant does not hold."""


class HttpError(RuntimeError):
    """An answer with a status, as a client raises it."""

    def __init__(self, status: int, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status_code = status
        self.retry_after = retry_after


RAISES: dict[str, Callable[[], Exception]] = {
    "timeout": lambda: TimeoutError("timed out"),
    "reset": lambda: ConnectionResetError("connection reset by peer"),
    "busy": lambda: HttpError(503, "service unavailable"),
    "limited": lambda: HttpError(429, "too many requests", 2.0),
    "refused": lambda: HttpError(422, "unprocessable"),
    "misfit": lambda: ValueError("1 validation error for Order"),
    "words": lambda: HttpError(404, "table 'orders' no longer exists"),
    "column": lambda: RuntimeError('no such column: "ok"'),
    "crash": lambda: HttpError(500, "internal server error"),
    "unknown": lambda: RuntimeError("it went wrong"),
    "lost-timeout": lambda: TimeoutError("timed out"),
    "lost-reset": lambda: ConnectionResetError("connection reset by peer"),
    "lost-gateway": lambda: HttpError(504, "gateway timeout"),
    "lost-unknown": lambda: RuntimeError("it went wrong"),
    "probe": lambda: HttpError(503, "service unavailable"),
}

TOLD: dict[str, JsonValue] = {"told": {"error": {"message": "service unavailable", "code": 503}}}
"""Errors that come back as values."""


class Workshop(Registry):
    """The tools' contracts, without LangChain's schemas: those are tested elsewhere, and slow to make."""

    def __init__(self, tools: tuple[ToolScript, ...]) -> None:
        self.contracts = {each.name: promise(each) for each in tools}
        self._shapes = {each.name: shape(each) for each in tools}

    @property
    def plannable(self) -> dict[str, ToolContract]:
        return self.contracts

    def schema(self, name: str) -> dict[str, JsonValue]:
        return self._shapes[name]

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self.contracts))


@lru_cache(1000)
def promise(tool: ToolScript) -> ToolContract:
    first = tool.makes[0]
    made = "result" if tool.fans else f"artifacts.{first}"
    kept = tuple(f"{made}.of.{need} == artifacts.{need}.v" for need in tool.direct())
    return ToolContract(
        tool=tool.name,
        needs=tool.needs,
        produces=tool.makes,
        args={need: f"{{{{{need}}}}}" for need in tool.direct()},
        each={"part": "parts"} if tool.fans else {},
        requires=(
            *(f"artifacts.{need}.ok" for need in (tool.direct() if tool.requires else ())),
            *(("facts.open",) if tool.fact else ()),
        ),
        ensures=(kept or (f"{made}.v != ''",)) if tool.ensures else (),
        effect=EffectClass.MUTATING if tool.writes else EffectClass.READ_ONLY,
        idempotent=tool.idempotent,
        cost=2.0 if tool.stands_in_for else 1.0,
        alternatives={"way": tuple(range(tool.ways))} if tool.ways else {},
        stands_in_for=tool.stands_in_for,
        observable=bool(tool.probe),
    )


def shape(tool: ToolScript) -> dict[str, JsonValue]:
    properties: dict[str, JsonValue] = {need: {"type": "object"} for need in tool.direct()}
    if tool.fans:
        properties["part"] = {"type": "string"}
    if tool.ways:
        properties["way"] = {"type": "integer"}
    return {"type": "object", "properties": properties, "required": list(properties)}


class Journal:
    """An effect journal in a dictionary."""

    def __init__(self) -> None:
        self.found: dict[EffectIdentity, EffectEntry] = {}

    async def begin(self, identity: EffectIdentity, step: str, fence: int | None = None) -> Begun:
        await asyncio.sleep(0)
        told = answer(self.found.get(identity))
        if isinstance(told, Fresh):
            self.found[identity] = EffectEntry(identity, step, EffectStatus.OPEN, told.attempts)
        return told

    async def done(self, identity: EffectIdentity, result: JsonValue) -> None:
        self._settle(identity, EffectStatus.DONE, result)

    async def adopted(self, identity: EffectIdentity, result: JsonValue) -> None:
        self._settle(identity, EffectStatus.ADOPTED, result)

    async def absent(self, identity: EffectIdentity, attempts: int) -> None:
        known = self.found[identity]
        if known.status is EffectStatus.OPEN and known.attempts == attempts:
            self.found[identity] = replace(known, status=EffectStatus.ABSENT)

    async def entries(self, thread: str) -> tuple[EffectEntry, ...]:
        return tuple(each for each in self.found.values() if each.identity.thread == thread)

    async def undecided(self, thread: str, steps: Collection[str]) -> tuple[EffectIdentity, ...]:
        mine = (each for each in await self.entries(thread) if each.step in steps)
        return tuple(each.identity for each in mine if each.status is EffectStatus.OPEN)

    def intends(self, tool: str, args: Digest) -> bool:
        """Whether an intent for this call is written down and open, or it was harmless to do it again."""
        return any(each.tool == tool and each.args_digest == args for each in self.found)

    def unknown(self, tool: str, args: Digest) -> bool:
        """Whether nobody knows if this call happened; one that a person has let be made once more is told by that."""
        tried = (each for each in self.found if (each.tool, each.args_digest) == (tool, args))
        last = max(tried, key=lambda each: each.repetition, default=None)
        return last is not None and self.found[last].status is EffectStatus.OPEN

    def _settle(self, identity: EffectIdentity, status: EffectStatus, result: JsonValue) -> None:
        known = self.found[identity]
        if not happened(known):
            self.found[identity] = replace(known, status=status, result=result)


class Shelf:
    """Artifact bodies in a dictionary."""

    def __init__(self) -> None:
        self._bodies: dict[Digest, JsonValue] = {}

    async def put(self, value: JsonValue) -> Digest:
        key = digest(value)
        self._bodies[key] = value
        return key

    async def get(self, key: Digest) -> JsonValue:
        return self._bodies[key]


@dataclass
class Work:
    """What the ledger knows of one call that must not happen twice."""

    effects: int = 0
    absent: bool = False
    """A probe has seen since that the effect is not there."""
    allowed: int = 0
    """How often a person has said since that it may be done again."""

    @property
    def excused(self) -> bool:
        """Whether there is a reason to do it again."""
        return self.absent or self.allowed > 0


class Outside(Caller):
    """Calls and looks, and the independent ledger."""

    def __init__(self, script: Script, workshop: Workshop, journal: Journal, rng: Random) -> None:
        super().__init__(workshop, TIMEOUT)
        self._script, self._journal, self._rng = script, journal, rng
        self._tools = {each.name: each for each in script.tools}
        self._faults = {
            (each.tool, nth, each.probe): each.kind
            for each in reversed(script.faults)
            for nth in range(each.nth, each.nth + min(each.times, 60))
        }
        self._times: Counter[tuple[str, bool]] = Counter()
        makers = (each for tool in script.tools if tool.stands_in_for is None for each in tool.members())
        self._makes = {name: each for each in makers for name in each.makes}
        self._truth: dict[str, tuple[int, bool]] = {}
        self._standing: dict[str, dict[Digest, JsonValue]] = {}
        """Key of the product -> inputs -> what was written; the last written last."""
        self._late: dict[tuple[str, Digest], asyncio.Task[JsonValue]] = {}
        """Calls that ran out of time, and are still at work."""
        self._at_work: list[asyncio.Task[JsonValue]] = []
        self.calls = 0
        self.effects = 0
        self.repeats = 0
        self.works: dict[tuple[str, Digest], dict[tuple[str, Digest], Work]] = {}
        """Product and inputs -> every way in which it was made: tool and arguments."""
        self.death = asyncio.get_running_loop().create_future()
        self.happened: list[str] = []
        """The story, for people."""

    # --- the ports ---------------------------------------------------------------------------------------------

    async def call(self, name: str, args: dict[str, JsonValue]) -> JsonValue | ErrorFacts:
        returned = await guarded(self._call(self._tools[name].of_part(args), args), TIMEOUT)
        return returned if isinstance(returned, ErrorFacts) else error_in(returned) or returned

    async def look(self, tool: str, args: dict[str, JsonValue]) -> Observation | None:
        if not self._tools[tool].probe:
            return None
        seen = await guarded(self._look(self._tools[tool].of_part(args), args), TIMEOUT)
        if isinstance(seen, ErrorFacts):
            return Observation(error=seen.model_copy(update={"kind": "probe"}))
        return Observation(value=seen)

    async def overdue(self, name: str, args: dict[str, JsonValue]) -> JsonValue | ErrorFacts:
        """As a thread that is still at work: waited for as long as a new call, and then lost."""
        late = self._late.get((name, digest(args)))
        if late is None:
            return None
        came = await guarded(asyncio.shield(late), TIMEOUT)
        if not late.done():
            return ErrorFacts(kind="lost", message=f"{name} is still at work")
        del self._late[name, digest(args)]
        return came

    async def killed(self) -> None:
        """The process is gone, and its threads with it."""
        for each in self._at_work:
            each.cancel()
        await asyncio.gather(*self._at_work, return_exceptions=True)
        self._at_work.clear()
        self._late.clear()

    # --- what happens ------------------------------------------------------------------------------------------

    async def _call(self, tool: ToolScript, args: dict[str, JsonValue]) -> JsonValue:
        self._moves_on()
        fault = self._fault(tool, probe=False)
        self.happened.append(f"{tool.name} is called" + (f": {fault}" if fault else ""))
        await self._passes()
        await self._happens_before(fault)
        if fault in TOLD:
            return TOLD[fault]
        if fault in LATE:
            acts = self._acts_later(tool, args, 5.0 if fault == "late" else 2 * TIMEOUT)
            self._late[tool.name, digest(args)] = thread = asyncio.get_running_loop().create_task(acts)
            self._at_work.append(thread)
            raise TimeoutError("timed out")
        if fault == "nothing" and not tool.writes:
            return None
        value = self._written(tool, args, fault == "refuted") if tool.writes else self._read(tool, args, fault)
        await self._passes()
        if fault == "die-after":
            await self._die()
        if fault in RAISES:
            raise RAISES[fault]()
        return None if fault == "nothing" else value

    async def _acts_later(self, tool: ToolScript, args: dict[str, JsonValue], most: float) -> JsonValue:
        await asyncio.sleep(self._rng.random() * most)
        self.happened.append(f"{tool.name} acts late")
        return self._written(tool, args, False) if tool.writes else self._read(tool, args, "")

    async def _happens_before(self, fault: str) -> None:
        if fault == "die-before":
            await self._die()
        if fault in RAISES and not fault.startswith("lost"):
            raise RAISES[fault]()

    def _moves_on(self) -> None:
        self.calls += 1
        for drift in self._script.drifts:
            if drift.call == self.calls:
                self.drift(drift)

    async def _look(self, tool: ToolScript, args: dict[str, JsonValue]) -> JsonValue:
        fault = self._fault(tool, probe=True)
        await self._passes()
        if fault:
            raise RAISES[fault]()
        if not tool.writes:
            return self._read(tool, args, "")
        seen = self.stands(tool, inputs_of(tool, args))
        if seen is None:
            for work in self.works.get((tool.key, inputs_of(tool, args)), {}).values():
                work.absent = True
        return seen

    async def _passes(self) -> None:
        """A little time, or none at all."""
        pause = self._rng.choice((0.0, 0.0, 0.1, 0.3, 1.0))
        await asyncio.sleep(pause)

    async def _die(self) -> None:
        if not self.death.done():
            self.death.set_result(None)
        await asyncio.get_running_loop().create_future()

    def _fault(self, tool: ToolScript, probe: bool) -> str:
        self._times[tool.name, probe] += 1
        return self._faults.get((tool.name, self._times[tool.name, probe], probe), "")

    def _read(self, tool: ToolScript, args: dict[str, JsonValue], fault: str) -> JsonValue:
        return made(tool, args, self._truth.get(tool.key, (0, True)), wrong=fault == "refuted")

    def _written(self, tool: ToolScript, args: dict[str, JsonValue], wrong: bool) -> JsonValue:
        inputs = inputs_of(tool, args)
        if not self._journal.intends(tool.name, digest(args)):
            self.broken = f"I2: {tool.name} acted without an intent in the journal"
        self._account(tool, args)
        value = made(tool, args, (0, True), wrong)
        stood = self._standing.setdefault(tool.key, {})
        stood.pop(inputs, None)
        stood[inputs] = value
        return value

    def _account(self, tool: ToolScript, args: dict[str, JsonValue]) -> None:
        """Write down an effect; the same call twice needs a reason."""
        self.effects += 1
        ways = self.works.setdefault((tool.key, inputs_of(tool, args)), {})
        work = ways.setdefault((tool.name, digest(args)), Work())
        others = [
            each
            for way, each in ways.items()
            # an inner loop may write what it likes, but not while it is open whether it has written already
            if each is not work and each.effects and not each.excused and (not tool.loop or self._journal.unknown(*way))
        ]
        self.repeats += bool(work.effects)
        if work.effects and not tool.idempotent and not work.excused:
            self.broken = f"I2: {tool.name} made {tool.key} from the same inputs twice"
        if others and not tool.idempotent and not work.effects:
            self.broken = f"I2: {tool.name} made {tool.key}, which another way had made from the same inputs"
        if work.allowed and not work.absent:
            work.allowed -= 1
        work.effects, work.absent = work.effects + 1, False

    broken = ""
    """What went wrong out here; the driver looks."""

    def drift(self, drift: Drift) -> None:
        """Something changes that nobody tells the runtime."""
        tool = self._makes.get(drift.name)
        if tool is None:
            return
        self.happened.append(f"drift: {tool.key} {drift.how}")
        content, ok = self._truth.get(tool.key, (0, True))
        if drift.how in ("moved", "bad", "good"):
            self._truth[tool.key] = (content + (drift.how == "moved"), {"bad": False, "good": True}.get(drift.how, ok))
            return
        stood = self._standing.get(tool.key)
        if stood:
            last = next(reversed(stood))
            if drift.how == "gone":
                stood.pop(last)
            else:
                stood[last] = _touched(stood[last])

    def allow(self, tool: ToolScript, args: Mapping[str, JsonValue]) -> None:
        """A person has said that this may be done again."""
        tool = tool.of_part(args)
        for (key, _), ways in self.works.items():
            for work in ways.values() if key == tool.key else ():
                work.allowed += 1

    def allow_lost(self, doubt: str) -> None:
        """A person has said that a step whose inner loop lost a write may be tried again: that write, and no other."""
        for ways in self.works.values():
            for (name, args), work in ways.items():
                work.allowed += name in doubt.split() and self._journal.unknown(name, args)

    def stands(self, tool: ToolScript, inputs: Digest) -> JsonValue:
        """What a probe of the tool sees."""
        stood = self._standing.get(tool.key)
        if not stood:
            return None
        return stood.get(inputs) if tool.probe == "inputs" else stood[next(reversed(stood))]

    def is_so(self, tool: str, args: dict[str, JsonValue]) -> JsonValue:
        """What is really there, for checks at the end."""
        found = self._tools[tool].of_part(args)
        return self.stands(found, inputs_of(found, args)) if found.writes else self._read(found, args, "")


def inputs_of(tool: ToolScript, args: dict[str, JsonValue]) -> Digest:
    """What the work is made from; how it is done does not count."""
    return digest({name: args.get(name) for name in tool.direct()})


def made(tool: ToolScript, args: dict[str, JsonValue], truth: tuple[int, bool], wrong: bool) -> JsonValue:
    """What a tool makes, one body for each product."""
    of: dict[str, JsonValue] = {name: "wrong" if wrong else _content(args.get(name)) for name in tool.direct()}
    parts: dict[str, JsonValue] = {
        name: {"v": "" if wrong and not of else digest([name, of, truth[0]])[:8], "of": of, "ok": truth[1]}
        for name in tool.makes
    }
    return parts if len(parts) > 1 else parts[tool.makes[0]]


def _content(value: JsonValue) -> JsonValue:
    return value.get("v") if isinstance(value, dict) else value


def _touched(value: JsonValue) -> JsonValue:
    assert isinstance(value, dict)
    if "v" in value:
        return {**value, "v": digest(value["v"])[:8]}
    return {name: _touched(each) for name, each in value.items()}
