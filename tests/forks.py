"""Other processes in an instant: each is forked from one that has imported everything, and looks like a `Popen`.

What starting Python itself does to a program is tested with real starts, elsewhere.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import TextIO

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.simulation.kills.preload"])

SECONDS = 60.0
"""How long another process may take to end, on a busy machine."""

Streams = tuple[Connection, Connection, Connection]


class Fork:
    """A process that talks over its standard streams."""

    def __init__(self, run: Callable[[], object], arguments: list[str], folder: Path, env: dict[str, str]) -> None:
        """Start it. Args: what it does; its `sys.argv`; its working directory; its whole environment."""
        (given, into), (out, said), (err, told) = os.pipe(), os.pipe(), os.pipe()
        theirs = Connection(given), Connection(said), Connection(told)
        self._process = _PROCESSES.Process(target=_begin, args=(theirs, run, arguments, folder, env))
        self._process.start()
        for each in theirs:
            each.close()
        self.stdin: TextIO = os.fdopen(into, "w")
        self.stdout: TextIO = os.fdopen(out)
        self.stderr: TextIO = os.fdopen(err)

    @property
    def pid(self) -> int:
        """The number of the process."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """How it ended; None while it lives."""
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def stop(self) -> None:
        """Stop it as Ctrl-Z would, and see that it stands still."""
        self.send_signal(signal.SIGSTOP)
        while "T" not in subprocess.check_output(["ps", "-o", "stat=", "-p", str(self.pid)], text=True):
            pass

    def kill(self) -> None:
        """End it at once, wherever it is; one that has ended stays as it is."""
        self._process.kill()

    def wait(self, timeout: float = SECONDS) -> int:
        """Wait until it has ended; how it did."""
        self._process.join(timeout)
        assert self.returncode is not None, f"no end within {timeout:g} seconds"
        return self.returncode

    def communicate(self, given: str = "", timeout: float = SECONDS) -> tuple[str, str]:
        """Say the last that it will hear; what it said since, and told as errors, until its end."""
        with ThreadPoolExecutor(2) as threads, self.stdin, self.stdout, self.stderr:
            said = [threads.submit(each.read) for each in (self.stdout, self.stderr)]
            if given:
                self.stdin.write(given)
            self._close_input()
            try:
                self.wait(timeout)
            finally:
                self.kill()  # the readers end with it
            return said[0].result(), said[1].result()

    def close(self) -> None:
        """End it, if it has not, and let its streams go."""
        self.kill()
        self.wait()
        self._close_input()
        self.stdout.close()
        self.stderr.close()

    def _close_input(self) -> None:
        with suppress(BrokenPipeError):
            self.stdin.close()


def _begin(
    streams: Streams, run: Callable[[], object], arguments: list[str], folder: Path, env: dict[str, str]
) -> None:
    for number, each in enumerate(streams):
        os.dup2(each.fileno(), number)
        each.close()
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(each, mode) for each, mode in enumerate("rww"))
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    sys.argv = arguments
    run()


class Program:
    """Python text as a program of its own."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __call__(self) -> None:
        """Run it."""
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(self._text, vars(main))
