"""What really happened, outside of the process: lines that are appended to a file, and that no crash takes back."""

import json
import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple


class Line(NamedTuple):
    """One thing that happened."""

    what: str
    """`call`, `effect`, `read`, `edit`, `goal meant`, `goal told`, `held`, `asked`."""
    name: str = ""
    detail: str = ""


class Ledger:
    """The file. One process works on it at a time, with any number of threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def note(self, what: str, name: str = "", detail: str = "") -> int:
        """Append a line, whole or not at all; how often this was noted by now."""
        with self._lock:
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, f"{json.dumps([what, name, detail])}\n".encode())
            finally:
                os.close(file)
            return self.counts(what)[name]

    def lines(self) -> list[Line]:
        """All of them, in order."""
        return [Line(*each) for each in self._read()]

    def counts(self, *what: str) -> Counter[str]:
        """How often each name was noted as one of these."""
        return Counter(each.name for each in self.lines() if each.what in what)

    def has(self, what: str) -> bool:
        """Whether anything was noted as this."""
        return any(each.what == what for each in self.lines())

    def _read(self) -> list[Any]:
        return [json.loads(each) for each in self._path.read_text().splitlines()] if self._path.exists() else []
