"""Which model plays which role, by settings and in Python; and none retries by itself."""

from collections.abc import Iterator

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from pydantic import SecretStr, ValidationError

from agent import build_graph
from agent.models.chat import CompatibleChat
from agent.models.roles import Models, named, passed
from agent.settings import DOUBTER, Settings
from tests.builders import Calls, always, calm, once, run, values
from tests.doubles import ScriptedModel, calling, scripted
from tests.graph.planning import calls, drafted, instructs, told
from tests.models.openai_server import completion, openai_server

LOCAL = "http://127.0.0.1:1/v1"


@pytest.fixture(autouse=True)
def keyed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "of-openai")
    yield


def told_of(model: BaseChatModel | None) -> tuple[str, str | None, str]:
    assert isinstance(model, CompatibleChat)
    assert isinstance(model.openai_api_key, SecretStr)
    return model.model_name, model.openai_api_base, model.openai_api_key.get_secret_value()


def test_a_role_takes_what_it_does_not_say_from_the_model_of_all() -> None:
    roles = named(
        Settings.model_validate({"model": "big", "models": {"executor": "small", "judge": {"max_tokens": 9}}})
    )
    assert [told_of(each)[0] for each in roles] == ["big", "big", "small", "big", "big", "big"]
    assert roles.planner is roles.replanner is roles.classifier, "what one server can do is found out once"
    assert isinstance(roles.judge, CompatibleChat)
    assert (roles.judge.max_tokens, roles.judge.max_retries) == (9, 0)


def test_roles_are_set_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINTSUGI_MODELS__PLANNER__MODEL", "planner-model")
    monkeypatch.setenv("KINTSUGI_MODELS__PLANNER__BASE_URL", LOCAL)
    monkeypatch.setenv("KINTSUGI_MODELS__PLANNER__API_KEY", "own")
    settings = Settings()
    roles = named(settings)
    assert told_of(roles.planner) == told_of(roles.replanner) == ("planner-model", LOCAL, "own")
    assert roles.executor is None
    assert settings.plans_text
    assert "own" not in f"{settings!r} {settings.model_dump_json()}"


def test_a_key_goes_to_no_other_server_than_its_own() -> None:
    one = {"model": "m", "base_url": "https://one.example.org/v1", "api_key": "of-one"}
    assert told_of(named(Settings.model_validate(one)).planner)[2] == "of-one"
    for elsewhere, key in ((LOCAL, "none"), ("https://api.openai.com/v1", "of-openai")):
        settings = Settings.model_validate({**one, "models": {"judge": {"base_url": elsewhere}}})
        assert told_of(named(settings).judge) == ("m", elsewhere, key)
    strange = Settings.model_validate(
        {"model": "m", "api_key": "of-one", "models": {"judge": {"base_url": "https://two.example.org/v1"}}}
    )
    with pytest.raises(ValueError, match="needs a key of its own"):
        named(strange)


def test_a_role_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"models\.planer"):
        Settings.model_validate({"models": {"planer": "m"}})
    with scripted() as model, pytest.raises(ValueError, match="there is no role 'planer'; the roles are: planner, re"):
        build_graph([], models={"planer": model})


def test_no_model_that_is_passed_retries_by_itself() -> None:
    key = SecretStr("k")
    own = ChatOpenAI(model_name="m", openai_api_base=LOCAL, openai_api_key=key, temperature=0.5, request_timeout=7.0)
    roles = passed(own)
    made = roles.planner
    assert isinstance(made, CompatibleChat)
    assert (made.max_retries, made.temperature, made.request_timeout) == (0, 0.5, 7.0)
    assert made.root_async_client.max_retries == 0
    assert all(each is made for each in roles)
    assert own.max_retries is None, "the caller's own stays as it was"


def test_without_any_model_there_is_none() -> None:
    assert named(Settings()) == passed(None) == Models()


def test_each_role_asks_its_own_model() -> None:
    counted = Calls()
    tools = [
        counted.tool("a", "", once(RuntimeError("it is sulking today")), takes="x", needs=None),
        counted.tool("rows", "", lambda page: [page], name="query", takes="page", needs=None),
    ]
    plan = drafted(calls("a", args={"x": 1}), instructs("b", "query"), wants=["a", "b"])
    with (
        scripted(plan) as planner,
        scripted('{"scope": "call"}') as classifier,
        scripted('{"args": {"x": 2}}') as repairer,
        scripted(calling("submit", b=2)) as executor,
    ):
        roles: dict[str, BaseChatModel] = {
            "planner": planner,
            "classifier": classifier,
            "repairer": repairer,
            "executor": executor,
        }
        end = run(build_graph(tools, models=roles, settings=calm()), {"goal": {"text": "Do it"}})
    assert values(end) == {"a": 1, "b": 2}


def replanned(**more: object) -> tuple[ScriptedModel, ScriptedModel]:
    """A way that is forbidden; the plan is drawn anew over another."""
    counted = Calls()
    tools = [counted.tool("x", "", always(PermissionError("forbidden")), name="one"), counted.tool("x", name="two")]
    first, second = (drafted(calls("x", tool=each), wants=["x"]) for each in ("one", "two"))
    with scripted(first) as planner, scripted(second) as replanner:
        graph = build_graph(tools, models={"planner": planner, "replanner": replanner}, settings=calm(**more))
        run(graph, {"goal": {"text": "Do it"}})
    return planner, replanner


def test_a_plan_that_broke_is_drawn_anew_by_another_model_that_does_not_defend_it() -> None:
    planner, replanner = replanned()
    assert DOUBTER not in told(planner)
    assert DOUBTER in told(replanner)


def test_what_a_replanner_is_told_about_itself_can_be_set() -> None:
    _, replanner = replanned(persona="You are the auditor.")
    assert "You are the auditor." in told(replanner)
    assert DOUBTER not in told(replanner)


def test_settings_name_the_model_of_a_graph_that_is_passed_none() -> None:
    plan = drafted(calls("a"), wants=["a"])
    with openai_server(lambda body: completion({"content": plan})) as server:
        settings = calm(model="m", base_url=server.url, api_key=SecretStr("hush-hush-key"))
        end = run(build_graph([Calls().tool("a")], settings=settings), {"goal": {"text": "Do it"}})
    assert values(end) == {"a": 1}
    assert server.keys == ["hush-hush-key"]
    assert "hush" not in repr(end)
