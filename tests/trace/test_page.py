"""Is the page one file that loads nothing, runs nothing but its own script, and can be read without it?"""

import base64
import hashlib
import json
import re
from functools import cache
from html.parser import HTMLParser
from http import HTTPStatus
from pathlib import Path

import pytest

from agent.core.limits import Ledger
from agent.trace.html import page as pages
from agent.trace.html.clean import LONGEST, printable
from agent.trace.html.model import Material, Report
from agent.trace.html.page import ROWS, page, policy
from agent.trace.html.report import report_of
from tests.builders import goal
from tests.trace.materials import HOSTILE, artifact, asking, empty, hostile, killed, many

VOID = {"meta", "link", "br", "input", "img"}
VENDOR = Path(pages.__file__).parent / "page" / "vendor"


class Document(HTMLParser):
    """Reads a page strictly: every element is closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1][0] == tag, f"</{tag}> inside {self.open[-1]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.append((self.open[-1][0], data))

    def of(self, tag: str) -> list[str]:
        return [text for inside, text in self.texts if inside == tag]

    @property
    def visible(self) -> str:
        return " ".join(" ".join(text for tag, text in self.texts if tag not in ("script", "style")).split())


REPORTS = {
    "finished": lambda: report_of(many(5)),
    "large": lambda: report_of(many(ROWS + 20)),
    "killed": lambda: report_of(killed()),
    "empty": lambda: report_of(empty()),
    "asking": lambda: report_of(asking()),
    "hostile": lambda: hostile(report_of(many(5))),
}


@pytest.fixture(params=REPORTS)
def document(request: pytest.FixtureRequest) -> Document:
    """A page, read strictly."""
    return _document(request.param)


@cache
def _document(name: str) -> Document:
    return Document(page(REPORTS[name]()))


def test_every_page_is_well_formed_and_its_ids_differ(document: Document) -> None:
    ids = [each["id"] for _, each in document.elements if "id" in each]
    assert len(set(ids)) == len(ids)
    links = [str(each["href"])[1:] for tag, each in document.elements if tag == "a"]
    assert set(links) <= set(ids)


def test_no_page_loads_anything(document: Document) -> None:
    for tag, each in document.elements:
        assert tag not in ("img", "iframe", "object", "embed", "form", "base"), (tag, each)
        assert "src" not in each, (tag, each)
        assert str(each.get("href", "#")).startswith(("#", "data:,")), (tag, each)
        assert not [name for name in each if name.startswith("on") or name == "style"], (tag, each)


def test_the_policy_allows_exactly_the_scripts_and_the_style_of_the_page(document: Document) -> None:
    (meta,) = (each for _, each in document.elements if each.get("http-equiv") == "Content-Security-Policy")
    scripts = [text for text in document.of("script") if not text.startswith('{"steps"')]
    hashes = re.findall(r"script-src ([^;]+)", str(meta["content"]))[0].split()
    assert [f"'sha256-{_digest(text)}'" for text in scripts] == hashes
    assert f"style-src 'sha256-{_digest(document.of('style')[0])}'" in str(meta["content"])
    assert "default-src 'none'" in str(meta["content"])


def test_the_data_of_the_script_is_json_in_plain_ascii(document: Document) -> None:
    (block,) = (text for text in document.of("script") if text.startswith('{"steps"'))
    assert block.isascii()
    assert not set("<>&") & set(block)
    assert set(json.loads(block)) == {"steps", "drawn"}


def test_a_hostile_text_is_a_text_wherever_it_stands() -> None:
    text = page(hostile(report_of(many(5))))
    document = Document(text)
    assert len([tag for tag, _ in document.elements if tag == "script"]) == 4
    assert "window.hacked" in document.visible
    assert "{{7*7}}" in document.visible
    for unseen in HOSTILE:
        assert unseen.isprintable() or unseen not in text
    text.encode()  # no half of a character is left


def test_no_secret_reaches_a_page() -> None:
    password = artifact("login", value={"password": "hunter2", "token": "t0psecret"}, size=50)
    material = many(2)
    world = material.world.model_copy(update={"artifacts": {"login": password}})
    shown = page(report_of(Material(thread="t", standing="satisfied", goal=goal("login"), world=world)))
    assert "login" in shown
    assert "hunter2" not in shown
    assert "t0psecret" not in shown
    assert "sk-0123456789abcdef" not in page(hostile(report_of(material)))


def test_a_huge_artifact_and_a_huge_text_leave_the_page_small() -> None:
    large = artifact("large", value=None, stored=True, size=20_000_000)
    inline = artifact("inline", value="x" * 100_000, size=100_002)
    world = many(1).world.model_copy(update={"artifacts": {"large": large, "inline": inline}})
    shown = page(report_of(Material(thread="t", standing="satisfied", goal=goal(text="y" * 100_000), world=world)))
    assert len(shown) < len(page(report_of(empty()))) + 30_000
    assert "20 MB in the artifact store" in shown
    assert len(printable("z" * 10_000_000)) < 2 * LONGEST


def test_a_large_run_says_what_its_page_leaves_out() -> None:
    document = _document("large")
    rows = [each for tag, each in document.elements if tag == "tr" and "data-step" in each]
    assert len(rows) == ROWS
    assert "22 steps more, of which there is nothing to tell" in document.visible
    assert {"PART_0000", "PART_0001", "PART_0002"} <= {each["data-step"] for each in rows}


def test_without_its_script_the_page_answers_the_six_questions(backfill: Report) -> None:
    told = Document(page(backfill)).visible
    for said in (
        f"413 {HTTPStatus(413).phrase}",  # another one from Python 3.13 on
        "What it proved false the call",
        "patch , taken",
        "batch = 'day' instead of 'week'",
        "Kept",
        "it looks again at what was in doubt",
        "it reads schema, which was in doubt",
        "failed attempt",
        "result.rows == artifacts.export.weeks[args.week].rows",
    ):
        assert said in told


def test_everything_that_scrolls_can_be_reached_and_has_a_name(document: Document) -> None:
    for _, each in document.elements:
        if "wide" in str(each.get("class", "")).split():
            assert each["tabindex"] == "0"
            assert each["aria-label"]


def test_what_is_entered_or_pressed_has_a_name() -> None:
    text = page(report_of(many(3)))
    document = Document(text)
    for tag, each in document.elements:
        if tag == "button":
            assert "aria-label" in each or re.search(rf'id="{each["id"]}">[^<]+</button>', text)
        if tag == "input":
            assert re.search(rf"<label[^>]*>[^<]*<input[^>]*id=\"{each['id']}\"", text)
        if tag == "th":
            assert each["scope"] in ("row", "col")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(scheme: str) -> None:
    colours = _colours(scheme)
    for text, behind in (
        ("text", "back"),
        ("text", "card"),
        ("text", "line"),
        ("muted", "back"),
        ("muted", "card"),
        ("gold-text", "gold-soft"),
        ("red", "card"),
        ("red", "back"),
        ("green", "card"),
        ("green", "back"),
        ("blue", "back"),
        ("blue", "card"),
        *(("text", f"{each}-soft") for each in ("gold", "red", "green", "blue")),
    ):
        assert _contrast(colours[text], colours[behind]) >= 4.5, (scheme, text, behind)
    for edge in ("gold", "red", "blue", "muted"):
        assert _contrast(colours[edge], colours["card"]) >= (2.7 if edge == "gold" else 3), (scheme, edge)


def test_a_served_page_may_ask_its_own_server_and_a_file_nobody() -> None:
    assert "connect-src 'self'" in policy(live=True)
    assert "connect-src" not in policy()


def test_the_libraries_are_those_that_the_notice_names() -> None:
    notice = (VENDOR / "NOTICE").read_text()
    named = dict(re.findall(r"^(\S+\.js)$.*?sha256\s+(\w{64})", notice, re.M | re.S))
    found = {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in VENDOR.glob("*.js")}
    assert named == found
    assert "Permission is hereby granted" in page(report_of(empty()))


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _colours(scheme: str) -> dict[str, str]:
    light, dark = re.findall(r":root \{(.*?)\}", (VENDOR.parent / "page.css").read_text(), re.S)
    return dict(re.findall(r"--([\w-]+): #(\w{6})", dark if scheme == "dark" else light))


def _contrast(one: str, other: str) -> float:
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_page_says_which_model_had_which_part_and_over_how_many_tokens() -> None:
    ledger = Ledger(executor_turns=7, executor_tokens_in=1_234, models={"executor": ("small", HOSTILE)})
    document = Document(page(report_of(Material(thread="t", standing="running", ledger=ledger))))
    assert "executor small, </script>" in document.visible
    assert "7 turns 1,234 0" in document.visible
    assert "No model was asked." in Document(page(report_of(many(5)))).visible
