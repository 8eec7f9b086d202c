"""The tasks with a live model, where there is one."""

from pathlib import Path

import pytest

from tests.live.__main__ import ENOUGH
from tests.live.drivers import ours
from tests.live.servers import NOBODY, asked, named
from tests.live.task import tasks


@pytest.mark.enable_socket
def test_a_live_model_does_most_of_the_tasks(tmp_path: Path) -> None:
    settings = named()
    if settings is None:
        pytest.skip(NOBODY)
    with asked(settings) as model:
        done = [ours(each, tmp_path / each.name, model) for each in tasks()]
    wrong = {each.task: each.wrongs for each in done if not each.right}
    assert len(wrong) <= (1 - ENOUGH) * len(done), wrong
