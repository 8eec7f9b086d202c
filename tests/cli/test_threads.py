"""The threads there are, as lines for machines and as what a shell completes."""

import json

from agent.cli.app import threads_like
from tests.cli.conftest import JOBS, environment


def test_threads_are_lines_of_json_and_complete_in_a_shell(cli, process):
    assert threads_like("") == []
    for name in ("orders-1", "other"):
        cli("run", "goal.toml", "--tools", JOBS, "--thread", name)
    listed = [json.loads(each) for each in cli("threads", "--json").stdout.splitlines()]
    assert {each["thread"]: each["status"] for each in listed} == {"orders-1": "satisfied", "other": "satisfied"}
    assert all(each["updated_at"] >= each["started_at"] > 0 for each in listed)
    assert threads_like("or") == ["orders-1"]
    asked = {"_KINTSUGI_COMPLETE": "complete_bash", "COMP_WORDS": "kintsugi trace o", "COMP_CWORD": "2"}
    printed, _ = process(env=environment(**asked)).communicate()
    assert sorted(printed.split()) == ["orders-1", "other"]
