"""One tool that runs a program, of those that were named, without a shell. Nobody has it who did not ask for it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import which
from typing import Annotated

from langchain_core.tools import BaseTool
from pydantic import Field

from agent.core.value import JsonValue
from agent.tools.builtin.process import Process, ran
from agent.tools.contracts import contract

ARGUMENTS = 100_000
"""Characters of all arguments together."""


def command_tools(
    programs: Sequence[str],
    *,
    folder: Path | str = ".",
    env: Mapping[str, str] | None = None,
    seconds: float = 60.0,
    output: int = 20_000,
) -> list[BaseTool]:
    """A tool that runs one of these programs with a list of arguments.

    A program that can start others (a shell, `find`, `git`, `tar`, an interpreter) can do whatever they can, and
    none is confined to the folder: name only programs whose every option may be used.

    Args:
        programs: names or absolute paths; found once, now, and called by exactly these names.
        folder: where they run.
        env: the environment beside PATH, HOME (the folder) and LANG; nothing else is passed on.
        seconds: one run may take; then the program and all it has started is killed.
        output: characters of each output that are kept, head and tail.

    Raises:
        ValueError: a program or the folder is not there.
    """
    found = {each: _found(each) for each in programs}
    where = Path(folder).resolve()
    if not where.is_dir():
        raise ValueError(f"{str(folder)!r} is not a folder; commands need one to run in")
    clean = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(where), "LANG": "C.UTF-8", **(env or {})}

    @contract(needs="program", effect="mutating", idempotent=False)
    async def run_command(
        program: Annotated[str, Field(description=f"one of: {', '.join(found)}")],
        arguments: list[str] = [],  # noqa: B006 - never changed
        stdin: Annotated[str, Field(max_length=1_000_000, description="text the program reads")] = "",
    ) -> dict[str, JsonValue]:
        """Run a program; its exit status and what it printed."""
        if program not in found:
            raise PermissionError(f"not permitted to run {program[:80]!r}; the programs are: {', '.join(found)}")
        if any("\0" in each for each in arguments) or sum(map(len, arguments)) > ARGUMENTS:
            raise ValueError("an argument is too long or holds a NUL character")
        return await ran(Process([found[program], *arguments], where, clean, stdin.encode(), seconds, output))

    return [run_command]


def _found(program: str) -> str:
    path = which(program)
    if path is None:
        raise ValueError(f"there is no program {program!r} to allow; install it, or give its absolute path")
    return str(Path(path).absolute())
