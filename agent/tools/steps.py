"""How does a general tool become one step that a plan can chain over? Its arguments and its product are named.

A file says it without code. `--tools steps.toml`:

tools = ["workspace:.", "sqlite:shop.db"]
[steps.totals]
tool = "query_database"
args = { sql = "SELECT region, sum(amount) AS total FROM orders GROUP BY region" }
[steps.report]
tool = "write_file"
args = { path = "report.txt", text = "{{totals.rows}}" }
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from agent.tools.contracts import contract, contract_of


def bound(
    tool: BaseTool,
    name: str,
    args: Mapping[str, JsonValue],
    requires: Sequence[str] = (),
    ensures: Sequence[str] = (),
    watch: bool = False,
) -> BaseTool:
    """The tool as one step: it makes the artifact `name` from these arguments.

    Args:
        tool: any tool; what its contract says of effect, promise and probe stays.
        name: of the artifact, and of the new tool.
        args: all its arguments; `{{other.field}}` refers to another artifact.
        requires: predicates that must hold before, beside the tool's own.
        ensures: predicates that must hold after, beside the tool's own.
        watch: look at what was read again before the run ends, and read anew what has changed. Not for what a later
            step changes itself.

    Raises:
        ValueError: an argument is missing or unknown, or a predicate does not compile.
    """
    promise, probe = contract_of(tool)
    attach = contract(
        needs=(),
        args=args,
        requires=(*promise.requires, *requires),
        ensures=(*promise.ensures, *ensures),
        effect=promise.effect,
        idempotent=promise.idempotent,
        observe=probe or (_reading(tool) if watch else None),
    )
    return attach(tool.model_copy(update={"name": name}))


def _reading(tool: BaseTool) -> Any:
    """A tool is a probe as it is, also to the runtime; the type of probes says functions only."""
    return tool


class StepsError(ValueError):
    """The file does not say steps; the message names file and step."""


class _Step(BaseModel):
    model_config = ConfigDict(extra="forbid")
    tool: str
    args: dict[str, JsonValue] = Field(default_factory=dict)
    requires: list[str] = Field(default_factory=list)
    ensures: list[str] = Field(default_factory=list)
    watch: bool = False


class _Steps(BaseModel):
    model_config = ConfigDict(extra="forbid")
    tools: list[str]
    steps: dict[str, _Step]


def load_steps(path: Path, load: Callable[[str, Path], Sequence[BaseTool]]) -> list[BaseTool]:
    """The steps that a TOML file names.

    Args:
        path: the file.
        load: gives the tools of a word such as `workspace:.`, seen from a folder.

    Raises:
        StepsError: it cannot be read, is no TOML, or names a tool or an argument that is not there.
    """
    try:
        said = _Steps.model_validate(tomllib.loads(path.read_text()))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(each) for each in first["loc"])
        raise StepsError(f"{path}, {where}: {first['msg']}") from None
    except (OSError, ValueError) as error:
        raise StepsError(f"{path}: cannot be read as TOML: {error}") from None
    tools = {each.name: each for word in said.tools for each in load(word, path.parent)}
    return [_made(path, name, step, tools) for name, step in said.steps.items()]


def _made(path: Path, name: str, step: _Step, tools: Mapping[str, BaseTool]) -> BaseTool:
    if not name.isidentifier():
        raise StepsError(f"{path}, steps.{name}: an artifact's name has only letters, digits and _")
    if step.tool not in tools:
        raise StepsError(f"{path}, steps.{name}: no tool {step.tool!r}; the tools are: {', '.join(tools) or 'none'}")
    try:
        return bound(tools[step.tool], name, step.args, step.requires, step.ensures, step.watch)
    except ValueError as error:
        raise StepsError(f"{path}, steps.{name}: {error}") from None
