"""Settings: one frozen value. An argument beats the environment (`KINTSUGI_*`, `.env`), which beats the default."""

import os
import shlex
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, PositiveFloat, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from agent.core.consent import Approve
from agent.core.limits import Limits
from agent.core.mistake import first_mistake
from agent.core.provenance import Untraced
from agent.core.spending import Price
from agent.core.triage import Strategy
from agent.core.value import Value, words

DOUBTER = (
    "The plan before this one was drawn by somebody else, and it broke. Do not defend it: ask what it took for "
    "granted, and look at that first."
)


class RoleModel(Value):
    """The model of one role, where it is another than `model`; what is not said here is as it is there."""

    model: str | None = None
    """As `openai:gpt-5-mini`, a bare name, or `local`."""
    base_url: str | None = None
    """Where its server listens."""
    api_key: SecretStr | None = None
    """A key is sent only to the server that it was given for: another `base_url` needs its own."""
    max_tokens: int | None = Field(default=None, gt=0)
    """Most tokens of one reply."""

    @model_validator(mode="before")
    @classmethod
    def _name(cls, data: object) -> object:
        """Take a bare name."""
        return {"model": data} if isinstance(data, str) else data


class RoleModels(Value):
    """Models by role."""

    planner: RoleModel = RoleModel()
    replanner: RoleModel = RoleModel()
    """Draws anew what broke; another model than the planner's is less fond of the plan that failed."""
    executor: RoleModel = RoleModel()
    classifier: RoleModel = RoleModel()
    repairer: RoleModel = RoleModel()
    judge: RoleModel = RoleModel()


class Settings(BaseSettings):
    """How a runtime behaves. What is unknown or misspelled is refused; secrets never print."""

    model_config = SettingsConfigDict(
        env_prefix="KINTSUGI_", env_nested_delimiter="__", frozen=True, extra="forbid", env_ignore_empty=True
    )

    home: Path = Path(".kintsugi")
    """Folder of the command line's database: checkpoints, artifacts, effect journal, run index."""
    database_url: SecretStr | None = None
    """Postgres database in its place, as `postgresql://user:password@host/name`; needs the extra `postgres`."""
    database_timeout: PositiveFloat = 30.0
    """Seconds a run waits for a Postgres server that went away, before it ends with `DatabaseLost`; when the server is
    back, the run goes on where it was."""
    model: str | None = None
    """Chat model, as `openai:gpt-5` or a bare name; None: contract goals only, no key needed."""
    weights: Path | None = None
    """Folder of the model on this machine (`model="local"`, extra `local`); none: the user's cache."""
    base_url: str | None = None
    """Any OpenAI-compatible endpoint."""
    api_key: SecretStr | None = Field(default=None)
    """Key for it; `OPENAI_API_KEY` is used when this is not set."""
    max_tokens: int = Field(default=2048, gt=0)
    """Most tokens of one model reply: a model that rambles is cut off."""
    model_timeout: PositiveFloat = 300.0
    """Seconds a model's server may stay silent; a small model on a busy machine needs minutes. A planner that waited
    for so long does not ask again."""
    models: RoleModels = RoleModels()
    """Another model for a role, as `{"executor": "small"}`, or `KINTSUGI_MODELS__EXECUTOR__MODEL=small`."""
    actions: Literal["auto", "native", "schema"] = "auto"
    """How a model calls the tools of a step: `native` calls, `schema` by one JSON object under a schema, or `auto`, by
    what its server does well. The model on this machine begins with `schema`, the others with `native`."""
    persona: str = DOUBTER
    """What a replanner is told about itself, so that it does not defend the plan that broke; empty: nothing."""
    tools: str | None = None
    """Where the tools come from, as words: `workspace:. jobs.tools:TOOLS` (`agent/tools/loading.py`)."""
    mcp: Path | None = None
    """An `mcp.json`: the tools of its servers are there beside `tools`."""
    strategy: Literal["auto", "single", "one_pass", "full"] = "auto"
    """How much machinery goals get: `auto` decides for each, `single` is one step without a plan, `one_pass` is planned
    once and never redrawn, `full` is the whole loop."""
    limits: Limits = Limits()
    prices: dict[str, Price] = Field(default_factory=dict)
    """Money by model, as `{"gpt-5": {"tokens_in": 1.25, "tokens_out": 10}}` per million; `*` is any other model."""
    step_timeout: PositiveFloat = 3600.0
    """Seconds one attempt of a step may take: its call, where the contract says nothing else, or all the turns and
    calls by which a model carries it out."""
    busy: Literal["wait", "refuse"] = "wait"
    """What a second call on a thread does while a first goes on: `wait` for it, however long (cancel it, or press
    Ctrl-C, to give up), for then nothing is lost; `refuse` raises `Busy`, which names the holder."""
    lease_seconds: PositiveFloat = 30.0
    """How long a thread stays with a process that fell silent and cannot be seen to have ended: one that is stopped,
    or on another machine. Longer than any pause that machines make; at most a third of it passes between signs of life.
    """
    inline_bytes: int = Field(default=4096, ge=0)
    """Artifacts up to this size travel in state; larger ones are stored once and state carries the digest.
    So does the effect journal for what a write gave."""
    deltas: bool = True
    """Checkpoints hold what changed (LangGraph's `DeltaChannel`, which is in beta); false: the whole state each time,
    which a long run notices. A thread may be opened either way, whichever way it was written."""
    escalation: Literal["ask", "finish"] = "ask"
    """`ask` interrupts for a person; `finish` ends the run as handed over, with what was achieved."""
    approve: Approve = Approve.NEVER
    """Which calls wait for a person's word before they start: `never`, `non_idempotent` or `mutating`."""
    approve_tools: Annotated[tuple[str, ...], NoDecode, BeforeValidator(words)] = ()
    """Tools whose calls wait for it whatever `approve` says; `"a b"` or a list."""
    untraced: Untraced = Untraced.REFUSE
    """What happens when a model that has read what tools gave wants a write with an argument that comes from neither
    the goal, the plan, a person nor a field that the plan named: `refuse` tells the model, `ask` asks a person, `off`
    lets it be made."""
    jitter: float = Field(default=0.25, ge=0, le=1)
    """Random share added to every backoff, so that parallel steps do not come back together."""

    @model_validator(mode="after")
    def _spelled(self) -> "Settings":
        """Refuse a variable that is nearly a setting: left aside, a consent or a limit would be missing in silence.

        Others with our prefix are not ours: clusters make some for every service.
        """
        prefix, fields = str(self.model_config.get("env_prefix")), list(type(self).model_fields)
        for name in os.environ:
            field = name.upper().removeprefix(prefix).partition("__")[0].lower()
            if name.upper().startswith(prefix) and field not in fields:
                for meant in get_close_matches(field, fields, n=1, cutoff=0.8):
                    raise ValueError(f"{name} is no setting; {prefix}{meant.upper()} is")
        return self

    @property
    def sources(self) -> str | None:
        """The words of `tools` and `mcp` together; None when neither is set."""
        words = [self.tools] if self.tools else []
        return " ".join([*words, *(shlex.quote(f"mcp:{each}") for each in (self.mcp,) if each)]) or None

    @property
    def plans_text(self) -> bool:
        """Whether there is a model that can read a goal which is only text."""
        return bool(self.model or self.models.planner.model)

    @property
    def demanded(self) -> Strategy | None:
        """The strategy for all goals; None: whatever fits."""
        return None if self.strategy == "auto" else Strategy(self.strategy)

    def under(self, context: "RunContext") -> "Settings":
        """These settings as one call wants them."""
        told = {name: getattr(context, name) for name in context.model_fields_set - {"limits"}}
        limits = {name: getattr(context.limits, name) for name in context.limits.model_fields_set}
        said = {name: each for name, each in told.items() if each is not None}
        return self.model_copy(update={**said, "limits": self.limits.model_copy(update=limits)})


class RunContext(Value):
    """What one call wants otherwise than the settings have it: `graph.invoke(..., context={"limits": {"money": 5}})`.

    It counts for that call; a run that is resumed under another context goes on under that one.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    model: str | None = None
    """Chat model of every role that the settings give none of its own, as `openai:gpt-5`; keys stay where they are."""
    limits: Limits = Limits()
    """What the run may use; a field that is not given stays as it is set."""
    approve: Approve | None = None
    """Which calls wait for a person's word: `never`, `non_idempotent` or `mutating`."""
    approve_tools: Annotated[tuple[str, ...] | None, BeforeValidator(words)] = None
    """Tools whose calls wait for it in any case."""
    escalation: Literal["ask", "finish"] | None = None
    """What happens when no rung is left: `ask` a person, or `finish` with what was achieved."""
    strategy: Literal["auto", "single", "one_pass", "full"] | None = None
    """How much machinery the goal gets: `single`, `one_pass`, `full`, or `auto` for what fits."""

    @classmethod
    def of(cls, given: object) -> "RunContext":
        """The context of a call.

        Raises:
            ValueError: a field that is not there, or a value that does not fit.
        """
        try:
            return given if isinstance(given, cls) else cls.model_validate(given or {})
        except ValidationError as error:
            raise ValueError(first_mistake(error, "context", cls.model_fields)) from error
