"""A thread on the development server, and what its user does through the client."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Self

from langgraph_sdk.client import LangGraphClient

from tests.studio.server import Server

POLLS, PAUSE = 1200, 0.05


class Desk(NamedTuple):
    """One thread. Its purse is its own, so that what other threads pay and wire is not counted."""

    client: LangGraphClient
    server: Server
    thread: str
    purse: str
    """Whose money it is. Not named after the thread: a server that copies a thread puts the new id wherever it finds
    the old one."""

    @classmethod
    async def opened(cls, client: LangGraphClient, server: Server) -> Self:
        """On a new thread."""
        return cls(client, server, str((await client.threads.create())["thread_id"]), uuid.uuid4().hex)

    def goal(self, *wants: str, **more: Any) -> dict[str, Any]:
        """A goal as a form states it."""
        return {"goal": {"wants": list(wants), "given": {"purse": self.purse}, **more}}

    def let(self, what: str) -> None:
        """Open the desk, or let the wire go."""
        (self.server.folder / f"{what}-{self.purse}").touch()

    async def run(self, *wants: str, graph: str = "kintsugi", **more: Any) -> dict[str, Any]:
        """Run to the end, or to the question; a run that broke is an error here."""
        given: dict[str, Any] = {"input": self.goal(*wants)} if wants else {}
        final: Any = await self.client.runs.wait(self.thread, graph, raise_error=False, **given, **more)
        assert isinstance(final, dict)
        assert "__error__" not in final, final["__error__"]
        return final

    async def refused(self, **given: Any) -> str:
        """Why the server's run broke."""
        final: Any = await self.client.runs.wait(self.thread, "kintsugi", raise_error=False, **given)
        return str(final["__error__"]["message"])

    async def begun(self, *wants: str, graph: str = "kintsugi", **more: Any) -> str:
        """Start a run and do not wait; its id."""
        run = await self.client.runs.create(self.thread, graph, input=self.goal(*wants), **more)
        return str(run["run_id"])

    async def streamed(self, mode: Any, *wants: str, **more: Any) -> list[Any]:
        """The parts of a run in one stream mode, without the server's own."""
        parts = self.client.runs.stream(self.thread, "kintsugi", input=self.goal(*wants), stream_mode=[mode], **more)
        got = [part async for part in parts]
        assert not [each.data for each in got if each.event == "error"]
        return [each for each in got if each.event != "metadata"]

    async def state(self) -> Any:
        """The thread as it stands."""
        return await self.client.threads.get_state(self.thread)

    async def asked(self) -> dict[str, Any]:
        """Open questions by id."""
        waiting = [each for task in (await self.state())["tasks"] for each in task["interrupts"]]
        return {id_: one for each in waiting for id_, one in each["value"]["questions"].items()}

    async def answer(self, answer: Any) -> dict[str, Any]:
        """Resume with an answer."""
        return await self.run(command={"resume": answer})

    async def edit(self, values: Any, node: str | None = None) -> None:
        """Edit the state."""
        await self.client.threads.update_state(self.thread, values, as_node=node)

    async def wired(self, times: int = 1) -> None:
        """Wait until the wire was sent this often."""
        await until(lambda: self.server.effects("wired", self.purse) >= times)

    async def idle(self) -> None:
        """Wait until nobody works on the thread."""

        async def rests() -> bool:
            return (await self.client.threads.get(self.thread))["status"] != "busy"

        await until(rests)


async def until(holds: Callable[[], bool | Awaitable[bool]]) -> None:
    """Poll until it holds."""
    for _ in range(POLLS):
        found = holds()
        if found if isinstance(found, bool) else await found:
            return
        await asyncio.sleep(PAUSE)
    raise AssertionError("it did not happen in time")


def made(final: dict[str, Any]) -> list[str]:
    """Names in the order they were committed in this run; those that came out the same included, given ones not."""
    run = final["ledger"]["run"]
    return [
        each["name"]
        for each in final["trace"]
        if each["event"] == "committed" and each["run"] == run and each["step"] is not None
    ]
