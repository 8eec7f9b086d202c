"""What do the commands print that delete? How much is gone, and what stays on record."""

from contextlib import closing

from agent.cli.exits import BadInput
from agent.cli.home import open_home
from agent.cli.screen import console
from agent.core.lease import Busy
from agent.settings import Settings
from agent.store import collecting
from agent.store.checkpoints import open_saver


def gc(settings: Settings, dry: bool) -> None:
    """Delete the bodies that nothing reaches."""
    with open_home(settings, make=False) as home, closing((saver := open_saver(home.database)).conn):
        found = collecting.collect(home.database, saver, dry=dry)
    console().print(f"{_would(dry)} {_counted(found.bodies, 'body', 'bodies')}, {found.size} bytes.", markup=False)


def forget(settings: Settings, thread: str, effects: bool, dry: bool) -> None:
    """Delete a thread that nobody works on."""
    with open_home(settings, make=False) as home:
        home.run(thread)
        try:
            with home.leases.held(thread), closing((saver := open_saver(home.database)).conn):
                found = collecting.forget(home.database, saver, thread, effects=effects, dry=dry)
        except Busy as error:
            raise BadInput(f"thread {thread!r} is being worked on; stop it first, or wait for its end") from error
    counted = _counted(found.checkpoints, "checkpoint", "checkpoints")
    console().print(f"{_would(dry)} thread {thread} with {counted}.", markup=False)
    if found.effects and found.kept:
        console().print(
            f"Its {_counted(found.effects, 'effect', 'effects')} on the world stay on record, so that no later run of "
            "this name does them once more; --effects forgets them too.",
            markup=False,
        )


def _would(dry: bool) -> str:
    return "Would delete" if dry else "Deleted"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
