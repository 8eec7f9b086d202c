"""Tools of MCP servers: real ones over stdio and HTTP, and some that misbehave."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from agent import build_graph
from agent.core.contract import EffectClass
from agent.core.failure import Scope
from agent.settings import Settings
from agent.tools.loading import load_tools
from agent.tools.mcp import mcp_tools
from graphs.runtime import make_graph
from tests.builders import calm, goal, questions, run
from tests.tools.calling import Hands

C, P, N = Scope.CALL, Scope.PRECONDITION, Scope.NOTHING
HERE = Path(__file__).parent
TOKEN = "token-abc-123"


def written(folder: Path, **servers: Any) -> Path:
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return folder / "mcp.json"


def shop(**more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(HERE / "mcp_server.py"), "stdio"], **more}


def bad(manner: str, folder: Path, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(HERE / "bad_mcp_server.py"), manner, str(folder)], **more}


@pytest.fixture(scope="module")
def stdio(tmp_path_factory: pytest.TempPathFactory) -> Hands:
    folder = tmp_path_factory.mktemp("stdio")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("A_TOKEN", TOKEN)
        path = written(folder, shop=shop(env={"SHOP_TOKEN": "${A_TOKEN}"}))
        return Hands(mcp_tools(path, files=folder / "files"))


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = tmp_path_factory.mktemp("http") / "port"
    child = subprocess.Popen([sys.executable, str(HERE / "mcp_server.py"), "http", str(port)])
    until = time.monotonic() + 60
    while not port.exists():
        assert child.poll() is None and time.monotonic() < until
        time.sleep(0.02)
    yield f"http://127.0.0.1:{port.read_text()}/mcp"
    child.kill()
    child.wait()


def test_hints_become_contracts(stdio: Hands) -> None:
    found = {name: (each.effect, each.idempotent, each.cost) for name, each in stdio.registry.contracts.items()}
    read, write = EffectClass.READ_ONLY, EffectClass.MUTATING
    assert found["price"] == (read, True, 1.0)
    assert found["sell"] == (write, False, 1.0)  # no hints
    assert found["empty_shelf"] == (write, True, 2.0)
    assert found["two_faced"] == (write, False, 2.0)  # a contradiction is no permission
    assert stdio.registry.contracts["price"].needs == ("item",)


def test_structured_content_is_preferred_and_text_is_text(stdio: Hands) -> None:
    assert stdio.call("price", item="pen") == {"item": "pen", "price": 3}
    assert stdio.call("catalogue") == "pens, ink"
    assert stdio.call("count") == 0


def test_images_are_stored_and_not_inlined(stdio: Hands) -> None:
    words, image = stdio.call("picture")
    assert (words, image["type"], image["bytes"]) == ("a dot", "image/png", 4)
    assert Path(image["file"]).read_bytes() == b"\x89PNG"
    assert image["file"].endswith(f"{image['digest']}.png")


def test_an_error_is_a_failure_of_what_it_says(stdio: Hands) -> None:
    assert stdio.scope("price", item="ghost") is P  # no such table
    assert stdio.scope("price") is C  # an argument is missing


def test_secrets_are_hidden_in_answers_and_errors(stdio: Hands) -> None:
    assert stdio.call("leak") == {"env": "***"}
    assert TOKEN not in stdio.refused("leak_in_error").message


def test_names_and_parameters_that_others_use_are_no_obstacle(stdio: Hands) -> None:
    assert stdio.call("odd_name_here", config="x") == "x"


def test_a_server_over_http_is_used_with_its_headers(http: str, tmp_path: Path) -> None:
    path = written(tmp_path, far={"url": http, "headers": {"Authorization": "Bearer ${WORD:-open-sesame}"}})
    assert Hands(mcp_tools(path)).call("price", item="ink") == {"item": "ink", "price": 3}


def test_a_server_that_lets_nobody_in_says_so_without_the_key(http: str, tmp_path: Path) -> None:
    path = written(tmp_path, far={"url": http, "headers": {"Authorization": f"Bearer {TOKEN}"}})
    with pytest.raises(ValueError, match=r"'far' does not start.*401") as caught:
        mcp_tools(path)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    ("server", "said"),
    [
        pytest.param(lambda d: {"command": "no-such-program-here"}, "No such file", id="no program"),
        pytest.param(lambda d: bad("broken", d, env={"T": TOKEN}), r"it printed: no licence: \*\*\*", id="broken"),
        pytest.param(lambda d: bad("mute", d), "no answer in 0.5 s", id="mute"),
        pytest.param(lambda d: bad("babbles", d), "no answer in 0.5 s", id="babbles"),
        pytest.param(lambda d: {"url": "http://127.0.0.1:9/mcp"}, "attempts failed|refused", id="nobody listens"),
    ],
)
def test_a_server_that_does_not_start_is_told_at_once(tmp_path: Path, server: Callable[[Path], Any], said: str) -> None:
    start = 0.5 if "0.5" in said else 30.0
    with pytest.raises(ValueError, match=f"'b' does not start.*({said})"):
        mcp_tools(written(tmp_path, b=server(tmp_path)), start_seconds=start)


@pytest.mark.parametrize(
    ("servers", "said"),
    [
        ({"a": {}}, "either `command`"),
        ({"a": {"command": "x", "url": "y"}}, "either `command`"),
        ({"a": {"command": "x", "env": {"T": "${NOT_SET_ANYWHERE}"}}}, "the variable NOT_SET_ANYWHERE is not set"),
        ({"a": {"command": "x", "env": {"T": ["token-abc-123"]}}}, r"mcpServers\.a\.env\.T: .*string"),
        ({"a": {"url": "http://127.0.0.1", "type": "carrier pigeon"}}, "must be http or sse"),
        ([1], "mcpServers: .*dictionary"),
    ],
)
def test_a_file_that_makes_no_sense_says_where(tmp_path: Path, servers: Any, said: str) -> None:
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    with pytest.raises(ValueError, match=said) as caught:
        mcp_tools(tmp_path / "mcp.json")
    assert TOKEN not in str(caught.value)
    (tmp_path / "mcp.json").write_text("{")
    with pytest.raises(ValueError, match="cannot be read as JSON"):
        mcp_tools(tmp_path / "mcp.json")


def test_a_server_that_is_disabled_is_not_started(tmp_path: Path) -> None:
    assert mcp_tools(written(tmp_path, a={"command": "no-such-program", "disabled": True})) == []


def test_a_server_that_dies_in_a_call_is_told_and_started_again(tmp_path: Path) -> None:
    hands = Hands(mcp_tools(written(tmp_path, b=bad("dies", tmp_path))))
    error = hands.refused("act")
    assert (error.type, hands.scope_of("act", error)) == ("ServerGone", N)
    assert "out of luck" in error.message
    assert hands.call("act") == "life 2"


def test_a_server_that_hangs_is_given_up_and_started_again(tmp_path: Path) -> None:
    hands = Hands(mcp_tools(written(tmp_path, b=bad("hangs", tmp_path)), seconds=0.5))
    assert hands.refused("act").kind == "timeout"
    assert hands.call("act") == "life 2"


def test_garbage_between_the_messages_is_passed_over(tmp_path: Path) -> None:
    assert Hands(mcp_tools(written(tmp_path, b=bad("garbage", tmp_path)))).call("act") == "life 1"


def test_a_call_that_the_server_rejects_is_the_calls_fault(tmp_path: Path) -> None:
    assert Hands(mcp_tools(written(tmp_path, b=bad("rejects", tmp_path)))).scope("act", x="-1") is C


@pytest.mark.parametrize(
    ("manner", "said"), [("changes", "no longer has the tool 'act'; it has: other"), ("retypes", "other arguments")]
)
def test_a_tool_that_is_gone_or_takes_other_arguments_is_a_broken_precondition(
    tmp_path: Path, manner: str, said: str
) -> None:
    hands = Hands(mcp_tools(written(tmp_path, b=bad(manner, tmp_path))))
    assert hands.call("act") == "life 1"
    error = hands.refused("act")
    assert (hands.scope_of("act", error), said in error.message) == (P, True)


def test_tools_of_one_name_are_told_apart_by_their_server(tmp_path: Path) -> None:
    servers = {name: bad("plain", tmp_path) for name in ("one", "two")}
    (tmp_path / "tools").write_text("act read_file only_here")
    (tmp_path / "work").mkdir()
    path = written(tmp_path, one=servers["one"])
    names = {each.name for each in load_tools(f"workspace:{tmp_path}/work,read_only mcp:{path}")}
    assert names == {"read_file", "list_files", "search_files", "act", "one_read_file", "only_here"}
    found = Hands(mcp_tools(written(tmp_path, **servers)))
    assert set(found.registry.names()) == {f"{s}_{t}" for s in servers for t in ("act", "read_file", "only_here")}
    assert found.call("two_act") == "life 3"


def test_a_write_that_was_lost_with_its_server_is_taken_to_a_person_and_not_repeated(tmp_path: Path) -> None:
    graph = build_graph(
        mcp_tools(written(tmp_path, b=bad("dies", tmp_path))), settings=calm(), checkpointer=InMemorySaver()
    )
    (asked,) = questions(run(graph, goal("act"))).values()
    assert "could do it twice" in asked["tried"][0]
    assert (tmp_path / "calls").read_text().split() == ["x"]


def test_the_graph_for_the_development_server_has_the_tools_of_a_setting(tmp_path: Path) -> None:
    path = written(tmp_path, b=bad("plain", tmp_path))
    graph = make_graph(Settings(home=tmp_path / "home", mcp=path, escalation="finish"))
    end: Any = graph.invoke({"goal": goal("act")})
    assert end["outcome"].artifacts["act"].value == "life 1"
