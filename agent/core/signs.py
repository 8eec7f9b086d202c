"""By what an error is known: statuses, class names of the libraries that raise them, and words.

Plain data for the classification table. Words stand for what no status and no type can say.
"""

import re

TRANSIENT_STATUS = frozenset({408, 421, 425, 429, 500, 502, 503, 504, 507, 509, 529})
CALL_STATUS = frozenset({400, 405, 406, 411, 413, 414, 415, 416, 417, 422, 431, 501, 505})
PRECONDITION_STATUS = frozenset({401, 402, 403, 404, 407, 409, 410, 412, 423, 424, 426, 428, 451})
CONFLICT = 409
REFUSED_STATUS = (CALL_STATUS | PRECONDITION_STATUS | {425, 429, 503}) - {CONFLICT}
"""Statuses by which the other side says it did nothing; a conflict may be with what an earlier try has done."""

TRANSIENT_TYPES = frozenset(
    {
        "TimeoutError",
        "ConnectionError",
        "ConnectError",
        "ConnectTimeout",
        "ReadTimeout",
        "WriteTimeout",
        "PoolTimeout",
        "ReadError",
        "WriteError",
        "NetworkError",
        "RemoteProtocolError",
        "TransportError",
        "APIConnectionError",
        "APITimeoutError",
        "RateLimitError",
        "InternalServerError",
        "BrokenPipeError",
        "EOFError",
        "IncompleteRead",
        "RemoteDisconnected",
        "URLError",
        "InterruptedError",
        "BlockingIOError",
        "gaierror",
        "IncompleteReadError",
        "ProtocolError",
        "TimeoutException",
        "ServerDisconnectedError",
    }
)
NOT_SENT_TYPES = frozenset(
    {
        "ConnectionRefusedError",
        "ConnectError",
        "ConnectTimeout",
        "PoolTimeout",
        "gaierror",
    }
)
CALL_TYPES = frozenset(
    {
        "ValidationError",
        "UnresolvedReference",
        "ValueError",
        "TypeError",
        "LookupError",
        "ArithmeticError",
        "AssertionError",
        "NotImplementedError",
        "ProgrammingError",
        "DataError",
        "IntegrityError",
        "BadRequestError",
        "UnprocessableEntityError",
        "ToolException",
        "SchemaValidationError",
    }
)
ACCIDENT_TYPES = frozenset(
    {
        "ValidationError",
        "TypeError",
        "AttributeError",
        "LookupError",
        "ArithmeticError",
        "AssertionError",
        "JSONDecodeError",
        "UnicodeError",
    }
)
"""Those of them that a tool may stumble over in the answer, when the call has been made."""
PRECONDITION_TYPES = frozenset(
    {
        "PermissionError",
        "FileNotFoundError",
        "NotADirectoryError",
        "IsADirectoryError",
        "ModuleNotFoundError",
        "ImportError",
        "AuthenticationError",
        "PermissionDeniedError",
        "NotFoundError",
        "ConflictError",
    }
)

ALREADY = re.compile(
    r"already (?:exist|done|been|creat|post|process|sent|appl|paid|regist)|duplicate|unique constraint", re.I
)
BROKEN = re.compile(
    r"not (?:been )?enabled|disabled|suspended|deactivated|revoked|expired|account (?:was |is )?closed|"
    r"permission denied|access denied|forbidden|not (?:authori[sz]ed|permitted|allowed)|unauthori[sz]ed|"
    r"no such (?:table|file|database|bucket|host|user|directory)|(?:table|relation|database|schema|bucket|account|"
    r"service|user|file) .{0,80}?(?:does not exist|not found|is gone|was (?:deleted|removed|dropped))|"
    r"format changed|schema changed|never ran|has not run|not installed",
    re.I,
)
MISSING_NAME = re.compile(
    r"(?:no such column|unknown column|undefined column)[: ]+['\"`]?([\w.]+)|"
    r"(?:column|field|key|property|attribute)s? ['\"`]?([\w.]+)['\"`]?(?: of \S+)? "
    r"(?:not found|does not exist|is missing|is unknown|was removed|was renamed)",
    re.I,
)
LOCKED = re.compile(r"database (?:table )?is locked|deadlock detected|could not serialize|try again|temporarily", re.I)
TIMED_OUT = re.compile(
    r"timed? ?out|gateway time|connection reset|connection aborted|rate limit|too many requests", re.I
)
