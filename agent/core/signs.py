"""By what an error is known besides words and codes: HTTP statuses, and class names of the libraries that raise.

Plain data for the classification table. The most specific class that is named decides, so a base says what its
subclasses do not.
"""

from agent.core.failure import Scope


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


TRANSIENT_STATUS = frozenset({408, 421, 425, 429, 500, 502, 503, 504, 507, 509, 529})
CALL_STATUS = frozenset({400, 405, 406, 411, 413, 414, 415, 416, 417, 422, 431, 501, 505})
PRECONDITION_STATUS = frozenset({401, 402, 403, 404, 407, 409, 410, 412, 423, 424, 426, 428, 451})
CONFLICT = 409
RATE_LIMITED = 429
REFUSED_STATUS = (CALL_STATUS | PRECONDITION_STATUS | {425, 429, 503}) - {CONFLICT}
"""Statuses by which the other side says it did nothing; a conflict may be with what an earlier try has done."""

TRANSIENT_TYPES = _names(
    # Python
    "TimeoutError ConnectionError BrokenPipeError EOFError IncompleteRead RemoteDisconnected URLError InterruptedError "
    "BlockingIOError gaierror herror IncompleteReadError TimeoutExpired SSLError SSLEOFError HTTPException "
    # httpx, requests, urllib3, aiohttp
    "ConnectError ConnectTimeout ReadTimeout WriteTimeout PoolTimeout ReadError WriteError CloseError NetworkError "
    "RemoteProtocolError TransportError ProxyError DecodingError TimeoutException Timeout ChunkedEncodingError "
    "ContentDecodingError RetryError ProtocolError NewConnectionError MaxRetryError NameResolutionError "
    "ReadTimeoutError ConnectTimeoutError ServerDisconnectedError ClientConnectionError ClientPayloadError "
    "ServerTimeoutError ClientOSError ConnectionClosed ConnectionClosedError ClosedResourceError EndOfStream "
    "BrokenResourceError "
    # OpenAI and its like
    "APIConnectionError APITimeoutError RateLimitError InternalServerError APIResponseValidationError "
    "ServiceUnavailableError OverloadedError "
    # databases
    "DeadlockDetected SerializationFailure LockNotAvailable QueryCanceled AdminShutdown CannotConnectNow "
    "ConnectionTimeout PoolClosed InterfaceError TooManyConnections DBAPIError "
    # providers
    "EndpointConnectionError ConnectionClosedError ServiceUnavailable TooManyRequests DeadlineExceeded Aborted"
)
NOT_SENT_TYPES = _names(
    "ConnectionRefusedError ConnectError ConnectTimeout ConnectTimeoutError PoolTimeout gaierror "
    "NewConnectionError NameResolutionError UnsupportedProtocol LocalProtocolError InvalidURL MissingSchema "
    "InvalidSchema ConnectionTimeout CannotConnectNow EndpointConnectionError RateLimitError TooManyRequests "
    "NothingDone"
)
CALL_TYPES = _names(
    # Python
    "ValueError TypeError LookupError ArithmeticError AssertionError AttributeError NotImplementedError NameError "
    "CalledProcessError RecursionError "
    # checks of arguments
    "ValidationError UnresolvedReference ToolException SchemaValidationError SchemaError OutputParserException "
    # httpx, requests
    "UnsupportedProtocol LocalProtocolError InvalidURL MissingSchema InvalidSchema InvalidHeader InvalidJSONError "
    "TooManyRedirects "
    # databases
    "ProgrammingError DataError IntegrityError NotNullViolation CheckViolation SyntaxError NoResultFound "
    "MultipleResultsFound StatementError "
    # OpenAI and its like
    "BadRequestError UnprocessableEntityError LengthFinishReasonError ContentFilterFinishReasonError "
    "ContextWindowExceededError InvalidArgument ParamValidationError "
    # ours, for tools to raise
    "NothingDone"
)
ACCIDENT_TYPES = _names(
    "ValidationError TypeError AttributeError LookupError ArithmeticError AssertionError JSONDecodeError "
    "UnicodeError NameError RecursionError OutputParserException CalledProcessError InvalidJSONError "
    "NoResultFound MultipleResultsFound TooManyRedirects"
)
"""Those of them that a tool may stumble over in the answer, when the call has been made."""
OWN_TYPES = _names(
    "ValueError ToolException NotImplementedError PermissionError FileNotFoundError NotADirectoryError "
    "IsADirectoryError ImportError"
)
"""Those that any code raises, before it acts or after; without a word on what is wrong they prove nothing."""
PRECONDITION_TYPES = _names(
    "PermissionError FileNotFoundError NotADirectoryError IsADirectoryError ModuleNotFoundError ImportError "
    "SSLCertVerificationError CertificateError AuthenticationError PermissionDeniedError NotFoundError "
    "ConflictError UndefinedTable InsufficientPrivilege InvalidCatalogName InvalidPassword InvalidSchemaName "
    "ForeignKeyViolation NoSuchTableError ReadOnlySqlTransaction DiskFull NoCredentialsError "
    "PartialCredentialsError NotFound Forbidden Unauthenticated PermissionDenied FailedPrecondition "
    "DefaultCredentialsError"
)
DONE_TYPES = _names(
    "FileExistsError AlreadyExists UniqueViolation DuplicateTable DuplicateColumn DuplicateSchema "
    "DuplicateDatabase DuplicateObject DuplicateKeyError ResourceExistsError EntityAlreadyExists"
)

SCOPES = {
    **dict.fromkeys(CALL_TYPES, Scope.CALL),
    **dict.fromkeys(TRANSIENT_TYPES, Scope.NOTHING),
    **dict.fromkeys(PRECONDITION_TYPES, Scope.PRECONDITION),
}
