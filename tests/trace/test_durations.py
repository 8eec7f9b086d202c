"""What a tool usually takes is the middle of its good attempts; what was only found done says nothing."""

from typing import Any

from agent.core.record import AttemptEnded
from agent.trace.durations import usual
from tests.builders import plan, step


def ended(of: str, seconds: float, ok: bool = True, how: str = "called") -> Any:
    return AttemptEnded(at=0, step=of.upper(), attempt=1, ok=ok, how=how, seconds=seconds)  # type: ignore[arg-type]


def test_the_median_counts_of_what_was_done_well() -> None:
    trace = [ended("x", 1), ended("x", 3), ended("x", 50), ended("x", 0.1, ok=False), ended("y", 0.1, how="adopted")]
    assert usual(trace, plan(step("x"), step("y"))) == {"make_x": 3}
