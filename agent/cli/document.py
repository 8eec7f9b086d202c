"""What does `--json` print? One document about a thread as it stands; its fields are a promise to scripts."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from agent.core.control import Question
from agent.core.limits import Limits
from agent.core.outcome import Outcome
from agent.core.plan import Plan
from agent.core.value import JsonValue
from agent.core.world import GIVEN, World
from agent.scenarios import Scenario
from agent.trace.recoveries import Taken, recoveries

Json = dict[str, JsonValue]


def document(
    thread: str,
    state: Mapping[str, Any],
    questions: Mapping[str, Question],
    limits: Limits,
    scenario: Scenario | None,
    differences: list[str] | None,
) -> Json:
    """Everything a script may want to know.

    Args:
        thread: its name.
        state: the channels of the graph; empty before the first checkpoint.
        questions: what a person is asked, if the thread waits.
        limits: what was allowed; the ledger says what is spent.
        scenario: the packaged scenario, if it is one.
        differences: what differs from the end state of an undisturbed scenario; None: nothing to compare with.
    """
    taken = recoveries(state.get("trace", ()), state.get("plan", Plan()))
    marking: list[JsonValue] = [asdict(each) for each in scenario.marking(state)] if scenario and state else []
    return {
        "thread": thread,
        "outcome": _outcome(state.get("outcome"), bool(questions)),
        "questions": [each.model_dump(mode="json") for each in questions.values()],
        "artifacts": _artifacts(state.get("world", World())),
        "steps": _steps(state.get("plan", Plan())),
        "recoveries": [_recovery(each) for each in taken],
        "marking": marking,
        "differences": None if differences is None else list(differences),
        "limits": limits.model_dump(mode="json"),
        "ledger": state["ledger"].model_dump(mode="json") if state else None,
    }


def spelled(value: Json) -> str:
    """The document as text; plain ASCII, so that no terminal and no pipe can spoil it."""
    return json.dumps(value, indent=2)


def _outcome(outcome: Outcome | None, waiting: bool) -> JsonValue:
    if outcome is None or waiting:
        return None
    return outcome.model_dump(mode="json", exclude={"artifacts"})


def _artifacts(world: World) -> list[JsonValue]:
    return [
        {
            "name": each.name,
            "version": each.version,
            "digest": each.digest,
            "size": each.size,
            "holds": each.mark is None,
            "verified_by": list(each.verification.by),
            "value": each.value,
        }
        for each in world.artifacts.values()
        if each.producer != GIVEN
    ]


def _steps(plan: Plan) -> list[JsonValue]:
    return [
        {
            "id": each.id,
            "intent": each.intent,
            "status": each.status.value,
            "reason": each.reason,
            "attempts": each.attempts,
            "produces": list(each.produces),
        }
        for each in plan.steps
    ]


def _recovery(taken: Taken) -> Json:
    classified, choice = taken.choice.classified, taken.choice.choice
    return {
        "trigger": classified.failure.trigger.value,
        "scope": classified.scope.value,
        "origin": classified.origin.value,
        "rung": choice.rung.value,
        "step": classified.failure.step,
        "about": taken.about,
        "rule": classified.rule,
        "error": classified.failure.error.message,
        "passed": [each.model_dump(mode="json") for each in choice.passed],
        "joined": choice.joined,
        "done": taken.done,
        "invalidated": list(taken.invalidated),
        "again": list(taken.again),
        "reused": list(taken.reused),
    }
