"""Where a role's prompt comes from: one Markdown file, read once, filled strictly, with no logic in it."""

import re
from importlib import resources
from string import Template

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

_TURN = "\n---\n"
"""Parts a file: rules that stay the same within a run, and so are cached by providers; then the case."""
_FENCE = re.compile(r"<(?=[\s/]*data\b)", re.IGNORECASE)


class Prompt:
    """The prompt of one role. Files are read here and never while a graph runs."""

    def __init__(self, role: str) -> None:
        """Read `prompts/<role>.md`.

        Raises:
            ValueError: when a `$` in it starts no placeholder (a literal one is written `$$`).
        """
        # beside the package, not by the name `prompts`: a folder of that name is common in users' projects
        text = resources.files("agent").joinpath(f"../prompts/{role}.md").read_text("utf-8")
        rules, _, case = text.partition(_TURN)
        self._role = role
        self._rules, self._case = Template(rules.strip()), Template(case.strip())
        if not (self._rules.is_valid() and self._case.is_valid()):
            raise ValueError(f"prompt {role!r} has a $ that starts no placeholder; write $$ for a plain one")
        self._fields = {*self._rules.get_identifiers(), *self._case.get_identifiers()}

    def messages(self, **fields: str) -> list[BaseMessage]:
        """The filled prompt: rules as the system's words, the case as the user's.

        Raises:
            ValueError: when a field is missing, or is one that the prompt does not have.
        """
        wrong = sorted(self._fields ^ fields.keys())
        if wrong:
            missing, extra = [n for n in wrong if n in self._fields], [n for n in wrong if n in fields]
            raise ValueError(f"prompt {self._role!r}: missing {missing}, not in the prompt {extra}")
        parts = (self._rules.substitute(fields), self._case.substitute(fields))
        rules, case = SystemMessage(parts[0]), HumanMessage(parts[1])
        return [rules, case] if parts[1] else [HumanMessage(parts[0])]

    def text(self) -> str:
        """A prompt without fields, to be put into another."""
        return str(self.messages()[0].content)


def fenced(text: str, source: str) -> str:
    """Untrusted text as data: what is inside cannot end the fence (invariant 9)."""
    return f'<data from="{_FENCE.sub("&lt;", source)}">\n{_FENCE.sub("&lt;", text)}\n</data>'


def listed(lines: tuple[str, ...] | list[str]) -> str:
    """Lines of a list, or `none`."""
    return "\n".join(f"- {each}" for each in lines) or "none"
