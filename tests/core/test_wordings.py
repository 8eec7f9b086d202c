"""The classification table against the errors of real tools, in words that it was not written from."""

from typing import Any

import pytest

from agent.core import codes
from agent.core.classification import blame, classify
from agent.core.failure import Classified, Effect, Failure, Origin, Scope, Trigger
from agent.core.words import visible
from tests.builders import failure

N, C, P = Scope.NOTHING, Scope.CALL, Scope.PRECONDITION
A, U = Effect.ABSENT, Effect.UNKNOWN


def told(given: Failure, mutating: bool = True, view: dict[str, Any] | None = None) -> Classified:
    found = classify(given, mutating, view or {})
    assert found is not None, f"no row knows {given.error}"
    return found


# --- first trap: done already ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        "Payment pi_3 has already been captured.",
        "charge ch_1 was already refunded",
        "Request 17 has been processed.",
        "Order 17 has already been shipped",
        "The job is already scheduled for tonight",
        "user 5 is already a member of this group",
        "email already taken",
        "You have already submitted this form",
        "Migration 0042 already applied",
        "this invoice was previously paid",
        "Entity with the same name already exists in the workspace",
        'ERROR: relation "users" already exists',
        "Duplicate entry '17' for key 'PRIMARY'",
        "E11000 duplicate key error collection: shop.orders",
        "UNIQUE constraint failed: orders.id",
        'violates unique constraint "orders_pkey"',
        "duplicate column name: total",
        "File exists: '/data/out.csv'",
        "AlreadyExists: 409 topic jobs",
        "Nothing to commit, working tree clean",
        "No changes to apply; infrastructure is up to date",
        "Idempotency key k-17 was already used",
        "the release is already deployed",
        "branch already merged",
        "bucket is already provisioned",
    ],
)
@pytest.mark.parametrize("status", [None, 400, 404, 409, 500])
def test_a_write_that_is_done_already_is_reconciled_whatever_its_status(message: str, status: int | None) -> None:
    found = told(failure(message=message, status=status, type="RuntimeError"))
    assert (found.rule, found.scope, found.effect) == ("already done", N, U)


@pytest.mark.parametrize(
    "carried",
    [
        {"code": "sqlstate:23505"},
        {"code": "sqlstate:42P07"},
        {"code": "SQLITE_CONSTRAINT_UNIQUE", "type": "IntegrityError"},
        {"code": "EEXIST", "type": "FileExistsError", "bases": ("OSError",)},
        {"code": "ALREADY_EXISTS"},
        {"code": "EntityAlreadyExistsException", "status": 409},
        {"type": "FileExistsError"},
        {"type": "UniqueViolation", "bases": ("IntegrityError",)},
    ],
    ids=str,
)
def test_a_code_or_a_type_says_it_as_well(carried: dict[str, Any]) -> None:
    assert told(failure(message="-", **carried)).rule == "already done"


@pytest.mark.parametrize(
    ("message", "scope"),
    [
        ("the access token has already expired", P),
        ("this API key was already revoked", P),
        ("the account is already suspended", P),
        ("Address already in use", None),
        ("another operation is already in progress", N),
        ("duplicate argument 'limit'", None),
        ("duplicate keyword parameter in query", None),
        ("the file does not already exist", P),
        ("the order has not been processed", None),
        ("it cannot be shipped until it has been paid", None),
        ("no payment has been captured", None),
    ],
)
def test_what_only_sounds_like_done_is_not(message: str, scope: Scope | None) -> None:
    found = classify(failure(message=message, type="RuntimeError"), True, {})
    assert found is None or found.rule != "already done"
    assert scope is None or (found is not None and found.scope is scope)


# --- second trap: a broken precondition in the clothes of a transient error --------------------------------------

DISGUISED = [
    "Cloud SQL Admin API has not been enabled for project 17",
    "the reporting service isn't enabled in this workspace",
    "feature flag 'exports' is disabled",
    "your subscription was deactivated on May 3",
    "OAuth grant revoked by the user",
    "the refresh token has expired",
    "TLS certificate has expired",
    "certificate verify failed: self-signed certificate in chain",
    "You exceeded your current quota, please check your plan and billing details.",
    "Your credit balance is too low to access the API",
    "monthly quota reached",
    "insufficient permissions for resource projects/17",
    "insufficient_scope",
    "403 Forbidden: caller lacks permission storage.objects.create",
    "Unauthorized",
    "invalid api key provided",
    'password authentication failed for user "report"',
    "login required",
    "no such bucket: exports",
    "The specified bucket does not exist",
    "NoSuchKey",
    "table analytics.daily doesn't exist",
    "Unknown database 'warehouse'",
    "cannot find the file /data/in.csv",
    "the dataset was moved to another project",
    "the endpoint is no longer available",
    "export format has changed to version 3",
    "schema mismatch: expected 7 columns",
    "upstream job failed: extract_orders",
    "the nightly extract has not finished",
    "the migration hasn't run",
    "must first be initialized with `init`",
    "bash: kubectl: command not found",
    "No module named 'pandas'",
    "terraform is not installed",
    "read-only file system",
    "cannot execute INSERT in a read-only transaction",
    "No space left on device",
    "this model is not available in your region",
    "the project has been archived",
    "account 17 is closed",
    "your IP has been blocked",
]
TRANSIENT_CLOTHES: list[dict[str, Any]] = [
    {"type": "ConnectionError", "bases": ("OSError",)},
    {"type": "ReadTimeout", "bases": ("TimeoutException", "TransportError")},
    {"kind": "value", "status": 503},
    {"status": 500},
    {"status": 429, "type": "RateLimitError"},
    {"type": "McpError", "code": "rpc:-32603"},
    {"type": "OperationalError", "code": "sqlstate:08006"},
]


@pytest.mark.parametrize("message", DISGUISED)
@pytest.mark.parametrize("clothes", TRANSIENT_CLOTHES, ids=str)
def test_a_broken_precondition_is_seen_through_every_disguise(message: str, clothes: dict[str, Any]) -> None:
    assert told(failure(message=message, **clothes)).scope is P


@pytest.mark.parametrize(
    ("message", "clothes"),
    [
        ("connection timeout expired", {"type": "ConnectionTimeout"}),
        ("Lock wait timeout exceeded; try restarting transaction", {}),
        ("deadline expired before operation could complete", {"code": "DEADLINE_EXCEEDED"}),
        ("<html><body><button disabled>Sign in</button><h1>503</h1></body></html>", {"status": 503}),
        ("<script>var expired = true; // forbidden</script> Bad gateway", {"status": 502}),
        ("Rate limit reached for gpt-5 on tokens per min. Please try again in 6s.", {"status": 429}),
        ("upstream connect error or disconnect/reset before headers", {"status": 503}),
        ("the server is starting up", {}),
        ('too many connections for role "report"', {"code": "sqlstate:53300"}),
        ("service temporarily unavailable", {}),
        ("read: connection reset by peer", {}),
        ("dial tcp 10.0.0.7:5432: connect: connection refused", {}),
        ("socket hang up", {"code": "ECONNRESET"}),
        ("Remote end closed connection without response", {}),
        ("server has gone away", {}),
        ("Throttled: slow down", {"status": 400, "code": "ThrottlingException"}),
        ("model is overloaded", {"status": 529}),
        ("Another update is currently in progress", {"status": 409}),
    ],
)
def test_what_will_pass_is_not_taken_for_a_broken_precondition(message: str, clothes: dict[str, Any]) -> None:
    assert told(failure(message=message, **clothes)).scope is N


# --- third trap: an answer that was lost -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lost",
    [
        {"kind": "timeout", "type": "TimeoutError"},
        {"kind": "timeout", "type": "TimeoutExpired", "message": "Command 'load' timed out after 60 seconds"},
        {"type": "ReadTimeout", "bases": ("TimeoutException", "TransportError")},
        {"type": "APITimeoutError", "message": "Request timed out."},
        {"status": 504},
        {"status": 408, "type": "McpError", "message": "Timed out while waiting for response"},
        {"status": 503, "message": "upstream request timeout"},
        {"status": 502},
        {"status": 500},
        {"kind": "value", "message": "the operation took too long"},
        {"message": "connection closed before the response was read"},
        {"message": "Connection lost: the account service is disabled", "type": "ConnectionError"},
        {"message": "unexpected EOF"},
        {"kind": "timeout", "message": "timed out; permission denied for some rows"},
        {"code": "exit:124", "type": "CalledProcessError"},
        {"code": "exit:137", "type": "CalledProcessError"},
        {"code": "exit:2", "type": "CalledProcessError"},
        {"code": "rpc:-32000", "message": "Connection closed"},
        {"code": "sqlstate:08006"},
        {"code": "sqlstate:57014", "message": "canceling statement due to statement timeout"},
    ],
    ids=str,
)
def test_a_lost_answer_proves_nothing_about_a_write(lost: dict[str, Any]) -> None:
    given = failure(**{"message": "-", **lost})
    assert told(given).effect is U
    assert told(given, mutating=False).effect is A


@pytest.mark.parametrize(
    "refused",
    [
        {"status": 429, "message": "timed out waiting for a slot: too many requests"},
        {"message": "rate limit exceeded", "kind": "value"},
        {"code": "ThrottlingException", "status": 400},
        {"code": "ECONNREFUSED", "type": "URLError"},
        {"type": "ConnectTimeout", "bases": ("ConnectionError", "Timeout")},
        {"message": "Failed to establish a new connection"},
        {"code": "sqlstate:40P01", "message": "deadlock detected"},
        {"code": "sqlstate:53300"},
        {"code": "SQLITE_BUSY", "message": "database is locked"},
        {"code": "exit:127", "type": "CalledProcessError"},
        {"status": 503, "message": "Service Unavailable"},
        {"kind": "value", "message": "invalid date: 31 February"},
        {"message": "permission denied for table rows", "code": "sqlstate:42501"},
    ],
    ids=str,
)
def test_a_write_that_was_refused_or_never_sent_left_nothing(refused: dict[str, Any]) -> None:
    assert told(failure(**{"message": "-", **refused})).effect is A


# --- codes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "scope"),
    [
        *[(f"sqlstate:{each}", N) for each in ("08001", "08006", "40001", "40P01", "53300", "53200", "55P03", "55006")],
        *[(f"sqlstate:{each}", N) for each in ("57014", "57P01", "57P03", "58030", "XX000", "25P03")],
        *[(f"sqlstate:{each}", C) for each in ("22001", "22012", "22P02", "23502", "23514", "42601", "42883", "54000")],
        *[(f"sqlstate:{each}", P) for each in ("23503", "25006", "28P01", "3D000", "3F000", "42501", "42P01", "53100")],
        *[(f"sqlstate:{each}", P) for each in ("55000", "28000", "42704")],
        *[(each, N) for each in ("SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT", "SQLITE_IOERR_WRITE", "SQLITE_LOCKED")],
        *[(each, C) for each in ("SQLITE_CONSTRAINT_NOTNULL", "SQLITE_CONSTRAINT_CHECK", "SQLITE_MISMATCH")],
        *[(each, P) for each in ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_FULL", "SQLITE_CONSTRAINT_FOREIGNKEY")],
        *[(f"exit:{each}", N) for each in (124, 130, 137, 143, -9, -15, 75, 69)],
        *[(f"exit:{each}", C) for each in (2, 64, 65)],
        *[(f"exit:{each}", P) for each in (126, 127, 66, 77, 78)],
        *[(f"rpc:{each}", N) for each in (-32603, -32000, -32001)],
        *[(f"rpc:{each}", C) for each in (-32700, -32600, -32602)],
        *[(f"rpc:{each}", P) for each in (-32601, -32002)],
        *[(each, N) for each in ("ECONNRESET", "EAGAIN", "UNAVAILABLE", "rate_limit_exceeded", "SlowDown", "ABORTED")],
        *[(each, C) for each in ("EINVAL", "INVALID_ARGUMENT", "context_length_exceeded", "ValidationException")],
        *[
            (each, P)
            for each in ("ENOSPC", "EROFS", "PERMISSION_DENIED", "AccessDeniedException", "insufficient_quota")
        ],
        *[(each, P) for each in ("NoSuchBucket", "FAILED_PRECONDITION", "model_not_found", "invalid_api_key")],
        *[(each, None) for each in ("", "exit:1", "rpc:-32050", "sqlstate:ZZ999", "SQLITE_ERROR", "whatever")],
    ],
)
def test_a_code_is_routed_by_what_it_proves_false(code: str, scope: Scope | None) -> None:
    assert codes.scope_of(code) is scope


def test_a_code_of_a_provider_outranks_the_status_it_comes_with() -> None:
    assert told(failure(message="-", status=400, code="ThrottlingException")).scope is N
    assert told(failure(message="-", status=429, code="rate_limit_exceeded")).scope is N
    assert told(failure(message="-", status=500, code="INVALID_ARGUMENT")).scope is C


def test_a_quota_that_is_used_up_is_no_rate_limit() -> None:
    given = failure(message="You exceeded your current quota", status=429, code="insufficient_quota")
    assert told(given).scope is P
    bare = failure(message="-", status=400, code="insufficient_quota")
    assert told(bare).scope is P


# --- severity never decides --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shout", ["FATAL: ", "CRITICAL ERROR!!! ", "warning: ", "panic: ", "info: ", "[SEVERE] "])
@pytest.mark.parametrize(
    ("message", "scope"),
    [
        ("connection reset by peer", N),
        ("date range too wide", C),
        ("unsupported filter", C),
        ("payload too large", C),
        ("no rows returned for week 7", C),
        ("The 'limit' parameter must be between 1 and 100", C),
        ("table orders does not exist", P),
    ],
)
def test_how_bad_an_error_sounds_decides_nothing(shout: str, message: str, scope: Scope) -> None:
    assert told(failure(message=shout + message, type="RuntimeError")).scope is scope


@pytest.mark.parametrize(
    "message",
    [
        "1 validation error for Load\nrows\n  Extra inputs are not permitted [type=extra_forbidden, input_value=1]",
        "Additional properties are not allowed ('limit' was unexpected)",
        "'day' is a required property",
        "405 Method Not Allowed",
        "load() got an unexpected keyword argument 'by'",
    ],
)
def test_a_validators_refusal_is_the_calls_fault_although_it_speaks_of_permission(message: str) -> None:
    assert told(failure(message=message, kind="value")).scope is C


# --- the nearest class decides -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("classes", "scope"),
    [
        ("UnsupportedProtocol TransportError RequestError HTTPError", C),
        ("LocalProtocolError ProtocolError TransportError", C),
        ("ReadTimeout TimeoutException TransportError", N),
        ("ConnectTimeout ConnectionError Timeout RequestException OSError", N),
        ("MissingSchema RequestException ValueError", C),
        ("JSONDecodeError InvalidJSONError ValueError", C),
        ("SSLCertVerificationError SSLError OSError ValueError", P),
        ("UndefinedTable ProgrammingError DatabaseError", P),
        ("DeadlockDetected OperationalError DatabaseError", N),
        ("UnicodeDecodeError UnicodeError ValueError", C),
        ("ModuleNotFoundError ImportError", P),
        ("MyOwnTimeout TimeoutError OSError", N),
        ("AuthenticationError APIStatusError APIError", P),
    ],
)
def test_the_most_specific_class_that_is_known_decides(classes: str, scope: Scope) -> None:
    kind, *bases = classes.split()
    assert told(failure(message="-", type=kind, bases=tuple(bases))).scope is scope


# --- why it happened ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "view", "origin"),
    [
        pytest.param({"status": 503}, {}, Origin.ENVIRONMENT, id="transient"),
        pytest.param({"status": 422}, {}, Origin.AGENT, id="a call"),
        pytest.param({"message": "the key was revoked"}, {}, Origin.ENVIRONMENT, id="was so, and is not any more"),
        pytest.param({"message": "no such table: x"}, {}, Origin.OBSERVATION, id="nobody looked"),
        pytest.param({"message": "no such table: x", "reads": ("a",)}, {"a": 1}, Origin.ENVIRONMENT, id="was read"),
        pytest.param({"status": 404}, {}, Origin.OBSERVATION, id="never looked whether it is there"),
        pytest.param({"kind": "verdict", "message": "-"}, {}, Origin.AGENT, id="an effect that was promised"),
    ],
)
def test_the_origin_is_read_from_the_evidence(given: dict[str, Any], view: dict[str, Any], origin: Origin) -> None:
    assert told(failure(**{"message": "-", **given}), view=view).origin is origin


def test_an_answer_of_a_model_is_blamed_by_the_same_evidence() -> None:
    given = failure(message="strange", reads=("a",))
    assert blame(given, Scope.PRECONDITION, {"a": 1}) is Origin.ENVIRONMENT
    assert blame(given, Scope.PRECONDITION, {}) is Origin.OBSERVATION
    assert blame(given, Scope.CALL, {}) is Origin.AGENT
    assert blame(given, Scope.NOTHING, {}) is Origin.ENVIRONMENT
    assert blame(given, Scope.GOAL, {}) is Origin.AGENT


def test_markup_is_not_among_the_words() -> None:
    assert visible("<b title='denied'>x</b> < 3") == " x  < 3"
    assert visible("a < b and c > d") == "a < b and c > d"


def test_what_the_runtime_says_about_itself_is_not_read_for_words() -> None:
    for kind in ("verdict", "absent", "lost", "probe"):
        given = failure(kind=kind, message="artifacts.already.exists, which the account was closed for")
        assert told(given).rule != "already done"
    need = failure(kind="need", message="table x does not exist", trigger=Trigger.BLOCKED)
    assert told(need).rule == "unmet need"
