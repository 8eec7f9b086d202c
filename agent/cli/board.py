"""How does a plan look while it runs? Steps with their state, tries, rungs and times; below them what is spent."""

import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.table import Table
from rich.text import Text

from agent.cli.screen import COLOURS
from agent.core.ladder import Rung
from agent.core.limits import CALLS, Ledger, Limits
from agent.core.plan import Plan, Step, StepStatus
from agent.core.record import Recovered, StepStarted
from agent.nodes.state import take_ledger, take_plan

NOTHING_KNOWN: Mapping[str, float] = MappingProxyType({})

MARKS = {
    StepStatus.DONE: "✔",
    StepStatus.RUNNING: "▸",
    StepStatus.PENDING: "·",
    StepStatus.INVALID: "!",
    StepStatus.FAILED: "✘",
    StepStatus.SKIPPED: "-",
}

_AROUND = 4
"""Lines that are not steps: those left out above and below, the budgets, and the prompt."""


class Board:
    """The plan as the updates of the graph tell it; renders itself."""

    def __init__(self, limits: Limits, plan: Plan, ledger: Ledger, usual: Mapping[str, float] = NOTHING_KNOWN) -> None:
        """Args: what the run may use; plan and ledger before the first update; seconds a tool took in earlier runs."""
        self._limits = limits
        self._usual = usual
        self._began = time.monotonic()
        self._started: dict[str, float] = {}
        self.plan = plan
        self.ledger = ledger
        self.rungs: dict[str, Rung] = {}
        """By step key: the last rung taken."""

    def take(self, update: Mapping[str, Any]) -> None:
        """Follow what a node returned."""
        self.plan = take_plan(self.plan, [update.get("plan")])
        self.ledger = take_ledger(self.ledger, [update.get("ledger")])
        for record in update.get("trace", ()):
            if isinstance(record, Recovered):
                self.rungs[record.classified.failure.key] = record.choice.rung
            elif isinstance(record, StepStarted):
                self._started[record.step] = time.monotonic() + record.delay

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = max(5, (options.height or console.height) - _AROUND) if console.is_terminal else None
        shown, above, below = _window([each for each in self.plan.steps if each.live], rows)
        table = Table.grid(padding=(0, 2))
        for ratio in (None, 1, None, None, None):
            table.add_column(no_wrap=True, overflow="ellipsis", ratio=ratio)
        for step in shown:
            table.add_row(*self._row(step))
        yield Group(*_count(above, "done"), table, *_count(below, "more"), self._spent())

    def _row(self, step: Step) -> tuple[Text, ...]:
        colour = COLOURS[step.status]
        rung = self.rungs.get(step.key)
        tries = f"try {step.attempts}" if step.attempts > 1 else ""
        intent = Text(step.intent, "dim" if step.status is StepStatus.PENDING else "")
        return (
            Text(f"  {MARKS.get(step.status, ' ')} {step.status:<7}", colour),
            intent,
            Text(self._time(step), "dim"),
            Text(tries, "dim"),
            Text(rung or "", COLOURS[rung] if rung else ""),
        )

    def _time(self, step: Step) -> str:
        """How long a running step has taken, and how long it usually takes; of one to come what is to be expected."""
        usual = self._usual.get(step.call.tool if step.call else step.intent)
        about = f"about {lasting(usual)}" if usual is not None else ""
        if step.status is StepStatus.RUNNING and step.id in self._started:
            passed = lasting(max(0.0, time.monotonic() - self._started[step.id]))
            return f"{passed} of {about}" if about else passed
        return about if step.status is StepStatus.PENDING else ""

    def _spent(self) -> Text:
        live = self.plan.live()
        done = sum(each.status is StepStatus.DONE for each in live)
        passed = lasting(time.monotonic() - self._began)
        return Text(f"  {done}/{len(live)} done · {spent(self.ledger, self._limits)} · {passed}", "dim")


def lasting(seconds: float) -> str:
    """A duration in the unit that people would say it in."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def spent(ledger: Ledger, limits: Limits) -> str:
    """The budgets in a line: what is used, and of how much."""
    parts = [f"attempts {ledger.steps}/{limits.steps}"]
    parts += [f"{name} {sum(used.values())}" for name, used in _by_step(ledger).items() if used]
    parts.append(f"replans {ledger.replan}/{limits.replan}")
    parts += [f"{_worded(name)} {used}/{getattr(limits, name)}" for name in CALLS if (used := getattr(ledger, name))]
    if ledger.tokens:
        about = "about " if ledger.tokens_estimated else ""
        parts.append(f"tokens {about}{ledger.tokens:,}/{limits.tokens:,}")
    if ledger.money:
        parts.append(f"money {ledger.money:.2f}/{limits.money:g}")
    return " · ".join(parts)


def _worded(counter: str) -> str:
    return counter.replace("_", " ")


def _by_step(ledger: Ledger) -> dict[str, dict[str, int]]:
    return {"retries": ledger.retry, "patches": ledger.patch, "rewrites": ledger.rewrite}


def _window(steps: list[Step], rows: int | None) -> tuple[list[Step], int, int]:
    """The steps that fit: first what is done gives way, then what comes last."""
    if rows is None or len(steps) <= rows:
        return steps, 0, 0
    begun = next((i for i, each in enumerate(steps) if each.status is not StepStatus.DONE), len(steps))
    start = max(0, min(begun - 2, len(steps) - rows))
    return steps[start : start + rows], start, len(steps) - start - rows


def _count(number: int, what: str) -> list[Text]:
    return [Text(f"  … {number} {what}", "dim")] if number else []
