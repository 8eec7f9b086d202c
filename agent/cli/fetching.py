"""What does `kintsugi model fetch` show? A bar on a terminal, else a line now and then."""

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from agent.cli.exits import BadInput
from agent.cli.screen import console, errors, is_terminal
from agent.models.local.fetching import FetchFailed
from agent.models.local.fetching import fetch as fetched
from agent.models.local.weights import QWEN
from agent.settings import Settings


def fetch(settings: Settings, source: str) -> None:
    """Bring the model to its place.

    Raises:
        BadInput: it cannot be had.
    """
    columns = (TextColumn(QWEN.name), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors(), disable=not is_terminal()) as bar:
        task = bar.add_task("", total=QWEN.size)
        try:
            place = fetched(QWEN, settings.weights, source, lambda done: bar.update(task, completed=done))
        except FetchFailed as error:
            raise BadInput(str(error)) from error
    console().print(f"{place} is there. Use it with --model local, or KINTSUGI_MODEL=local.", markup=False)
