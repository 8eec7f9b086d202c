"""The tasks without a model: what they ask for can be done, is judged rightly, and what goes wrong does go wrong."""

from pathlib import Path
from typing import Any

import pytest

from tests.doubles import Reply, calling, scripted
from tests.graph.planning import drafted
from tests.live.drivers import Driver, ours, plain
from tests.live.task import Setting, Task, tasks

TASKS = {each.name: each for each in tasks()}


def attempted(setting: Setting, tools: dict[str, Any]) -> list[str]:
    """Carry the solution out, and tell what its calls gave."""
    told = []
    for call in setting.task.solution:
        try:
            told.append(str(tools[call.tool].invoke(call.args)))
        except Exception as error:
            told.append(f"raised: {error}")
    return told


def test_there_are_twenty_and_half_of_them_meet_a_fault() -> None:
    faults = [each.fault.kind for each in TASKS.values() if each.fault]
    assert (len(TASKS), len(faults), len(set(faults)) > 7) == (20, 10, True)


@pytest.mark.parametrize("task", TASKS.values(), ids=list(TASKS))
def test_checks_refuse_the_untouched_world_and_accept_one_that_was_worked_on_in_spite_of_the_fault(
    task: Task, tmp_path: Path
) -> None:
    setting = Setting(task, tmp_path)
    tools = {each.name: each for each in setting.tools()}
    assert setting.wrongs()
    told = attempted(setting, tools)
    if task.fault:
        hindered = any("raised: " in each or (task.fault.says or "raised: ") in each for each in told)
        assert hindered or setting.wrongs()
        attempted(setting, tools)
    else:
        assert not any("raised: " in each for each in told)
    assert setting.wrongs() == []


STEP = {"id": "a", "intent": "Move it", "tool": "move_file", "produces": ["moved"]}
MOVE = {"path": "draft.txt", "to": "archive/draft.txt"}


@pytest.mark.parametrize(
    ("driver", "replies", "rungs"),
    [
        (ours, [drafted({**STEP, "args": MOVE}, wants=["moved"])], ("retry",)),
        (plain, [calling("move_file", **MOVE), calling("move_file", **MOVE), "It is moved."], ()),
    ],
    ids=["ours", "plain"],
)
def test_a_driver_does_a_task_over_its_fault_and_is_judged_by_the_world(
    driver: Driver, replies: list[Reply], rungs: tuple[str, ...], tmp_path: Path
) -> None:
    with scripted(*replies) as model:
        done = driver(TASKS["19-change-archive"], tmp_path, model)
    assert (done.wrongs, done.rungs, done.turns) == ([], rungs, len(replies)), done.told


@pytest.mark.parametrize("driver", [ours, plain])
def test_what_a_model_says_of_its_work_counts_for_nothing(driver: Driver, tmp_path: Path) -> None:
    with scripted(*["It is moved."] * (3 if driver is ours else 1)) as model:
        done = driver(TASKS["19-change-archive"], tmp_path, model)
    assert not done.right
