"""`doctor`: what is configured, whether it works, and never a secret."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.cli.conftest import JOBS


class Models(BaseHTTPRequestHandler):
    """A model server that wants one key."""

    def do_GET(self):
        known = self.headers["Authorization"] == "Bearer sk-right-and-long"
        self.send_response(200 if self.path == "/v1/models" and known else 401)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    with HTTPServer(("127.0.0.1", 0), Models) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        monkeypatch.setenv("KINTSUGI_MODEL", "some-model")
        monkeypatch.setenv("KINTSUGI_BASE_URL", f"http://127.0.0.1:{http.server_port}/v1")
        yield http
        http.shutdown()
        thread.join()


def test_nothing_configured_is_fine_and_nothing_is_made(cli, folder):
    said = cli("doctor").stdout
    for each in ("Python", "langgraph 1.", "made by the first run", "none configured", "LangSmith  off"):
        assert each in said
    assert "BROKEN" not in said
    assert not (folder / ".kintsugi").exists()


def test_a_model_that_answers_is_fine(cli, server, monkeypatch):
    monkeypatch.setenv("KINTSUGI_API_KEY", "sk-right-and-long")
    said = cli("doctor").output
    assert "some-model at http://127.0.0.1" in said
    assert "answers" in said
    assert "sk-right" not in said


def test_a_key_that_is_refused_is_broken_and_not_printed(cli, server, monkeypatch):
    monkeypatch.setenv("KINTSUGI_API_KEY", "sk-wrong-and-long")
    said = cli("doctor", code=2).output
    assert "refused with status 401" in said
    assert "sk-wrong" not in said


def test_a_model_that_nobody_serves_is_broken(cli, monkeypatch):
    monkeypatch.setenv("KINTSUGI_MODEL", "some-model")
    monkeypatch.setenv("KINTSUGI_BASE_URL", "http://127.0.0.1:9/v1")
    assert "cannot be reached" in cli("doctor", code=2).stdout


def test_a_model_without_a_key_is_broken(cli, monkeypatch):
    monkeypatch.setenv("KINTSUGI_MODEL", "openai:gpt-5")
    assert "OPENAI_API_KEY" in cli("doctor", code=2).stdout


def test_a_database_that_is_refused_and_tools_that_are_missing_are_broken(cli, folder, monkeypatch):
    (folder / ".kintsugi").mkdir()
    (folder / ".kintsugi" / "kintsugi.db").write_bytes(b"not a database" * 100)
    monkeypatch.setenv("KINTSUGI_TOOLS", "nowhere:TOOLS")
    said = cli("doctor", code=2).stdout
    assert said.count("BROKEN") == 2
    assert "it is not an SQLite database" in said
    assert "KINTSUGI_TOOLS: there is no module 'nowhere'" in said


def test_tools_that_load_are_counted(cli, monkeypatch):
    monkeypatch.setenv("KINTSUGI_TOOLS", JOBS)
    assert f"{JOBS}: 5" in cli("doctor").stdout


def test_tracing_without_a_key_is_broken(cli, monkeypatch):
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    assert "LANGSMITH_API_KEY is not set" in cli("doctor", code=2).stdout
