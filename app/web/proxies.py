"""Who really asks, where proxies stand before the gateway: the address that the nearest proxy we trust saw.

    client ─► (proxies of others) ─► our proxy ─► gateway
              X-Forwarded-For: what the client says, ..., what our proxy saw   <- read from the right

A client can write anything into the header; only what trusted proxies appended counts, and only if one of them is the peer.
Below this layer `request.remote` is that address.
"""

import ipaddress
from collections.abc import Sequence

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from app.config import Network

HEADER = "X-Forwarded-For"
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def true_remotes(trusted: Sequence[Network]) -> Middleware:
    """Return the middleware that sets `request.remote` for requests that come through `trusted` proxies."""

    @web.middleware
    async def behind_proxies(request: web.Request, handler: Handler) -> web.StreamResponse:
        remote = client(request.remote, request.headers.getall(HEADER, []), trusted)
        if remote is None or remote == request.remote:
            return await handler(request)
        return await handler(request.clone(remote=remote))

    return behind_proxies


def client(peer: str | None, forwarded: Sequence[str], trusted: Sequence[Network]) -> str | None:
    """Return the client's address: the right-most one that is no trusted proxy, the peer itself where that is not trusted.

    Args:
        peer: who is connected to us; None where it has no address.
        forwarded: the values of `X-Forwarded-For`, in the order of their lines.
        trusted: the networks of our proxies.
    """
    hops = [hop for line in forwarded for hop in line.split(",")]
    found = _address(peer or "")
    while found and hops and _is_trusted(found, trusted):
        further = _address(hops.pop())
        if further is None:
            break  # our proxy does not say; everybody behind it counts as one
        found, peer = further, str(further)
    return peer


def _is_trusted(address: Address, trusted: Sequence[Network]) -> bool:
    return any(address in network for network in trusted)


def _address(written: str) -> Address | None:
    """Return the address in one entry, with or without its port; None when it is none."""
    bare = written.strip()
    if bare.startswith("["):
        bare = bare[1:].partition("]")[0]
    elif bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        found = ipaddress.ip_address(bare)
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, ipaddress.IPv6Address) else found
