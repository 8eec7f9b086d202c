"""What is measured on: ragged DAGs of sleeping tasks, drawn from a seed or read from a measured workflow."""

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

LANES = 5


@dataclass(frozen=True)
class Task:
    name: str
    seconds: float
    needs: tuple[str, ...] = ()


def ragged(seed: int, steps: int = 30, shortest: float = 0.020, longest: float = 0.300) -> tuple[Task, ...]:
    """Five lanes of tasks of uneven length, side by side; now and then one also waits for another lane."""
    dice = random.Random(seed)
    tasks: list[Task] = []
    for index in range(steps):
        needs = {tasks[index - LANES].name} if index >= LANES else set()
        if needs and dice.random() < 0.3:
            needs.add(dice.choice(tasks[: index - 1]).name)
        tasks.append(Task(f"t{index}", dice.uniform(shortest, longest), tuple(sorted(needs))))
    return tuple(tasks)


def uneven(lanes: int, short: float = 0.02, long: float = 0.8) -> tuple[Task, ...]:
    """Lanes side by side, as long as they are many; each has one slow task, and no two have it in the same place."""
    return tuple(
        Task(f"t{place}_{lane}", long if lane == place else short, (f"t{place - 1}_{lane}",) if place else ())
        for place in range(lanes)
        for lane in range(lanes)
    )


def measured(file: Path, most: float) -> tuple[Task, ...]:
    """A workflow in wfcommons format, its run times scaled down so that its critical path takes `most` seconds."""
    workflow = json.loads(file.read_text())["workflow"]
    took = {each["id"]: float(each["runtimeInSeconds"]) for each in workflow["execution"]["tasks"]}
    specified = workflow["specification"]["tasks"]
    names = {each["id"]: f"t{index}" for index, each in enumerate(specified)}
    tasks = tuple(
        Task(names[each["id"]], took[each["id"]], tuple(sorted(names[parent] for parent in each["parents"])))
        for each in specified
    )
    return scaled(tasks, min(1.0, most / critical_path(tasks)))


def scaled(tasks: Iterable[Task], factor: float) -> tuple[Task, ...]:
    return tuple(replace(each, seconds=each.seconds * factor) for each in tasks)


def critical_path(tasks: Iterable[Task]) -> float:
    """Seconds of the longest chain: no scheduler can be faster."""
    by_name = {each.name: each for each in tasks}
    ends: dict[str, float] = {}

    def end(name: str) -> float:
        if name not in ends:
            task = by_name[name]
            ends[name] = task.seconds + max((end(each) for each in task.needs), default=0.0)
        return ends[name]

    return max(end(name) for name in by_name)


def ends(tasks: Iterable[Task]) -> tuple[str, ...]:
    """Tasks that nothing stands on: what a goal has to want for everything to be done."""
    tasks = tuple(tasks)
    needed = {name for each in tasks for name in each.needs}
    return tuple(each.name for each in tasks if each.name not in needed)
