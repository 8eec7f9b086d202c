"""How is a folder entered without ever leaving it? Name by name over open folders, following no link.

A path that was checked and is then opened as a whole can be swapped in between. Here every name is opened below
the folder that was opened before, and a link is refused by the kernel. Hard links are files like any other.
"""

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, TypeVar

from agent.tools.builtin.paths import Parts
from agent.tools.builtin.refusal import Outdated

T = TypeVar("T")

_LINK, _CLOSED = getattr(os, "O_NOFOLLOW", 0), getattr(os, "O_CLOEXEC", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _CLOSED
_FILE = os.O_RDONLY | _LINK | _CLOSED | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_DIGEST = re.compile(r"[0-9a-f]{64}")
_NOTHING = ("", "none", "null")
"""Ways to say that nothing is replaced, where an argument may be left out."""
_NEAR = 8
"""Names that are told where another one was looked for."""
_WAIT = 10.0
"""Seconds another writer may hold a folder."""


class Entry(NamedTuple):
    """Something in the folder."""

    path: str
    kind: str
    """`file`, `folder`, `link` or `other`."""
    bytes: int


class Folder:
    """A folder that is worked in and not left."""

    def __init__(self, root: Path | str, limit: int) -> None:
        """Work in this folder.

        Args:
            root: the folder; links on the way to it are its owner's and are followed, once.
            limit: bytes a file may have to be read or written.

        Raises:
            ValueError: it is no folder, or the platform cannot open a file below an open folder.
        """
        if os.open not in os.supports_dir_fd or not _LINK:
            raise ValueError("workspace tools need a platform that opens files below an open folder: Linux or macOS")
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise ValueError(f"{str(root)!r} is not a folder; make it first, or name another")
        self.limit = limit

    @contextmanager
    def inside(self, parts: Parts) -> Iterator[int]:
        """The descriptor of a folder below the root, open as long as the context lasts.

        Raises:
            OSError: it is not there, is no folder, is a link, or may not be entered.
        """
        opened = os.open(self.root, _FOLDER)
        try:
            for index, name in enumerate(parts):
                try:
                    below = os.open(name, _FOLDER | _LINK, dir_fd=opened)
                except OSError as error:
                    raise _explained(error, opened, parts[: index + 1], "folder") from error
                os.close(opened)
                opened = below
            yield opened
        finally:
            os.close(opened)

    def content(self, parts: Parts) -> bytes:
        """All bytes of a regular file.

        Raises:
            OSError: it is not there, is no regular file, or may not be read.
            ValueError: it is too large.
        """
        with self.inside(parts[:-1]) as folder:
            return self._content(folder, parts)

    def entry(self, parts: Parts) -> Entry | None:
        """What lies at a path; None when nothing does."""
        try:
            with self.inside(parts[:-1]) as folder:
                return _entry("/".join(parts), os.stat(parts[-1], dir_fd=folder, follow_symlinks=False))
        except FileNotFoundError:
            return None

    def entries(self, parts: Parts) -> Iterator[Entry]:
        """Everything below a folder, in order of names; links are told of and not followed."""
        with self.inside(parts) as opened:
            for at, folders, files, below in os.fwalk(".", dir_fd=opened, follow_symlinks=False):
                folders.sort()
                for name in sorted((*folders, *files)):
                    with suppress(FileNotFoundError):  # gone since it was listed
                        found = os.stat(name, dir_fd=below, follow_symlinks=False)
                        yield _entry("/".join((*parts, *Path(at).parts, name)), found)

    def replace(self, parts: Parts, content: bytes, replaces: str | None) -> None:
        """Put a file in its place at once: whoever looks sees all of the old or all of the new.

        Args:
            parts: the file.
            content: what it will hold; nothing is done where it holds that already.
            replaces: digest of what it holds now; `*`: whatever is there; None: nothing may be there.

        Raises:
            Outdated: something else is there.
            OSError: the folder is not there, or what is there is no regular file.
            ValueError: it is too large.
        """
        replaces = replaces if (replaces or "").lower() not in _NOTHING else None
        if replaces not in (None, "*") and not _DIGEST.fullmatch(str(replaces)):
            raise ValueError(
                f"{replaces!r} is no digest: leave it out for a new file, or give '*' for whatever is there"
            )
        if len(content) > self.limit:
            raise ValueError(f"{len(content)} bytes are too large; a file may have {self.limit}")
        with self.inside(parts[:-1]) as folder, _alone(folder):
            old = _there(self._content, folder, parts)
            if old != content:
                _refuse_outdated(parts, old, replaces)
                _put(folder, parts[-1], content)

    def make(self, parts: Parts) -> None:
        """Make a folder, and those above it; one that is there is left as it is."""
        for index, name in enumerate(parts):
            with self.inside(parts[:index]) as folder, suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
        with self.inside(parts):
            pass

    def move(self, parts: Parts, to: Parts) -> None:
        """Move a file or a folder to a place where nothing is.

        Raises:
            Outdated: something is there.
            OSError: there is nothing to move, or a folder on the way is not there.
        """
        if to[: len(parts)] == parts:
            raise ValueError(f"{_spelled(parts)} cannot be moved into itself")
        with self.inside(parts[:-1]) as source, self.inside(to[:-1]) as target, _alone(target):
            found = _stat(source, parts)
            if stat.S_ISLNK(found.st_mode):
                raise _is_link(parts)
            if _there(_stat, target, to) is not None:
                raise Outdated(f"{_spelled(to)} is taken: something lies there; choose another place")
            os.rename(parts[-1], to[-1], src_dir_fd=source, dst_dir_fd=target)

    def delete(self, parts: Parts, holds: str | None) -> None:
        """Delete a file, or a folder that is empty; nothing is done where nothing is.

        Args:
            parts: what to delete.
            holds: digest of what the file holds; None: whatever it holds.

        Raises:
            Outdated: it holds something else, or the folder is not empty.
        """
        with self.inside(parts[:-1]) as folder, _alone(folder):
            found = _there(_stat, folder, parts)
            if found is None:
                return
            if stat.S_ISDIR(found.st_mode):
                _remove_empty(folder, parts)
                return
            if holds is not None:
                _refuse_outdated(parts, self._content(folder, parts), holds)
            os.unlink(parts[-1], dir_fd=folder)

    def _content(self, folder: int, parts: Parts) -> bytes:
        _refuse_irregular(_stat(folder, parts), parts)
        try:
            opened = os.open(parts[-1], _FILE, dir_fd=folder)
        except OSError as error:
            raise _explained(error, folder, parts, "file") from error
        with os.fdopen(opened, "rb") as file:
            _refuse_irregular(os.fstat(opened), parts)  # it may have been swapped since
            content = file.read(self.limit + 1)
        if len(content) > self.limit:
            raise ValueError(f"{_spelled(parts)} is too large to be read; a file may have {self.limit} bytes")
        return content


def digest_of(content: bytes) -> str:
    """SHA-256 of a file's bytes, in hex."""
    return sha256(content).hexdigest()


@contextmanager
def _alone(folder: int) -> Iterator[None]:
    """Hold a folder against other writers of this kind: they look, decide and write as one."""
    import fcntl  # not on every platform; `Folder` has refused those

    until = time.monotonic() + _WAIT
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > until:
                raise TimeoutError("another process holds the folder") from None
            time.sleep(0.01)
    try:
        yield
    finally:
        fcntl.flock(folder, fcntl.LOCK_UN)


def _put(folder: int, name: str, content: bytes) -> None:
    draft = f".{secrets.token_hex(8)}.tmp"
    opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _LINK | _CLOSED, 0o666, dir_fd=folder)
    try:
        with os.fdopen(opened, "wb") as file:
            with suppress(FileNotFoundError):
                os.fchmod(opened, stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode) & 0o777)
            file.write(content)
            file.flush()
            os.fsync(opened)
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(draft, dir_fd=folder)
        raise
    os.fsync(folder)


def _remove_empty(folder: int, parts: Parts) -> None:
    try:
        os.rmdir(parts[-1], dir_fd=folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        raise Outdated(f"the folder {_spelled(parts)} still holds something; delete that first") from None


def _there(look: Callable[[int, Parts], T], folder: int, parts: Parts) -> T | None:
    try:
        return look(folder, parts)
    except FileNotFoundError:
        return None


def _stat(folder: int, parts: Parts) -> os.stat_result:
    try:
        return os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        raise _explained(error, folder, parts, "file") from error


def _refuse_outdated(parts: Parts, old: bytes | None, replaces: str | None) -> None:
    now = "nothing" if old is None else f"content of digest {digest_of(old)}"
    if replaces is None and old is not None:
        raise Outdated(f"{_spelled(parts)} holds {now}; give that digest as what is replaced, or '*' for anything")
    if replaces not in (None, "*") and (old is None or digest_of(old) != replaces):
        raise Outdated(f"{_spelled(parts)} is not what it was: it holds {now}, not of digest {replaces}; read it again")


def _refuse_irregular(found: os.stat_result, parts: Parts) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise _is_link(parts)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(f"{_spelled(parts)} is a folder, not a file")
    if not stat.S_ISREG(found.st_mode):
        raise PermissionError(f"{_spelled(parts)} is a device, pipe or socket; only plain files are opened")


def _explained(error: OSError, folder: int, parts: Parts, wanted: str) -> OSError:
    """The kernel's refusal as a sentence about the workspace, of the same kind."""
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(f"no such {wanted} in the workspace: {_spelled(parts)}{_beside(folder, parts)}")
    with suppress(OSError):
        if stat.S_ISLNK(os.stat(parts[-1], dir_fd=folder, follow_symlinks=False).st_mode):
            return _is_link(parts)
    if isinstance(error, NotADirectoryError):
        return NotADirectoryError(f"{_spelled(parts)} is not a folder")
    if isinstance(error, PermissionError):
        return PermissionError(f"no permission for {_spelled(parts)} in the workspace")
    return error


def _beside(folder: int, parts: Parts) -> str:
    """What lies where something was looked for in vain: the likeliest names first."""
    try:
        names = os.listdir(folder)
    except OSError:
        return ""
    close = get_close_matches(parts[-1], names, _NEAR, cutoff=0.0)
    more = f", and {len(names) - len(close)} more" if len(names) > len(close) else ""
    where = "/".join(parts[:-1]) or "the workspace"
    return f"; {where} holds {', '.join(repr(each) for each in close)}{more}" if close else f"; {where} is empty"


def _is_link(parts: Parts) -> OSError:
    return PermissionError(f"{_spelled(parts)} is a link, and links are not followed")


def _entry(path: str, found: os.stat_result) -> Entry:
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
    kind = kinds.get(stat.S_IFMT(found.st_mode), "other")
    return Entry(path, kind, found.st_size if kind == "file" else 0)


def _spelled(parts: Parts) -> str:
    return ascii("/".join(parts) or ".")
