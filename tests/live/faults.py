"""What goes wrong in a task's world? Each fault strikes one tool, really, a few times, and then it is over.

The same fault stands before the tools of the runtime and of the plain loop.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import httpx
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, ConfigDict

Call = Callable[..., Any]
Kind = Literal[
    "unavailable", "rate_limit", "late", "renamed", "locked", "altered", "mixed_up", "unwritten", "unanswered"
]


class Fault(BaseModel):
    """One thing that goes wrong."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    tool: str
    """Which tools it strikes, whichever is called first."""
    times: int = 1
    path: str = ""
    """The file that comes late, or has another name."""
    to: str = ""
    """Its other name."""
    sql: str = ""
    """How the schema changes, just before the first call."""
    says: str = ""
    """What a read gives in place of what is there."""

    def prepare(self, root: Path) -> None:
        """Bring the world into the state in which it strikes."""
        if self.kind == "late":
            (root / self.path).rename(_aside(root, self.path))
        if self.kind == "renamed":
            (root / self.path).rename(root / self.to)

    def before(self, tools: list[BaseTool], root: Path, file: Path) -> list[BaseTool]:
        """The tools, one of which fails."""
        strike, left = _STRIKES[self.kind](self, root, file), [self.times]
        return [_struck(each, strike, left) if each.name in self.tool.split() else each for each in tools]


Strike = Callable[[Call, dict[str, Any]], Any]
"""Carries out a call the way the fault has it."""


def _struck(tool: BaseTool, strike: Strike, left: list[int]) -> BaseTool:
    assert isinstance(tool, StructuredTool) and tool.func is not None
    whole = tool.func

    def called(**args: Any) -> Any:
        if not left[0]:
            return whole(**args)
        left[0] -= 1
        return strike(whole, args)

    return tool.model_copy(update={"func": called})


def _refusal(status: int, headers: dict[str, str]) -> Callable[[Fault, Path, Path], Strike]:
    """A status of a service in front of the tool; nothing was done."""

    def strike(_: Call, args: dict[str, Any]) -> Any:
        request = httpx.Request("POST", "http://127.0.0.1/tools")
        httpx.Response(status, headers=headers, request=request).raise_for_status()

    return lambda fault, root, file: strike


def _late(fault: Fault, root: Path, _: Path) -> Strike:
    """The file is put in place while the first look at it fails."""

    def strike(whole: Call, args: dict[str, Any]) -> Any:
        try:
            return whole(**args)
        finally:
            _aside(root, fault.path).rename(root / fault.path)

    return strike


def _straight(fault: Fault, root: Path, file: Path) -> Strike:
    """The world was changed beforehand; the call is what it is."""
    return lambda whole, args: whole(**args)


def _locked(_: Fault, __: Path, file: Path) -> Strike:
    """Somebody else holds the database as long as the call waits for it."""

    def strike(whole: Call, args: dict[str, Any]) -> Any:
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            return whole(**args)

    return strike


def _altered(fault: Fault, _: Path, file: Path) -> Strike:
    """The schema is another one from the first call on."""

    def strike(whole: Call, args: dict[str, Any]) -> Any:
        with closing(sqlite3.connect(file)) as connection:
            connection.executescript(fault.sql)
        return whole(**args)

    return strike


def _mixed_up(fault: Fault, _: Path, __: Path) -> Strike:
    """A read gives something else than was asked for; what it gives says so."""
    return lambda whole, args: {**whole(**args), "path": "elsewhere.txt", "text": fault.says}


def _unwritten(fault: Fault, _: Path, __: Path) -> Strike:
    """A write says that it was done, and was not."""
    return lambda whole, args: {"path": args["path"], "text": args.get("text", ""), "edited": True}


def _unanswered(_: Fault, __: Path, ___: Path) -> Strike:
    """The call is carried out, and its answer is lost."""

    def strike(whole: Call, args: dict[str, Any]) -> Any:
        whole(**args)
        raise TimeoutError("no answer within 30 s")

    return strike


def _aside(root: Path, path: str) -> Path:
    return root.parent / f"{Path(path).name}.late"


_STRIKES: dict[Kind, Callable[[Fault, Path, Path], Strike]] = {
    "unavailable": _refusal(503, {}),
    "rate_limit": _refusal(429, {"retry-after": "1"}),
    "late": _late,
    "renamed": _straight,
    "locked": _locked,
    "altered": _altered,
    "mixed_up": _mixed_up,
    "unwritten": _unwritten,
    "unanswered": _unanswered,
}
