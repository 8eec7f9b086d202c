"""The model on this machine, served while a context lasts.

The engine runs in a process beside ours, though it could run in ours: there it could not be stopped, and a fault in it
would take the run along.
"""

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile

from pydantic import SecretStr

from agent.models.local.weights import QWEN, file_of
from agent.settings import RoleModel, Settings

LOCAL = "local"
"""The name of a model that means the one on this machine."""
SERVER = (sys.executable, "-m", "agent.models.local.server")
"""How it is started; the weights and their name follow."""
PATIENCE = 180.0
"""Seconds until the server must listen; a slow disk reads a gigabyte in one minute."""

NO_ENGINE = "the model on this machine needs its engine: pip install 'kintsugi[local]'"
NO_WEIGHTS = "the model on this machine is not there yet: run `kintsugi model fetch` (about 1.1 GB, once)"


class ServerFailed(RuntimeError):
    """The server did not come up; says what it printed last."""


@contextmanager
def with_local(settings: Settings) -> Iterator[Settings]:
    """The settings, in which `local` is a server that listens; it is started if any role wants it, and stopped after.

    Raises:
        ValueError: the engine or the weights are missing.
        ServerFailed: the server does not start.
    """
    if LOCAL not in _named(settings):
        yield settings
        return
    if problem := missing(settings):
        raise ValueError(problem)
    with serving(file_of(QWEN, settings.weights), QWEN.name) as address:
        yield _pointed(settings, address)


def missing(settings: Settings) -> str:
    """What there is still to do before it can be served, as a sentence; empty when it can."""
    if find_spec("xllamacpp") is None:
        return NO_ENGINE
    return "" if file_of(QWEN, settings.weights).exists() else NO_WEIGHTS


@contextmanager
def serving(weights: Path, alias: str, server: Sequence[str] = ()) -> Iterator[str]:
    """Serve some weights under a name; gives the address for `base_url`.

    Raises:
        ServerFailed: it does not start.
    """
    with TemporaryFile() as said:
        process = subprocess.Popen(
            [*(server or SERVER), str(weights), alias],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            start_new_session=True,  # Ctrl-C is for the run, which may still need an answer to end well
        )
        try:
            address = _address(process)
            if not address:
                said.seek(0)
                why = b" ".join(said.readlines()[-3:]).decode(errors="replace").strip()
                raise ServerFailed(f"the model on this machine did not start: {why or 'it said nothing'}")
            yield f"{address}/v1"
        finally:
            _stop(process)


def _address(process: subprocess.Popen[bytes]) -> str:
    """What it prints when it listens; empty when it ended, or took too long and was ended."""
    assert process.stdout is not None
    late = threading.Timer(PATIENCE, process.kill)
    late.start()
    try:
        return process.stdout.readline().decode().strip()
    finally:
        late.cancel()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """It ends by itself when its input does."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


def _named(settings: Settings) -> set[str | None]:
    roles = (getattr(settings.models, role) for role in type(settings.models).model_fields)
    return {settings.model, *(each.model for each in roles)}


def _pointed(settings: Settings, address: str) -> Settings:
    """The same, where `local` is a model on a server like any other."""
    there = {"model": QWEN.name, "base_url": address, "api_key": SecretStr("none")}
    fields = type(settings.models).model_fields
    roles: dict[str, RoleModel] = {role: getattr(settings.models, role) for role in fields}
    pointed = {name: each.model_copy(update=there) if each.model == LOCAL else each for name, each in roles.items()}
    update: dict[str, object] = {"models": settings.models.model_copy(update=pointed)}
    return settings.model_copy(update=update | (there if settings.model == LOCAL else {}))
