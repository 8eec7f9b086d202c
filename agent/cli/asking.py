"""How is a person asked, and how is their answer read? Typed choices; an answer that does not fit is refused."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from rich.console import Console
from rich.prompt import Prompt
from rich.text import Text

from agent.cli.exits import BadInput, bad_input
from agent.core.answer import parse_answers
from agent.core.control import Choice, Question
from agent.core.plan import Plan
from agent.core.value import JsonValue
from agent.core.verification import products_of

LATER = "later"

_MEANING = {
    Choice.RETRY: "try again, with fresh budgets",
    Choice.ANSWER: "give the result yourself",
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
            answer = {"choice": answer, "reason": self._reason}
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
            case Choice.ANSWER:
                return {"choice": choice, "value": _read(ask("Result, as JSON", console=self._console))}
            case Choice.GOAL:
                return {"choice": choice, "goal": _read(ask("Goal, as JSON or text", console=self._console))}
            case _:
                return None if choice == LATER else {"choice": choice}


def show(console: Console, question: Question) -> None:
    """Print a question with what was tried and what can be answered."""
    console.print()
    console.print(Text(f"? {question.question}", "bold"))
    if question.error not in question.question:
        console.print(Text(f"  Error: {' '.join(question.error.split())}", "red"))
    for each in question.tried:
        console.print(Text(f"  Tried: {each}", "dim"))
    for choice in question.choices:
        console.print(Text(f"  {choice:<7} {_MEANING[choice]}"))


def refuse_unfit(answer: JsonValue, questions: Questions, plan: Plan) -> None:
    """Refuse an answer before the run sees it, so that the question stays open.

    Raises:
        BadInput: no such question or choice, or the answer lacks what its choice needs.
    """
    with bad_input("the answer does not fit: "):
        answers = parse_answers(answer, dict(questions))
    for id_, each in answers.items():
        step = questions[id_].step
        if each.choice is Choice.ANSWER and step and products_of(plan.step(step), each.value) is None:
            raise BadInput(f"the answer must give {' and '.join(plan.step(step).produces)} by name, as JSON")


def _read(text: str) -> JsonValue:
    """JSON, or the text itself where it is none."""
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return text
    return value
