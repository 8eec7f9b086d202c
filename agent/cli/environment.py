"""What do the environment and `.env` say? Settings for one command; a bad value is named by its variable."""

import os
import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import DotEnvSettingsSource, SettingsError

from agent.boundary import masked
from agent.cli.exits import BadInput
from agent.settings import Settings


def read_dotenv(path: Path = Path(".env")) -> None:
    """Take in the working directory's `.env`; what the environment says already counts more."""
    if not path.is_file():
        return
    for name, value in DotEnvSettingsSource(Settings, env_file=path, case_sensitive=True).env_vars.items():
        if value:
            os.environ.setdefault(name, value)


def load_settings(home: Path | None = None, model: str | None = None, strategy: str | None = None) -> Settings:
    """Settings from the environment, with what the command line says instead.

    Raises:
        BadInput: naming the variable that makes no sense.
    """
    given: dict[str, Any] = {"home": home, "model": model, "strategy": strategy}
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:
            raise BadInput(str(first["ctx"]["error"])) from error
        raise BadInput(f"{_variable(first['loc'])} is {masked(repr(first['input']))}: {first['msg']}") from error
    except SettingsError as error:
        field = re.search(r'field "(\w+)"', str(error))
        raise BadInput(f"{_variable([field.group(1) if field else ''])} is not valid JSON") from error


def _variable(location: tuple[int | str, ...] | list[str]) -> str:
    delimiter = Settings.model_config.get("env_nested_delimiter") or "__"
    return f"{Settings.model_config.get('env_prefix')}{delimiter.join(str(each) for each in location)}".upper()
