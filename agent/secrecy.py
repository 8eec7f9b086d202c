"""What is a secret, and what is left of it: a mark. Nothing that holds one enters state, a prompt, a log or a trace.

Known are the values of environment variables and settings whose names say so, and what looks like a credential. What
was hidden is gone for good: a call that would pass the mark on is refused, so that no mark overwrites a secret.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from pydantic import BaseModel

from agent.core.value import JsonValue

HIDDEN = "***hidden***"
"""What stands in a value where a secret stood."""

_NAMED = re.compile(
    r"(?:^|_)(?:(?:API|ACCESS|SECRET|PRIVATE|SIGNING|ACCOUNT)?_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE)$"
)
_ADDRESS = re.compile(r"://[^/\s:@]*:([^@\s/]+)@")
_SHORTEST = 8
"""Characters of a known secret; a shorter one is part of too many words."""

_VALUE = r"(?:=|\s*[:=]\s*(?=['\"])|['\"]\s*:\s*|:\s)['\"]?)(?!\*)[^\s'\"&,;(){}\[\]<>$]{4,}(?![\w(])"
_LOOKS = (
    (("sk-",), r"\bsk-[\w-]{8,}"),  # model providers
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"), r"\bg(?:h[pousr]|ithub_pat)_\w{10,}"),
    (("glpat-", "npm_", "hf_", "pypi-"), r"\b(?:glpat-|npm_|hf_|pypi-)[\w-]{10,}"),
    (("xox",), r"\bxox[abeprs]-[\w-]{10,}"),
    (("AKIA", "ASIA"), r"\bA[KS]IA[0-9A-Z]{16}\b"),
    (("AIza",), r"\bAIza[\w-]{30,}"),
    (("eyJ",), r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"),  # JWT
    (("PRIVATE KEY-----",), r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,30}KEY-----|\Z)"),
    (("://",), r"(?<=://)(?P<kept>[^/\s:@]*:)[^@\s/]+(?=@)"),  # connection strings
    (("earer", "EARER"), r"(?P<kept>\b[Bb](?:earer|EARER)\s+)[\w.~+/-]{8,}=*"),
    (("Basic ",), r"(?P<kept>(?<=uthorization).{0,5}Basic )[\w+/]{8,}=*"),
    (("assw", "ASSW"), r"(?P<kept>[Pp](?:assword|ASSWORD|asswd|ASSWD)" + _VALUE),
    (("pwd", "PWD", "Pwd"), r"(?P<kept>(?:pwd|PWD|Pwd)" + _VALUE),
    (("ecret", "ECRET"), r"(?P<kept>[Ss](?:ecret|ECRET)(?:_key|_KEY)?" + _VALUE),
    (("key", "KEY", "Key"), r"(?P<kept>[AaPp](?:pi|PI|rivate|RIVATE)[_-]?(?:key|KEY|Key)" + _VALUE),
    (("s_token", "h_token", "_TOKEN"), r"(?P<kept>(?:access_token|refresh_token|auth_token|_TOKEN)" + _VALUE),
)
_PATTERNS = tuple((hints, re.compile(each)) for hints, each in _LOOKS)
"""What each looks like, and what every text holds that has one: to look for that first is much faster."""
_KEYS = re.compile(r"(?i)(?:password|passwd|secret|api_?key|access_?token|refresh_?token|auth_?token|private_?key)")
_TOLD: set[str] = set()
"""Secrets of settings, of this process."""


def keep(*secrets: str | None) -> None:
    """Take values for secrets from now on: as they are, and the passwords of addresses among them."""
    _TOLD.update(each for given in secrets if given for each in _parts_of(given))


def hidden(value: JsonValue) -> JsonValue:
    """A value with a mark in place of every secret."""
    return _hidden(value, _known())


def masked(text: str, mark: str = "***") -> str:
    """A text without what is or looks like a credential."""
    return _without(text, _known(), mark)


def marked(value: object) -> bool:
    """Whether a value holds a mark, or a part of it does."""
    if isinstance(value, Mapping):
        return any(marked(each) for each in value.values())
    if isinstance(value, list | tuple):
        return any(marked(each) for each in value)
    return isinstance(value, str) and HIDDEN in value


def said(value: Any) -> Any:
    """What a caller states (a goal, a message, an answer), of whatever type, with a mark in place of every secret."""
    if isinstance(value, str):
        return masked(value, HIDDEN)
    if isinstance(value, BaseModel):
        plain = {name: getattr(value, name) for name in type(value).model_fields}
        clean = {name: said(each) for name, each in plain.items()}
        changed = {name: each for name, each in clean.items() if each != plain[name]}
        return value.model_copy(update=changed) if changed else value
    if isinstance(value, Mapping):
        return {name: said(each) for name, each in value.items()}
    return type(value)(said(each) for each in value) if type(value) in (list, tuple) else value


def _known() -> tuple[str, ...]:
    found = {each for name, value in os.environ.items() for each in _secrets_in(name, value)}
    return _ordered(frozenset(found | _TOLD))


@lru_cache(maxsize=512)
def _secrets_in(name: str, value: str) -> tuple[str, ...]:
    """What an environment variable holds that is secret: all of it by its name, or the password of an address."""
    if name in ("PWD", "OLDPWD"):
        return ()
    is_path = value.startswith(("/", "~", "./"))
    return tuple(_parts_of(value)) if _NAMED.search(name.upper()) and not is_path else tuple(_passwords(value))


def _parts_of(value: str) -> Iterator[str]:
    found = list(_passwords(value))
    yield from found or [value] if len(value) >= _SHORTEST else found


def _passwords(value: str) -> Iterable[str]:
    return [form for each in _ADDRESS.findall(value) for form in (each, unquote(each)) if len(form) >= _SHORTEST]


@lru_cache(maxsize=8)
def _ordered(known: frozenset[str]) -> tuple[str, ...]:
    """The longest first, and as they stand in an address."""
    spelled = {form for each in known for form in (each, quote(each, safe=""))}
    return tuple(sorted(spelled, key=lambda each: (-len(each), each)))


def _hidden(value: JsonValue, known: tuple[str, ...]) -> JsonValue:
    if isinstance(value, str):
        return _without(value, known, HIDDEN)
    if isinstance(value, list):
        return [_hidden(each, known) for each in value]
    if isinstance(value, dict):
        return {_without(name, known, HIDDEN): _under(name, each, known) for name, each in value.items()}
    return value


def _under(name: str, value: JsonValue, known: tuple[str, ...]) -> JsonValue:
    """A value under a name: the name may say that it is a secret."""
    if isinstance(value, str) and value and _KEYS.fullmatch(name):
        return HIDDEN
    return _hidden(value, known)


def _without(text: str, known: tuple[str, ...], mark: str) -> str:
    for each in known:
        if each in text:
            text = text.replace(each, mark)
    for hints, pattern in _PATTERNS:
        if any(each in text for each in hints):
            text = pattern.sub(lambda found: found.groupdict().get("kept", "") + mark, text)
    return text
