"""Tools over the files of one folder: look, search, write, edit, move, delete; never outside of it."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Annotated

from langchain_core.tools import BaseTool
from pydantic import Field

from agent.core.value import JsonValue
from agent.tools.builtin.folder import Entry, Folder, digest_of
from agent.tools.builtin.paths import parts_of
from agent.tools.builtin.workspace_writes import writing_tools
from agent.tools.contracts import contract

FILE_LIMIT = 5_000_000
"""Bytes of a file that is read or written."""
VISIT_LIMIT = 50_000
"""Entries that are looked at for one listing or search."""
SEARCH_LIMIT = 200_000_000
"""Bytes that one search reads."""
LINE_LIMIT = 300
"""Characters of a line that was found."""

Where = Annotated[str, Field(description="path inside the workspace, such as notes/a.txt")]
Pattern = Annotated[str, Field(description="names to take: * stands for any characters, / included")]


def workspace_tools(root: Path | str, *, read_only: bool = False, limit: int = FILE_LIMIT) -> list[BaseTool]:
    """Tools that work in a folder and cannot leave it: no `..`, no absolute path, no link, no device.

    Args:
        root: the folder.
        read_only: leave out the tools that change something.
        limit: bytes of a file that is read or written.

    Raises:
        ValueError: there is no such folder, or the platform is Windows.
    """
    folder = Folder(root, limit)
    looking = [_read_file(folder), _list_files(folder), _search_files(folder)]
    return looking if read_only else [*looking, *writing_tools(folder)]


def _read_file(folder: Folder) -> BaseTool:
    @contract(effect="read_only", ensures="result.path == args.path")
    def read_file(
        path: Where,
        offset: Annotated[int, Field(ge=0, description="lines to leave out at the start")] = 0,
        limit: Annotated[int, Field(ge=1, le=100_000, description="lines to give at most")] = 5_000,
    ) -> dict[str, object]:
        """Read a file of the workspace: gives path, text, lines (how many there are) and digest."""
        parts = parts_of(path)
        content = folder.content(parts or (".",))
        told: dict[str, object] = {"path": path, "bytes": len(content), "digest": digest_of(content)}
        try:
            lines = content.decode().splitlines(keepends=True)
        except UnicodeDecodeError:
            return {**told, "content": content}
        shown = "".join(lines[offset : offset + limit])
        return {**told, "text": shown, "lines": len(lines), "more": offset + limit < len(lines)}

    return read_file


def _list_files(folder: Folder) -> BaseTool:
    @contract(effect="read_only", needs=())
    def list_files(
        folder_path: Where = ".",
        pattern: Pattern = "*",
        limit: Annotated[int, Field(ge=1, le=VISIT_LIMIT, description="entries to give at most")] = 1_000,
    ) -> dict[str, JsonValue]:
        """List files and folders of the workspace, at any depth: gives entries, each with path, kind and bytes."""
        found = [each for each in _visited(folder, folder_path) if fnmatchcase(each.path, pattern)]
        shown: list[JsonValue] = [dict(each._asdict()) for each in found[:limit]]
        return {"entries": shown, "more": len(found) > limit}

    return list_files


def _search_files(folder: Folder) -> BaseTool:
    @contract(effect="read_only")
    def search_files(
        text: Annotated[str, Field(min_length=1, max_length=1_000, description="the plain text to look for")],
        folder_path: Where = ".",
        pattern: Pattern = "*",
        ignore_case: bool = False,
        limit: Annotated[int, Field(ge=1, le=10_000, description="lines to give at most")] = 200,
    ) -> dict[str, JsonValue]:
        """Find the lines of text files that hold a text: gives count, and lines, each with path, line and text."""
        wanted = text.casefold() if ignore_case else text
        found: list[JsonValue] = []
        for path, number, line in _lines(folder, folder_path, pattern):
            if wanted in (line.casefold() if ignore_case else line):
                if len(found) == limit:
                    return {"count": limit, "lines": found, "more": True}
                found.append({"path": path, "line": number, "text": line[:LINE_LIMIT]})
        return {"count": len(found), "lines": found, "more": False}

    return search_files


def _visited(folder: Folder, path: str) -> list[Entry]:
    found = list(islice(folder.entries(parts_of(path)), VISIT_LIMIT + 1))
    if len(found) > VISIT_LIMIT:
        raise ValueError(f"more than {VISIT_LIMIT} entries are too many to be listed; name a folder further down")
    return found


def _lines(folder: Folder, path: str, pattern: str) -> Iterator[tuple[str, int, str]]:
    """Path, number and text of every line; files that are too large, gone or no text are passed over."""
    left = SEARCH_LIMIT
    for each in _visited(folder, path):
        if each.kind != "file" or each.bytes > folder.limit or not fnmatchcase(each.path, pattern):
            continue
        try:
            content = folder.content(tuple(each.path.split("/")))
            text = content.decode()
        except (OSError, ValueError):
            continue
        left -= len(content)
        if left < 0:
            raise ValueError(f"the files are too large to be searched at once ({SEARCH_LIMIT} bytes); name fewer")
        for number, line in enumerate(text.splitlines(), 1):
            yield each.path, number, line
