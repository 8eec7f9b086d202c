"""One tool that fetches what lies at a URL, within bounds, and not from the machine's own network."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

import httpx
from langchain_core.tools import BaseTool
from pydantic import Field

from agent.tools.builtin.addresses import Allowed, PinnedTransport, checked
from agent.tools.contracts import contract

REDIRECTS = 5
_TEXT = ("text/", "application/json", "application/xml", "application/xhtml+xml", "application/javascript")


def http_tools(
    *, allow: Sequence[str] = (), seconds: float = 30.0, size: int = 2_000_000, redirects: int = REDIRECTS
) -> list[BaseTool]:
    """A tool that gets a URL: http and https, public addresses only, no proxy, no cookie, no credentials.

    The address that is connected to is the one that was checked, so a name that resolves to another one the
    next time gains nothing. Every redirect is checked like the first URL.

    Args:
        allow: private addresses and networks that may be reached too, as `127.0.0.1`, `10.0.0.0/8` or, for one
            port, `127.0.0.1:8080` and `[::1]:8080`.
        seconds: for all of it, redirects included.
        size: bytes of an answer.
        redirects: that are followed.

    Raises:
        ValueError: what is allowed is no address.
    """
    allowed = Allowed(allow)

    @contract(effect="read_only", ensures="result.status >= 200 && result.status < 300", free="")
    async def http_get(
        url: Annotated[str, Field(max_length=4_000, description="an http or https URL")],
    ) -> dict[str, object]:
        """Fetch what lies at a URL."""
        checked(url)
        try:
            async with asyncio.timeout(seconds):
                return await _got(url, allowed, size, redirects)
        except TimeoutError:
            raise TimeoutError(f"the answer took longer than {seconds:g} s") from None

    return [http_get]


async def _got(url: str, allowed: Allowed, size: int, redirects: int) -> dict[str, object]:
    headers = {"Accept-Encoding": "identity", "User-Agent": "kintsugi"}
    async with httpx.AsyncClient(
        transport=PinnedTransport(allowed), headers=headers, trust_env=False, timeout=None
    ) as client:
        for _ in range(redirects + 1):
            async with client.stream("GET", checked(url)) as response:
                if response.next_request is None:
                    return await _told(response, size)
                url = str(response.next_request.url)
            client.cookies.clear()
    raise httpx.TooManyRedirects(f"more than {redirects} redirects")


async def _told(response: httpx.Response, size: int) -> dict[str, object]:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise ValueError("the answer is compressed although that was not asked for; a small one may unpack to any size")
    content = b""
    async for chunk in response.aiter_raw(65_536):
        content += chunk
        if len(content) > size:
            raise ValueError(f"the answer is too large; it may have {size} bytes")
    kind = response.headers.get("content-type", "")
    told: dict[str, object] = {"status": response.status_code, "url": str(response.url), "type": kind}
    if response.is_error:
        # the text is all the body that is told, so that the error stays one sentence
        raise httpx.HTTPStatusError(
            f"{response.status_code} {response.reason_phrase} from {response.url.host}: "
            f"{content[:500].decode('utf-8', 'replace')}",
            request=response.request,
            response=httpx.Response(response.status_code, headers=response.headers, request=response.request),
        )
    return {**told, **_body(content, kind, response.charset_encoding)}


def _body(content: bytes, kind: str, encoding: str | None) -> dict[str, object]:
    if kind.startswith(_TEXT) or "+json" in kind or "+xml" in kind or not kind:
        try:
            return {"text": content.decode(encoding or "utf-8")}
        except (UnicodeDecodeError, LookupError):
            pass
    return {"content": content}
