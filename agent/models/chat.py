"""Which chat model do the settings name? The only file that knows a provider's client.

The client retries nothing: the ladder is the only retry. What OpenAI-compatible servers answer in their own
way (thoughts in `reasoning_content`, tool arguments as an object) is brought into one form here.
"""

import ipaddress
import json
import os
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr

from agent.models.reading import once_encoded
from agent.settings import RoleModel, Settings

_SHOWN = 200
"""Characters of something that is no reply."""
NO_KEY = (
    "the model {model!r} needs a key: set OPENAI_API_KEY or KINTSUGI_API_KEY. "
    "Goals that state `wants` and `criteria` are planned over tool contracts and need no model and no key"
)

NO_OWN_KEY = (
    "the model {model!r} lies on a server of its own and needs a key of its own: set it beside its base_url, as "
    "KINTSUGI_MODELS__<ROLE>__API_KEY"
)
_OPENAI = "api.openai.com"


def chat_model(settings: Settings, role: RoleModel = RoleModel()) -> "CompatibleChat | None":  # noqa: B008 - frozen
    """The model the settings name, for a role that may have another; None when they name none.

    Raises:
        ValueError: when the key is missing, or the name is of another provider.
    """
    name = role.model or settings.model
    if name is None:
        return None
    common = settings.base_url or os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE")
    base_url = role.base_url or common
    elsewhere = base_url != common
    return CompatibleChat(
        model_name=_bare(name, base_url),
        openai_api_base=base_url,
        openai_api_key=_key(name, role.api_key or (None if elsewhere else settings.api_key), base_url, elsewhere),
        request_timeout=settings.model_timeout,
        max_retries=0,
        max_tokens=role.max_tokens or settings.max_tokens,
        # only OpenAI itself has the other API; its clients choose it by the model's name
        use_responses_api=False if base_url else None,
    )


class CompatibleChat(ChatOpenAI):
    """`ChatOpenAI` for every server that speaks its protocol, also for those that speak it loosely."""

    def _get_request_payload(self, input_: Any, *, stop: list[str] | None = None, **kwargs: Any) -> dict[str, Any]:
        payload: dict[str, Any] = super()._get_request_payload(input_, stop=stop, **kwargs)
        # the client keeps connections for all models of a process; one of a call that ended is of an event loop that is
        # closed, and the next `invoke` would fail on it
        payload["extra_headers"] = {"Connection": "close", **(payload.get("extra_headers") or {})}
        if self.openai_api_base and "max_completion_tokens" in payload:
            payload["max_tokens"] = payload.pop("max_completion_tokens")  # the name that other servers know
        if isinstance(payload.get("response_format"), dict):
            # by the side door: the client would read the reply itself, and throw a cut one away
            form = {"response_format": payload.pop("response_format")}
            payload["extra_body"] = {**(payload.get("extra_body") or {}), **form}
        return payload

    def _create_chat_result(self, response: Any, generation_info: dict[str, Any] | None = None) -> ChatResult:
        raw = _answered(response)
        messages = [each["message"] for each in raw["choices"]]
        for each in messages:
            _spell_arguments(each)
        result = super()._create_chat_result(raw, generation_info)
        for generation, each in zip(result.generations, messages, strict=False):
            generation.message.additional_kwargs |= _thoughts(each)
        return result

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        """Piece by piece. What breaks off in the middle is an error, and no shorter reply."""
        finish, pieces = "", dict[object, str]()
        async for chunk in super()._astream(*args, **kwargs):
            finish = (chunk.generation_info or {}).get("finish_reason") or finish
            for each in getattr(chunk.message, "tool_call_chunks", ()):
                pieces[each["index"]] = pieces.get(each["index"], "") + (each["args"] or "")
            yield chunk
        if not finish:
            raise StreamBrokeOff("the stream ended before the reply did")
        if finish != "length":
            _refuse_broken(pieces)

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: dict[str, Any] | None
    ) -> ChatGenerationChunk | None:
        choices = chunk.get("choices") or ()
        delta = (choices[0].get("delta") or {}) if choices else {}
        _spell_arguments(delta, piece=True)
        made = super()._convert_chunk_to_generation_chunk(chunk, default_chunk_class, base_generation_info)
        if made is not None:
            made.message.additional_kwargs |= _thoughts(delta)
        return made


class StreamBrokeOff(ConnectionError):
    """A connection that was closed in the middle of a reply."""


class ErrorReply(RuntimeError):
    """An error that a server sent as if it were an answer, with status 200."""

    def __init__(self, error: object) -> None:
        super().__init__(json.dumps(error))
        self.body = error
        self.status_code = error.get("code") if isinstance(error, dict) else None


def _answered(response: Any) -> dict[str, Any]:
    """The reply in the form of the protocol. Without a choice it says nothing, and is paid for.

    Raises:
        ErrorReply: it is an error.
        ValueError: it is no completion at all, such as a page that a proxy shows.
    """
    dumped = response.model_dump(warnings=False) if isinstance(response, BaseModel) else response
    if not isinstance(dumped, dict):
        raise ValueError(f"the server sent no completion: {str(dumped).strip()[:_SHOWN]}")  # noqa: TRY004 - as a client
    if dumped.get("error"):
        raise ErrorReply(dumped["error"])
    choices = dumped.get("choices") or [{"message": None}]
    spoken = [{**each, "message": each.get("message") or {"role": "assistant", "content": ""}} for each in choices]
    return {**dumped, "choices": spoken}


def _spell_arguments(message: dict[str, Any], piece: bool = False) -> None:
    """Arguments sent as an object, or, where they are not only a piece, encoded twice, become plain JSON."""
    for each in message.get("tool_calls") or ():
        function = each.get("function") or {}
        given = function.get("arguments")
        if isinstance(given, str):
            function["arguments"] = given if piece else once_encoded(given)
        elif given is not None:
            function["arguments"] = json.dumps(given)


def _refuse_broken(pieces: dict[object, str]) -> None:
    """Refuse arguments that do not end: the client would close what was left open, and half a path is a path too.

    Raises:
        ValueError: the arguments of one call are no JSON.
    """
    for each in pieces.values():
        try:
            json.loads(each or "{}")
        except ValueError as error:
            raise ValueError(f"arguments that are no JSON: {each[:_SHOWN]}: {error}") from error


def _thoughts(message: dict[str, Any]) -> dict[str, str]:
    said = message.get("reasoning_content") or message.get("reasoning")
    return {"reasoning_content": said} if isinstance(said, str) else {}


def _bare(name: str, base_url: str | None) -> str:
    """The name as the server knows it: `openai:gpt-5` is `gpt-5`; a local `qwen:7b` stays as it is."""
    provider, colon, bare = name.partition(":")
    if provider == "openai" and colon:
        return bare
    if colon and not base_url and provider != "ft":
        raise ValueError(
            f"model {name!r} names the provider {provider!r}; by name only openai: is known. Set "
            f"KINTSUGI_BASE_URL for an OpenAI-compatible server, or pass a LangChain chat model in Python"
        )
    return name


def _key(name: str, given: SecretStr | None, base_url: str | None, elsewhere: bool) -> SecretStr:
    """The key for a server; the one of the environment is for OpenAI, or for the server that is set for all roles."""
    usual = not elsewhere or urlsplit(base_url or "").hostname == _OPENAI
    found = given or SecretStr(os.environ.get("OPENAI_API_KEY", "") if usual else "")
    if found.get_secret_value():
        return found
    if base_url and _is_local(base_url):
        return SecretStr("none")  # the client insists on one; a server on this network does not
    raise ValueError((NO_OWN_KEY if elsewhere else NO_KEY).format(model=name))


def _is_local(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".localhost", ".internal"))
