"""Twilio's posts to our own webhooks: verified, stored as they are, acknowledged.

    not signed by Twilio, for another account or sender 403 · longer than 512 KiB 413
    store away 503 (Twilio goes to its fallback) · everything authentic 200, a message with an empty answer

The signature covers the address that Twilio was given, so it is checked over PUBLIC_URL and never over what a proxy passes on.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import web
from twilio.request_validator import RequestValidator

from app.errors import InvalidInputError, StoreUnavailableError
from app.telemetry import REFUSED, Log
from bots.base import Accept, RawUpdate
from bots.package import Handler
from bots.posted import body_of
from bots.whatsapp.form import Form, read_form
from bots.whatsapp.keys import Arrived, raw_message, raw_status

log = Log(__name__)
SIGNATURE_HEADER = "X-Twilio-Signature"
IDEMPOTENCY_HEADER = "I-Twilio-Idempotency-Token"
# A form with ten addresses of media, each as long as Twilio makes them, takes a small part of it.
MAX_BODY = 512 * 1024
_NOTHING_TO_SAY = '<?xml version="1.0" encoding="UTF-8"?><Response/>'
Note = Callable[[Arrived], Awaitable[bool]]
"""Keeps how far a message came; False before our receipt of it is there. Raises `StoreUnavailableError`."""


@dataclass(frozen=True, slots=True)
class Seal:
    """What an authentic post bears: the signature of `token` over `url`, this account, and our own sender."""

    url: str
    account_sid: str
    sender: str
    token: str = field(repr=False)

    def fits(self, form: Form, signature: str | None, query: str, ours: str) -> bool:
        """Whether Twilio signed the form for this address; `ours` names the field that holds our sender."""
        if not signature:
            return False
        url = f"{self.url}?{query}" if query else self.url
        # The library compares in constant time, and takes repeated fields from a MultiDict.
        signed = bool(RequestValidator(self.token).validate(url, form, signature))
        return signed and form.get("AccountSid") == self.account_sid and form.get(ours) == self.sender


def message_handler(seal: Seal, accept: Accept) -> Handler:
    """Return the handler of what people send."""

    async def handle(request: web.Request) -> web.StreamResponse:
        refusal, body = await _authentic(request, seal, "To")
        if refusal:
            return refusal
        return await _stored(accept, raw_message(body, request.headers.get(IDEMPOTENCY_HEADER)))

    return handle


def status_handler(seal: Seal, accept: Accept, note: Note) -> Handler:
    """Return the handler of what becomes of our own messages: failures are accepted, how far the others came is noted.

    What is told of a message before our receipt of it is accepted too, and waits for that.
    """

    async def handle(request: web.Request) -> web.StreamResponse:
        refusal, body = await _authentic(request, seal, "From")
        if refusal:
            return refusal
        status = raw_status(body)
        return await _noted(note, accept, status) if isinstance(status, Arrived) else await _stored(accept, status)

    return handle


async def _authentic(request: web.Request, seal: Seal, ours: str) -> tuple[web.Response | None, bytes]:
    body = await body_of(request, MAX_BODY)
    if body is None:
        return web.Response(status=413), b""
    try:
        form = read_form(body)
    except InvalidInputError:
        form = Form()
    if not seal.fits(form, request.headers.get(SIGNATURE_HEADER), request.rel_url.raw_query_string, ours):
        REFUSED.labels("whatsapp").inc()
        log.warning("whatsapp:webhook:unauthentic")
        return web.Response(status=403), b""
    return None, body


async def _noted(note: Note, accept: Accept, arrived: Arrived) -> web.Response:
    try:
        noted = await note(arrived)
    except StoreUnavailableError:
        noted = False
    # While the store is away, that door says so.
    return await _stored(accept, None if noted else arrived.update)


async def _stored(accept: Accept, update: RawUpdate | None) -> web.Response:
    try:
        if update:
            await accept([update])
    except StoreUnavailableError:
        log.warning("whatsapp:webhook:store_away")
        return web.Response(status=503, headers={"Retry-After": "5"})
    return web.Response(text=_NOTHING_TO_SAY, content_type="text/xml")
