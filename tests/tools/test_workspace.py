"""Tools over the files of a folder: what they do, what they say, and that nothing is outside of it."""

import asyncio
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from agent import build_graph
from agent.core.failure import Scope
from agent.plain import as_json
from agent.tools.builtin import workspace_tools
from agent.tools.steps import bound
from tests.builders import calm, goal, run, rungs
from tests.tools.calling import Hands

C, P = Scope.CALL, Scope.PRECONDITION


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "notes").mkdir(parents=True)
    (root / "notes" / "a.txt").write_text("one\ntwo\nthree\n")
    (root / "raw.bin").write_bytes(b"\xff\x00")
    (tmp_path / "secret.txt").write_text("secret")
    return root


@pytest.fixture
def hands(root: Path) -> Hands:
    return Hands(workspace_tools(root, limit=1_000))


def test_a_file_is_read_by_lines_with_the_digest_of_all_of_it(hands: Hands) -> None:
    found = hands.call("read_file", path="./notes/a.txt", offset=1, limit=1)
    assert (found["text"], found["lines"], found["more"]) == ("two\n", 3, True)
    assert found["digest"] == digest("one\ntwo\nthree\n")
    assert hands.call("read_file", path="raw.bin")["content"] == as_json(b"\xff\x00")


def test_files_are_listed_and_searched(hands: Hands) -> None:
    listed = hands.call("list_files", pattern="*.txt")
    assert [each["path"] for each in listed["entries"]] == ["notes/a.txt"]
    assert hands.call("list_files", limit=1)["more"] is True
    found = hands.call("search_files", text="TWO", ignore_case=True)
    assert found == {"count": 1, "lines": [{"path": "notes/a.txt", "line": 2, "text": "two"}], "more": False}


def test_a_file_is_replaced_only_where_it_holds_what_was_expected(hands: Hands, root: Path) -> None:
    hands.call("write_file", path="b.txt", text="1")
    hands.call("write_file", path="b.txt", text="1")  # it holds that already
    assert hands.scope("write_file", path="b.txt", text="2") is P
    assert hands.scope("write_file", path="b.txt", text="2", replaces=digest("0")) is P
    assert hands.scope("write_file", path="gone.txt", text="2", replaces=digest("0")) is P
    assert hands.call("write_file", path="b.txt", text="2", replaces=digest("1"))["digest"] == digest("2")
    hands.call("write_file", path="b.txt", text="3", replaces="*")
    assert (root / "b.txt").read_text() == "3"
    assert sorted(each.name for each in root.iterdir()) == ["b.txt", "notes", "raw.bin"]  # no draft is left


@pytest.mark.parametrize("nothing", [None, "", "none", "None", "null"])
def test_a_new_file_replaces_nothing_however_that_is_said(hands: Hands, root: Path, nothing: str | None) -> None:
    hands.call("write_file", path="new.txt", text="1", replaces=nothing)
    assert hands.scope("write_file", path="new.txt", text="2", replaces=nothing) is P
    assert (root / "new.txt").read_text() == "1"


def test_a_replaced_file_keeps_its_permissions(hands: Hands, root: Path) -> None:
    (root / "run.sh").write_text("a")
    (root / "run.sh").chmod(0o750)
    hands.call("write_file", path="run.sh", text="b", replaces="*")
    assert (root / "run.sh").stat().st_mode & 0o777 == 0o750


def test_files_and_folders_are_made_moved_and_deleted(hands: Hands, root: Path) -> None:
    hands.call("make_folder", path="x/y")
    hands.call("make_folder", path="x/y")
    hands.call("move_file", path="notes/a.txt", to="x/y/a.txt")
    assert (root / "x/y/a.txt").exists()
    assert hands.scope("delete_file", path="x/y") is P  # not empty
    assert hands.scope("delete_file", path="x/y/a.txt", holds=digest("0")) is P
    assert hands.call("delete_file", path="x/y/a.txt", holds=digest("one\ntwo\nthree\n")) == {
        "path": "x/y/a.txt",
        "deleted": True,
    }
    hands.call("delete_file", path="x/y")
    hands.call("delete_file", path="x/y")
    assert not (root / "x/y").exists()


def test_nothing_is_moved_over_anything(hands: Hands, root: Path) -> None:
    assert hands.scope("move_file", path="raw.bin", to="notes/a.txt") is P
    assert (root / "notes/a.txt").read_text().startswith("one")


@pytest.mark.parametrize(
    ("tool", "args", "scope"),
    [
        pytest.param("read_file", {"path": "gone.txt"}, P, id="missing"),
        pytest.param("read_file", {"path": "notes"}, P, id="a folder"),
        pytest.param("read_file", {"path": "notes/a.txt/b"}, P, id="below a file"),
        pytest.param("write_file", {"path": "gone/a.txt", "text": ""}, P, id="no folder"),
        pytest.param("write_file", {"path": "a.txt", "text": "x" * 1_001}, C, id="too large"),
        pytest.param("write_file", {"path": "b.txt", "text": "", "replaces": "b.txt"}, C, id="no digest"),
        pytest.param("move_file", {"path": "gone.txt", "to": "b.txt"}, P, id="nothing to move"),
        pytest.param("move_file", {"path": "notes", "to": "notes/b"}, C, id="into itself"),
        pytest.param("search_files", {"text": ""}, C, id="empty search"),
        pytest.param("read_file", {"path": "notes/a.txt", "offset": -1}, C, id="negative offset"),
    ],
)
def test_errors_say_what_they_prove_false(hands: Hands, tool: str, args: dict[str, Any], scope: Scope) -> None:
    assert hands.scope(tool, **args) is scope


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("notes/b.txt", "'notes/b.txt'; notes holds 'a.txt'"),
        ("note/a.txt", "no such folder in the workspace: 'note'; the workspace holds 'notes', "),
        ("empty/a.txt", "; empty is empty"),
    ],
)
def test_whoever_looks_for_a_file_in_vain_is_told_what_is_there(hands: Hands, root: Path, path: str, says: str) -> None:
    (root / "empty").mkdir()
    assert says in hands.refused("read_file", path=path).message


def test_a_few_likely_names_are_told_of_many(hands: Hands, root: Path) -> None:
    for number in range(50):
        (root / "notes" / f"{number}.md").touch()
    said = hands.refused("read_file", path="notes/a.text").message
    assert "notes holds 'a.txt'" in said
    assert said.endswith("and 43 more")


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        pytest.param("one\ntwo\nthree\n", "two", "2\nII", "one\n2\nII\nthree\n", id="one line for two"),
        pytest.param("one\r\ntwo\r\n", "two\n", "2", "one\r\n2\r\n", id="the line ends of the file"),
        pytest.param(
            "a:\n    b: 1\n    c: 2\n", "b: 1\nc: 2", "b: 2\n  d: 3", "a:\n    b: 2\n      d: 3\n", id="indented"
        ),
        pytest.param("one\ntwo", "two", "2", "one\n2", id="no line end at the end"),
        pytest.param("one\ntwo\n", "two", "", "one\n", id="nothing in its place"),
        pytest.param("two\ntwo one\n", "two", "one", "one\ntwo one\n", id="only whole lines"),
    ],
)
def test_lines_are_put_in_the_place_of_others_once(
    hands: Hands, root: Path, before: str, old: str, new: str, after: str
) -> None:
    (root / "a.txt").write_bytes(before.encode())
    for _ in range(2):
        hands.call("edit_file", path="a.txt", old=old, new=new)
        assert (root / "a.txt").read_bytes() == after.encode()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("four", "4", "stand there 0 times, not once; the file holds 'one\\ntwo"),
        ("thre", "3", "near to it are 'three'"),
        ("two", "2\ntwo", "hold the old ones"),
        ("twice", "once", "stand there 2 times"),
        (" \n", "x", "`old` is empty"),
    ],
)
def test_an_edit_that_is_not_clear_changes_nothing(hands: Hands, root: Path, old: str, new: str, says: str) -> None:
    (root / "a.txt").write_text(text := "one\ntwo\nthree\ntwice\ntwice\n")
    assert says in hands.refused("edit_file", path="a.txt", old=old, new=new).message
    assert hands.scope("edit_file", path="a.txt", old=old, new=new) is C
    assert (root / "a.txt").read_text() == text


def test_a_large_file_is_refused_and_not_read(hands: Hands, root: Path) -> None:
    with (root / "huge").open("wb") as file:
        file.truncate(10**12)  # a sparse terabyte
    assert "too large" in hands.refused("read_file", path="huge").message
    assert hands.call("search_files", text="two")["lines"]


def test_links_swapped_in_during_calls_lead_nowhere(hands: Hands, root: Path, tmp_path: Path) -> None:
    """A folder on the path is exchanged for a link to the outside, over and over, while files are read and written."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("secret")
    over = threading.Event()

    def swap() -> None:
        real, link, spare = root / "notes", root / "link", root / "spare"
        link.symlink_to(outside, target_is_directory=True)
        while not over.is_set():
            real.rename(spare)
            link.rename(real)
            real.rename(link)
            spare.rename(real)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for _ in range(40):
            for call in (
                {"tool": "read_file", "path": "notes/a.txt"},
                {"tool": "write_file", "path": "notes/new.txt", "text": "x", "replaces": "*"},
            ):
                answer = _either(hands, **call)
                assert "secret" not in str(answer)
    finally:
        over.set()
        swapping.join()
    assert sorted(each.name for each in outside.iterdir()) == ["a.txt"]


def _either(hands: Hands, tool: str, **args: Any) -> object:
    return asyncio.run(hands.acall(tool, **args))


def test_a_write_whose_answer_was_lost_is_observed_and_not_repeated(root: Path) -> None:
    """Through the graph: the file was written, the answer never came, and the file shows that it was."""
    tools = {each.name: each for each in workspace_tools(root)}
    write, lost = tools["write_file"], [TimeoutError("gateway timeout")]
    inner, written = write.func, []  # type: ignore[attr-defined]

    def losing(**args: Any) -> Any:
        answer = inner(**args)
        written.append(answer)
        if lost:
            raise lost.pop()
        return answer

    report = bound(write.model_copy(update={"func": losing}), "report", {"path": "r.txt", "text": "done"})
    graph = build_graph([report], settings=calm(), checkpointer=InMemorySaver())
    end = run(graph, goal("report", "artifacts.report.text == 'done'"))
    assert (root / "r.txt").read_text() == "done"
    assert (len(written), rungs(end)) == (1, [])
    assert [each.how for each in end["trace"] if each.event == "attempt_ended"] == ["adopted"]
    run(graph, goal("report"))
    assert len(written) == 1


def test_a_missing_folder_is_refused_when_the_tools_are_made(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="make it first"):
        workspace_tools(tmp_path / "gone")


def test_read_only_tools_change_nothing(root: Path) -> None:
    contracts = Hands(workspace_tools(root, read_only=True)).registry.contracts
    assert {each.effect for each in contracts.values()} == {"read_only"}
