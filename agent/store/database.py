"""Where are runs kept? Checkpoints, artifacts, effects, index and inbox, in one SQLite file or Postgres database."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from agent.settings import Settings
from agent.store import sqlite
from agent.store.lane import Lane
from agent.store.postgres import Postgres, PostgresConnection, prepare

DEFAULT_PATH = Path(".kintsugi/kintsugi.db")
"""Used when the caller names no place; relative to the working directory."""

Place = Path | Postgres
"""Where a database lies."""


@dataclass(frozen=True)
class Database:
    """An open database: two lanes, one per kind of durability."""

    place: Place | None
    """None: in memory."""
    quick: Lane
    """For artifacts and the run index, which must survive the death of the process."""
    durable: Lane
    """For the effect journal, which must survive the loss of power: the world does not roll back."""

    def close(self) -> None:
        """Finish what was handed over and close both connections."""
        self.quick.close()
        self.durable.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def place_of(settings: Settings, name: str = "kintsugi.db") -> Place:
    """Where the settings say: in Postgres if they name one, else in a file of the home folder."""
    url = settings.database_url
    if url is None:
        return settings.home / name
    return Postgres(url.get_secret_value(), settings.database_timeout)


def open_database(place: Place | str = DEFAULT_PATH) -> Database:
    """Open a database, making the file or the tables when there are none, and bringing older ones up to date.

    Args:
        place: a Postgres database or its URL, or the path of a file.

    Raises:
        DatabaseRefused: it is damaged, no database, of a newer release, or not accessible.
    """
    if isinstance(place, str) and place.startswith(("postgresql://", "postgres://")):
        place = Postgres(place)
    if isinstance(place, Postgres):
        prepare(place)
        return Database(place, Lane(PostgresConnection(place)), Lane(PostgresConnection(place)))
    path = Path(place).absolute()
    sqlite.prepare(path)
    return Database(path, sqlite.SqliteLane(path, "NORMAL"), sqlite.SqliteLane(path, "FULL"))


def memory_database() -> Database:
    """A database that ends with the process. Its lanes share nothing: no table is used by both."""
    return Database(None, Lane(sqlite.connect_memory()), Lane(sqlite.connect_memory()))
