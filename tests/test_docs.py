"""Every snippet of `docs/` is run: Python in one go per page, then the commands, and both say what is promised.

A block with a name after its language is a file. In the other Python, what is printed must be what comments promise:
after `print(...)` on its line, or in the lines of comment after a loop.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(each.stem for each in DOCS.glob("*.md"))
BLOCK = re.compile(r"^```(python|toml|json|console) ?(\S*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
PROMISED = re.compile(r"^(?:print\(.*\)  # |# )(.*)$", re.MULTILINE)
DATABASE = "export KINTSUGI_DATABASE_URL="


@pytest.mark.parametrize("page", PAGES)
def test_the_snippets_of_a_page_work_and_say_what_it_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    blocks = BLOCK.findall((DOCS / f"{page}.md").read_text())
    for _, name, text in blocks:
        if name:
            (tmp_path / name).write_text(text)
    code = "\n".join(text for kind, name, text in blocks if kind == "python" and not name)
    assert not code or printed(code) == PROMISED.findall(code)
    for command, shown in (each for kind, _, text in blocks if kind == "console" for each in commands(text)):
        if command.startswith(DATABASE):
            monkeypatch.setenv("KINTSUGI_DATABASE_URL", request.getfixturevalue("postgres").url)
        else:
            assert shown == found_in(said(command), shown), command


def printed(code: str) -> list[str]:
    """The lines that a page's Python prints, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(DOCS.parent), os.environ.get("PYTHONPATH", "")])}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a block, and what is shown below it."""
    for each in text.removeprefix("$ ").split("\n$ "):
        command, *shown = each.split("\n")
        yield command, [line for line in shown if line]


def said(command: str) -> str:
    """What a command of ours prints; it must succeed."""
    from agent.cli.app import app

    called = CliRunner().invoke(app, shlex.split(command)[1:])
    assert called.exit_code == 0, (command, called.output)
    return called.output


def found_in(output: str, shown: list[str]) -> list[str]:
    """The lines that are there, each after the one before it."""
    found = []
    for line in shown:
        before, there, output = output.partition(line)
        found += [there] if there else [f"(not in) {before}"]
    return found


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (DOCS / f"{page}.md").read_text()):
        assert (DOCS / target).exists(), target
