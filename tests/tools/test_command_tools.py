"""The tool that runs programs: those that were named, without a shell, and nothing of them stays."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from agent.core.contract import EffectClass
from agent.core.failure import Scope
from agent.tools.builtin import command_tools
from tests.tools.calling import Hands

C, P, N = Scope.CALL, Scope.PRECONDITION, Scope.NOTHING


@pytest.fixture
def hands(tmp_path: Path) -> Hands:
    return Hands(command_tools(["echo", "cat", "sh", "sleep", "yes"], folder=tmp_path, seconds=20, output=100))


def test_a_program_is_run_with_a_list_of_arguments_and_no_shell(hands: Hands) -> None:
    told = hands.call("run_command", program="echo", arguments=["$(id) `id`", "; id", "*"])
    assert told == {"returncode": 0, "stdout": "$(id) `id` ; id *\n", "stderr": ""}
    assert hands.call("run_command", program="cat", stdin="given")["stdout"] == "given"


def test_nobody_knows_what_a_command_does_so_it_counts_as_a_write(hands: Hands) -> None:
    promise = hands.registry.contracts["run_command"]
    assert (promise.effect, promise.idempotent) == (EffectClass.MUTATING, False)


def test_the_environment_holds_no_secrets(hands: Hands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    told = hands.call("run_command", program="sh", arguments=["-c", "env | cut -d= -f1"])
    assert set(told["stdout"].split()) <= {"PATH", "HOME", "LANG", "PWD", "SHLVL", "_"}
    given = Hands(command_tools(["sh"], folder=tmp_path, env={"REGION": "eu"}))
    assert "REGION=eu" in given.call("run_command", program="sh", arguments=["-c", "env"])["stdout"]


def test_head_and_tail_of_a_long_output_are_kept(hands: Hands) -> None:
    told = hands.call("run_command", program="sh", arguments=["-c", "echo first; yes x | head -1000; echo last"])
    assert told["stdout"].startswith("first\n")
    assert told["stdout"].endswith("last\n")
    assert "bytes left out" in told["stdout"]


def test_a_program_that_ends_badly_is_a_failure_of_what_it_says(hands: Hands) -> None:
    assert hands.scope("run_command", program="sh", arguments=["-c", "echo no such table >&2; exit 3"]) is P
    with_output = hands.call("run_command", program="sh", arguments=["-c", "echo 3 differences; exit 1"])
    assert with_output["returncode"] == 1


def test_a_program_that_takes_too_long_is_killed_with_all_it_has_started(tmp_path: Path) -> None:
    hands = Hands(command_tools(["sh"], folder=tmp_path, seconds=0.5))
    script = "sleep 300 & echo $! > child; sleep 300"
    assert hands.refused("run_command", program="sh", arguments=["-c", script]).kind == "timeout"
    assert _gone(int((tmp_path / "child").read_text()))


def test_what_a_program_leaves_running_is_killed_and_not_waited_for(hands: Hands, tmp_path: Path) -> None:
    started = time.monotonic()
    hands.call("run_command", program="sh", arguments=["-c", "sleep 300 & echo $! > child"])
    assert time.monotonic() - started < 20
    assert _gone(int((tmp_path / "child").read_text()))


async def test_a_cancelled_call_leaves_nothing_behind(hands: Hands, tmp_path: Path) -> None:
    script = "echo $$ > shell.new; mv shell.new shell; sleep 300"
    call = asyncio.create_task(hands.acall("run_command", program="sh", arguments=["-c", script]))
    async with asyncio.timeout(20):
        while not (tmp_path / "shell").exists():
            await asyncio.sleep(0.01)
    call.cancel()
    await asyncio.wait([call])
    assert _gone(int((tmp_path / "shell").read_text()))


def test_a_program_that_prints_without_end_is_stopped(hands: Hands) -> None:
    assert hands.scope("run_command", program="yes") is C


def test_programs_and_the_folder_have_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no program"):
        command_tools(["no-such-program-here"])
    with pytest.raises(ValueError, match="is not a folder"):
        command_tools(["echo"], folder=tmp_path / "gone")


def _gone(process: int) -> bool:
    """Whether a process has ended; a zombie that nobody has asked about has."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            os.kill(process, 0)
            if Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.01)
    return False
