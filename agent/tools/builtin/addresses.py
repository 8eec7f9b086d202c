"""Which addresses may be connected to? Public ones, and those that were named. Checked on the address itself."""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple

import httpx

Address = IPv4Address | IPv6Address

_UNICAST = ip_network("2000::/3")
"""All that is given out of IPv6; the rest is local, reserved, or another spelling of IPv4."""


class _Exception(NamedTuple):
    network: IPv4Network | IPv6Network
    port: int | None


class Allowed:
    """Public addresses, and the private ones that somebody named."""

    def __init__(self, named: Sequence[str]) -> None:
        """Allow these as well.

        Raises:
            ValueError: one is no address or network.
        """
        self._named = [_named(each) for each in named]

    def __contains__(self, place: tuple[Address, int]) -> bool:
        address, port = place
        if any(each.port in (None, port) and address in each.network for each in self._named):
            return True
        return all(_is_public(each) for each in _meant(address))


class Refused(PermissionError):
    """The address may not be reached."""


def checked(url: str) -> httpx.URL:
    """The URL, if it is a plain one of the web.

    Raises:
        ValueError: it has another scheme, no host, credentials, or cannot be read.
    """
    try:
        found = httpx.URL(url)
        host = found.host  # decoded here
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise ValueError(f"not a valid URL: {error}") from None
    if found.scheme not in ("http", "https"):
        raise ValueError(f"not a valid URL here: the scheme is {found.scheme[:20]!r}, and must be http or https")
    if found.userinfo:
        raise ValueError("not a valid URL here: it carries a user name or password; leave that out")
    if not host:
        raise ValueError("not a valid URL: it names no host")
    return found


class PinnedTransport(httpx.AsyncHTTPTransport):
    """Resolves a name once, checks what it found, and connects to exactly that."""

    def __init__(self, allowed: Allowed) -> None:
        super().__init__(verify=_certificates(), trust_env=False)
        self._allowed = allowed

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request to a checked address; the name stays in its Host header and in the certificate check.

        Raises:
            Refused: an address of the host may not be reached.
            httpx.TransportError: it cannot be reached.
        """
        url = request.url
        port = url.port or {"http": 80, "https": 443}[url.scheme]
        address = await self._address(url.host, port)
        request.extensions = {**request.extensions, "sni_hostname": url.host}
        request.url = url.copy_with(host=str(address))
        try:
            return await super().handle_async_request(request)
        finally:
            request.url = url

    async def _address(self, host: str, port: int) -> Address:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (socket.gaierror, UnicodeError) as error:
            raise httpx.ConnectError(f"the host {host[:100]!r} cannot be resolved: {error}") from error
        addresses = [_address_of(str(each[4][0])) for each in found]
        for each in addresses:
            if (each, port) not in self._allowed:  # one bad address makes the name a bad one
                raise Refused(
                    f"{host[:100]!r} is at {each}, which is no public address; whoever set up the tool may allow it"
                )
        return addresses[0]


@lru_cache(maxsize=1)
def _certificates() -> ssl.SSLContext:
    """Reading all the world's certificate authorities takes longer than a request."""
    return httpx.create_ssl_context(trust_env=False)


def _address_of(text: str) -> Address:
    return ip_address(text.split("%")[0])


def _meant(address: Address) -> list[Address]:
    """The address, and the IPv4 addresses that an IPv6 one stands for or is reached through."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped:
        return [address.ipv4_mapped]
    inside = (address.sixtofour, *(address.teredo or ()))
    return [address, *(each for each in inside if each is not None)]


def _is_public(address: Address) -> bool:
    given_out = isinstance(address, IPv4Address) or address in _UNICAST
    return given_out and address.is_global and not address.is_multicast


def _named(text: str) -> _Exception:
    host, colon, port = text.rpartition(":")
    if not (colon and port.isdigit() and int(port) < 65_536 and (host.startswith("[") or ":" not in host)):
        host, port = text, ""
    try:
        return _Exception(ip_network(host.strip("[]"), strict=False), int(port) if port else None)
    except ValueError:
        raise ValueError(f"{text!r} is no address to allow; write 127.0.0.1, 10.0.0.0/8 or 127.0.0.1:8080") from None
