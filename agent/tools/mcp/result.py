"""What is an MCP answer as a value? Its structured content where it has one; images and blobs become files."""

import mimetypes
import secrets
from base64 import b64decode
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from agent.core.value import JsonValue


def value_of(result: Any, wrapped: bool, files: Path) -> JsonValue:
    """The value of a `CallToolResult`; one that is an error stays marked, and the runtime takes it for a failure.

    Args:
        result: as the server gave it.
        wrapped: the server puts every structured value below `result`.
        files: folder for what is no text.
    """
    parts = [_part(each, files) for each in result.content]
    structured = result.structuredContent
    if result.isError:
        told = [{"text": each} if isinstance(each, str) else each for each in parts] or [{"text": "the tool failed"}]
        return {"isError": True, "content": told, "structuredContent": structured}
    stored: list[JsonValue] = [each for each in parts if not isinstance(each, str)]
    if structured is not None:
        value = structured["result"] if wrapped and "result" in structured else structured
        return {"value": value, "files": stored} if stored else value
    return _joined(parts)


def _joined(parts: list[JsonValue]) -> JsonValue:
    if not parts:
        return "done, without an answer"  # None would say that nothing is there
    return parts[0] if len(parts) == 1 else list(parts)


def _part(block: Any, files: Path) -> JsonValue:
    """Text as text, data as the file it was put into, anything else by what it says of itself."""
    if block.type == "text":
        return str(block.text)
    if block.type in ("image", "audio"):
        return _stored(block.data, block.mimeType, files)
    resource: Any = getattr(block, "resource", None)
    if hasattr(resource, "text"):
        return str(resource.text)
    if hasattr(resource, "blob"):
        return _stored(resource.blob, resource.mimeType or "", files)
    said: JsonValue = block.model_dump(mode="json", exclude_none=True)
    return said


def _stored(data: str, kind: str, files: Path) -> JsonValue:
    """Put data into a file named by its digest; the same data is the same file."""
    content = b64decode(data)
    digest = sha256(content).hexdigest()
    path = files / f"{digest}{mimetypes.guess_extension(kind) or ''}"
    if not path.exists():
        files.mkdir(parents=True, exist_ok=True)
        draft = files / f".{secrets.token_hex(8)}.tmp"
        draft.write_bytes(content)
        draft.replace(path)
    return {"file": str(path), "type": kind, "bytes": len(content), "digest": digest}


def leaf(error: BaseException) -> BaseException:
    """The error inside the groups that task groups put around it; of several the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def told(lines: Iterable[str]) -> str:
    """The last lines a program printed, as part of a sentence."""
    last = " | ".join(each.strip() for each in list(lines)[-5:] if each.strip())
    return f"; it printed: {last[-500:]}" if last else ""
