"""Makes raw updates of Twilio's forms: the keys by which a repeat is known, and the lane in which it is handled.

A message repeats under its MessageSid, a request under its idempotency token; a failed delivery under its message and
status. What comes from one address is one lane; votes by button and what stops overtake. Every lane names the address, by
which its updates are found when a person is forgotten. What cannot be read has the SHA-256 of its bytes as its key and goes
to the quarantine lane.
"""

import hashlib
from dataclasses import dataclass

from app.domain import delivery
from app.domain.event import STOPPING
from app.domain.press import overtakes
from app.domain.words import STOPS, Word, word
from app.errors import InvalidInputError
from bots.base import RawUpdate, command_in
from bots.whatsapp.form import Form, address, field, maybe, read_form

QUARANTINE_LANE = "quarantine"
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


@dataclass(frozen=True, slots=True)
class Arrived:
    """How far a message came, by Twilio's word: its sid, to which address, and `delivered` or `read`.

    `update`: the same as an update, for what comes before our own receipt.
    """

    sid: str
    address: str
    delivery: str
    update: RawUpdate


def raw_status(body: bytes) -> RawUpdate | Arrived | None:
    """Return what the status in `body` says: a failure to be handled like an update, or how far a message came.

    Statuses come repeated and out of order. A failure is final, and the rest only leads on (`app/domain/delivery.py`); None
    is what says no more than our own receipt, as `queued` and `sent`.
    """
    try:
        form = read_form(body)
        sid, status, to = field(form, "MessageSid"), field(form, "MessageStatus"), field(form, "To")
    except InvalidInputError:
        return _unreadable(body)
    update = RawUpdate(body, (f"whatsapp:status:{sid}:{status}",), f"status:{to}")
    if status in FAILED:
        return update
    return Arrived(sid, to, status, update) if delivery.tells(status) else None


def _lane(form: Form) -> str:
    who = address(form)
    payload = maybe(form, "ButtonPayload")
    if payload and overtakes(payload):
        return f"votes:{who}"
    body = maybe(form, "Body") or ""
    stops = command_in(body)[0] in STOPPING or word(body) in _OVERTAKE
    return f"stop:{who}" if stops and _by_itself(form) else who


def _by_itself(form: Form) -> bool:
    """Whether a word may mean something: what is passed on, under a picture or a reply is a message like any other."""
    beside = ("OriginalRepliedMessageSid", "MediaUrl0")
    passed_on = any((maybe(form, name) or "").lower() == "true" for name in ("Forwarded", "FrequentlyForwarded"))
    return not passed_on and not any(maybe(form, name) for name in beside)


def _unreadable(body: bytes) -> RawUpdate:
    return RawUpdate(body, (f"whatsapp:body:{hashlib.sha256(body).hexdigest()}",), QUARANTINE_LANE)
