"""By which words is an error known, when no status, type or code says it? Patterns, from the errors of real tools.

Plain data for the classification table. They are matched against the visible text: markup is taken out, for the
error page of a proxy is full of words that mean nothing.
"""

import re

_MARKUP = re.compile(r"<(script|style)\b.*?</\1\s*>|</?[a-zA-Z!][^<>]{0,400}>", re.I | re.S)


def visible(message: str) -> str:
    """A message without markup."""
    return _MARKUP.sub(" ", message) if "<" in message else message


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.I)


_THING = (
    r"table|file|directory|folder|path|database|schema|bucket|object|account|service|user|role|host|index|collection|"
    r"container|image|topic|queue|branch|repository|view|relation|project|workspace|channel|customer|tenant|stream|"
    r"cluster|namespace|secret|sheet|worksheet|dataset|partition|mailbox|model|resource|endpoint|device|instance"
)
"""What a plan takes for granted."""
_MADE = (
    r"exist|present|done|creat|post|process|sent|appl|paid|regist|complet|submit|insert|upload|import|publish|deploy|"
    r"provision|finish|execut|deliver|book|charg|captur|refund|merg|subscrib|(?:a )?member|enrol|handled|perform|"
    r"assign|attach|add(?:ed)?\b|up[- ]to[- ]date|installed|granted|scheduled|issued|record|stor|saved|written|"
    r"migrat|cancel|ship|acknowledg|confirm|settled|filed|invited|taken|in the (?:desired|requested) state"
)

ALREADY = _any(
    rf"(?<!not )(?<!n't )\balready (?:been |an? |exactly |successfully |fully )*(?:{_MADE})",
    rf"\b(?:previously|earlier) (?:been )?(?:{_MADE})\w*",
    # said of the past, not asked for: "cannot be shipped until it has been paid" is a condition
    r"(?:^|[.;:] )(?:(?!\b(?:until|till|before|unless|once|after|if|when|only|must|not|no)\b)[^.;:])*\b(?:has|have) "
    r"been (?:fully |successfully )?(?:processed|captured|refunded|submitted|paid|fulfilled)\b",
    r"duplicate(?! (?:argument|parameter|keyword|flag|option|header|field|attribute)\b)",
    r"unique[ _-](?:constraint|violation|index)|primary key constraint|violates unique|e11000",
    r"\bexists already\b|\bfile exists\b|already[ _-]?exists|\beexist\b",
    r"\bnothing to (?:do|commit|update|change|apply)\b|\bno changes? (?:to (?:apply|make|commit)|(?:were )?(?:needed|"
    r"required|detected|necessary))\b|\bidempotent (?:replay|repeat)\b",
    r"\bidempotency[ _-]key \S* ?(?:was |has )?(?:already|been) (?:been )?(?:used|seen|processed)",
)
"""A write says that it, or its like, has been made: something to look at, and nothing to repair."""

REFUSED_CALL = _any(
    r"additional propert|extra (?:inputs|fields) (?:are )?not|is a required property|is not of type|is not one of",
    r"\d+ validation errors? for|method not allowed|type=\w+, input_value|unexpected keyword argument",
    r"missing \d+ required (?:positional|keyword)",
)
"""What validators say, in words that would otherwise look like a broken precondition."""

_AUTH = (
    r"api[ _-]?key|access[ _-]?token|credentials?|token|client(?:[ _](?:id|secret))?|grant|session|password|signature"
)
BROKEN = _any(
    # switched off, taken away, run out
    r"(?:not|isn't|never) (?:yet )?(?:been )?(?:enabled|activated|subscribed|entitled|licensed|onboarded)",
    r"(?<!\w)(?:disabled|suspended|deactivated|revoked|decommissioned|discontinued|deprovisioned|banned|frozen)\b",
    r"(?<!timeout )(?<!time-out )(?<!deadline )(?<!timer )(?<!wait )\bexpired\b|\bunlinked\b|retired\b",
    r"(?:has|have|was|were|been|is|are) (?:permanently )?(?:blocked|locked out|archived|terminated|shut down for good)",
    r"no longer (?:exists?|available|supported|valid|active|accessible|offered|there)",
    r"account .{0,40}?\bclosed\b|closed account|sunset\b",
    # money and quotas, which no waiting of seconds brings back
    r"insufficient[ _](?:quota|funds|balance|credits?|permissions?|privileges?|scopes?|rights)",
    r"billing (?:details|is |has |account|not|required)|payment required",
    r"exceeded your (?:current|monthly|daily)|(?:daily|weekly|monthly|hard|spending|plan|trial|free[- ]tier) (?:\w+ )?"
    r"(?:quota|limit|cap|allowance)|out of credits?|credit balance|quota (?:is |was )?exhausted",
    # who may
    r"permission[s]? (?:is |was )?(?:denied|missing|required)|access (?:is |was )?denied|forbidden|un-?authori[sz]ed",
    r"not (?:authori[sz]ed|permitted|entitled|allowed)|unauthenticated|authentication (?:failed|required|error)|"
    r"(?:login|log-in|sign-in) (?:failed|required)|not logged in|lacks? (?:the )?(?:\S+ ){0,3}(?:permission|scope)",
    rf"(?:invalid|incorrect|bad|missing|wrong|unknown|malformed) (?:{_AUTH})\b|(?:{_AUTH}) (?:is |was )?(?:invalid|"
    r"incorrect|missing|not valid|rejected)",
    r"must be (?:an? |the )?(?:owner|admin|superuser|member)|requires? (?:the )?\S+ (?:role|"
    r"permission|scope|privilege)",
    r"certificate (?:verify failed|is not trusted|has expired)|self[- ]signed certificate|hostname mismatch",
    # what is not there, or not any more
    r"(?:unknown|no such) (?:tool|method|endpoint|procedure)\b",
    rf"no such (?:{_THING}|process|module|program|command)\b|unknown (?:{_THING}|command)\b",
    rf"\b(?:{_THING})s?\b.{{0,80}}?(?:(?:(?:does|do) not|doesn't) (?:already |yet |currently )?exist|"
    r"(?:was |were |could |is )?(?:not|n't) (?:be )?"
    r"found|is gone|is missing|(?:was|were|has been|have been) (?:deleted|removed|dropped|renamed|moved|purged))",
    rf"(?:could not|cannot|can't|unable to) (?:find|locate|open) (?:the |any |a )?(?:{_THING})\b",
    r"command not found|no module named|is not installed|not installed|executable (?:file )?not found|"
    r"not recognized as an internal",
    r"nosuch(?:bucket|key|entity|upload)|resourcenotfound",
    # the shape of the world
    r"(?:format|schema|layout|structure|signature|api version|contract) (?:has |have |was |is )?(?:been )?(?:changed|"
    r"different|incompatible|mismatch)|schema mismatch|incompatible (?:schema|version|format)|"
    r"unexpected (?:schema|columns?|header row)",
    # what should have come before
    r"never (?:ran|run|started|landed|arrived|finished)|(?:has|have|had|did|does)(?: not|n't) (?:yet )?(?:run|finish|"
    r"finished|complete|completed|land|landed|started|arrived|succeed)\b|upstream (?:job|task|run) (?:has )?failed",
    r"prerequisite|precondition (?:failed|required|not met)|dependency (?:is |was )?(?:not met|missing|failed)",
    r"(?:must|has to|needs to) (?:first be|be (?:enabled|created|activated|configured|initiali[sz]ed))|before you can",
    r"not available (?:in|for|on|to) (?:your|this)|not supported in your|read[- ]only (?:file ?system|mode|transaction|"
    r"database|replica)|readonly database|no space left|disk (?:is )?full|disk quota|out of (?:disk|storage)",
)
"""A fact that the plan stands on is not so; it may wear a transient type or status."""

MISSING_NAME = re.compile(
    r"(?:no such column|unknown column|undefined column|invalid column name|no such field)[: ]+['\"`]?([\w.]+)|"
    r"(?:column|field|key|property|attribute)s?:? ['\"`]?([\w.]+)['\"`]?(?: (?:of|in) (?:\w+ )?\S+)? "
    r"(?:(?:was |is |could )?not (?:be )?found|does not exist|is missing|is unknown|is undefined|was removed|was "
    r"renamed|was dropped)",
    re.I,
)

CALL = _any(
    r"\b(?:invalid|illegal|unsupported|unrecogni[sz]ed|unexpected|unknown|bad|"
    r"malformed) (?:\w+ )?(?:argument|parameter|"
    r"value|input|date|filter|field|type|operator|option|format|syntax|query|json|payload|enum|flag|unit|range|cursor)",
    r"missing (?:a )?(?:required )?(?:argument|parameter|field|value|option)|is required\b|required (?:argument|field|"
    r"parameter)",
    r"(?:too|overly) (?:large|long|wide|big|broad|short|small|complex|deep)\b|too many (?:rows|items|results|tokens|"
    r"columns|records|parameters|arguments|values|ids)|exceeds? (?:the |its )?(?:max|limit of \d|allowed|size)",
    r"must (?:not )?be (?:an? |one of|between|less|greater|at (?:most|least)|positive|non-?negative|"
    r"in |before|after|of "
    r"type|unique|valid)|out of range|cannot be (?:parsed|null|blank|empty|negative)|could not parse|not a valid",
    r"syntax error|parse error|context[ _]length|maximum (?:context|length|size)|unprocessable|violates (?:not-null|"
    r"check)|(?:not null|check) constraint",
    r"\b(?:no|zero|0) (?:rows|results|records|matches|entries|documents|items) (?:were |"
    r"was )?(?:found|returned|matched|"
    r"match|for)|(?:empty|no) result(?:[ -]?set|s)?\b|returned (?:no|zero|0) (?:rows|results|records)|nothing matched",
)
"""The request itself is said to be wrong, or it found nothing where something was needed (seed 1)."""

LIMITED = _any(
    r"rate[ -]?limit|too many requests|throttl|slow ?down|requests? per (?:second|minute|hour)|concurrency limit|"
    r"overloaded|quota exceeded for quota metric|resource[ _]exhausted|at capacity|max(?:imum)? number of concurrent"
)
"""Asked too much at once: the endpoint, not the call, needs a rest."""
BUSY = _any(
    r"database (?:table |schema )?is locked|deadlock|could not serialize|serialization failure|lock wait|lock timeout",
    r"(?:operation|update|request|deployment|job|transaction)\b.{0,40} (?:is )?(?:already |still |"
    r"currently )?in progress",
    r"resource (?:is )?(?:temporarily )?(?:busy|locked)|device or resource busy|too many (?:connections|clients)|"
    r"connection pool|starting up|not (?:yet )?ready|warming up|is loading|being (?:updated|created|modified)",
)
AGAIN = _any(
    r"try again|temporar(?:y|ily)|transient|please retry|retry later|momentarily|service unavailable|brown-?out"
)
TIMED_OUT = _any(
    r"timed?[ -]?out|time-?out|deadline (?:was )?exceeded|gateway time|took too long|did not respond in time|"
    r"connection (?:was |has been )?(?:reset|aborted|closed|lost|dropped|terminated|broken)|broken pipe|"
    r"(?:server|peer|remote end) (?:has |unexpectedly )?(?:closed|disconnected|reset|went away|"
    r"gone away)|has gone away|"
    r"disconnect(?:ed)?/reset|unexpected eof|socket hang up|econnreset|etimedout|incomplete read"
)
"""The answer is lost: whatever the call did, it says nothing about it."""
UNREACHED = _any(
    r"connection refused|failed to establish a new connection|could not connect|cannot connect|"
    r"unreachable|econnrefused|"
    r"name or service not known|name resolution|getaddrinfo failed|all connection attempts failed"
)
"""The other side was never spoken to."""
CHANGED = _any(
    r"revoked|expired|changed|deleted|removed|dropped|renamed|moved|closed|suspended|deactivated|no longer|is gone|"
    r"decommissioned|discontinued|disabled|archived|purged|retired"
)
"""Something was so and is not any more: the world's doing, whoever looked."""
