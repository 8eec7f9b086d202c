"""Reports of real runs, each made once for all tests that read it."""

from pathlib import Path
from typing import Any

import pytest

from agent.core.limits import Limits
from agent.trace.html.model import Material, Report
from agent.trace.html.report import report_of
from tests.cli import conftest as command
from tests.scenarios.driving import drive

cli = command.cli
"""The command, in this process."""


@pytest.fixture(scope="session")
def backfill(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The scenario that is broken three ways: a time-out, an answer too large, a renamed column."""
    return report_of(ended("backfill", tmp_path_factory.mktemp("backfill")))


@pytest.fixture(scope="session")
def config_report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The scenario whose schema is published too early."""
    return report_of(ended("config-report", tmp_path_factory.mktemp("config")))


def ended(name: str, folder: Path) -> Material:
    """A scenario, run to its end."""
    state: dict[str, Any] = drive(name, folder)
    names = ("goal", "plan", "world", "trace", "ledger", "outcome")
    return Material(
        thread=name,
        standing=state["outcome"].status,
        limits=Limits(),
        **{each: state[each] for each in names},
    )
