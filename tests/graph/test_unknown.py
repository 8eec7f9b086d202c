"""The outcome of a write is unknown: what is found out, what is done again, and what a person is asked.

Every way to lose an outcome, with every way there is to find out, for a step's own call and for one of its inner loop.
"""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agent import build_graph, contract
from agent.app import assemble
from agent.store.checkpoints import open_saver
from agent.store.database import memory_database, open_database
from tests.builders import WRITE, Calls, ScriptedPlanner, calm, draft, goal, questions, run, step, thread, values
from tests.doubles import ScriptedModel, calling, scripted


class Office:
    """Sends letters, and loses the outcome of the first; a letter with a key that was seen before is not sent again."""

    def __init__(self, loss: BaseException, landed: bool) -> None:
        self.sent: list[str] = []
        self.keys: list[str] = []
        self._known: set[str] = set()
        self._losses = [loss]
        self._landed = landed

    def send(self, key: str = "") -> str:
        loss = self._losses.pop() if self._losses else None
        if (loss is None or self._landed) and key not in self._known:
            self.sent.append("letter")
            self._known |= {key} - {""}
        self.keys.append(key)
        if loss is not None:
            raise loss
        return "sent"

    def look(self) -> str | None:
        return "sent" if self.sent else None

    def blind(self) -> str | None:
        raise ConnectionError("no sight")

    def tool(self, way: str) -> Any:
        """The tool, with one way to find out."""
        promised = {
            "a probe that knows": {"observe": self.look, "ensures": "artifacts.mail == 'sent'"},
            "a probe without a promise": {"observe": self.look},
            "a probe that fails": {"observe": self.blind, "ensures": "artifacts.mail == 'sent'"},
            "a promise without a probe": {"ensures": "artifacts.mail == 'sent'"},
            "nothing": {},
            "harmless": {"idempotent": True},
            "a key": {"idempotency_key": "key"},
            "a key that is trusted": {"idempotency_key": "key", "idempotent": True},
        }[way]
        send = self.send

        @tool
        def mail(key: str = "") -> str:
            """Send a letter."""
            return send(key)

        @tool
        def plain_mail() -> str:
            """Send a letter."""
            return send()

        plain_mail.name = "mail"
        return contract(produces="mail", **promised)(mail if "a key" in way else plain_mail)  # type: ignore[arg-type]


ASKED, ONCE, TWICE = ("asked", 1), ("satisfied", 1), ("satisfied", 2)

LANDED = {
    "a probe that knows": ONCE,
    "a probe without a promise": ASKED,
    "a probe that fails": ASKED,
    "a promise without a probe": ASKED,
    "nothing": ASKED,
    "harmless": TWICE,
    "a key": ASKED,
    "a key that is trusted": ONCE,
}
NOT_LANDED = {
    **dict.fromkeys(LANDED, ("asked", 0)),
    "a probe that knows": ONCE,
    "a probe without a promise": ONCE,
    "harmless": ONCE,
    "a key that is trusted": ONCE,
}
LOSSES = {"time-out": TimeoutError("timed out"), "death": KeyboardInterrupt()}


def by_heart(messages: list[BaseMessage]) -> AIMessage:
    """A model that sends its letter until it is told that it was sent."""
    said = messages[-1]
    done = isinstance(said, ToolMessage) and "failed" not in str(said.text)
    return calling("submit", mail="sent") if done else calling("mail")


def graph(office: Office, way: str, place: str, path: Path) -> Any:
    """One process's graph over the thread."""
    if place == "step":
        return build_graph([office.tool(way)], settings=calm(), checkpointer=open_saver(path))
    drawn = step("mail", call=None, instruction="send it", tools=("mail",), effect=WRITE)
    model, planner = ScriptedModel(replies=[by_heart] * 20), ScriptedPlanner(draft(drawn))
    return assemble(
        [office.tool(way)], open_database(path), calm(), model=model, planner=planner, checkpointer=open_saver(path)
    )


@pytest.mark.parametrize("place", ["step", "loop"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("landed", [True, False], ids=["landed", "not landed"])
@pytest.mark.parametrize("way", LANDED)
def test_an_unknown_outcome_is_found_out_or_asked_about_and_never_repeated_blindly(
    way: str, landed: bool, loss: str, place: str, tmp_path: Path
) -> None:
    office = Office(LOSSES[loss], landed)
    if loss == "death":
        with pytest.raises(KeyboardInterrupt):
            run(graph(office, way, place, tmp_path / "k.db"), goal("mail"))
        end = run(graph(office, way, place, tmp_path / "k.db"), None)
    else:
        end = run(graph(office, way, place, tmp_path / "k.db"), goal("mail"))
    asked = "__interrupt__" in end
    assert ("asked" if asked else end["outcome"].status, len(office.sent)) == (LANDED if landed else NOT_LANDED)[way]
    if asked:
        (question,) = questions(end).values()
        assert "outcome is unknown" in question["error"] or question["tried"]
        end = run(graph(office, way, place, tmp_path / "k.db"), Command(resume={"choice": "answer", "value": "sent"}))
        assert (values(end), len(office.sent)) == ({"mail": "sent"}, int(landed))


def test_a_letter_has_one_key_through_retry_and_resume_and_another_has_another(tmp_path: Path) -> None:
    office = Office(TimeoutError("timed out"), landed=True)
    path = tmp_path / "k.db"
    run(graph(office, "a key that is trusted", "step", path), goal("mail"))
    assert len(set(office.keys)) == 1
    assert len(office.keys[0]) == 32
    run(graph(office, "a key that is trusted", "step", path), goal("mail", again="mail"))
    run(graph(office, "a key that is trusted", "step", path), goal("mail"), "another thread")
    assert len(set(office.keys)) == 3


def test_no_plan_and_no_model_is_asked_for_a_key() -> None:
    office = Office(TimeoutError(), landed=True)
    keyed = office.tool("a key that is trusted")
    drawn = step("mail", call=None, instruction="send it", tools=("mail",), effect=WRITE)
    with scripted(calling("mail", key="mine"), calling("mail"), calling("submit", mail=1)) as model:
        planner = ScriptedPlanner(draft(drawn))
        end = run(assemble([keyed], memory_database(), calm(), model=model, planner=planner), goal("mail"))
    assert end["outcome"].status == "satisfied"
    (offered,) = [each for each in model.options[0]["tools"] if each["function"]["name"] == "mail"]
    assert offered["function"]["parameters"]["properties"] == {}
    assert "there is no argument 'key'" in str(model.prompts[1][-1].text)


def test_a_key_for_a_parameter_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="no parameter 'token' for an idempotency key"):
        contract(idempotency_key="token")(lambda_free)


def lambda_free(n: int = 1) -> int:
    """Do something."""
    return n


@pytest.mark.parametrize("bare", ["function", "tool"])
def test_a_tool_that_nobody_described_is_treated_as_one_that_writes(bare: str) -> None:
    sent: list[int] = []

    def mail(n: int = 1) -> str:
        """Send a letter."""
        sent.append(n)
        raise RuntimeError("it went wrong")

    drawn = step("x", call=None, instruction="send it", tools=("mail",), effect=WRITE)
    with scripted(calling("mail", n=1)) as model:
        tools = [mail if bare == "function" else tool(mail)]
        planner = ScriptedPlanner(draft(drawn))
        graph = assemble(tools, memory_database(), calm(), model=model, planner=planner, checkpointer=InMemorySaver())
        (asked,) = questions(run(graph, goal("x"))).values()
    assert asked["error"].startswith("mail was begun in step")
    assert sent == [1]


def test_the_same_write_twice_in_one_message_is_made_once_and_both_are_told() -> None:
    """Cogtrix#1293: two identical calls in one message both pass the duplicate check."""
    calls = Calls()
    mail = calls.tool("mail", "", lambda n: f"letter {n}", takes="n", args={"n": 1}, effect="mutating", name="mail")
    both = calling("mail", n=1)
    both.tool_calls.append({"name": "mail", "args": {"n": 1.0}, "id": "second", "type": "tool_call"})
    drawn = step("x", call=None, instruction="send it", tools=("mail",), effect=WRITE)
    with scripted(both, calling("submit", x=1)) as model:
        run(assemble([mail], memory_database(), calm(), model=model, planner=ScriptedPlanner(draft(drawn))), goal("x"))
    answers = [str(each.text) for each in model.prompts[-1] if isinstance(each, ToolMessage)]
    assert len(answers) == 2
    assert all("letter 1" in each for each in answers)
    assert calls == {"mail": 1}


def test_two_steps_that_make_the_same_call_at_once_share_one_effect() -> None:
    calls = Calls()
    mail = calls.tool("mail", "", lambda n: n, takes="n", args={"n": 1}, effect="mutating", name="mail")
    again = {"tool": "mail", "args": {"n": 1}}
    drawn = [step(name, call=again, effect=WRITE) for name in ("x", "y")]
    graph = assemble([mail], memory_database(), calm(), planner=ScriptedPlanner(draft(*drawn)))
    assert values(run(graph, goal("x y"))) == {"x": 1, "y": 1}
    assert calls == {"mail": 1}
    declared = [step(name, call=again, effect=WRITE, repetition=n) for n, name in enumerate(("x", "y"))]
    graph = assemble([mail], memory_database(), calm(), planner=ScriptedPlanner(draft(*declared)))
    assert values(run(graph, goal("x y"))) == {"x": 1, "y": 1}
    assert calls == {"mail": 3}


@pytest.mark.parametrize("durability", ["exit", "async", "sync"])
def test_a_run_that_dies_before_its_checkpoint_is_written_does_nothing_twice(durability: Any, tmp_path: Path) -> None:
    """langgraph#8764: crash before the first durable checkpoint; the journal does not wait for one."""
    calls, deaths = Calls(), [KeyboardInterrupt()]

    def log(mail: int) -> int:
        if deaths:
            raise deaths.pop()
        return mail

    def process(given: Any) -> Any:
        tools = [calls.tool("mail", "", effect="mutating"), calls.tool("log", "mail", log)]
        made = build_graph(tools, settings=calm(), checkpointer=open_saver(tmp_path / "k.db"))
        return made.invoke(given, thread(), durability=durability)

    with pytest.raises(KeyboardInterrupt):
        process({"goal": goal("log")})
    assert process({"goal": goal("log")})["outcome"].status == "satisfied"
    assert calls == {"make_mail": 1, "make_log": 2}
