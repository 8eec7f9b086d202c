"""Lines in the place of lines. Whole ones: whether an edit was made can then be seen in the file alone."""

from difflib import get_close_matches

_TOLD = 1_000
"""Characters of a file that are told to whoever looked for other lines in it."""


def places(text: str, wanted: str) -> list[int]:
    """Numbers of the lines at which these lines begin; how far they are indented does not count."""
    lines, block = _stripped(text), _stripped(wanted.strip("\n"))
    return [at for at in range(len(lines) - len(block) + 1) if lines[at : at + len(block)] == block]


def edited(text: str, old: str, new: str) -> str:
    """The text with the new lines in the place of the old ones, indented as they were.

    Raises:
        ValueError: the old lines do not stand there once, or would still stand there.
    """
    if not old.strip():
        raise ValueError("say which lines are to be replaced: `old` is empty")
    if places(new, old):
        raise ValueError("the new lines hold the old ones, which would still stand there; give other lines, or more")
    found = places(text, old)
    if len(found) != 1:
        raise ValueError(f"the lines {old!r} stand there {len(found)} times, not once; {_near(text, old)}")
    lines, many = text.splitlines(keepends=True), len(_stripped(old.strip("\n")))
    first, last = lines[found[0]], lines[found[0] + many - 1]
    indent = first[: len(first) - len(first.lstrip())]
    end = last[len(last.rstrip("\r\n")) :]
    put = new.strip("\n").splitlines() if new.strip() else []
    own = put[0][: len(put[0]) - len(put[0].lstrip())] if put else ""
    placed = [f"{indent}{each.removeprefix(own)}" for each in put]
    lines[found[0] : found[0] + many] = [f"{each}{end or ''}" for each in placed]
    return "".join(lines)


def _stripped(text: str) -> list[str]:
    return [each.strip() for each in text.splitlines()]


def _near(text: str, old: str) -> str:
    near = get_close_matches(old.strip(), _stripped(text), 3, cutoff=0.5)
    return f"near to it are {', '.join(map(repr, near))}" if near else f"the file holds {text[:_TOLD]!r}"
