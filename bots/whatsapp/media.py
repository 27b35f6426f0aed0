"""Media that people sent, from Twilio: our name and token go to Twilio's own address and nowhere else.

    address ─► ours? ─► GET with Basic auth ─► 200: read up to the limit
                 │                  └─► a redirect: asked without credentials, https alone, three times at most, and
                 │                      nobody whose name stands for a machine inside
                 └─no─► refused; no request is made

A message names its media by address, and whoever can have Twilio sign a message of theirs would else be sent the token.
https://www.twilio.com/docs/messaging/api/media-resource
"""

import asyncio
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from socket import AddressFamily, inet_aton

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from app.domain.media import Attachment
from app.errors import AttachmentAwayError, AttachmentGoneError, AttachmentRefusedError, AttachmentTooBigError

TWILIO = URL("https://api.twilio.com")
FETCH_S = 20.0
MOST_REDIRECTS = 3
_OK = 200
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_GONE = frozenset({404, 410})
_REFUSED = frozenset({400, 401, 403})
# Behind these a translator finds an address of the older kind, whichever it is: RFC 6052, 8215 and 3056.
_TRANSLATED = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"), IPv6Network("2002::/16"))


class OutsideResolver(AbstractResolver):
    """Finds the addresses of names on the internet, and of no others: a name is whatever its owner says that it is."""

    def __init__(self, found_by: AbstractResolver) -> None:
        """Take who looks names up."""
        self._found_by = found_by

    async def resolve(
        self, host: str, port: int = 0, family: AddressFamily = AddressFamily.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a name. Raises `AttachmentRefusedError` where one of them is inside."""
        found = await self._found_by.resolve(host, port, family)
        if any(_is_inside_number(ip_address(one["host"].partition("%")[0])) for one in found):
            raise AttachmentRefusedError
        return found

    async def close(self) -> None:
        """Close who looks names up."""
        await self._found_by.close()


class MediaClient:
    """Fetches media of one account. Create it inside a running loop; close it."""

    def __init__(self, account_sid: str, auth_token: str, base_url: str | None) -> None:
        self._home = (URL(base_url) if base_url else TWILIO).origin()
        self._path = f"/2010-04-01/Accounts/{account_sid}/Messages/"
        self._auth = {"Authorization": aiohttp.encode_basic_auth(account_sid, auth_token)}
        self._session = _session(aiohttp.TCPConnector())
        self._outside = _session(aiohttp.TCPConnector(resolver=OutsideResolver(aiohttp.DefaultResolver())))

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()
        await self._outside.close()

    def address(self, message_sid: str, media_sid: str) -> str:
        """Return where a medium of a message is."""
        return f"{self._home}{self._path}{message_sid}/Media/{media_sid}"

    async def fetch(self, attachment: Attachment) -> bytes:
        """Return what a person sent. Raises the `AttachmentError` family."""
        url = self._ours(attachment.ref)
        try:
            async with asyncio.timeout(FETCH_S):
                return await self._follow(url, attachment.most)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise AttachmentAwayError from error

    def _ours(self, address: str) -> URL:
        """Return the address, if it is of this account's media at Twilio."""
        try:
            url = URL(address)
            ours = url.origin() == self._home and url.path.startswith(self._path)
        except ValueError as error:
            raise AttachmentRefusedError from error
        if not ours or url.user is not None or url.password is not None or ".." in url.path:
            raise AttachmentRefusedError
        return url

    async def _follow(self, url: URL, most: int) -> bytes:
        headers, session = self._auth, self._session
        for _ in range(MOST_REDIRECTS + 1):
            async with session.get(url, headers=headers, allow_redirects=False) as answer:
                if answer.status not in _REDIRECTS:
                    return await _body(answer, most)
                url, headers = self._elsewhere(url, answer.headers.get("Location")), {}
            session = self._session if _is_loopback(url) else self._outside
        raise AttachmentRefusedError("redirected too often")

    def _elsewhere(self, url: URL, location: str | None) -> URL:
        """Return where an answer points."""
        if not location:
            raise AttachmentRefusedError
        there = url.join(URL(location))
        # A server of one's own on this machine may point at this machine; nobody else may, nor into a network behind it.
        if _is_loopback(self._home) and _is_loopback(there):
            return there.with_user(None)
        if there.scheme != "https" or _is_inside(there):
            raise AttachmentRefusedError
        return there.with_user(None)


def _session(connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    timeout = aiohttp.ClientTimeout(total=FETCH_S)
    return aiohttp.ClientSession(connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar())


async def _body(answer: aiohttp.ClientResponse, most: int) -> bytes:
    if answer.status in _GONE:
        raise AttachmentGoneError
    if answer.status in _REFUSED:
        raise AttachmentRefusedError
    if answer.status != _OK:
        raise AttachmentAwayError(f"the media server answered {answer.status}")
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > most:
            raise AttachmentTooBigError
    return bytes(body)


def _is_loopback(url: URL) -> bool:
    number = _number(url)
    return _host(url) == "localhost" or (number is not None and number.is_loopback)


def _is_inside(url: URL) -> bool:
    """Whether an address names this machine, or by its number one that is not on the internet."""
    number, host = _number(url), _host(url)
    named = host == "localhost" or host.endswith(".localhost")
    return named or (number is not None and _is_inside_number(number))


def _is_inside_number(number: IPv4Address | IPv6Address) -> bool:
    return not number.is_global or any(number in network for network in _TRANSLATED)


def _host(url: URL) -> str:
    return (url.host or "").removesuffix(".")


def _number(url: URL) -> IPv4Address | IPv6Address | None:
    """Return the number that a host is, also where it is spelt as resolvers take it: `127.1`, `0x7f.1`, `2130706433`."""
    host = _host(url)
    with suppress(ValueError):
        return ip_address(host)
    try:
        return IPv4Address(inet_aton(host))
    except (OSError, ValueError):
        return None
