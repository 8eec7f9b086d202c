"""What the README states is checked: its code runs, its diagram is the phase table, its commands exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from agent.core.phase import mermaid

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_python_example_runs_and_prints_what_it_says(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    promised = re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)
    script = tmp_path / "example.py"
    script.write_text(code)
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert ran.stdout.splitlines() == promised


def test_the_diagram_is_drawn_from_the_phase_table() -> None:
    assert f"<!-- phases -->\n```mermaid\n{mermaid()}\n```\n<!-- /phases -->" in README


def test_the_readme_opens_with_the_two_commands() -> None:
    head = README.split("```")[1]
    assert "make demo" in head
    assert "make test" in head


@pytest.mark.parametrize("command", ["demo", "run", "resume", "goal", "trace", "threads", "doctor", "mutate", "stats"])
def test_every_command_of_the_readme_exists(command: str) -> None:
    from typer.testing import CliRunner

    from agent.cli.app import app

    assert f"`kintsugi {command}" in README
    assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0
