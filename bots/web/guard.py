"""What stands before every route of the web chat: who may send, how much, how often, and what an error looks like.

    request -> host known? -> (POST) from our own page? -> handler -> answer, or {"error": {"code", "message"}}

`code` is a word that the page translates; `message` is for whoever reads the answer by hand. Knows no table.
"""

import hashlib
import ipaddress
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar
from urllib.parse import urlsplit

from aiohttp import web

from app.config import LOOPBACK, Settings
from app.errors import (
    ForbiddenError,
    InvalidInputError,
    MenteeError,
    NotFoundError,
    StoreUnavailableError,
    UnauthenticatedError,
)
from app.store import Store, webchat
from app.web import middleware
from bots.web.context import CONTEXT

MAX_BODY = 256 * 1024
WINDOW = timedelta(minutes=5)
SAFE_METHODS = frozenset({"GET", "HEAD"})
EVERYWHERE = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - compared with, never bound

# The page's own answers allow less than the gateway's default: HTML enters the document through one named policy.
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; "
    "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'; "
    "require-trusted-types-for 'script'; trusted-types mentee"
)
HEADERS = middleware.HEADERS | {"Content-Security-Policy": CSP}


class TooLargeError(InvalidInputError):
    """This is too large: a request holds at most 256 KiB."""

    status: ClassVar[int] = 413


class TooManyRequestsError(MenteeError):
    """Too many attempts from here; please try again in a few minutes."""

    status: ClassVar[int] = 429
    retryable: ClassVar[bool] = True


class InvitationError(ForbiddenError):
    """A newcomer needs an invitation that was not used before."""


class RecoveryError(NotFoundError):
    """No one has this recovery code."""


# The first class that fits names the error for the page.
CODES: tuple[tuple[type[MenteeError], str], ...] = (
    (TooLargeError, "too_large"),
    (TooManyRequestsError, "too_many"),
    (InvitationError, "invitation"),
    (RecoveryError, "recovery"),
    (UnauthenticatedError, "unauthenticated"),
    (ForbiddenError, "forbidden"),
    (NotFoundError, "not_found"),
    (InvalidInputError, "invalid"),
    (StoreUnavailableError, "unavailable"),
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def error_answer(error: MenteeError) -> web.Response:
    """Return the JSON answer for an error."""
    code = next((word for kind, word in CODES if isinstance(error, kind)), "failed")
    headers = {"Retry-After": "5"} if error.retryable else {}
    body = {"error": {"code": code, "message": str(error)}}
    return web.json_response(body, status=error.status, headers=headers)


@web.middleware
async def errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer our own errors as JSON; anything unforeseen goes on to the gateway's last-resort handler."""
    try:
        return await handler(request)
    except MenteeError as error:
        return error_answer(error)


@web.middleware
async def same_site(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse unknown host names (DNS rebinding) and anything but reads that does not come from our own page."""
    gate = Gate(request.app[CONTEXT].settings)
    if not gate.knows_host(request.host):
        raise ForbiddenError("this address is not one of the gateway's; set PUBLIC_URL to the address people use")
    if request.method not in SAFE_METHODS and not gate.from_our_page(request):
        raise ForbiddenError("this did not come from the chat page: the Origin header must be the gateway's address")
    return await handler(request)


async def security_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Set the security headers; API answers are never cached."""
    response.headers.update(HEADERS)
    response.headers.setdefault("Cache-Control", "no-store")


@dataclass(frozen=True, slots=True)
class Gate:
    """The rules of where a request may come from."""

    settings: Settings

    def knows_host(self, host: str) -> bool:
        """Whether `host` is a name that the gateway goes by. Where it listens everywhere, addresses count as known."""
        name = _name_in(host)
        named = {*LOOPBACK, self.settings.mentee_host.lower(), urlsplit(self.settings.public_url or "").hostname}
        if name and name in named:
            return True
        return self.settings.mentee_host in EVERYWHERE and _is_address(name)

    def from_our_page(self, request: web.Request) -> bool:
        """Whether the browser says that our own page sent it; a request that says nothing is refused."""
        if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
            return False
        origin = request.headers.get("Origin")
        if origin is None:
            return "Sec-Fetch-Site" in request.headers
        return origin in {f"{request.scheme}://{request.host}", _origin(self.settings.public_url)}


def _name_in(host: str) -> str:
    """Return the name in a Host header, in lower case; empty for what is none, such as an unclosed bracket."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _origin(url: str | None) -> str | None:
    parts = urlsplit(url or "")
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else None


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `most` attempts of one kind from one address within five minutes, counted for all gateways together."""

    kind: str
    most: int

    async def check(self, store: Store, remote: str | None) -> None:
        """Raise `TooManyRequestsError` when the address had its share."""
        async with store.begin() as tx:
            if await webchat.attempts(tx, self._digest(remote), WINDOW) >= self.most:
                raise TooManyRequestsError

    async def note(self, store: Store, remote: str | None) -> None:
        """Count one attempt; in a transaction of its own, so that a refusal counts too."""
        async with store.begin() as tx:
            await webchat.note_attempt(tx, self._digest(remote))

    def _digest(self, remote: str | None) -> bytes:
        return hashlib.sha256(f"web-{self.kind}:{remote or ''}".encode()).digest()


async def read_body(request: web.Request) -> bytes:
    """Return the body, at most `MAX_BODY` bytes; what is longer is not read to its end."""
    if (request.content_length or 0) > MAX_BODY:
        raise TooLargeError
    held = bytearray()
    async for piece in request.content.iter_any():
        held += piece
        if len(held) > MAX_BODY:
            raise TooLargeError
    return bytes(held)
