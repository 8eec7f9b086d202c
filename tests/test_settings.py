"""Settings: an argument beats the environment, the environment the default; all of them are in .env.example."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from agent.settings import Settings

EXAMPLE = (Path(__file__).parent.parent / ".env.example").read_text()


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_every_setting_is_in_the_example_file(name: str) -> None:
    assert f"KINTSUGI_{name.upper()}" in EXAMPLE


def test_an_argument_beats_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINTSUGI_STEP_TIMEOUT", "5")
    monkeypatch.setenv("KINTSUGI_LIMITS__RETRY", "7")
    assert Settings().step_timeout == 5.0
    assert Settings().limits.retry == 7
    assert Settings(step_timeout=9).step_timeout == 9.0


def test_a_value_that_makes_no_sense_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINTSUGI_ESCALATION", "shout")
    with pytest.raises(ValidationError, match="escalation"):
        Settings()


def test_a_key_is_never_printed() -> None:
    settings = Settings.model_validate({"api_key": "sk-very-secret-indeed"})
    assert "very-secret" not in repr(settings)
    assert "very-secret" not in settings.model_dump_json()
