"""Runs in a Postgres database. How is it reached, and reached again when it went away?"""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from agent.core.value import digest
from agent.store.connection import DatabaseLost, DatabaseRefused, Rows
from agent.store.schema import POSTGRES, SCHEMA, migrate, read_schema, refuse_newer

if TYPE_CHECKING:
    import psycopg

PATIENCE = 30.0
"""Seconds to wait for a server that went away, where nothing else is said; as long as SQLite waits for a process."""

PAUSE = 0.2
"""Seconds between two tries to reach it again."""

_DEFAULTS = {
    "application_name": "kintsugi",
    "connect_timeout": "10",
    # a server whose machine died without a word is noticed within a minute
    "keepalives_idle": "20",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
"""What a URL that does not say otherwise means."""

HOW: dict[str, Any] = {"autocommit": True, "prepare_threshold": None}
"""Each statement by itself; none is prepared, for a pooler may hand each to another server process."""

_BEGIN = """BEGIN;
SET LOCAL idle_in_transaction_session_timeout = '30s';
SET LOCAL lock_timeout = '60s';
SELECT pg_advisory_xact_lock({lock});
SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'"""
# One round trip. A holder that stalls loses the lock before those that wait for it give up. A commit that the
# server may forget is made durable; what else its owner chose, such as waiting for replicas, is left as it is.
# All is local to the transaction: a pooler may hand the next one to another server process.


@dataclass(frozen=True, eq=False)
class Postgres:
    """A Postgres database, equal to another spelling of the same. Its URL may hold a password and is never printed."""

    url: str = field(repr=False)
    """Or libpq's `name=value` spelling."""
    patience: float = PATIENCE
    """Seconds to wait for the server when it went away."""

    def conninfo(self) -> str:
        """What libpq is given.

        Raises:
            DatabaseRefused: the driver is not installed, or this is no Postgres URL.
        """
        conninfo = _driver().conninfo
        made: str = conninfo.make_conninfo(self.url, **{**_DEFAULTS, **self._parts()})
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Postgres) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[object, ...]:
        # who connects makes no difference; the search path may
        found = {"port": "5432", **self._parts()}
        return tuple(found.get(name) for name in ("host", "hostaddr", "port", "dbname", "options"))

    def __str__(self) -> str:
        found = self._parts()
        user = f"{found['user']}@" if "user" in found else ""
        port = f":{found['port']}" if "port" in found else ""
        return f"postgresql://{user}{found.get('host', '')}{port}/{found.get('dbname', '')}"

    def _parts(self) -> dict[str, Any]:
        driver = _driver()
        try:
            found: dict[str, Any] = driver.conninfo.conninfo_to_dict(self.url)
        except driver.ProgrammingError:
            # its text repeats what it cannot read, the password with it
            raise DatabaseRefused(
                "the database URL cannot be read; KINTSUGI_DATABASE_URL looks like "
                "postgresql://user:password@host:5432/name, with special characters of the password as %XX"
            ) from None
        return found


class Outage:
    """How long a server has been away. Once it was waited for long enough, who still asks is told at once."""

    def __init__(self, place: Postgres) -> None:
        self._place = place
        self._since: float | None = None

    def outlasts(self, error: Exception) -> None:
        """It could not be reached, once more.

        Raises:
            DatabaseLost: it was waited for long enough.
        """
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if now >= self._since + self._place.patience:
            raise lost(self._place, error) from error

    def over(self) -> None:
        """It is back."""
        self._since = None


class PostgresConnection:
    """A connection that is made again when it broke, and closes when nobody holds it."""

    def __init__(self, place: Postgres) -> None:
        self._place = place
        self._connection = connected(place)
        self._outage = Outage(place)
        self._within = False

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Rows:
        """Run one statement."""
        with self._watched() as connection:
            return connection.execute(cast("Any", sql.replace("?", "%s")), parameters or None)

    def begin(self, about: str) -> None:
        """Begin a transaction, waiting for others about the same thing; its commit survives the loss of power."""
        with self._watched() as connection:
            connection.execute(cast("Any", _BEGIN.format(lock=lock_of(about))))
            self._within = True

    def commit(self) -> None:
        """End the transaction."""
        with self._watched() as connection:
            connection.commit()
            self._within = False

    def rollback(self) -> None:
        """Take the transaction back; a broken connection has done so."""
        self._within = False
        if not self._connection.closed:
            self._connection.rollback()

    def close(self) -> None:
        """Give the connection up."""
        self._connection.close()

    def __del__(self) -> None:
        with suppress(AttributeError):  # it was never open
            self.close()

    @contextmanager
    def _watched(self) -> Iterator["psycopg.Connection[Any]"]:
        if self._connection.closed and not self._within:
            self._connection = connected_again(self._place, self._outage)
        try:
            yield self._connection
        except Exception as error:
            if self._connection.closed:
                raise lost(self._place, error) from error
            raise


def lock_of(about: str) -> int:
    """The advisory lock of transactions about something."""
    return int(digest(about)[:15], 16)


def prepare(place: Postgres) -> None:
    """Bring the tables up to date, or make them.

    Raises:
        DatabaseRefused: the server cannot be reached or does not let us, or the tables are of a newer release.
    """
    with closing(PostgresConnection(place)) as connection:
        try:
            if not _up_to_date(connection, place):
                migrate(connection, POSTGRES, place)
        except _driver().Error as error:
            raise DatabaseRefused(f"cannot use {place}: {_first_line(error)}") from error


def _up_to_date(connection: PostgresConnection, place: Postgres) -> bool:
    # A server's owner may make the tables once, and then let us only use them.
    if connection.execute("SELECT to_regclass('kintsugi_meta')").fetchone() == (None,):
        return False
    found = read_schema(connection)
    refuse_newer(found, place)
    return found == SCHEMA


def connected(place: Postgres, **kwargs: Any) -> "psycopg.Connection[Any]":
    """A connection on which each statement commits by itself.

    Raises:
        DatabaseRefused: the server cannot be reached or does not let us.
    """
    driver = _driver()
    try:
        made: psycopg.Connection[Any] = driver.connect(place.conninfo(), **HOW, **kwargs)
    except driver.Error as error:
        raise refused(place, error) from error
    return made


def connected_again(place: Postgres, outage: Outage, **kwargs: Any) -> "psycopg.Connection[Any]":
    """Likewise, after the server went away.

    Raises:
        DatabaseLost: it did not come back in time.
    """
    while True:
        try:
            made = connected(place, **kwargs)
        except DatabaseRefused as error:
            outage.outlasts(error)
            time.sleep(PAUSE)
        else:
            outage.over()
            return made


def refused(place: Postgres, error: Exception) -> DatabaseRefused:
    """Why a server cannot be used."""
    return DatabaseRefused(f"cannot reach {place}: {_first_line(error)}")


def lost(place: Postgres, error: Exception) -> DatabaseLost:
    """What to do about a server that went away."""
    return DatabaseLost(
        f"the database {place} went away and did not come back ({_first_line(error)}); what was recorded is still "
        "there: when it is back, go on with the run"
    )


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _driver() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise DatabaseRefused("a Postgres database needs the extra: pip install 'kintsugi[postgres]'") from error
    return psycopg
