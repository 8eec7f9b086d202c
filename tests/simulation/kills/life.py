"""What one process does: it starts or goes on, answers like somebody who looks into the ledger, says how it ended."""

import asyncio
import faulthandler
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from agent import Goal
from agent.app import assemble
from agent.cli.app import main
from agent.core.consent import Approve
from agent.core.effect import EffectIdentity, Fresh
from agent.core.limits import Limits
from agent.core.record import Committed
from agent.core.value import JsonValue
from agent.models.contract_planner import ContractPlanner
from agent.settings import Settings
from agent.store.checkpoints import async_saver, open_saver
from agent.store.database import Place, open_database
from agent.store.journal import DatabaseJournal
from agent.store.postgres import Postgres
from agent.tools.registry import Registry
from graphs import loop
from graphs.loop import LoopGraph
from tests.simulation.kills.clerk import Clerk, Instructing
from tests.simulation.kills.doom import Doom
from tests.simulation.kills.ledger import Ledger
from tests.simulation.kills.script import Kill, Life, Script
from tests.simulation.kills.shop import BOXES, TIMEOUT, Shop, product_of

THREAD = "order-42"
CONFIG: Any = {"configurable": {"thread_id": THREAD}}
SECONDS = 120.0
"""Longest life of one process; far more than it needs on a busy machine."""

LOOK = object()
"""Instead of an input: read the state as it was last written."""

Steps = Generator[Any, Any, Any]
"""What the graph is called with, one after the other; is sent what came of it."""


def shop_life(script: Script, life: Life, folder: Path, url: str) -> None:
    """Work on the order, in the process that calls this; `url`: of a Postgres database, empty for a file."""
    _tells_where_it_hangs(folder / "hangs")
    _spoil(script.sabotage)
    doom = Doom(life.end if isinstance(life.end, Kill) else None)
    doom.arm()
    shop = Shop(script, Ledger(folder / "ledger.txt"), doom.reach)
    _note_held(shop.ledger)
    steps = _Customer(script, shop, doom).steps(life.again)
    (folder / "result.json").unlink(missing_ok=True)
    place = Postgres(url) if url else folder / "kintsugi.db"
    final = asyncio.run(_natively(script, shop, place, steps)) if life.native else _called(script, shop, place, steps)
    whole = {
        "status": final["outcome"].status,
        "reason": final["outcome"].reason,
        "values": {name: each.value for name, each in final["outcome"].artifacts.items() if each.valid},
        "digests": {name: each.digest for name, each in final["outcome"].artifacts.items() if each.valid},
        "committed": Counter(each.name for each in final["trace"] if isinstance(each, Committed)),
    }
    beside = folder / "result.new"
    beside.write_text(json.dumps(whole))
    beside.replace(folder / "result.json")


def command_life(arguments: list[str], life: Life, sabotage: str, output: Path, url: str) -> None:
    """Run `kintsugi` in the process that calls this."""
    os.environ["KINTSUGI_DATABASE_URL"] = url
    _tells_where_it_hangs(output.with_name("hangs"))
    _spoil(sabotage)
    Doom(life.end if isinstance(life.end, Kill) else None).arm()
    sys.argv = ["kintsugi", *arguments]
    for number in (1, 2):
        file = os.open(output.with_suffix(f".{number}"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, number)
    main()


def _tells_where_it_hangs(path: Path) -> None:
    """Have the stacks of all threads written before somebody loses patience with this process."""
    faulthandler.dump_traceback_later(0.9 * SECONDS, file=path.open("w"))


def _spoil(sabotage: str) -> None:
    """Break the product in this process, so that it can be seen that this is found out."""
    match sabotage:
        case "forgetful":  # no intent is ever remembered

            async def begin(
                self: DatabaseJournal, identity: EffectIdentity, step: str, fence: int | None = None
            ) -> Fresh:
                return Fresh()

            async def done(self: DatabaseJournal, identity: EffectIdentity, result: JsonValue) -> None: ...

            DatabaseJournal.begin, DatabaseJournal.done = begin, done  # type: ignore[method-assign]
        case "careless":  # checkpoints are not kept
            SqliteSaver.put = lambda self, config, *rest: config  # type: ignore[method-assign]


def _note_held(ledger: Ledger) -> None:
    """Let each phase node note what is verified when it begins: with the checkpoint before it, that is durable."""
    noted: set[tuple[str, str]] = set()

    def noting(original: Callable[..., Any]) -> Callable[..., Any]:
        def begun(node: Any, state: Any, *rest: Any, **more: Any) -> Any:
            world = state["world"]
            held = {(name, world.artifacts[name].digest) for name in world.artifacts if world.holds(name)}
            for name, digest in sorted(held - noted):
                noted.add((name, digest))
                ledger.note("held", name, digest)
            return original(node, state, *rest, **more)

        return begun

    loop._Node.invoke, loop._Node.ainvoke = noting(loop._Node.invoke), noting(loop._Node.ainvoke)  # type: ignore[method-assign]


class _Customer:
    """Whoever started the run, and is asked."""

    def __init__(self, script: Script, shop: Shop, doom: Doom) -> None:
        self._script, self._shop, self._doom = script, shop, doom

    def steps(self, again: bool) -> Steps:
        """One process's calls of the graph, to the end of the run."""
        ledger, state = self._shop.ledger, (yield LOOK)
        started = bool(state.tasks and state.values.get("goal"))
        if started and not again and ledger.has("goal meant") and not ledger.has("goal told"):
            self._shop.change_goal()
        final = yield None if started and not again else {"goal": self._goal()}
        while final.get("__interrupt__") or final["goal"].wants != self._goal().wants:
            asked = final.get("__interrupt__")
            final = yield Command(resume=self._answers(asked)) if asked else {"goal": self._goal()}
        return final

    def _goal(self) -> Goal:
        """As it stands: what is wanted in the end from the moment on that it was meant to change."""
        first = self._script.first if not self._shop.ledger.has("goal meant") else ()
        return goal_of(first or self._script.wants)

    def _answers(self, interrupts: Iterable[Any]) -> dict[str, Any]:
        self._doom.reach("waiting", "before")
        questions = {key: each for asked in interrupts for key, each in asked.value["questions"].items()}
        answers = {key: self._answer(each) for key, each in questions.items()}
        self._doom.reach("waiting", "after")
        return answers

    def _answer(self, question: dict[str, Any]) -> dict[str, Any]:
        if "approve" in question["choices"]:
            return {"choice": "approve"}
        name = _about(question)
        asked = self._shop.ledger.note("asked", name, question["question"])
        if self._shop.ledger.counts("effect")[name]:
            return {"choice": "answer", "value": {"done": product_of(name)}}
        if name == "send_mail" and asked > 1:  # a step of several calls is not allowed to repeat one of them
            self._shop.ledger.note("effect", name, "by hand")
            return {"choice": "answer", "value": {"done": product_of(name)}}
        return {"choice": "retry"}


def goal_of(wants: tuple[str, ...]) -> Goal:
    """A goal of the shop."""
    return Goal(wants=wants, given={"boxes": list(BOXES)})


def _about(question: dict[str, Any]) -> str:
    """The effect that a question is about: that of the call, or of the one step that has several."""
    call = question["call"]
    if call is None:
        return "send_mail"
    return f"parcel_{call['args']['box']}" if call["tool"] == "parcel" else str(call["tool"])


def _called(script: Script, shop: Shop, place: Place, steps: Steps) -> Any:
    with open_database(place) as database:
        saver = open_saver(database)
        with closing(saver.conn):
            graph = _graph(script, shop, database, saver)
            given = next(steps)
            while True:
                came = graph.get_state(CONFIG) if given is LOOK else graph.invoke(given, CONFIG)
                try:
                    given = steps.send(came)
                except StopIteration as end:
                    return end.value


async def _natively(script: Script, shop: Shop, place: Place, steps: Steps) -> Any:
    with open_database(place) as database:
        async with async_saver(database) as saver:
            graph = _graph(script, shop, database, saver)
            given = next(steps)
            while True:
                came = await graph.aget_state(CONFIG) if given is LOOK else await graph.ainvoke(given, CONFIG)
                try:
                    given = steps.send(came)
                except StopIteration as end:
                    return end.value


def _graph(script: Script, shop: Shop, database: Any, saver: Any) -> LoopGraph:
    tools = shop.tools()
    settings = Settings(
        limits=Limits(parallel=script.parallel, backoff=0.01),
        inline_bytes=script.inline,
        step_timeout=TIMEOUT if any(each.kind == "slow" for each in script.faults) else 60.0,
        approve=Approve.NEVER,
        approve_tools=("ship",) if script.approve else (),
        jitter=0.0,
    )
    planner = Instructing(ContractPlanner(Registry(tools)))
    graph = assemble(tools, database, settings, model=Clerk(), checkpointer=saver, planner=planner)
    shop.change_goal = lambda: graph.change_goal(THREAD, goal_of(script.wants))
    return graph
