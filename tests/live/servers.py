"""Which model do live tests ask? A server that the environment names, else the model on this machine.

`KINTSUGI_TEST_BASE_URL` with `KINTSUGI_TEST_MODEL` (and `KINTSUGI_TEST_API_KEY`) names a server that speaks OpenAI's
protocol; `KINTSUGI_TEST_MODEL=local` alone means the model on this machine, from `KINTSUGI_TEST_WEIGHTS` or the cache.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from langchain_core.language_models import BaseChatModel

from agent.models.chat import chat_model
from agent.models.local.serving import LOCAL, with_local
from agent.settings import Settings

NOBODY = (
    "NO LIVE MODEL WAS ASKED: set KINTSUGI_TEST_BASE_URL and KINTSUGI_TEST_MODEL for a server of yours, or run "
    "`make live`, which serves one on this machine"
)


def named() -> Settings | None:
    """The settings that reach the model; None: the environment names none.

    Raises:
        ValueError: a server is named without its model.
    """
    base_url, name = _told("BASE_URL"), _told("MODEL")
    if base_url and not name:
        raise ValueError("KINTSUGI_TEST_BASE_URL names a server: say in KINTSUGI_TEST_MODEL which model to ask there")
    if name is None or (base_url is None and name != LOCAL):
        return None
    given = {"api_key": _told("API_KEY"), "weights": _told("WEIGHTS"), "base_url": base_url}
    return Settings.model_validate({"model": name, **{field: each for field, each in given.items() if each}})


@contextmanager
def asked(settings: Settings) -> Iterator[BaseChatModel]:
    """The model, served as long as the context lasts if it is the one on this machine.

    Raises:
        ValueError: it is not there yet, or needs a key.
    """
    with with_local(settings) as reached:
        model = chat_model(reached)
        assert model is not None
        yield model


def weights() -> Path | None:
    """The folder of the model on this machine; None: the user's cache."""
    told = _told("WEIGHTS")
    return Path(told) if told else None


def _told(name: str) -> str | None:
    return os.environ.get(f"KINTSUGI_TEST_{name}") or None
