"""The tools that change a workspace. Each can be looked at again, and made twice it changes nothing more."""

from typing import Annotated

from langchain_core.tools import BaseTool
from pydantic import Field

from agent.core.value import JsonValue
from agent.tools.builtin.editing import edited, places
from agent.tools.builtin.folder import Folder, digest_of
from agent.tools.builtin.paths import Parts, parts_of
from agent.tools.contracts import contract

Where = Annotated[str, Field(description="path inside the workspace, such as notes/a.txt")]


def writing_tools(folder: Folder) -> list[BaseTool]:
    """Write, edit, make a folder, move, delete."""
    return [_write_file(folder), _edit_file(folder), _make_folder(folder), _move_file(folder), _delete_file(folder)]


def _write_file(folder: Folder) -> BaseTool:
    def look(path: str) -> dict[str, JsonValue] | None:
        parts = _below(path)
        entry = folder.entry(parts)
        if entry is None:
            return None
        content = folder.content(parts)
        text = content.decode("utf-8", "backslashreplace")
        return {"path": path, "text": text, "bytes": len(content), "digest": digest_of(content)}

    @contract(
        needs="path text",
        effect="mutating",
        idempotent=True,
        ensures="result.text == args.text",
        observe=look,
        free="text replaces",
    )
    def write_file(
        path: Where,
        text: str,
        replaces: Annotated[
            str | None,
            Field(description="digest of what the file holds now, '*' for anything; leave out for a new file"),
        ] = None,
    ) -> JsonValue:
        """Write a whole text file; to put it in the place of one that is there, give its digest as `replaces`."""
        folder.replace(_below(path), text.encode(), replaces)
        return look(path)

    return write_file


def _edit_file(folder: Folder) -> BaseTool:
    def look(path: str, old: str, new: str) -> dict[str, JsonValue] | None:
        """The edit is there when no lines are the old ones, and some are the new ones."""
        parts = _below(path)
        if folder.entry(parts) is None:
            return None
        text = folder.content(parts).decode("utf-8", "backslashreplace")
        there = not places(text, old) and (not new.strip() or bool(places(text, new)))
        return {"path": path, "edited": True, "text": text} if there else None

    @contract(effect="mutating", idempotent=True, ensures="result.edited", observe=look, free="old new")
    def edit_file(
        path: Where,
        old: Annotated[str, Field(description="whole lines as they stand there, once")],
        new: Annotated[str, Field(description="whole lines to stand there in their place; empty: none")],
    ) -> JsonValue:
        """Put lines in the place of other lines of a text file, and leave all else as it is."""
        parts = _below(path)
        if look(path, old, new) is None:
            before = folder.content(parts)
            folder.replace(parts, edited(before.decode(), old, new).encode(), digest_of(before))
        return look(path, old, new)

    return edit_file


def _make_folder(folder: Folder) -> BaseTool:
    def look(path: str) -> dict[str, JsonValue] | None:
        entry = folder.entry(_below(path))
        return {"path": path, "kind": entry.kind} if entry else None

    @contract(effect="mutating", idempotent=True, ensures="result.kind == 'folder'", observe=look)
    def make_folder(path: Where) -> JsonValue:
        """Make a folder in the workspace, and those above it."""
        folder.make(_below(path))
        return look(path)

    return make_folder


def _move_file(folder: Folder) -> BaseTool:
    def look(path: str, to: str) -> dict[str, JsonValue] | None:
        moved = folder.entry(_below(path)) is None and folder.entry(_below(to)) is not None
        return {"path": path, "to": to} if moved else None

    @contract(effect="mutating", idempotent=False, ensures="result.to == args.to", observe=look)
    def move_file(path: Where, to: Where) -> JsonValue:
        """Move a file or folder of the workspace to a place where nothing is."""
        folder.move(_below(path), _below(to))
        return look(path, to)

    return move_file


def _delete_file(folder: Folder) -> BaseTool:
    def look(path: str) -> dict[str, JsonValue] | None:
        return {"path": path, "deleted": True} if folder.entry(_below(path)) is None else None

    @contract(needs="path", effect="mutating", idempotent=True, ensures="result.deleted", observe=look, free="holds")
    def delete_file(
        path: Where,
        holds: Annotated[str | None, Field(description="digest of what the file holds; leave out for anything")] = None,
    ) -> JsonValue:
        """Delete a file of the workspace, or an empty folder."""
        folder.delete(_below(path), holds)
        return look(path)

    return delete_file


def _below(path: str) -> Parts:
    parts = parts_of(path)
    if not parts:
        raise ValueError("the path is the workspace itself; name something inside it")
    return parts
