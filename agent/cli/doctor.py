"""Is everything that is configured in order? Checks that change nothing, contact no stranger and print no secret."""

import os
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from pydantic import SecretStr

from agent.boundary import masked
from agent.models.local.serving import LOCAL, missing
from agent.models.local.weights import QWEN, file_of
from agent.settings import RoleModel, RoleModels, Settings
from agent.store.checkpoints import open_saver
from agent.store.connection import DatabaseRefused
from agent.store.database import open_database, place_of
from agent.tools.loading import ToolsNotFound, load_tools

SECONDS = 2.0
"""How long the model's server may take to answer that it is there."""

_PACKAGES = ("kintsugi", "langgraph", "langgraph-checkpoint-sqlite", "langchain-core", "langchain-openai", "langsmith")
_LOCAL = ("127.0.0.1", "::1", "localhost")


class Finding(NamedTuple):
    """One thing that was looked at."""

    what: str
    fine: bool
    said: str


def findings(settings: Settings) -> Iterator[Finding]:
    """Look at everything, one after the other."""
    yield _python()
    yield Finding("packages", True, ", ".join(f"{name} {_version(name)}" for name in _PACKAGES))
    yield _home(settings.home)
    yield _database(settings)
    yield _tools(settings)
    yield from _models(settings)
    yield _langsmith()


def _python() -> Finding:
    found = sys.version_info[:2]
    said = f"{sys.version.split()[0]} at {sys.executable}"
    return Finding("Python", (3, 11) <= found < (3, 14), said)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed)"


def _home(home: Path) -> Finding:
    nearest = next(each for each in (home.absolute(), *home.absolute().parents) if each.exists())
    there = "" if home.exists() else ", made by the first run"
    fine = nearest.is_dir() and os.access(nearest, os.W_OK)
    return Finding("home", fine, f"{home}{there}" if fine else f"{home}: {nearest} cannot be written to")


def _database(settings: Settings) -> Finding:
    place = place_of(settings)
    if isinstance(place, Path) and not place.exists():
        return Finding("database", True, f"{place}, made by the first run")
    try:
        open_database(place).close()
        open_saver(place).conn.close()
    except DatabaseRefused as error:
        return Finding("database", False, str(error))
    return Finding("database", True, f"{place} opens")


def _tools(settings: Settings) -> Finding:
    if settings.sources is None:
        return Finding("tools", True, "none configured; name them with --tools, or in KINTSUGI_TOOLS")
    try:
        return Finding("tools", True, f"{settings.sources}: {len(load_tools(settings.sources))}")
    except (ToolsNotFound, ImportError, SyntaxError, ValueError) as error:
        return Finding("tools", False, f"KINTSUGI_TOOLS: {error}")


def _models(settings: Settings) -> Iterator[Finding]:
    """The model of all roles, and those of roles that have their own."""
    if settings.model is None and settings.models == RoleModels():
        yield Finding("model", True, "none configured; goals that state wants and criteria need none")
        return
    own = [role for role in RoleModels.model_fields if getattr(settings.models, role) != RoleModel()]
    if settings.model is not None:
        yield _model("model", settings, RoleModel())
    for role in own:
        yield _model(role, settings, getattr(settings.models, role))


def _model(what: str, settings: Settings, role: RoleModel) -> Finding:
    if (role.model or settings.model) == LOCAL:
        problem = missing(settings)
        return Finding(what, not problem, problem or f"{LOCAL}: {file_of(QWEN, settings.weights)}")
    from agent.models.chat import chat_model  # the heaviest import there is, and most goals need no model

    try:
        model = chat_model(settings, role)
    except ValueError as error:
        return Finding(what, False, str(error))
    if model is None:
        return Finding(what, False, "it has no name, and there is no model of all roles")
    if model.openai_api_base is None:
        return Finding(what, True, f"{model.model_name}, with a key; the provider is not contacted")
    key = model.openai_api_key
    problem = _unreachable(model.openai_api_base, key.get_secret_value() if isinstance(key, SecretStr) else "")
    shown = masked(model.openai_api_base)
    return Finding(what, not problem, f"{model.model_name} at {shown}" + (f": {problem}" if problem else " answers"))


def _unreachable(url: str, key: str) -> str:
    """Why the server cannot be used; empty when it answers."""
    try:
        request = Request(f"{url.rstrip('/')}/models", headers={"Authorization": f"Bearer {key}"} if key else {})
        # a proxy knows nothing of this machine's own addresses
        proxies = [ProxyHandler({})] if urlsplit(url).hostname in _LOCAL else []
        with build_opener(*proxies).open(request, timeout=SECONDS):
            return ""
    except HTTPError as error:
        return f"refused with status {error.code}" if error.code in (401, 403) or error.code >= 500 else ""
    except (URLError, OSError, ValueError) as error:
        return f"cannot be reached ({getattr(error, 'reason', error)})"


def _langsmith() -> Finding:
    if _langsmith_says("TRACING_V2", "TRACING") != "true":
        return Finding("LangSmith", True, "off; LANGSMITH_TRACING=true turns it on")
    keyed = bool(_langsmith_says("API_KEY"))
    project = _langsmith_says("PROJECT") or "default"
    return Finding("LangSmith", keyed, f"on, project {project}" + ("" if keyed else "; LANGSMITH_API_KEY is not set"))


def _langsmith_says(*names: str) -> str:
    """The first of its variables that is set; it goes by an older prefix, too."""
    spelled = [f"{prefix}_{name}" for name in names for prefix in ("LANGSMITH", "LANGCHAIN")]
    return next((value for each in spelled if (value := os.environ.get(each, "").strip())), "")
