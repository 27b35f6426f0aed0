"""Makes raw updates of Twilio's forms: the keys by which a repeat is known, and the lane in which it is handled.

A message repeats under its MessageSid, a request under its idempotency token; a failed delivery under its message and
status. What comes from one address is one lane; votes by button and what stops overtake. Every lane names the address, by
which its updates are found when a person is forgotten. What cannot be read has the SHA-256 of its bytes as its key and goes
to the quarantine lane.
"""

import hashlib

from app.domain.event import STOPPING
from app.domain.press import overtakes
from app.domain.words import STOPS, Word, word
from app.errors import InvalidInputError
from bots.base import RawUpdate
from bots.whatsapp.form import Form, address, field, maybe, read_form

QUARANTINE_LANE = "quarantine"
_STOPS = frozenset(f"/{name}" for name in STOPPING)
# These must not wait for the reply that they are to stop, nor for whoever is asked for a human.
_OVERTAKE = STOPS | {Word.PERSON}
FAILED = frozenset({"failed", "undelivered"})


def raw_message(body: bytes, token: str | None) -> RawUpdate:
    """Return the message in `body`; `token` is the request's idempotency token."""
    try:
        form = read_form(body)
        keys = [f"whatsapp:message:{field(form, 'MessageSid')}"]
        lane = _lane(form)
    except InvalidInputError:
        return _unreadable(body)
    return RawUpdate(body, (*keys, *([f"whatsapp:request:{token}"] if token else [])), lane)


def raw_status(body: bytes) -> RawUpdate | None:
    """Return the status in `body` when it says that a message failed for good; None for all others.

    The road of a message that arrives is known by its receipt; nothing depends on `queued`, `sent`, `delivered` and `read`,
    which come repeated and out of order. A failure is final: no later status takes it back.
    """
    try:
        form = read_form(body)
        sid, status, to = field(form, "MessageSid"), field(form, "MessageStatus"), field(form, "To")
    except InvalidInputError:
        return _unreadable(body)
    if status not in FAILED:
        return None
    return RawUpdate(body, (f"whatsapp:status:{sid}:{status}",), f"status:{to}")


def _lane(form: Form) -> str:
    who = address(form)
    payload = maybe(form, "ButtonPayload")
    if payload and overtakes(payload):
        return f"votes:{who}"
    body = maybe(form, "Body") or ""
    return f"stop:{who}" if body.lower() in _STOPS or word(body) in _OVERTAKE else who


def _unreadable(body: bytes) -> RawUpdate:
    return RawUpdate(body, (f"whatsapp:body:{hashlib.sha256(body).hexdigest()}",), QUARANTINE_LANE)
