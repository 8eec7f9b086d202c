"""What contradicts each claim of the matrix in one replay? A sentence for every contradiction; none is a pass.

Read from the trace, from the end of the run, and from the calls that were seen to reach the tools.
"""

from collections import Counter
from collections.abc import Iterator

from agent.core.ladder import LADDER, Rung
from agent.core.plan import StepStatus, downstream
from agent.core.recompute import contradictions
from agent.core.record import Committed, IntentChanged, Invalidated, Planned, Recovered, StepStarted
from agent.core.value import digest
from agent.mutation.oracle import depth, reach
from agent.mutation.replay import Replayed


def reused(replayed: Replayed) -> Iterator[str]:
    """What nothing had to do with the mutation is neither called again nor made anew."""
    worked = {each.identity for each in replayed.calls if each.worked and not _late(replayed, each.at)}
    needed = {each.key for each in depth(replayed).again if each.because}
    for tool in {each.tool for each in replayed.calls if _late(replayed, each.at) and each.identity in worked}:
        if not needed & {each.key for each in replayed.plan.live() if each.call and each.call.tool == tool}:
            yield f"{tool} was called again with the same arguments"
    versions = Counter(each.name for each in replayed.trace if isinstance(each, Committed) and not each.unchanged)
    aside = [each for each in replayed.plan.live() if each.key not in reach(replayed).touched]
    for name in (name for each in aside for name in each.produces if versions[name] > 1):
        yield f"{name} was made {versions[name]} times, and nothing it stands on changed"


def not_reused(replayed: Replayed) -> Iterator[str]:
    """No artifact that holds stands on what does not, and none is what its probe no longer sees."""
    world = replayed.world
    for artifact in world.artifacts.values():
        for name, made_from in artifact.inputs.items():
            if artifact.mark is None and (not world.holds(name) or world.artifacts[name].digest != made_from):
                yield f"{artifact.name} holds, although {name}, from which it was made, is another now"
    yield from _started_on_doubted(replayed)
    for key in depth(replayed).stood_on:
        yield f"{key} was taken as it stood, although its inputs had changed"
    for key, value in replayed.last_look.items() if replayed.satisfied else ():
        seen = {world.artifacts[name].seen for name in key.split() if world.holds(name)}
        if value is not None and seen and digest(value) not in seen:
            yield f"{key} is reported as verified, and its probe saw something else last"


def _started_on_doubted(replayed: Replayed) -> Iterator[str]:
    """No step starts on an observation that is being looked at again."""
    steps = {each.id: each for each in replayed.plan.steps}
    doubted = set[str]()
    for record in replayed.trace:
        match record:
            case Invalidated():
                looked_at = {name for each in record.what.flagged for name in steps[each].produces}
                doubted |= looked_at & set(record.what.artifacts)
            case Committed():
                doubted.discard(record.name)
            case StepStarted():
                for name in sorted(steps[record.step].reads() & doubted):
                    yield f"{record.step} was started on {name}, which had been falsified"
            case _:
                pass


def independent(replayed: Replayed) -> Iterator[str]:
    """What neither stands on the mutation nor under it is never marked, and is done at the end.

    What stands on an observation that a failure put in doubt waits for the next look; it must be done then.
    """
    aside = {each.id: each for each in replayed.plan.live() if each.key not in reach(replayed).touched}
    doubted = depth(replayed).doubted
    ids = {each.id for each in replayed.plan.live() if each.key in doubted}
    calm = aside.keys() - ids - downstream(replayed.plan.live(), ids)
    for record in replayed.trace:
        if isinstance(record, Invalidated):
            for step in sorted({*record.what.steps, *record.what.flagged} & calm):
                yield f"{aside[step].key} was marked invalid: {record.what.cause}"
    for each in aside.values():
        if each.status is not StepStatus.DONE:
            yield f"{each.key} is {each.status}, and nothing stood in its way"


def once(replayed: Replayed) -> Iterator[str]:
    """No write is carried out twice, but for one that was seen to have been undone."""
    target = replayed.mutation.target
    undone = target.tool if target and replayed.mutation.kind.undoes else ""
    made = Counter(each.identity for each in replayed.calls if each.worked and each.writes_once)
    for (tool, _), times in made.items():
        allowed = 2 if tool == undone else 1
        if times > allowed:
            yield f"{tool} was carried out {times} times with the same arguments"
    yield from replayed.differences if replayed.satisfied else ()


def ends(replayed: Replayed) -> Iterator[str]:
    """Every run ends within its limits, and no failure climbs down."""
    if replayed.outcome is None:
        yield "the run did not end"
        return
    ledger, limits = replayed.ledger, replayed.limits
    if ledger.replan > limits.replan:
        yield f"{ledger.replan} replans were taken, {limits.replan} are allowed"
    for rung in ("retry", "patch", "rewrite"):
        used, allowed = getattr(ledger, rung), getattr(limits, rung)
        yield from (f"{key}: {rung} taken {times} times of {allowed}" for key, times in used.items() if times > allowed)
    most = most_moves(replayed)
    if ledger.moves > most:
        yield f"{ledger.moves} moves were taken; the limits allow {most}"
    yield from _climbs_down(replayed)


def most_moves(replayed: Replayed) -> int:
    """A bound on the rounds of the loop, from the limits alone: each step, with each recovery it may have."""
    limits, steps = replayed.limits, len(replayed.plan.steps)
    recoveries = limits.retry + limits.patch + limits.rewrite + limits.replan + limits.escalate
    # a recovery may redo what the step stands on, and each start takes a start, a wait and a look
    return 10 + 4 * steps * (1 + recoveries)


def _climbs_down(replayed: Replayed) -> Iterator[str]:
    highest: dict[str, Rung] = {}
    for record in replayed.trace:
        if isinstance(record, Recovered) and not record.choice.joined:
            fingerprint, rung = record.classified.failure.fingerprint, record.choice.rung
            if LADDER.index(rung) < LADDER.index(highest.get(fingerprint, rung)):
                yield f"{record.classified.failure.key} went down from {highest[fingerprint]} to {rung}"
            highest[fingerprint] = rung


def no_deeper(replayed: Replayed) -> Iterator[str]:
    """Nothing is started again that the dependency graph does not ask for; a local break asks no planner."""
    found = Counter(depth(replayed).needless)
    yield from (f"{key} was started again {times} times for nothing" for key, times in found.items())
    calls = needless_planner_calls(replayed)
    if calls > 0:
        yield f"the planner was called {calls} times for a local break"


def needless_planner_calls(replayed: Replayed) -> int:
    """Calls of the planner that neither the first plan, nor a changed goal, nor a replan accounts for."""
    charged = [each for each in replayed.trace if isinstance(each, Recovered) and not each.choice.joined]
    replans = sum(each.choice.rung is Rung.REPLAN for each in charged)
    intents = sum(isinstance(each, IntentChanged) for each in replayed.trace)
    drawn = sum(isinstance(each, Planned) for each in replayed.trace)
    return max(drawn, replayed.ledger.planner_calls) - 1 - replans - intents


def recomputable(replayed: Replayed) -> Iterator[str]:
    """Scopes, rungs, marks, what was verified and the end follow from what their records hold."""
    yield from contradictions(replayed.trace)


def _late(replayed: Replayed, at: float) -> bool:
    return replayed.fired_at is not None and at > replayed.fired_at
