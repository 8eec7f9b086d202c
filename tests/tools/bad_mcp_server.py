"""An MCP server by hand that misbehaves as it is told: `python bad_mcp_server.py MANNER FOLDER`.

The folder remembers what happened in earlier lives: a line in `starts` for each start, one in `calls` for each call.
"""

import json
import sys
import time
from pathlib import Path

manner, folder = sys.argv[1], Path(sys.argv[2])


def hang():
    """Say nothing until the other side gives up."""
    for _ in sys.stdin:
        pass
    sys.exit()


def note(name):
    with (folder / name).open("a") as log:
        log.write("x\n")


def said(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(request, result):
    said({"id": request["id"], "result": result})


def tools():
    names = (folder / "tools").read_text().split() if (folder / "tools").exists() else ["act"]
    kind = "integer" if (folder / "retyped").exists() else "string"
    return [{"name": name, "inputSchema": {"type": "object", "properties": {"x": {"type": kind}}}} for name in names]


def act(request):
    note("calls")
    lives = len((folder / "starts").read_text().split())
    if manner == "dies" and lives == 1:
        sys.stderr.write("out of luck\n")
        sys.exit(3)
    if manner == "hangs" and lives == 1:
        hang()
    if manner == "garbage":
        sys.stdout.write("### loading 50% \x1b[31m\n{not json\n")
    if manner == "rejects":
        said({"id": request["id"], "error": {"code": -32602, "message": "x must be positive"}})
        return
    answer(request, {"content": [{"type": "text", "text": f"life {lives}"}]})


note("starts")
if manner == "broken":
    sys.stderr.write("no licence: token-abc-123\n")
    sys.exit(1)
if manner == "babbles":
    while True:
        sys.stdout.write("hello\n")
        sys.stdout.flush()
        time.sleep(0.05)
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "initialize":
        if manner == "mute":
            hang()
        told = {"protocolVersion": request["params"]["protocolVersion"], "serverInfo": {"name": "b", "version": "1"}}
        answer(request, {**told, "capabilities": {"tools": {"listChanged": True}}})
    elif request["method"] == "tools/list":
        answer(request, {"tools": tools()})
    elif request["method"] == "tools/call":
        if manner == "changes":
            (folder / "tools").write_text("other")
            said({"method": "notifications/tools/list_changed"})
        if manner == "retypes":
            (folder / "retyped").touch()
            said({"method": "notifications/tools/list_changed"})
        act(request)
