"""What happens in one simulated run: tools, faults, drift, changed goals, deaths. Plain data, drawn from a seed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from agent.core.limits import Limits

BEFORE = ("timeout", "reset", "busy", "limited", "refused", "misfit", "words", "column", "crash", "told", "unknown")
"""A call that fails before it has done anything."""
AFTER = ("lost-timeout", "lost-reset", "lost-gateway", "lost-unknown")
"""The effect takes place, and its answer is lost."""
LATE = ("late", "late", "very-late")
"""The call runs out of time, and acts afterwards: while it is tried again, or long after everything else."""
ODD = ("refuted", "nothing")
"""The call says that it worked, and did not do what it promised."""
DEATHS = ("die-before", "die-after")
"""The process dies under the call."""
FAULTS = (*BEFORE, *AFTER, *LATE, *ODD, *DEATHS)
DRIFTS = ("moved", "bad", "good", "gone", "touched")
FOREVER = 1_000
PARTS = ("x", "y", "z")
"""What families can range over."""


@dataclass(frozen=True)
class ToolScript:
    """One tool, and what it promises."""

    name: str
    makes: tuple[str, ...]
    needs: tuple[str, ...]
    writes: bool = False
    idempotent: bool = True
    probe: str = ""
    """Empty: none. `name`: it sees whatever stands under the name. `inputs`: only what was made from these inputs."""
    ensures: bool = False
    requires: bool = False
    fact: bool = False
    """It may only run while `facts.open`."""
    ways: int = 0
    """Alternative values of its parameter `way`."""
    stands_in_for: str | None = None
    loop: bool = False
    """Its step is an instruction: the inner loop calls it."""
    fans: bool = False
    """One step for each part that the goal gives: it makes `a2_{part}`, and takes the part as an argument."""

    @property
    def key(self) -> str:
        """Likewise `Step.key`."""
        return " ".join(sorted(self.makes))

    def of_part(self, args: Mapping[str, Any]) -> "ToolScript":
        """The tool as it works with these arguments: one member of its family."""
        return replace(self, makes=(self.makes[0].format_map(args),)) if self.fans and "part" in args else self

    def members(self) -> tuple["ToolScript", ...]:
        """The tool, once for each part that there can be."""
        return tuple(self.of_part({"part": part}) for part in PARTS) if self.fans else (self,)

    def direct(self) -> tuple[str, ...]:
        """Needs that are arguments; a whole family is needed without being one."""
        return tuple(name for name in self.needs if not name.endswith("*"))


@dataclass(frozen=True)
class GoalScript:
    """A goal in plain words."""

    wants: tuple[str, ...]
    criteria: tuple[str, ...] = ()
    seed: int = 0
    """Content of the given artifact `seed`."""
    parts: tuple[str, ...] = ()
    """What families range over."""


@dataclass(frozen=True)
class Fault:
    """From the `nth` call of a tool on, so many `times`; with `probe` it is a look that fails."""

    tool: str
    nth: int
    kind: str
    times: int = 1
    probe: bool = False


@dataclass(frozen=True)
class Drift:
    """The world changes under the run, with the `call`th call of any tool."""

    call: int
    name: str
    how: str


@dataclass(frozen=True)
class Event:
    """Before the `node`th phase node: `die`, `stop` (a cancel with grace), `redo` (its update is lost), a `letter`."""

    node: int
    kind: str
    goal: GoalScript | None = None


@dataclass(frozen=True)
class Script:
    """All of one simulation. Whatever is not told here follows from the seed."""

    seed: int
    tools: tuple[ToolScript, ...]
    goals: tuple[GoalScript, ...]
    """One for each run on the thread."""
    limits: Limits
    faults: tuple[Fault, ...] = ()
    drifts: tuple[Drift, ...] = ()
    events: tuple[Event, ...] = ()
    closed: tuple[int, ...] = ()
    """Runs in which `facts.open` is false."""
    asks: bool = True
    approve: str = "never"
    models: bool = False
    """A patcher and a scope model that answer at random."""

    def story(self) -> str:
        """The script, one line each."""
        lines = [f"seed {self.seed}: asks={self.asks} approve={self.approve} models={self.models}"]
        changed = {n: v for n, v in self.limits.model_dump().items() if v != getattr(Limits(), n)}
        lines.append(f"limits {changed}")
        lines += [f"{each}" for each in (*self.tools, *self.goals, *self.faults, *self.drifts, *self.events)]
        if self.closed:
            lines.append(f"facts.open is false in runs {self.closed}")
        return "\n".join(lines)


def draw(seed: int) -> Script:
    """Draw a simulation. In every third some tools fan out."""
    script, rng = _drawn(seed), Random(f"{seed} fans out")
    return _fanned(script, rng) if rng.random() < 0.35 else script


def _drawn(seed: int) -> Script:
    rng = Random(seed)
    tools = _tools(rng)
    names = tuple(name for each in tools if each.stands_in_for is None for name in each.makes)
    runs = rng.choice((1, 1, 2, 2, 3))
    return Script(
        seed=seed,
        tools=tools,
        goals=tuple(_goal(rng, names) for _ in range(runs)),
        limits=_limits(rng),
        faults=tuple(_faults(rng, tools)),
        drifts=tuple(
            Drift(rng.randint(1, 12), rng.choice(names), rng.choice(DRIFTS)) for _ in range(rng.choice((0, 0, 1, 2, 4)))
        ),
        events=tuple(_event(rng, names) for _ in range(rng.choice((0, 0, 1, 2, 3)))),
        closed=tuple(run for run in range(runs) if rng.random() < 0.05),
        asks=rng.random() < 0.7,
        approve=rng.choice(("never", "never", "never", "non_idempotent", "mutating")),
        models=rng.random() < 0.3,
    )


def _fanned(script: Script, rng: Random) -> Script:
    """The script with families: who names one of their products names all of them now, or one."""
    makers = [each for each in script.tools if each.stands_in_for is None and len(each.makes) == 1]
    families = {each.makes[0] for each in rng.sample(makers, min(len(makers), rng.choice((1, 1, 2))))}

    def named(name: str) -> str:
        return f"{name}_{rng.choice(('*', '*', '*', '*', *PARTS))}" if name in families else name

    def member(name: str) -> str:
        return f"{name}_{rng.choice(PARTS)}" if name in families else name

    def tool(each: ToolScript) -> ToolScript:
        fans = each.makes[0] in families
        makes = (f"{each.makes[0]}_{{part}}",) if fans else each.makes
        return replace(each, makes=makes, needs=tuple(map(named, each.needs)), fans=fans)

    def criterion(text: str) -> str:
        return text.replace(f".{_named(text)}.", f".{member(_named(text))}.")

    def goal(each: GoalScript) -> GoalScript:
        parts = tuple(sorted(rng.sample(PARTS, rng.choice((0, 1, 2, 3, 3, 3, 3, 3, 3, 3)))))
        criteria = tuple(map(criterion, each.criteria))
        return replace(each, wants=tuple(map(named, each.wants)), criteria=criteria, parts=parts)

    return replace(
        script,
        tools=tuple(map(tool, script.tools)),
        goals=tuple(map(goal, script.goals)),
        drifts=tuple(replace(each, name=member(each.name)) for each in script.drifts),
        events=tuple(replace(each, goal=each.goal and goal(each.goal)) for each in script.events),
    )


def smaller(script: Script) -> Iterator[Script]:
    """The script with one thing left out, in every way there is."""
    for name in ("events", "faults", "drifts", "closed"):
        given: tuple[Any, ...] = getattr(script, name)
        for index in range(len(given)):
            yield replace(script, **{name: given[:index] + given[index + 1 :]})  # type: ignore[arg-type]
    for index in range(len(script.goals) if len(script.goals) > 1 else 0):
        yield replace(script, goals=script.goals[:index] + script.goals[index + 1 :])
    for index, goal in enumerate(script.goals):
        for less in _less(goal):
            yield replace(script, goals=(*script.goals[:index], less, *script.goals[index + 1 :]))
    yield from _plainer(script)


def _plainer(script: Script) -> Iterator[Script]:
    for changes in ({"models": False}, {"approve": "never"}, {"asks": False}, {"limits": Limits()}):
        if any(getattr(script, name) != value for name, value in changes.items()):
            yield replace(script, **changes)
    for index, tool in enumerate(script.tools):
        rest = (script.tools[:index], script.tools[index + 1 :])
        used = {name for each in (*rest[0], *rest[1]) for name in each.needs}
        wanted = {name for goal in script.goals for name in goal.wants}
        wanted |= {name for goal in script.goals for name in (*goal.wants, *(_named(c) for c in goal.criteria))}
        stood_in = any(each.stands_in_for == tool.name for each in script.tools)
        if not stood_in and (tool.stands_in_for or not {*used, *wanted} & set(tool.makes)):
            yield replace(script, tools=(*rest[0], *rest[1]))
        for plain in (
            {"needs": tool.needs[1:]},
            {"ensures": False},
            {"requires": False},
            {"fact": False},
            {"ways": 0},
            {"loop": False},
        ):
            if any(getattr(tool, name) != value for name, value in plain.items()) and tool.stands_in_for is None:
                less = replace(tool, **plain)
                yield replace(script, tools=(*rest[0], less, *rest[1]))


def _less(goal: GoalScript) -> Iterator[GoalScript]:
    for index in range(len(goal.wants) if len(goal.wants) > 1 else 0):
        yield replace(goal, wants=goal.wants[:index] + goal.wants[index + 1 :])
    if goal.criteria:
        yield replace(goal, criteria=())
    for index in range(len(goal.parts)):
        yield replace(goal, parts=goal.parts[:index] + goal.parts[index + 1 :])


def _named(criterion: str) -> str:
    return criterion.split(".")[1]


def _tools(rng: Random) -> tuple[ToolScript, ...]:
    count = rng.choice((1, 2, 3, 3, 4, 5, 6))
    tools: list[ToolScript] = []
    names: list[str] = []
    for index in range(count):
        makes = (f"a{index}", f"a{index}b") if rng.random() < 0.12 else (f"a{index}",)
        wanted = rng.choice((0, 1, 1, 2, 3)) if names else 0
        needs = sorted(rng.sample(names, min(wanted, len(names))))
        needs += ["seed"] if rng.random() < 0.2 else []
        writes = rng.random() < 0.5
        tool = ToolScript(
            name=f"make_a{index}",
            makes=makes,
            needs=tuple(needs),
            writes=writes,
            idempotent=rng.random() < 0.4 if writes else True,
            probe=rng.choice(("", "name", "name", "inputs")),
            ensures=rng.random() < 0.5,
            requires=rng.random() < 0.4,
            fact=rng.random() < 0.08,
            ways=rng.choice((0, 0, 0, 2, 3)),
            loop=rng.random() < 0.15,
        )
        tools.append(tool)
        names += makes
        if rng.random() < 0.15:
            tools.append(replace(tool, name=f"other_a{index}", ways=0, stands_in_for=tool.name))
    return tuple(tools)


def _goal(rng: Random, names: tuple[str, ...]) -> GoalScript:
    wants = tuple(rng.sample(names, rng.randint(1, min(3, len(names)))))
    wants = wants if rng.random() < 0.5 else (names[-1],)
    if rng.random() < 0.03:
        wants = (*wants, "nobody_makes_this")
    about = rng.choice(names)
    criteria = rng.choice(((), (), (), (f"artifacts.{about}.ok",), (f"artifacts.{about}.v != ''",)))
    return GoalScript(wants, criteria, rng.choice((0, 0, 0, 1)))


def _faults(rng: Random, tools: tuple[ToolScript, ...]) -> Iterator[Fault]:
    share = rng.choice((0.0, 0.1, 0.25, 0.5))
    for tool in tools:
        for nth in range(1, 5):
            if rng.random() < share:
                times = rng.choice((1, 1, 1, 2, 5, FOREVER)) if nth < 3 else 1
                yield Fault(tool.name, nth, rng.choice(FAULTS), times)
        if tool.probe and rng.random() < share:
            yield Fault(tool.name, rng.randint(1, 4), "probe", rng.choice((1, 2, FOREVER)), probe=True)


def _event(rng: Random, names: tuple[str, ...]) -> Event:
    kind = rng.choice(("die", "stop", "redo", "letter"))
    return Event(rng.randint(1, 40), kind, _goal(rng, names) if kind == "letter" else None)


def _limits(rng: Random) -> Limits:
    limits: dict[str, Any] = {
        "retry": rng.choice((0, 1, 2, 3, 3)),
        "patch": rng.choice((0, 1, 2, 2)),
        "rewrite": rng.choice((0, 1, 2, 2)),
        "replan": rng.choice((0, 1, 1, 2)),
        "escalate": rng.choice((0, 1, 2, 3)),
        "parallel": rng.choice((1, 2, 4, 64)),
        "replan_breadth": rng.choice((0.0, 0.5, 0.5, 1.0)),
        "backoff": rng.choice((0.0, 0.5)),
    }
    tight: dict[str, tuple[int, ...]] = {
        "retries_per_run": (1, 2, 4),
        "patches_per_run": (1, 2),
        "rewrites_per_run": (1, 2),
        "planner_calls": (1, 2, 3),
        "repairer_calls": (1, 2),
        "classifier_calls": (1, 2),
        "tool_calls": (1, 3, 8),
        "steps": (1, 3, 8),
        "moves": (3, 10, 30),
        "supersteps": (10, 50),
        "barren": (1, 2, 4),
        "seconds": (1, 10, 60),
    }
    for name in rng.sample(sorted(tight), rng.choice((0, 0, 0, 1, 2))):
        limits[name] = rng.choice(tight[name])
    return Limits(**limits)
