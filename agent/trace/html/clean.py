"""The one door to the page: every text in a report is masked, cut and made printable here."""

import re
from typing import TypeVar

from agent.boundary import masked, shortened
from agent.core.value import JsonValue, Value

LONGEST = 1_000
"""Characters of one text; of a longer one head and tail are shown."""

# controls, what turns the direction of text round, line separators, and halves of characters
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff0-\uffff\ud800-\udfff]"
)

V = TypeVar("V", bound=Value)


def cleaned(value: V) -> V:
    """The same value, with every text in it fit to be shown."""
    return type(value).model_validate(_cleaned(value.model_dump()))


def printable(text: str) -> str:
    """A text without credentials, not too long, with what cannot be seen spelled out."""
    return shortened(_UNPRINTABLE.sub(lambda each: f"\\u{ord(each.group()):04x}", masked(_ends(text))), LONGEST)


def _ends(text: str) -> str:
    """Of a huge text what may be shown of it, with so much around it that no credential is cut in two there."""
    return text if len(text) <= 8 * LONGEST else f"{text[: 4 * LONGEST]} … {text[-4 * LONGEST :]}"


def _cleaned(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(key): _cleaned(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(each) for each in value]
    return value
