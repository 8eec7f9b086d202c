"""What do machine-readable codes prove false? SQLSTATE, SQLite, errno, exits of processes, JSON-RPC and providers.

Plain data for the classification table. A code that is not here is left to status, type and words.
"""

from agent.core.failure import Scope

N, C, P = Scope.NOTHING, Scope.CALL, Scope.PRECONDITION


def _spread(**names: str) -> dict[str, Scope]:
    scopes = {"nothing": N, "call": C, "precondition": P}
    return {each: scopes[scope] for scope, listed in names.items() for each in listed.split()}


SQLSTATE_CLASS = _spread(
    nothing="08 40 53 58 57 XX",
    call="07 0A 0Z 20 21 22 23 2F 39 42 44 54",
    precondition="25 28 2B 3B 3D 3F 55 72 F0",
)
"""Class of a state -> scope."""
SQLSTATE = _spread(
    nothing="55P03 55006 25P03 57014",
    precondition="23503 42501 42P01 53100 25006 0LP01 42704 57P04 58P01",
)
"""States that differ from their class: a missing row that is referred to, a missing table, a full disk."""
SQLSTATE_DONE = frozenset({"23505", "42P07", "42701", "42P06", "42P04", "42710", "42723"})
SQLSTATE_ABSENT = frozenset({"40001", "40P01", "55P03", "53300", "57P03", "08001", "08004"})
"""The server says that nothing was done: rolled back, or never let in."""

OTHER = {
    # SQLite
    **_spread(
        nothing="SQLITE_BUSY SQLITE_LOCKED SQLITE_IOERR SQLITE_INTERRUPT SQLITE_NOMEM SQLITE_PROTOCOL SQLITE_SCHEMA",
        call="SQLITE_CONSTRAINT SQLITE_MISMATCH SQLITE_TOOBIG SQLITE_RANGE SQLITE_MISUSE",
        precondition="SQLITE_READONLY SQLITE_CANTOPEN SQLITE_FULL SQLITE_CORRUPT SQLITE_NOTADB SQLITE_AUTH "
        "SQLITE_PERM SQLITE_CONSTRAINT_FOREIGNKEY",
    ),
    # errno; sysexits.h and the conventions of shells; a signal that somebody else sent
    **_spread(
        nothing="EAGAIN ECONNRESET ECONNREFUSED ECONNABORTED ETIMEDOUT ENETUNREACH EHOSTUNREACH ENETDOWN EHOSTDOWN "
        "EPIPE EINTR EBUSY EIO EMFILE ENFILE ENOBUFS ETXTBSY EDEADLK",
        call="EINVAL ENAMETOOLONG ERANGE EDOM E2BIG EFBIG EISDIR",
        precondition="ENOENT EACCES EPERM EROFS ENOSPC EDQUOT ENOTDIR ENOTEMPTY EADDRINUSE ENODEV ENXIO ENOEXEC ELOOP "
        "EXDEV ESTALE",
    ),
    **_spread(
        nothing="exit:124 exit:137 exit:143 exit:130 exit:-9 exit:-15 exit:-2 exit:69 exit:71 exit:74 exit:75",
        call="exit:2 exit:64 exit:65",
        precondition="exit:126 exit:127 exit:66 exit:67 exit:68 exit:72 exit:73 exit:77 exit:78",
    ),
    # JSON-RPC, as MCP uses it
    **_spread(
        nothing="rpc:-32603 rpc:-32000 rpc:-32001",
        call="rpc:-32700 rpc:-32600 rpc:-32602",
        precondition="rpc:-32601 rpc:-32002 rpc:-32042",
    ),
}
DONE = frozenset(
    {"SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY", "EEXIST"}
    | {"alreadyexists", "entityalreadyexists", "resourceexists", "bucketalreadyownedbyyou", "duplicatekey"}
    | {"resourcealreadyexists", "blobalreadyexists"}
)
ABSENT = frozenset({"SQLITE_BUSY", "SQLITE_LOCKED", "ECONNREFUSED", "exit:126", "exit:127", "exit:64"})

PROVIDER = _spread(
    nothing="ratelimitexceeded ratelimit ratelimited throttling throttled toomanyrequests requestlimitexceeded "
    "slowdown provisionedthroughputexceeded serviceunavailable unavailable internalfailure "
    "internalserver internal server "
    "overloaded requesttimeout timeout deadlineexceeded resourceexhausted aborted api bandwidthlimitexceeded",
    call="invalidargument invalidrequest outofrange unimplemented contextlengthexceeded invalidprompt "
    "stringabovemaxlength contentpolicyviolation contentfilter validation invalidparametervalue "
    "invalidparametercombination invalidparameter malformedpolicydocument missingparameter badrequest badarguments",
    precondition="insufficientquota billinghardlimitreached modelnotfound invalidapikey accountdeactivated "
    "unsupportedcountryregionterritory notfound permissiondenied unauthenticated failedprecondition accessdenied "
    "nosuchbucket nosuchkey resourcenotfound expiredtoken invalidaccesskeyid unrecognizedclient optinrequired "
    "conditionalcheckfailed invalidauth notauthed accountinactive tokenrevoked tokenexpired missingscope "
    "channelnotfound usernotfound authentication permission billing unauthorized forbidden",
)
"""Words of OpenAI, Anthropic, Google, AWS, gRPC and chat services, as `folded`."""
LIMITED = frozenset(
    {"ratelimitexceeded", "ratelimit", "ratelimited", "throttling", "throttled", "toomanyrequests", "slowdown"}
    | {"requestlimitexceeded", "provisionedthroughputexceeded", "resourceexhausted", "overloaded"}
)


def folded(code: str) -> str:
    """A provider's code without case, punctuation and the words that say nothing."""
    plain = "".join(each for each in code.lower() if each.isalnum())
    for ending in ("exception", "error", "fault"):
        plain = plain.removesuffix(ending) or plain
    return plain


def scope_of(code: str) -> Scope | None:
    """What a code proves false; None when it is not known."""
    state = code.removeprefix("sqlstate:")
    if state != code:
        return SQLSTATE.get(state) or SQLSTATE_CLASS.get(state[:2])
    if code in OTHER:
        return OTHER[code]
    if code.startswith("SQLITE_"):  # an extended code says more than is needed: SQLITE_BUSY_SNAPSHOT
        return next((OTHER[each] for each in OTHER if code.startswith(f"{each}_")), None)
    return PROVIDER.get(folded(code))


def done(code: str) -> bool:
    """Whether the code says that the thing is there already."""
    return code in DONE or code.removeprefix("sqlstate:") in SQLSTATE_DONE or folded(code) in DONE


def absent(code: str) -> bool:
    """Whether the code says that nothing was done."""
    return code in ABSENT or code.removeprefix("sqlstate:") in SQLSTATE_ABSENT or folded(code) in LIMITED
