"""Is a text the path of something inside a folder? Decided on the text alone; links are `Folder`'s matter."""

import os
import unicodedata

PATH_LIMIT = 1024
"""Characters of a path."""
NAME_LIMIT = 200
"""Bytes of one name in it; file systems end at 255."""
DEPTH_LIMIT = 32
"""Folders above a file."""

Parts = tuple[str, ...]


def parts_of(path: str) -> Parts:
    """The names a path consists of; empty for the folder itself, spelled `.`.

    Raises:
        ValueError: it is empty or too long, leads out, starts at the top, or holds characters no path should.
    """
    shown = ascii(path if len(path) <= 80 else f"{path[:80]}...")
    problem = _problem(path)
    if problem:
        raise ValueError(f"the path {shown} {problem}; name something inside the workspace, as in notes/a.txt")
    return tuple(each for each in path.split("/") if each not in ("", "."))


def _problem(path: str) -> str:
    if not path.strip():
        return "is empty"
    if len(path) > PATH_LIMIT or path.count("/") > DEPTH_LIMIT:
        return "is longer than a path may be"
    if any(unicodedata.category(each) in ("Cc", "Cs") for each in path):
        return "holds control characters"
    if "\\" in path:
        return "holds a backslash"
    if path.startswith("/"):
        return "starts at the top of the file system"
    names = path.split("/")
    if any(len(os.fsencode(each)) > NAME_LIMIT for each in names):
        return "is longer than a path may be"
    # some file systems fold look-alikes such as a full-width dot into the plain character
    if any(_folded(each) == ".." or "/" in _folded(each) for each in names):
        return "leads out of the workspace"
    return ""


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).strip()
