"""The packaged scenarios on the development server: an empty form runs them, and each thread has its own world."""

import io
import re
from contextlib import redirect_stdout

import pytest

from agent.scenarios import SCENARIOS
from tests.studio.driving import Desk
from tests.studio.server import ROOT, Server


@pytest.mark.parametrize("name", SCENARIOS)
async def test_an_empty_input_runs_a_scenario_to_an_end_that_its_world_bears_out(desk: Desk, name: str) -> None:
    final = await desk.run(graph=name, input={})
    assert final["outcome"]["status"] == "satisfied"
    assert any(each["event"] == "recovered" for each in final["trace"])
    world = desk.server.folder / "home" / "studio" / name / desk.thread
    assert SCENARIOS[name].check(world) == []
    again = await desk.run(graph=name, input={})
    assert (again["outcome"]["status"], again["goal"]["revision"]) == ("satisfied", 1)
    assert SCENARIOS[name].check(world) == []
    assert (await desk.state())["values"]["outcome"]["status"] == "satisfied"


def test_the_example_of_the_page_on_studio_runs_against_the_server(server: Server) -> None:
    page = (ROOT / "docs" / "studio.md").read_text()
    (code,) = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    assert "http://127.0.0.1:2024" in code
    script = code.replace("http://127.0.0.1:2024", server.url)
    said = io.StringIO()
    with redirect_stdout(said):
        exec(compile(script, "studio.md", "exec"), {})
    assert "'event': 'ended'" in said.getvalue()
    assert "messages/complete" in said.getvalue()
