"""How is a person asked, and how is their answer read? Typed choices; an answer that does not fit is refused."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from rich.console import Console
from rich.prompt import Prompt
from rich.text import Text

from agent.boundary import shortened
from agent.cli.exits import BadInput, bad_input
from agent.core.answer import fitting_answers
from agent.core.control import Choice, Question
from agent.core.plan import Plan
from agent.core.value import JsonValue, canonical

LATER = "later"
_SHOWN = 400
"""Characters of a call's arguments that are shown; `--json` shows them whole."""

_MEANING = {
    Choice.APPROVE: "let the call be made as it stands",
    Choice.RETRY: "try again, with fresh budgets",
    Choice.HINT: "try again, and say what to mind",
    Choice.ANSWER: "give the result yourself",
    Choice.EDIT: "change the call's arguments",
    Choice.RAISE: "raise a limit, and try again",
    Choice.SKIP: "leave the step out",
    Choice.GOAL: "state another goal",
    Choice.ABORT: "end the run",
}

Questions = Mapping[str, Question]


class Person(Protocol):
    """Who answers; None: not now."""

    def ask(self, questions: Questions, plan: Plan, /) -> JsonValue:
        """Answer all or some of the questions, by id."""
        ...


class Nobody:
    """No person is there: the run waits."""

    def ask(self, _: Questions, __: Plan, /) -> JsonValue:
        """Answer nothing."""
        return None


class Given:
    """An answer from the command line; what is asked after it waits."""

    def __init__(self, text: str, reason: str, afterwards: Person) -> None:
        """Args: a choice or JSON; the reason for it; who is asked next."""
        self._text: str | None = text
        self._reason = reason
        self._afterwards = afterwards

    def ask(self, questions: Questions, plan: Plan) -> JsonValue:
        """Answer once."""
        if self._text is None:
            return self._afterwards.ask(questions, plan)
        answer, self._text = _read(self._text), None
        if isinstance(answer, str):
            answer = {"choice": answer, "hint" if answer == Choice.HINT else "reason": self._reason}
        refuse_unfit(answer, questions, plan)
        return answer


class AtTerminal:
    """Asks in words, one question after the other."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def ask(self, questions: Questions, plan: Plan) -> JsonValue:
        """Ask every question; those put off stay open."""
        answers: dict[str, JsonValue] = {}
        # whoever leaves in the middle has answered what they have answered
        with suppress(KeyboardInterrupt, EOFError):
            for each in questions.values():
                show(self._console, each)
                answer = self._answered(each, plan)
                if answer is not None:
                    answers[each.id] = answer
        return answers or None

    def _answered(self, question: Question, plan: Plan) -> JsonValue:
        while True:
            answer = self._typed(question)
            if answer is None:
                return None
            try:
                refuse_unfit({question.id: answer}, {question.id: question}, plan)
            except BadInput as error:
                self._console.print(Text(str(error), "red"))
            else:
                return answer

    def _typed(self, question: Question) -> JsonValue:
        ask = Prompt(console=self._console).ask
        choice = ask("What should happen", choices=[*question.choices, LATER], default=LATER, console=self._console)
        match choice:
            case Choice.SKIP | Choice.ABORT:
                return {"choice": choice, "reason": ask("Reason", default="", console=self._console)}
            case Choice.HINT:
                return {"choice": choice, "hint": ask("Hint", default="", console=self._console)}
            case Choice.EDIT:
                return {"choice": choice, "args": _read(ask("Arguments to change, as JSON", console=self._console))}
            case Choice.RAISE:
                return {"choice": choice, "limits": _limits(ask("Limits, as name=number", console=self._console))}
            case Choice.ANSWER:
                return {"choice": choice, "value": _read(ask("Result, as JSON", console=self._console))}
            case Choice.GOAL:
                return {"choice": choice, "goal": _read(ask("Goal, as JSON or text", console=self._console))}
            case _:
                return None if choice == LATER else {"choice": choice}


def show(console: Console, question: Question) -> None:
    """Print a question with what was tried and what can be answered."""
    console.print()
    console.print(Text(f"? {question.question}", "bold"), Text(f"({question.id})", "dim"))
    if question.error not in question.question:
        console.print(Text(f"  Error: {' '.join(question.error.split())}", "red"))
    if question.call:
        console.print(Text(f"  Call: {question.call.tool} {shortened(canonical(question.call.args), _SHOWN)}"))
    for each in question.tried:
        console.print(Text(f"  Tried: {each}", "dim"))
    for each in question.learned:
        console.print(Text(f"  Learned: {each}", "dim"))
    for choice in question.choices:
        console.print(Text(f"  {choice:<7} {_MEANING[choice]}"))


def refuse_unfit(answer: JsonValue, questions: Questions, plan: Plan) -> None:
    """Refuse an answer before the run sees it, so that the question stays open.

    Raises:
        BadInput: no such question or choice, or the answer lacks what its choice needs.
    """
    with bad_input("the answer does not fit: "):
        fitting_answers(answer, questions, plan)


def _limits(text: str) -> JsonValue:
    """`retry=6 tokens=1000000`, or JSON; what is neither is left for the refusal to name."""
    pairs = [each.partition("=") for each in text.replace(",", " ").split()]
    named = text.strip() and all(equals for _, equals, _ in pairs)
    return {name: _read(value) for name, _, value in pairs} if named else _read(text)


def _read(text: str) -> JsonValue:
    """JSON, or the text itself where it is none."""
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return text
    return value
