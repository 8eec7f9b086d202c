"""What did all replays come to? The matrix with its failures, and the depth of repair for each kind of mutation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent.core.value import JsonValue
from agent.mutation.claims import needless_planner_calls
from agent.mutation.kinds import Kind
from agent.mutation.matrix import MATRIX, Row
from agent.mutation.oracle import depth
from agent.mutation.replay import Replayed

_SHOWN = 5
"""Failures told in the message of a failed assertion, for each row."""


@dataclass(frozen=True)
class Verdict:
    """What one replay came to, row by row."""

    mutation: str
    kind: str
    point: str
    status: str
    reached: bool
    taken: int
    """Steps started again."""
    needed: int
    """Those of them the dependency graph asks for."""
    planner_calls: int
    """Calls of the planner for a local break."""
    failures: dict[str, tuple[str, ...]]
    """Row -> what contradicts it."""
    seconds: float


@dataclass(frozen=True)
class Report:
    """All replays of one trajectory."""

    steps: int
    points: int
    verdicts: tuple[Verdict, ...]

    @property
    def holds(self) -> bool:
        """Whether every row holds for every replay."""
        return bool(self.verdicts) and not any(each.failures for each in self.verdicts)

    @property
    def ratio(self) -> float:
        """Depth of repair over the oracle's: 1.0 when nothing was done again for nothing."""
        needed, taken = sum(each.needed for each in self.verdicts), sum(each.taken for each in self.verdicts)
        return taken / needed if needed else 1.0 + taken

    @property
    def planner_calls(self) -> int:
        """Calls of the planner for a local break, over all replays."""
        return sum(each.planner_calls for each in self.verdicts)

    def failed(self, row: Row) -> Iterator[str]:
        """What contradicts a row, with the mutation it came from."""
        for each in self.verdicts:
            yield from (f"{each.mutation}: {said}" for said in each.failures.get(row.name, ()))

    def assert_holds(self) -> None:
        """Fail with the first rows that do not hold, and the layer that each of them names.

        Raises:
            AssertionError: when a row does not hold, or nothing was replayed.
        """
        if not self.holds:
            raise AssertionError("\n".join(self._complaints()) or "nothing was replayed")

    def document(self) -> dict[str, JsonValue]:
        """Everything as JSON."""
        rows: list[JsonValue] = [_row(row, list(self.failed(row)), len(self.verdicts)) for row in MATRIX]
        replays: list[JsonValue] = [_replay(each) for each in self.verdicts]
        return {
            "holds": self.holds,
            "steps": self.steps,
            "points": self.points,
            "replays": len(self.verdicts),
            "unreached": sum(not each.reached for each in self.verdicts),
            "depth_ratio": self.ratio,
            "planner_calls_for_local_breaks": self.planner_calls,
            "rows": rows,
            "mutations": replays,
        }

    def _complaints(self) -> Iterator[str]:
        for row in MATRIX:
            failures = list(self.failed(row))
            if failures:
                yield f"{row.claim}: does not hold. Fix {row.layer}"
                yield from (f"  {each}" for each in failures[:_SHOWN])


def verdict(replayed: Replayed) -> Verdict:
    """Read one replay against the matrix."""
    found = {row.name: tuple(dict.fromkeys(row.check(replayed))) for row in MATRIX}
    again = depth(replayed)
    return Verdict(
        mutation=str(replayed.mutation),
        kind=replayed.mutation.kind.name,
        point=str(replayed.mutation.point),
        status=str(replayed.outcome.status) if replayed.outcome else "not ended",
        reached=replayed.fired_at is not None,
        taken=again.taken,
        needed=again.needed,
        planner_calls=max(0, needless_planner_calls(replayed)),
        failures={name: said for name, said in found.items() if said},
        seconds=round(replayed.seconds, 3),
    )


def by_kind(report: Report, kinds: Sequence[Kind]) -> Iterator[tuple[Kind, list[Verdict]]]:
    """The replays of each kind that applied anywhere."""
    for kind in kinds:
        found = [each for each in report.verdicts if each.kind == kind.name]
        if found:
            yield kind, found


def _row(row: Row, failures: list[str], checked: int) -> JsonValue:
    return {
        "row": row.name,
        "claim": row.claim,
        "proves": row.proves,
        "layer": row.layer,
        "checked": checked,
        "holds": not failures,
        "failures": list(failures),
    }


def _replay(each: Verdict) -> JsonValue:
    failures: dict[str, JsonValue] = {name: list(said) for name, said in each.failures.items()}
    return {
        "mutation": each.kind,
        "point": each.point,
        "what": each.mutation,
        "status": each.status,
        "reached": each.reached,
        "started_again": each.taken,
        "needed_again": each.needed,
        "planner_calls": each.planner_calls,
        "failures": failures,
        "seconds": each.seconds,
    }
