"""How does a run become spans? LangChain's tracer, less the bodies, with names that say what happened.

Whatever is wrong here, with the server or between the two, stays here: a run neither waits nor fails for its trace.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.tracers.langchain import LangChainTracer
from langchain_core.tracers.schemas import Run

from agent.core.record import TraceRecord
from agent.ports import Attempt
from agent.trace.langsmith.naming import Label, of_phase, of_run
from agent.trace.langsmith.trimming import short, trimmed, trimmed_fields

_STOPPED = ("GraphInterrupt(", "CancelledError(")
"""How an end that is no failure looks to a tracer: a person is asked, or what was in flight was stopped."""


@dataclass
class Call:
    """One call of the graph, as its tracer and the tracer's copies see it."""

    root: UUID | None = None
    """The span of the call itself."""
    trace: Sequence[TraceRecord] = ()
    """The records of the thread, once the call has ended."""


class Spans(LangChainTracer):
    """Sends a run to LangSmith; one for each call of the graph."""

    def __init__(self, *args: Any, call: Call | None = None, **more: Any) -> None:
        """Args: those of LangChain's; the call that a copy is for as well."""
        super().__init__(*args, **more)
        self.call = call or Call()

    def copy_with_metadata_defaults(self, **more: Any) -> "Spans":
        """The same tracer with other metadata, as LangGraph makes one for each call."""
        copied = super().copy_with_metadata_defaults(**more)
        assert isinstance(copied, Spans)
        copied.call = self.call
        return copied

    @staticmethod
    def _add_child_run(parent_run: Run, child_run: Run) -> None:
        """Children are sent by themselves; kept here, a long run would fill the memory with them."""

    def on_chain_start(self, serialized: dict[str, Any], inputs: Any, **more: Any) -> Run:
        """A phase node, an attempt, or the whole run begins."""
        stated = of_run(inputs.get("goal")) if isinstance(inputs, Mapping) and not more.get("parent_run_id") else None
        if stated is not None:
            more["name"] = stated.name
        run = super().on_chain_start(serialized, _fields(inputs), **more)
        if self.call.root is None:
            self.call.root = run.id
        return run

    def on_chain_end(self, outputs: Any, *, run_id: UUID, inputs: dict[str, Any] | None = None, **more: Any) -> Run:
        """It ended; by now it is known what it was about."""
        run = self.run_map.get(str(run_id))
        if run is not None and isinstance(outputs, Mapping):
            self._relabel(run, outputs)
            outputs = _end(outputs) if run.id == self.call.root else outputs
        if run is not None and isinstance(outputs, Attempt) and outputs.result.error is not None:
            run.error = outputs.result.error.message  # a failed attempt is data to the runtime, and red to a reader
        return super().on_chain_end(_fields(outputs), run_id=run_id, inputs=inputs, **more)

    def on_tool_start(self, serialized: dict[str, Any], input_str: str, **more: Any) -> Run:
        """A tool is called."""
        given = more.pop("inputs", None)
        fields = trimmed_fields(given) if isinstance(given, Mapping) else {"input": short(input_str)}
        return super().on_tool_start(serialized, short(input_str), inputs=fields, **more)

    def on_tool_end(self, output: Any, **more: Any) -> Run:
        """It answered."""
        return super().on_tool_end(trimmed(output), **more)

    def on_chat_model_start(self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **more: Any) -> Run:
        """A model is asked."""
        brief = [[_brief(each) for each in batch] for batch in messages]
        return super().on_chat_model_start(serialized, brief, **more)

    def on_llm_end(self, response: LLMResult, **more: Any) -> Run:
        """It answered; its counts of tokens stay as they are."""
        batches = [[_brief_generation(each) for each in batch] for batch in response.generations]
        return super().on_llm_end(response.model_copy(update={"generations": batches}), **more)

    def _persist_run_single(self, run: Run) -> None:
        """Send that a span began. Nothing of the server's is the run's problem; LangChain has logged it."""
        try:
            super()._persist_run_single(run)
        except Exception:
            run.extra["__disabled"] = True

    def _end_trace(self, run: Run) -> None:
        if run.error:
            run.error = None if run.error.startswith(_STOPPED) else short(run.error, 2000)
        super()._end_trace(run)

    def _relabel(self, run: Run, outputs: Mapping[str, Any]) -> None:
        metadata = run.extra.get("metadata") or {}
        if run.id == self.call.root:
            self.call.trace = outputs.get("trace") or ()
            ended = of_phase("", {"trace": self.call.trace[-1:]})
            self._label(run, Label((of_run(outputs.get("goal")) or Label(run.name)).name, ended.tags))
        elif run.name == metadata.get("langgraph_node"):
            self._label(run, of_phase(run.name, outputs))

    def _label(self, run: Run, label: Label) -> None:
        run.name = label.name
        run.tags = sorted({*(run.tags or ()), *label.tags})


def _fields(values: Any) -> dict[str, Any]:
    found = trimmed(values)
    return found if isinstance(found, dict) else {"value": found}


def _end(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """What of the last state a reader of the whole run looks for."""
    return {name: state[name] for name in ("outcome", "plan", "world", "ledger") if state.get(name) is not None}


def _brief(message: BaseMessage) -> BaseMessage:
    """A message with the beginnings of its texts."""
    content: Any = short(message.content, 2000) if isinstance(message.content, str) else trimmed(message.content)
    calls = getattr(message, "tool_calls", None)
    more = {"tool_calls": [{**each, "args": trimmed(each["args"])} for each in calls]} if calls else {}
    return message.model_copy(update={"content": content, "additional_kwargs": {}, **more})


def _brief_generation(generation: Any) -> Any:
    if not isinstance(generation, ChatGeneration):
        return generation
    brief = _brief(generation.message)
    return generation.model_copy(update={"message": brief, "text": short(generation.text, 2000)})
