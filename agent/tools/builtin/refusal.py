"""What do these tools throw beside Python's own errors? One error with a code that the classification knows."""


class Outdated(RuntimeError):
    """The world is not what the call takes for granted: whoever planned it looks again."""

    code = "FAILED_PRECONDITION"
