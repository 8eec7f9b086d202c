"""The development server with a chat model beside it, in one process: `python -m tests.studio.serve PORT`."""

import json
import os
import re
import sys
from typing import Any

from langgraph_cli.cli import cli

from tests.models.openai_server import Body, completion, openai_server

_ADDING: list[Body] = [
    {"id": "n", "intent": "Count", "tool": "numbers", "produces": ["numbers"]},
    {"id": "t", "intent": "Add", "tool": "total", "args": {"numbers": "{{numbers}}"}, "produces": ["total"]},
]


def answered(body: Body) -> tuple[int, Any]:
    """Draw a plan that adds up, and pays when the goal names a purse to settle from."""
    purse = re.search(r"settle from (\S+)", " ".join(str(each["content"]) for each in body["messages"]))
    args = {"total": "{{total}}", "purse": purse[1]} if purse else {}
    paying = [{"id": "p", "intent": "Pay", "tool": "pay", "args": args, "produces": ["receipt"]}] if purse else []
    wants = ["receipt"] if purse else ["total"]
    criteria = [{"text": "there is a sum", "predicate": "artifacts.total > 0"}]
    return completion({"content": json.dumps({"steps": [*_ADDING, *paying], "wants": wants, "criteria": criteria})})


if __name__ == "__main__":
    with openai_server(answered) as model:
        os.environ["KINTSUGI_BASE_URL"] = model.url
        cli(["dev", "--no-browser", "--no-reload", "--n-jobs-per-worker", "10", "--port", sys.argv[1]])
