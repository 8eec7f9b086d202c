"""What stands in the way once a constraint has been mutated? Each acts on the calls and the looks of one target."""

from collections.abc import Callable
from random import Random

from agent.core.contract import EffectClass, ToolContract
from agent.core.value import JsonValue
from agent.mutation.changes import added_to, drifted, without_field
from agent.tools.registry import UnknownTool

SLOWER = 0.05
"""Seconds that a slower tool takes longer: enough to turn the order of parallel steps round."""


PATIENCE = 1.0
"""Seconds that calls may take where one of them is to take longer."""
OVERDUE = 1.4
"""Seconds that this one takes."""


class Force:
    """Lets everything through; the others override what they touch."""

    delay: float = 0.0
    """Seconds a call takes longer."""
    pretends: bool = False
    """What is only pretended to be gone is not really made once more: a call gives what it gave before."""

    def call(self) -> None:
        """Before the tool works; may raise in its place."""

    def result(self, value: JsonValue) -> JsonValue:
        """What the tool returns; may raise although the work is done."""
        return value

    def look(self, value: JsonValue) -> JsonValue:
        """What the tool's probe sees."""
        return value


class Refusing(Force):
    """The call is refused before anything is done, from now on."""

    def __init__(self, error: Callable[[], Exception]) -> None:
        """Args: what is raised."""
        self._error = error

    def call(self) -> None:
        """Refuse."""
        raise self._error()


class Slow(Force):
    """Every call takes longer from now on."""

    delay = SLOWER


class Overdue(Force):
    """One call takes longer than calls may take: it is given up, and acts afterwards."""

    def __init__(self) -> None:
        self._over = False

    def call(self) -> None:
        """Be slow, once."""
        self.delay, self._over = (0.0 if self._over else OVERDUE), True


class Changed(Force):
    """What is read is another thing from now on, for the tool and for its probe alike."""

    def __init__(self, change: Callable[[JsonValue], JsonValue]) -> None:
        """Args: from the value as it is to the value as it is now read."""
        self._change = change

    def result(self, value: JsonValue) -> JsonValue:
        """What the tool reads now."""
        return self._change(value)

    def look(self, value: JsonValue) -> JsonValue:
        """What is there now; nothing stays nothing."""
        return None if value is None else self._change(value)


class Overwritten(Force):
    """Somebody changed what the tool had made, behind its back; when the tool is called again it makes it anew."""

    def __init__(self, change: Callable[[JsonValue], JsonValue], pretends: bool = False) -> None:
        """Args: from what was made to what is there now; whether it is to be made again only for show."""
        self._change = change
        self.pretends = pretends
        self._over = False

    def call(self) -> None:
        """Make it anew."""
        self._over = True

    def look(self, value: JsonValue) -> JsonValue:
        """What the others left, until it is made anew."""
        return value if self._over or value is None else self._change(value)


class Losing(Force):
    """The work is done, and the answer is lost on the way back: once."""

    def __init__(self) -> None:
        self._lost = False

    def result(self, value: JsonValue) -> JsonValue:
        """Lose the first answer."""
        if self._lost:
            return value
        self._lost = True
        raise TimeoutError("the answer was lost on its way")


def refused_permission(_: str, contract: ToolContract) -> Force:
    """Nobody may call the tool any more."""
    return Refusing(lambda: PermissionError(f"permission denied: the right to use {contract.tool} was revoked"))


def no_tool(_: str, contract: ToolContract) -> Force:
    """The tool is gone."""
    return Refusing(lambda: UnknownTool(f"no tool {contract.tool!r}: it was removed"))


def more_to_read(_: str, __: ToolContract) -> Force:
    """A file or an answer that says more than before."""
    return Changed(added_to)


def field_gone(seed: str, _: ToolContract) -> Force:
    """An answer that lacks a field it had."""
    return Changed(lambda value: without_field(value, Random(seed)))


def value_drifted(seed: str, contract: ToolContract) -> Force:
    """One value is another: for good where it is only read, until it is made again where it was made."""
    made = contract.effect is EffectClass.MUTATING
    return (Overwritten if made else Changed)(lambda value: drifted(value, Random(seed)))


def effect_undone(_: str, __: ToolContract) -> Force:
    """What was made is gone."""
    return Overwritten(lambda _: None, pretends=True)
