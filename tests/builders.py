"""Goals, plans, worlds and failures in one line each, and ports that play a script and tolerate no deviation."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from inspect import iscoroutinefunction
from typing import Any, Generic, TypeVar

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from agent.core.contract import EffectClass, ToolContract
from agent.core.failure import Classified, Effect, ErrorFacts, Failure, Origin, Scope, Trigger
from agent.core.goal import Goal
from agent.core.limits import Ledger, Limits
from agent.core.phase import Phase
from agent.core.plan import Call, Plan, Step, StepId, StepStatus
from agent.core.value import ArtifactName, JsonValue, digest
from agent.core.world import Artifact, Fact, Mark, Verification, World
from agent.nodes.bodies import Bodies
from agent.nodes.scope import KEY, RunScope
from agent.nodes.state import RunState
from agent.ports import Letter, Observation, PlanDraft, PlanRequest, ProposedCall, Result, ScopeAnswer, Task
from agent.settings import Settings
from agent.store.artifacts import MemoryArtifacts
from agent.tools.contracts import contract
from graphs.loop import LoopGraph

READ, WRITE = EffectClass.READ_ONLY, EffectClass.MUTATING


def names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# --- values of the core ---------------------------------------------------------------------------------------


def step(produces: str, needs: str = "", status: str = "pending", **more: Any) -> Step:
    """A step called like what it makes, calling a tool `make_<it>` with what it needs."""
    first = produces.split()[0] if produces else "nothing"
    args: dict[str, JsonValue] = {name: f"{{{{{name}}}}}" for name in needs.split()}
    fields: dict[str, Any] = {
        "id": StepId(first.upper()),
        "intent": f"make {produces}",
        "call": Call(tool=f"make_{first}", args=args),
        "needs": needs,
        "produces": produces,
        "effect": READ,
        "status": StepStatus(status),
    }
    return Step(**{**fields, **more})


def plan(*steps: Step, revision: int = 1, goal_revision: int = 1) -> Plan:
    return Plan(revision=revision, goal_revision=goal_revision, steps=steps, planner="test")


def artifact(name: str, value: JsonValue = 1, mark: str = "", **more: Any) -> Artifact:
    """An artifact; `mark` is "root" or "derived"."""
    fields: dict[str, Any] = {
        "name": name,
        "digest": digest(value),
        "value": value,
        "producer": name.upper(),
        "verification": Verification(by=("result",)),
        "mark": Mark(cause="test", root=mark == "root") if mark else None,
    }
    return Artifact(**{**fields, **more})


def world(*artifacts: Artifact | str, **facts: JsonValue) -> World:
    """A world of artifacts (a bare name is one that holds) and facts."""
    made = [artifact(each) if isinstance(each, str) else each for each in artifacts]
    return World(
        artifacts={each.name: each for each in made},
        facts={name: Fact(name=name, value=value) for name, value in facts.items()},
    )


def view(state: World) -> dict[ArtifactName, JsonValue]:
    return {each.name: each.value for each in state.artifacts.values() if each.mark is None}


def goal(wants: str = "", *criteria: str, **more: Any) -> Goal:
    return Goal.model_validate({"wants": wants, "criteria": list(criteria), **more})


def error(kind: str = "exception", message: str = "broken", **more: Any) -> ErrorFacts:
    return ErrorFacts(kind=kind, message=message, **more)


def failure(of: str = "x", kind: str = "exception", message: str = "broken", **more: Any) -> Failure:
    """A task failure of the step that makes `of`; what is not a field of the failure goes to its error."""
    fields = {name: more.pop(name) for name in list(more) if name in Failure.model_fields}
    facts = error(kind, message, **more)
    given = {"trigger": Trigger.TASK_FAILURE, "step": of.upper(), "key": of, "tool": f"make_{of}", "error": facts}
    return Failure(**{**given, **fields})


def classified(scope: str = "nothing", of: str = "x", effect: str = "absent", **more: Any) -> Classified:
    own: dict[str, Any] = {name: more.pop(name) for name in ("rule", "falsified", "origin") if name in more}
    fields: dict[str, Any] = {"origin": Origin.ENVIRONMENT, "rule": "test", **own}
    return Classified(failure=failure(of, **more), scope=Scope(scope), effect=Effect(effect), **fields)


def promise(tool: str, needs: str = "", produces: str = "", **more: Any) -> ToolContract:
    args: dict[str, JsonValue] = {name: f"{{{{{name}}}}}" for name in needs.split()}
    return ToolContract(**{"tool": tool, "needs": needs, "produces": produces, "args": args, "effect": READ, **more})


def contracts(*promises: ToolContract) -> dict[str, ToolContract]:
    return {each.tool: each for each in promises}


# --- the outside ----------------------------------------------------------------------------------------------

T = TypeVar("T")
A = TypeVar("A")


class Script(Generic[A, T]):
    """Plays the given replies in order. An extra call fails at once, a missing one when the script is closed."""

    def __init__(self, *replies: T | Exception | Callable[[A], T]) -> None:
        self._replies = list(replies)
        self.asked: list[A] = []

    def play(self, asked: A) -> T:
        assert self._replies, f"{type(self).__name__} was called once too often, with {asked!r}"
        self.asked.append(asked)
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply(asked) if callable(reply) else reply

    def close(self) -> None:
        assert not self._replies, f"{type(self).__name__} was never asked for {self._replies!r}"

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()


class ScriptedRunner(Script[Task, Result]):
    async def run(self, task: Task) -> Result:
        return self.play(task)


class ScriptedPlanner(Script[PlanRequest, PlanDraft]):
    async def draw(self, request: PlanRequest) -> PlanDraft:
        return self.play(request)


class ScriptedPatcher(Script[Any, ProposedCall]):
    async def propose(self, asked: Any) -> ProposedCall:
        return self.play(asked)


class ScriptedScope(Script[tuple[str, str, ErrorFacts], ScopeAnswer]):
    async def scope(self, intent: str, tool: str, facts: ErrorFacts) -> ScopeAnswer:
        return self.play((intent, tool, facts))


class ScriptedProber(Script[tuple[str, dict[str, JsonValue]], Any]):
    async def look(self, tool: str, args: dict[str, JsonValue]) -> Observation | None:
        return self.play((tool, args))


class ScriptedInbox(Script[tuple[str, int], Any]):
    async def newer(self, thread: str, heard: int) -> Letter | None:
        return self.play((thread, heard))


class ManualClock:
    """Time that moves only when somebody sleeps; every sleep is written down."""

    def __init__(self, at: float = 1000.0, share: float = 0.0) -> None:
        self.at, self.share, self.slept = at, share, list[float]()

    def now(self) -> float:
        return self.at

    def jitter(self) -> float:
        return self.share

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds


def draft(*steps: Step, planner: str = "test", **more: Any) -> PlanDraft:
    return PlanDraft(steps=steps, planner=planner, **more)


def bodies(inline: int = 4096) -> Bodies:
    return Bodies(MemoryArtifacts(), inline)


def state(**channels: Any) -> RunState:
    """A whole state of a run, with the given channels."""
    empty: RunState = {
        "goal": goal("x"),
        "heard": 0,
        "facts": {},
        "world": World(),
        "plan": plan(step("x")),
        "phase": Phase.DISPATCHER,
        "move": None,
        "triage": None,
        "order": None,
        "attempts": (),
        "failures": (),
        "recoveries": (),
        "unresolved": (),
        "ledger": Ledger(),
        "granted": {},
        "allowed": {},
        "outcome": None,
        "trace": [],
        "messages": [],
    }
    return {**empty, **channels}  # type: ignore[typeddict-item]


def config(thread: str = "t", scope: RunScope | None = None, **more: Any) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, KEY: scope or RunScope(), **more}}


# --- tools and runs -------------------------------------------------------------------------------------------


class Calls(Counter[str]):
    """How often each tool was really run."""

    def tool(
        self, produces: str, needs: str = "", does: Callable[..., Any] | None = None, /, **promised: Any
    ) -> BaseTool:
        """A counted tool `make_<first product>`; reads, unless told otherwise, and gives 1 without `does`."""
        name = promised.pop("name", f"make_{produces.split()[0]}")
        parameters = promised.pop("takes", needs)
        promised = {"effect": "read_only", "needs": needs, "produces": produces, **promised}
        return contract(**promised)(_named(name, parameters, does or _one, self))


def _one(**_: Any) -> int:
    return 1


def _named(name: str, parameters: str, does: Callable[..., Any], calls: Calls) -> Callable[..., Any]:
    """A function with a real signature, so that the tool has the schema of one written by hand."""
    listed = ", ".join(f"{each}: Any" for each in parameters.split())
    handed = ", ".join(f"{each}={each}" for each in parameters.split())
    coroutine = "async " if iscoroutinefunction(does) else ""
    awaits = "await " if coroutine else ""
    head = f"{coroutine}def {name}({listed}) -> Any:\n    'Make it.'\n"
    source = f"{head}    calls[{name!r}] += 1\n    return {awaits}does({handed})\n"
    space: dict[str, Any] = {"Any": Any, "does": does, "calls": calls}
    exec(source, space)
    made: Callable[..., Any] = space[name]
    return made


def once(problem: Exception, then: Any = 1, times: int = 1) -> Callable[..., Any]:
    """A tool body that fails `times` times and then gives a value."""
    left = [problem] * times

    def does(**_: Any) -> Any:
        if left:
            raise left.pop()
        return then

    return does


def always(problem: Exception) -> Callable[..., Any]:
    def does(**_: Any) -> Any:
        raise problem

    return does


def calm(**more: Any) -> Settings:
    """Settings without any waiting; what is not a setting is a limit."""
    limits = {name: more.pop(name) for name in list(more) if name in Limits.model_fields}
    # a short goal is triaged away from the very machinery that most tests are about
    return Settings(limits=Limits(**{"backoff": 0.0, **limits}), **{"jitter": 0.0, "strategy": "full", **more})


def thread(name: str = "t") -> RunnableConfig:
    return {"configurable": {"thread_id": name}}


def run(graph: LoopGraph, given: Any, name: str = "t") -> dict[str, Any]:
    """Run synchronously on a thread; a goal may be given bare."""
    stated: Any = {"goal": given} if isinstance(given, Goal) else given
    end: Any = graph.invoke(stated, thread(name))
    return dict(end)


async def arun(graph: LoopGraph, given: Any, name: str = "t") -> dict[str, Any]:
    stated: Any = {"goal": given} if isinstance(given, Goal) else given
    end: Any = await graph.ainvoke(stated, thread(name))
    return dict(end)


def rungs(end: Mapping[str, Any]) -> list[str]:
    """The rungs a run took, in order."""
    return [each.choice.rung.value for each in end["trace"] if each.event == "recovered"]


def rules(end: Mapping[str, Any]) -> list[str]:
    return [each.classified.rule for each in end["trace"] if each.event == "recovered"]


def values(end: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Verified artifacts of a run's end, by name."""
    return {name: each.value for name, each in end["outcome"].artifacts.items() if each.valid}


def questions(end: Mapping[str, Any]) -> dict[str, Any]:
    """Open questions of an interrupted run, by id."""
    (interrupt,) = end["__interrupt__"]
    found: dict[str, Any] = interrupt.value["questions"]
    return found


def statuses(given: Plan) -> dict[str, str]:
    return {name: each.status.value for each in given.live() for name in each.produces}


def listed(given: Iterable[Any], field: str) -> list[Any]:
    return [getattr(each, field) for each in given]
