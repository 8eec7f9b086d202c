"""How is the whole test run? Record once, replay for every mutation at every point, read each against the matrix."""

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from agent.core.goal import Goal
from agent.mutation.ground import Open, Supply, ground_of
from agent.mutation.kinds import KINDS, Kind, Mutation, mutations
from agent.mutation.replay import Bench, Build, built, unhurried
from agent.mutation.report import Report, Verdict, verdict
from agent.mutation.trajectory import Trajectory
from agent.settings import Settings


def mutate(
    tools: Supply,
    goal: Goal,
    *,
    build: Build = built,
    kinds: Sequence[Kind] = KINDS,
    settings: Settings | None = None,
    seed: int = 0,
    most: int | None = None,
    jobs: int = 4,
) -> Report:
    """Replay a run with one mutated constraint at each boundary, and check the matrix: `mutate(...).assert_holds()`.

    The tools are called for real, once per replay: hand in what makes fresh ones over a world for tests.

    Args:
        tools: a list, or a callable that makes fresh tools for each replay, also as a context manager.
        goal: what the run is for; named wants or criteria.
        build: makes the graph over watched tools; default: `build_graph`, without a model.
        kinds: which constraints are mutated.
        settings: limits and time-outs; replays neither wait before a retry nor ask anybody.
        seed: for what is left to chance: which field disappears, which value drifts.
        most: replay only so many, chosen by the seed; default: all.
        jobs: replays side by side.

    Raises:
        ValueError: when the undisturbed run does not reach its goal.
    """
    chosen = settings or Settings()
    return mutate_ground(ground_of(tools, goal), build, tuple(kinds), chosen, seed, most, jobs)


def mutate_ground(
    ground: Open,
    build: Build,
    kinds: tuple[Kind, ...],
    settings: Settings,
    seed: int = 0,
    most: int | None = None,
    jobs: int = 4,
    watch: Callable[[int, int], None] = lambda _, __: None,
) -> Report:
    """As `mutate`, over a ground; `watch` is told how many replays of how many are done."""
    bench = Bench(ground, build, unhurried(settings))
    trajectory = bench.record()
    chosen = sample(mutations(trajectory, kinds, seed), seed, most)
    one = partial(_verdict, bench, trajectory)
    verdicts: list[Verdict] = []
    with ThreadPoolExecutor(jobs, thread_name_prefix="kintsugi-mutation") as pool:
        for each in pool.map(one, chosen):
            verdicts.append(each)
            watch(len(verdicts), len(chosen))
    return Report(len(trajectory.steps()), len(tuple(trajectory.points())), tuple(verdicts))


def _verdict(bench: Bench, trajectory: Trajectory, mutation: Mutation) -> Verdict:
    return verdict(bench.replay(trajectory, mutation))


def sample(found: tuple[Mutation, ...], seed: int, most: int | None) -> tuple[Mutation, ...]:
    """A part of the mutations, spread evenly by chance; in their order."""
    if most is None or most >= len(found):
        return found
    kept = set(random.Random(seed).sample(range(len(found)), most))
    return tuple(each for index, each in enumerate(found) if index in kept)
