"""Do the invariants hold? Looked at after every phase node, from what changed, without the runtime's own reasons."""

import fnmatch
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from agent.core.control import Choice
from agent.core.ladder import FIRST_RUNG, LADDER, Rung
from agent.core.limits import Limits
from agent.core.move import Broken as BrokenMove
from agent.core.move import Start
from agent.core.outcome import OutcomeStatus
from agent.core.phase import LEGAL, Phase
from agent.core.plan import Plan, Step, StepStatus
from agent.core.predicate import Verdict
from agent.core.recompute import contradictions
from agent.core.record import Committed, Escalated, Judged, Recovered
from agent.core.reference import resolve
from agent.core.value import digest
from agent.core.world import World
from agent.nodes.state import RunState, RunUpdate
from tests.simulation.outside import Broken, Outside
from tests.simulation.script import Script

AGAIN = (Choice.RETRY, Choice.HINT, Choice.EDIT)
"""Answers by which a person says that something is to be done again."""


DECIDING = (Phase.PLANNER, Phase.REPAIRER, Phase.ESCALATOR)
"""Who may say what is to be done."""

VERIFYING = (Phase.VERIFIER, Phase.EXECUTOR)
"""Where artifacts are committed: the executor's round goes through the verifier."""

MOVING = (Phase.DISPATCHER, Phase.EXECUTOR)
"""Where the next move is decided: a round ends in the dispatcher."""


class Watch:
    """Looks on, and raises `Broken` with the invariant's number."""

    def __init__(self, script: Script, outside: Outside) -> None:
        self._script, self._outside = script, outside
        self._tools = {each.name: each for each in script.tools}
        self._below = _descendants(script)
        self.moves = 0
        self.fullest = 0.0
        """The largest share of the moves that the limits allow."""
        self.disturbed = 0
        """Things that happened to the run from outside: deaths, letters, answers."""
        self.statuses: Counter[str] = Counter()
        self.rungs: Counter[str] = Counter()
        self.deeds: Counter[str] = Counter()
        self.opens()

    def opens(self) -> None:
        """A new run: budgets and the ladder start afresh."""
        self._highest: dict[str, Rung] = {}
        self._taken: Counter[tuple[str, str]] = Counter()
        self._answers = 0
        self._run_disturbed = self.disturbed

    def answered(self, question: Mapping[str, Any], choice: str) -> None:
        """A person answers: what they have decided on begins anew."""
        self._answers += 1
        self.disturbed += 1
        self._highest.clear()
        self._taken.clear()
        if choice in AGAIN and question["call"]:
            tool = self._tools[question["call"]["tool"]]
            if not tool.probe or choice == Choice.EDIT:
                self._outside.allow(tool, question["call"]["args"])
        elif choice in AGAIN:
            self._outside.allow_lost(question["error"])

    # --- after every node --------------------------------------------------------------------------------------

    def stepped(self, before: RunState, update: RunUpdate, after: RunState) -> None:
        """Compare the state before a node and after it."""
        if self._outside.broken:
            raise Broken(self._outside.broken)
        self._phase(before["phase"], update, after)
        self._nothing_lost(before, after)
        self._marks(before, update, after)
        self._meant(before, after)
        self._done(before, update, after)
        for record in update.get("trace", ()):
            if isinstance(record, Recovered):
                self._recovered(record)
            if isinstance(record, Committed | Escalated):
                self.deeds[record.event] += 1
        if before["phase"] in MOVING and "move" in update:
            self.moves += 1
            move = update["move"]
            if isinstance(move, Start):
                self._started(after["world"], update["plan"], move)
            if isinstance(move, BrokenMove) and not move.failures:
                raise Broken("I5: broken, and nothing is")
        self._within(after)

    def _phase(self, phase: Phase, update: RunUpdate, after: RunState) -> None:
        if "phase" not in update:
            raise Broken(f"I7: {phase} does not say where the run goes")
        if after["phase"] not in LEGAL[phase]:
            raise Broken(f"I7: {phase} -> {after['phase']} is not in the table")

    def _nothing_lost(self, before: RunState, after: RunState) -> None:
        """I1: what is finished stays; I4: a mark deletes nothing; only verifying changes content."""
        makes = before["phase"] in (*VERIFYING, Phase.ESCALATOR, Phase.PLANNER)
        for name, old in before["world"].artifacts.items():
            new = after["world"].artifacts.get(name)
            if new is None:
                raise Broken(f"I1: artifact {name} is gone after {before['phase']}")
            if (new.digest, new.version) != (old.digest, old.version) and not makes:
                raise Broken(f"I4: {before['phase']} changed the content of {name}")
        if not {each.id for each in before["plan"].steps} <= {each.id for each in after["plan"].steps}:
            raise Broken(f"I1: {before['phase']} dropped a step from the plan")

    def _marks(self, before: RunState, update: RunUpdate, after: RunState) -> None:
        """I4: marks follow dependency edges, and nothing else."""
        world: World = after["world"]
        if world is before["world"]:
            return
        for artifact in world.artifacts.values():
            if artifact.mark is not None and artifact.mark.root:
                continue
            broken = [name for name, was in artifact.inputs.items() if not _as_was(world, name, was)]
            if artifact.mark is not None and not broken:
                raise Broken(f"I4: {artifact.name} is marked, and all its inputs hold")
            if artifact.mark is None and broken:
                raise Broken(f"I4: {artifact.name} holds, and its input {broken[0]} does not")
        fresh = {
            name
            for name, each in world.artifacts.items()
            if each.mark and each.mark.root and not _root_marked(before["world"], name)
        }
        if fresh:
            self._roots(fresh, before)

    def _roots(self, fresh: Iterable[str], before: RunState) -> None:
        """A failure makes doubtful what its step stands on and what it has made: never an independent branch."""
        reach: set[str] = set()
        for failure in before["failures"]:
            for name in (*failure.reads, *failure.key.split()):
                reach |= {name, *(each for each, below in self._below.items() if name in below)}
        if before["phase"] is Phase.PLANNER:  # under another goal a family may have other members
            summing = (each for tool in self._tools.values() if tool.direct() != tool.needs for each in tool.members())
            reach |= {name for each in summing for name in each.makes}
        outside = set(fresh) - reach
        if outside:
            raise Broken(f"I4: {', '.join(sorted(outside))} was marked, which no failed step stands on")

    def _meant(self, before: RunState, after: RunState) -> None:
        """I9: what is to be done is decided by planner, repairer and person, and by nothing that a tool has said."""
        if before["phase"] in DECIDING or after["plan"] is before["plan"]:
            return
        was, now = (
            {each.id: (each.call, each.instruction, each.tools, each.needs, each.produces) for each in plan.steps}
            for plan in (before["plan"], after["plan"])
        )
        if was != now and not before["allowed"]:
            raise Broken(f"I9: {before['phase']} changed what is to be done")

    def _done(self, before: RunState, update: RunUpdate, after: RunState) -> None:
        """I3: a step becomes done because it was verified now, or because what it had made holds again."""
        was = {each.id: each.status for each in before["plan"].steps}
        for step in after["plan"].steps:
            if step.status is StepStatus.DONE and was.get(step.id) is not StepStatus.DONE:
                self._became_done(step, before, update, after)
        judged = {each.step: each for each in update.get("trace", ()) if isinstance(each, Judged)}
        for record in update.get("trace", ()):
            if isinstance(record, Committed) and record.step and not _verified(judged.get(record.step)):
                raise Broken(f"I3: {record.name} was committed without a verified judgement")

    def _became_done(self, step: Step, before: RunState, update: RunUpdate, after: RunState) -> None:
        missing = [name for name in step.produces if not after["world"].holds(name)]
        if missing and before["phase"] not in VERIFYING:
            raise Broken(f"I3: {step.key} is done, and {missing[0]} does not hold")
        if before["phase"] is Phase.ESCALATOR:
            return  # a person has made it
        judged = [e for e in update.get("trace", ()) if isinstance(e, Judged) and e.step == step.id]
        world = after["world"].artifacts
        lifted = all(world[name].producer == step.id or _was_marked(before["world"], name) for name in step.produces)
        if not any(_verified(each) for each in judged) and not lifted:
            raise Broken(f"I3: {before['phase']} marked {step.key} done, which nobody verified")

    def _recovered(self, record: Recovered) -> None:
        """I5: a rung within its budget, and never lower for the same failure."""
        choice, classified = record.choice, record.classified
        self.rungs[choice.rung] += 1
        failure = classified.failure
        if choice.joined and choice.rung is Rung.REPLAN:
            return  # it goes along with another failure's replan
        if failure.trigger != "blocked" and _height(choice.start) < _height(FIRST_RUNG[classified.scope]):
            raise Broken(f"I5: {classified.scope} began at {choice.start}")
        passed = [each.rung for each in choice.passed]
        if not choice.joined and passed != list(LADDER[_height(choice.start) : _height(choice.rung)]):
            raise Broken(f"I5: from {choice.start} to {choice.rung}, passing over {passed} with a reason")
        before = self._highest.get(failure.fingerprint)
        if before is not None and _height(choice.rung) < _height(before):
            raise Broken(f"I5: the same failure went from {before} down to {choice.rung}")
        self._highest[failure.fingerprint] = choice.rung
        self._charged(choice.rung, failure.key, record.limits, choice.joined)

    def _charged(self, rung: Rung, key: str, limits: Limits, joined: bool) -> None:
        """Count for ourselves, and compare with what is allowed."""
        if rung is Rung.ESCALATE:
            return
        whose = "the run" if rung is Rung.REPLAN else key
        self._taken[rung, whose] += 1
        allowed: int = getattr(limits, rung)
        if self._taken[rung, whose] > allowed:
            raise Broken(f"I5: {rung} number {self._taken[rung, whose]} of {whose}, where {allowed} are allowed")
        if rung is not Rung.REPLAN and not joined:
            self._taken[rung, ""] += 1
            per_run: int = getattr(limits, {"retry": "retries", "patch": "patches"}.get(rung, "rewrites") + "_per_run")
            if self._taken[rung, ""] > per_run:
                raise Broken(f"I5: {rung} number {self._taken[rung, '']} of the run, where {per_run} are allowed")

    def _started(self, world: World, plan: Plan, move: Start) -> None:
        """I1: nothing is made again while it holds and what it was made from is what it was."""
        for step in (plan.step(each) for each in move.steps):
            made = [world.artifacts[name] for name in step.produces if world.holds(name)]
            inputs = world.digests(step.reads())
            if step.produces and len(made) == len(step.produces) and all(each.inputs == inputs for each in made):
                raise Broken(f"I1: {step.key} is made again, although it holds and so do its inputs")

    def _within(self, after: RunState) -> None:
        """I6: hard bounds are kept; what is in flight may still come in."""
        ledger, limits = after["ledger"], self._script.limits
        flying = len(after["plan"].with_status(StepStatus.RUNNING))
        if flying > limits.parallel:
            raise Broken(f"I5: {flying} steps run, where {limits.parallel} may")
        if ledger.steps > limits.steps:
            raise Broken(f"I6: {ledger.steps} attempts of {limits.steps}")
        for name in ("moves", "tool_calls", "planner_calls", "repairer_calls", "classifier_calls"):
            slack = 3 * limits.parallel + 8
            if getattr(ledger, name) > getattr(limits, name) + slack:
                raise Broken(f"I6: {getattr(ledger, name)} {name} of {getattr(limits, name)}")

    # --- at the end of a run -----------------------------------------------------------------------------------

    def ended(self, state: RunState) -> None:
        """I6: it says how it ended, and shows all there is."""
        outcome, world = state["outcome"], state["world"]
        if outcome is None:
            raise Broken("I6: an end without an outcome")
        self.statuses[outcome.status] += 1
        shown = {name: each.valid for name, each in outcome.artifacts.items()}
        there = {name: each.mark is None for name, each in world.artifacts.items() if name not in state["goal"].given}
        if shown != there:
            raise Broken(f"I6: the report shows {shown} of {there}")
        if outcome.status is OutcomeStatus.SATISFIED:
            self._satisfied(state)
        # the records are those of all runs
        wrong = next(contradictions(state["trace"]), None) if self.statuses.total() == len(self._script.goals) else None
        if wrong:
            raise Broken(f"I8: {wrong}")
        moves, bound = state["ledger"].moves, self._bound()
        self.fullest = max(self.fullest, moves / bound)
        if moves > bound:
            raise Broken(f"I6: {moves} moves, and the limits allow {bound}")

    def _satisfied(self, state: RunState) -> None:
        """Success is what the world shows, as far as anybody can look."""
        world = state["world"]
        if any(each.verdict is not Verdict.VERIFIED for each in (state["outcome"].grades if state["outcome"] else ())):
            raise Broken("I3: satisfied, and a grade is not verified")
        for step in state["plan"].live():
            made = [world.artifacts[name] for name in step.produces if world.holds(name)]
            if step.status is not StepStatus.DONE or step.call is None or len(made) != 1 or made[0].seen is None:
                continue
            bodies = {name: each.value for name, each in world.artifacts.items() if not each.stored}
            if not step.reads() <= bodies.keys():
                continue
            args = {name: resolve(each, bodies) for name, each in step.call.args.items()}
            there = digest(self._outside.is_so(step.call.tool, args))
            if self._tools[step.call.tool].probe and there not in (made[0].seen, made[0].digest):
                raise Broken(f"I3: satisfied, and {step.key} is not what was seen")

    def _bound(self) -> int:
        """Moves that the limits allow.

        A recovery, and whatever comes from outside, makes the run do at most the whole plan again; a person's answer
        gives fresh budgets. To do the plan takes for each step a look, a start, a wait and a report of what broke.
        """
        limits, tools = self._script.limits, sum(len(each.members()) for each in self._script.tools)
        recoveries = tools * (limits.retry + limits.patch + limits.rewrite + 1) + limits.replan
        outside = self.disturbed - self._run_disturbed + len(self._script.drifts)
        rounds = 1 + recoveries * (1 + self._answers) + outside
        return 4 * (tools + 1) * rounds


def _descendants(script: Script) -> dict[str, set[str]]:
    """Artifact -> all that is made from it."""
    below: dict[str, set[str]] = defaultdict(set)
    tools = [each for tool in script.tools for each in tool.members()]
    made = {name for tool in tools for name in tool.makes}
    for tool in reversed(tools):
        reach = {*tool.makes, *(each for name in tool.makes for each in below[name])}
        for need in tool.needs:
            for name in fnmatch.filter(made, need) if need.endswith("*") else (need,):
                below[name] |= reach
        for name in tool.makes:
            below[name] |= set(tool.makes)
    for _ in tools:
        for name in list(below):
            below[name] |= {each for other in tuple(below[name]) for each in below[other]}
    return below


def _as_was(world: World, name: str, was: str) -> bool:
    artifact = world.artifacts.get(name)
    return artifact is not None and artifact.mark is None and artifact.digest == was


def _root_marked(world: World, name: str) -> bool:
    artifact = world.artifacts.get(name)
    return artifact is not None and artifact.mark is not None and artifact.mark.root


def _was_marked(world: World, name: str) -> bool:
    """Whether it was verified once, and only what it was made from was in doubt."""
    artifact = world.artifacts.get(name)
    return artifact is not None and artifact.mark is not None and not artifact.mark.root


def _verified(judged: Judged | None) -> bool:
    return (
        judged is not None
        and bool(judged.judgements)
        and all(each.verdict is Verdict.VERIFIED for each in judged.judgements)
    )


def _height(rung: Rung) -> int:
    return LADDER.index(rung)
