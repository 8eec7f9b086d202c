"""What does each command that runs a thread do? It decides which thread, which tools and which goal; then work."""

from pathlib import Path

from rich.text import Text

from agent.cli.document import spelled
from agent.cli.exits import BadInput, Code, bad_input
from agent.cli.home import Home, open_home
from agent.cli.screen import console
from agent.cli.session import NEEDS_MODEL, is_plannable, open_session
from agent.cli.supply import reference_of, scenario_named
from agent.cli.work import Manner, work
from agent.cli.work import resume as go_on
from agent.core.goal import Criterion, Goal
from agent.core.lease import Halt
from agent.core.world import World, made
from agent.goal_file import load_goal
from agent.scenarios import SCENARIOS
from agent.settings import Settings

_PATH_LIMIT = 200
"""Longer text is no path; a file system would refuse to look."""

NO_TOOLS = (
    "which tools? Name a list of them with --tools module:attribute, or in KINTSUGI_TOOLS, or a source of them, as in "
    "--tools workspace:."
)


def run(settings: Settings, stated: str, tools: str | None, thread: str, json: bool) -> Code:
    """Run a goal over the tools of a module."""
    goal = _stated(stated)
    _refuse_unplannable(goal, settings)
    with open_home(settings) as home:
        reference = tools or _known_tools(home, thread) or settings.sources
        if reference is None:
            raise BadInput(NO_TOOLS)
        with open_session(home, thread, reference) as session:
            return work(session, {"goal": goal}, Manner(json), _source(stated))


def demo(settings: Settings, name: str | None, event: str | None, thread: str | None, json: bool, fresh: bool) -> Code:
    """Run a packaged scenario; without a name, list them."""
    if name is None:
        _list_scenarios()
        return Code.SATISFIED
    scenario = scenario_named(name)
    with open_home(settings) as home:
        thread = thread or (f"{name}-{event}" if event else name)
        thread = _unused(home, thread) if fresh else thread
        reference = reference_of(scenario)
        if _known_tools(home, thread) not in (None, reference):
            raise BadInput(f"thread {thread!r} is of another run; name one with --thread, or start anew with --fresh")
        with open_session(home, thread, reference, event) as session:
            return work(session, {"goal": session.supply.goal}, Manner(json), name)


def resume(settings: Settings, thread: str, tools: str | None, answer: str | None, reason: str, json: bool) -> Code:
    """Go on with a thread."""
    with open_home(settings, make=False) as home:
        reference = tools or home.run(thread).tools or settings.sources
        if reference is None:
            raise BadInput(NO_TOOLS)
        with open_session(home, thread, reference) as session:
            return go_on(session, Manner(json, answer, reason))


def goal(
    settings: Settings,
    thread: str,
    new: str | None,
    wants: list[str],
    criteria: list[str],
    again: list[str],
    json: bool,
) -> Code:
    """Change the goal of a thread: at once, or through the inbox while another process works on it."""
    with open_home(settings, make=False) as home:
        reference = home.run(thread).tools or settings.sources
        changed = _changed(home, thread, new, wants, criteria, again)
        _refuse_unplannable(changed, settings)
        if home.is_worked_on(thread):
            return _leave(home, thread, changed, json)
        if reference is None:
            raise BadInput(NO_TOOLS)
        with open_session(home, thread, reference) as session:
            home.inbox.put(thread, changed)  # newer than any that nobody has heard
            return work(session, {"goal": changed}, Manner(json), _source(new or ""))


def stop(settings: Settings, thread: str, now: bool) -> Code:
    """Ask whoever runs a thread to stop."""
    with open_home(settings, make=False) as home:
        home.run(thread)
        holder = home.leases.holder(thread)
        if holder is None or not home.leases.ask(thread, Halt.NOW if now else Halt.DRAIN):
            raise BadInput(f"nobody is working on thread {thread!r}")
        how = "a write in flight is given a moment" if now else "it finishes what writes"
        console().print(f"Asked {holder.holder} to stop; {how}.", markup=False)
        return Code.SATISFIED


def _stated(stated: str) -> Goal:
    """A goal file, or a goal in words."""
    with bad_input():
        if stated.endswith(".toml"):
            return load_goal(Path(stated))
    if len(stated) < _PATH_LIMIT and Path(stated).is_file():
        raise BadInput(f"{stated} is a file, and the name of a goal file ends in .toml")
    return Goal(text=stated)


def _source(stated: str) -> str | None:
    return str(Path(stated).absolute()) if stated.endswith(".toml") else None


def _refuse_unplannable(goal: Goal, settings: Settings) -> None:
    if not is_plannable(goal) and not settings.plans_text:
        raise BadInput(NEEDS_MODEL)


def _known_tools(home: Home, thread: str) -> str | None:
    known = home.runs.get(thread)
    return known.tools if known else None


def _unused(home: Home, base: str) -> str:
    """The name itself, or with the first number that no thread has."""
    taken = {each.thread for each in home.runs.list()}
    numbered = (f"{base}-{number}" for number in range(2, len(taken) + 3))
    return base if base not in taken else next(each for each in numbered if each not in taken)


def _list_scenarios() -> None:
    screen = console()
    for each in SCENARIOS.values():
        screen.print(Text(each.name, "bold"), Text(f"  {each.description}"))
        for event in each.events:
            screen.print(Text(f"  --event {event}", "dim"))
    screen.print("\nRun one with: kintsugi demo NAME")


def _changed(home: Home, thread: str, new: str | None, wants: list[str], criteria: list[str], again: list[str]) -> Goal:
    """The new goal: as stated, else as it stands, with the wants and criteria that are added.

    What the standing goal wanted anew has been asked for; only what is named now is asked for again.
    """
    if new is None and not wants and not criteria and not again:
        raise BadInput(
            "what is the new goal? Give a goal file or text, or add to it with --want, --criterion and --again"
        )
    values = home.values(thread)
    standing = values.get("goal", Goal())
    _refuse_unmade(again, values.get("world", World()))
    base = _stated(new) if new is not None else standing.model_copy(update={"again": ()})
    ids = {each.id for each in base.criteria}
    fresh = (name for number in range(1, len(ids) + len(criteria) + 1) if (name := f"c{number}") not in ids)
    with bad_input("--criterion: "):
        added = [Criterion(id=next(fresh), text=each, predicate=each) for each in criteria]
    changes = {
        "wants": tuple(dict.fromkeys([*base.wants, *wants, *again])),
        "criteria": (*base.criteria, *added),
        "again": tuple(dict.fromkeys([*base.again, *again])),
        # to want the same anew once more is another wish each time, though it has the same words
        "revision": standing.revision + 1 if again else 1,
    }
    return base.model_copy(update=changes)


def _refuse_unmade(again: list[str], world: World) -> None:
    unknown = [name for name in again if name not in made(world.artifacts, world)]
    if unknown:
        known = ", ".join(made(world.artifacts, world)) or "none"
        raise BadInput(f"--again: {unknown[0]!r} has not been made on this thread; what has been: {known}")


def _leave(home: Home, thread: str, changed: Goal, json: bool) -> Code:
    home.inbox.put(thread, changed)
    if json:
        print(spelled({"thread": thread, "outcome": None, "left": changed.model_dump(mode="json")}))
    else:
        console().print(
            f"Left for thread {thread}, which is running: it takes the goal at its next decision.", markup=False
        )
    return Code.SATISFIED
