"""What success means. The goal changes only by an intent change, and every change is a new revision."""

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from agent.core.family import expand
from agent.core.predicate import Judgement, Predicate, Verdict, judge, reads
from agent.core.ruling import Ruling, case, fact_of
from agent.core.value import ArtifactName, Digest, JsonValue, Value, words
from agent.core.world import Fact, World

OCCASION = 1_000_000
"""More repetitions than the world can lose an effect, or a person allow one, under one revision of the goal."""

Names = Annotated[tuple[ArtifactName, ...], BeforeValidator(words)]
"""Artifact names; `"a b"` is accepted for `("a", "b")`."""


class Criterion(Value):
    """One thing that must hold at the end: a sentence, and the predicate that checks it.

    A criterion without a predicate needs a judge model; without one it stays unverifiable.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    id: str
    """Names it; no other criterion of the goal has it."""
    text: str = ""
    """The sentence."""
    predicate: Predicate | None = None
    """The check, in CEL: `artifacts.report.rows > 0`."""


class Goal(Value):
    """What to reach: free text, wanted artifacts, criteria, constraints and given values."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    text: str = ""
    """The goal in words. Alone it needs a model to plan it."""
    wants: Names = ()
    """Names of the artifacts to make; planned over tool contracts, without a model."""
    criteria: tuple[Criterion, ...] = ()
    """What has to hold at the end."""
    constraints: tuple[str, ...] = ()
    """What a planning model has to respect."""
    given: dict[ArtifactName, JsonValue] = Field(default_factory=dict)
    """Artifacts that exist from the start; their producer is the goal."""
    again: Names = ()
    """Wants to make anew though they hold, also by a write that is made once otherwise. Each revision of a goal asks
    for that once: the same goal stated twice is one wish, and a replan or a resume does not repeat it."""
    revision: int = 1
    """Counts the changes of intent; the runtime counts."""

    @model_validator(mode="before")
    @classmethod
    def _name_bare_criteria(cls, data: object) -> object:
        """Accept a bare CEL string for a criterion, and a bare string for a goal's text."""
        if isinstance(data, str):
            return {"text": data}
        if isinstance(data, Mapping) and data.get("again"):
            data = {**data, "wants": _united(data.get("wants"), data["again"])}
        if isinstance(data, Mapping) and isinstance(data.get("criteria"), list | tuple):
            named = [
                {"id": f"c{index}", "text": each, "predicate": each} if isinstance(each, str) else each
                for index, each in enumerate(data["criteria"], 1)
            ]
            return {**data, "criteria": tuple(named)}
        return data

    @model_validator(mode="after")
    def _ids_differ(self) -> "Goal":
        ids = [criterion.id for criterion in self.criteria]
        twice = sorted({each for each in ids if ids.count(each) > 1})
        if twice:
            raise ValueError(f"criterion ids are used twice: {', '.join(twice)}")
        return self

    @property
    def stated(self) -> bool:
        """Whether it says what can be checked; a free text says so only once a planner has understood it."""
        return bool(self.wants) or any(each.predicate for each in self.criteria)

    def same_intent(self, other: "Goal") -> bool:
        """Whether `other`, stated after this one, asks for the same thing, whatever their revisions.

        The same free text again is the same goal, though this one has been completed by a planner since.
        """
        if self.text and not other.stated:
            told = ("text", "constraints", "given", "again")
            same = all(getattr(self, name) == getattr(other, name) for name in told)
            return same and set(other.criteria) <= set(self.criteria)
        return self.model_copy(update={"revision": 1}) == other.model_copy(update={"revision": 1})


def occasion(goal: Goal, produces: Iterable[ArtifactName]) -> int:
    """From which number on the repetitions of a step count that the goal wants done anew; 0 for any other.

    It follows from the goal alone, so that whoever draws the step again under this goal finds what was done for it.
    """
    produces = set(produces)
    return goal.revision * OCCASION if produces.intersection(expand(goal.again, produces)) else 0


def revised(old: Goal | None, new: Goal) -> Goal:
    """The goal after `new` was stated: the old one if nothing changed, else a higher revision (seed 2)."""
    if old is None:
        return new
    if old.same_intent(new):
        return old
    return new.model_copy(update={"revision": old.revision + 1})


def wanted(goal: Goal) -> tuple[ArtifactName, ...]:
    """What the goal reads: its wants, and the artifacts its criteria are about."""
    named = [name for each in goal.criteria if each.predicate for name in sorted(reads(each.predicate))]
    return tuple(dict.fromkeys([*goal.wants, *named]))


def completed(goal: Goal, wants: tuple[ArtifactName, ...], criteria: tuple[Criterion, ...]) -> Goal:
    """A free-text goal with the wants and criteria a planner understood; a stated one is never changed."""
    if goal.stated or not (wants or criteria):
        return goal
    taken = {each.id for each in goal.criteria}
    understood = (*goal.criteria, *(each for each in criteria if each.id not in taken))
    return goal.model_copy(update={"wants": wants, "criteria": understood, "revision": goal.revision + 1})


def grade(goal: Goal, world: World, view: Mapping[ArtifactName, JsonValue]) -> tuple[Judgement, ...]:
    """Judge every want and every criterion against the world; an empty goal is never satisfied."""
    wants = tuple(
        Judgement(
            predicate=f"has {name}",
            verdict=Verdict.VERIFIED if there else Verdict.REFUTED,
            reason="" if there else f"{name!r} is not in the world",
        )
        for name in goal.wants
        # of a family any will do here: which ones there have to be is the plan's to know, and all of it has to be done
        for there in [any(world.holds(each) for each in expand((name,), world.artifacts))]
    )
    return wants + tuple(_grade_criterion(each, goal, world, view) for each in goal.criteria)


def in_view(goal: Goal, world: World) -> dict[ArtifactName, Digest]:
    """What a judge is shown: the wanted artifacts that hold, or all there are where none is wanted."""
    return world.digests(expand(goal.wants, world.artifacts) if goal.wants else world.artifacts)


def unjudged(goal: Goal, world: World, view: Mapping[ArtifactName, JsonValue]) -> tuple[Criterion, ...]:
    """Criteria that only a judge can decide, and has not decided over what there is now.

    None while anything else of the goal is not verified: a judge overrules nothing, and is asked last.
    """
    open_ = tuple(
        each for each in goal.criteria if each.predicate is None and each.text and not _word(each, goal, world)
    )
    rest = goal.model_copy(update={"criteria": tuple(each for each in goal.criteria if each not in open_)})
    return open_ if satisfied(rest, world, view) else ()


def unjudgeable(goal: Goal, world: World) -> Criterion | None:
    """The first criterion for which somebody would have to be asked: it has no predicate, and no word is on record."""
    return next((each for each in goal.criteria if each.predicate is None and not _word(each, goal, world)), None)


def to_ask_again(world: World) -> World:
    """The world without the words of judges that gave none: a new run asks them once more."""
    kept = {name: each for name, each in world.facts.items() if not _is_silence(each)}
    return world if len(kept) == len(world.facts) else world.model_copy(update={"facts": kept})


def satisfied(goal: Goal, world: World, view: Mapping[ArtifactName, JsonValue]) -> bool:
    """Whether all wants and criteria are verified now."""
    grades = grade(goal, world, view)
    return bool(grades) and all(each.verdict is Verdict.VERIFIED for each in grades)


def _united(wants: object, again: object) -> tuple[object, ...]:
    """What is to be made anew is wanted."""
    listed = [words(each) for each in (wants, again)]
    return tuple(dict.fromkeys(name for each in listed if isinstance(each, list | tuple) for name in each))


def _grade_criterion(
    criterion: Criterion, goal: Goal, world: World, view: Mapping[ArtifactName, JsonValue]
) -> Judgement:
    if criterion.predicate is not None:
        return judge(criterion.predicate, view, world.fact_values())
    word = _word(criterion, goal, world)
    if word is None:
        return Judgement(predicate=criterion.text, verdict=Verdict.UNVERIFIABLE, reason="needs a judge")
    return Judgement(predicate=criterion.text, verdict=word.verdict, reason=f"judged: {word.evidence}")


def _word(criterion: Criterion, goal: Goal, world: World) -> Ruling | None:
    """What was said of the criterion, as far as it is about what is there now; a person's word is about all."""
    said, about = world.facts.get(fact_of(criterion.id)), case(criterion.text, goal.text, in_view(goal, world))
    if said is None:
        return None
    if isinstance(said.value, dict):
        return Ruling.model_validate(said.value) if said.value.get("over") == about else None
    verdict = Verdict.VERIFIED if said.value is True else Verdict.REFUTED
    return Ruling(verdict=verdict, evidence="stated as a fact", over=about)


def _is_silence(fact: Fact) -> bool:
    return fact.name.startswith(fact_of("")) and isinstance(fact.value, dict) and fact.value.get("answered") is False
