"""Which limits has a person raised on this thread? They live in state, so a resume finds them as they were left."""

from collections.abc import Mapping

from agent.core.limits import Limits


def granted(limits: Limits, grants: Mapping[str, float]) -> Limits:
    """The limits with what a person has granted.

    Raises:
        ValueError: there is no such limit, or it cannot have that value.
    """
    if not grants:
        return limits
    unknown = sorted(set(grants) - set(Limits.model_fields))
    if unknown:
        raise ValueError(f"there is no limit {unknown[0]!r}; the limits are: {', '.join(Limits.model_fields)}")
    return Limits.model_validate({**limits.model_dump(), **grants})


def refuse_unraised(grants: Mapping[str, float], limits: Mapping[str, float]) -> None:
    """Refuse a grant that would allow no more than before.

    Raises:
        ValueError: naming the limit, and what it is now.
    """
    for name, value in grants.items():
        if name in limits and value <= limits[name]:
            raise ValueError(f"the limit {name!r} is {limits[name]:g} already; {value:g} would not raise it")
    granted(Limits(), grants)
