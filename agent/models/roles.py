"""Which model plays which role? Those that were passed in Python, else those that the settings name.

No client retries by itself: the ladder is the only retry, and what it does not know of it can neither count nor stop.
"""

from collections.abc import Mapping
from typing import NamedTuple

from langchain_core.language_models import BaseChatModel

from agent.settings import Settings

_CLIENTS = {"client", "async_client", "root_client", "root_async_client"}
"""Made by a model for itself, out of what it was given."""


class Models(NamedTuple):
    """A chat model for each role; None: nobody plays it."""

    planner: BaseChatModel | None = None
    replanner: BaseChatModel | None = None
    executor: BaseChatModel | None = None
    classifier: BaseChatModel | None = None
    repairer: BaseChatModel | None = None
    judge: BaseChatModel | None = None

    @property
    def any(self) -> bool:
        """Whether there is a model at all."""
        return any(each is not None for each in self)


def passed(model: BaseChatModel | None, models: Mapping[str, BaseChatModel] | None = None) -> Models:
    """The models that a caller passes: one for all roles, and others for some.

    Raises:
        ValueError: a role that there is not.
    """
    own = dict(models or {})
    unknown = sorted(own.keys() - set(Models._fields))
    if unknown:
        raise ValueError(f"there is no role {unknown[0]!r}; the roles are: {', '.join(Models._fields)}")
    quiet: dict[int, BaseChatModel] = {}  # one model stays one: what its server can do is found out once
    for each in (model, *own.values()):
        if each is not None and id(each) not in quiet:
            quiet[id(each)] = unretrying(each)
    own = {"replanner": own["planner"], **own} if "planner" in own else own
    chosen = {role: own.get(role, model) for role in Models._fields}
    return Models(**{role: quiet[id(each)] if each is not None else None for role, each in chosen.items()})


def named(settings: Settings) -> Models:
    """The models that the settings name. Roles with the same one share it.

    Raises:
        ValueError: a key is missing, or a name is of another provider.
    """
    roles = {role: getattr(settings.models, role) for role in Models._fields}
    roles["replanner"] = roles["replanner"] if roles["replanner"] != type(roles["replanner"])() else roles["planner"]
    if settings.model is None and not any(each.model for each in roles.values()):
        return Models()
    from agent.models.chat import chat_model  # the heaviest import there is, and most goals need no model

    made: list[tuple[object, BaseChatModel | None]] = []
    for each in roles.values():
        if not any(each == other for other, _ in made):
            made.append((each, chat_model(settings, each)))
    return Models(**{role: next(model for other, model in made if other == each) for role, each in roles.items()})


def unretrying(model: BaseChatModel) -> BaseChatModel:
    """The model without retries of its own. A `ChatOpenAI` becomes one that reads what servers send loosely.

    Raises:
        ValueError: it retries, and cannot be made anew without.
    """
    fields = type(model).model_fields
    if "max_retries" not in fields or getattr(model, "max_retries", None) == 0:
        return model
    given = {name: getattr(model, name) for name in model.model_fields_set & fields.keys() - _CLIENTS}
    try:
        return _kind(model)(**{**given, "max_retries": 0})
    except Exception as error:
        raise ValueError(f"{type(model).__name__} retries by itself; make it with max_retries=0 ({error})") from error


def _kind(model: BaseChatModel) -> type[BaseChatModel]:
    if type(model).__name__ != "ChatOpenAI":
        return type(model)
    from agent.models.chat import CompatibleChat

    return CompatibleChat
