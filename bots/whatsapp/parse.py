"""Twilio's forms → events. What cannot be used raises `InvalidInputError`. Knows nothing of consent, turns or the store.

Emoji reactions, edits and deletions do not come through Twilio; a thumb sent as a message is a vote by the dialogue's own
rule. A button is known by its payload, never by MessageType or by its label, which is in the person's language.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from app.domain import delivery
from app.domain.event import (
    AnyEvent,
    ChatAddress,
    DeliveredEvent,
    FailedDeliveryEvent,
    MessageEvent,
    PressEvent,
    Sender,
)
from app.domain.media import Attachment, Kind
from app.domain.text import storable
from bots.base import command_in
from bots.whatsapp import form as read
from bots.whatsapp.faults import is_gone, is_too_late
from bots.whatsapp.form import Form, field, maybe

NOBODY = Sender(None)
_KINDS: Mapping[str, Kind] = {"image": "picture", "audio": "voice"}
MAX_MEDIA = 10
_TEXT = frozenset({"text", "button", "interactive"})
_KOREA = ("whatsapp:+82", "whatsapp:KR.")


def parse(body: bytes) -> Sequence[AnyEvent]:
    """Return what the form says, exactly one event.

    Raises:
        InvalidInputError: it is no form, or lacks what every message has.
    """
    form = read.read_form(body)
    return [_status(form) if "MessageStatus" in form else _incoming(form)]


def _incoming(form: Form) -> AnyEvent:
    number = field(form, "MessageSid")
    chat, sender = ChatAddress(read.address(form)), _sender(form)
    reply = maybe(form, "OriginalRepliedMessageSid")
    payload = maybe(form, "ButtonPayload")
    if payload:
        return PressEvent(chat, sender, press_id=number, message_id=reply, data=payload)
    text = storable(form.get("Body", ""))
    forwarded = _flag(form, "Forwarded") or _flag(form, "FrequentlyForwarded")
    command, argument = (None, "") if forwarded else command_in(text)
    return MessageEvent(
        chat,
        sender,
        message_id=number,
        text=text,
        reply_to=reply,
        forwarded=forwarded,
        media=_media(form),
        attachments=_attachments(form),
        command=command,
        argument=argument,
        sent_at=_sent_at(form),
    )


def _sender(form: Form) -> Sender:
    who, address = read.sender(form), read.address(form)
    language = "ko" if who.startswith(_KOREA) or address.startswith(_KOREA) else None
    return Sender(who, alias=address if address != who else None, name=maybe(form, "ProfileName"), language=language)


def _media(form: Form) -> str | None:
    """Return what is attached, by its name in Twilio's MessageType; None for nothing."""
    kind = (maybe(form, "MessageType") or "").lower()
    if kind and kind not in _TEXT:
        return kind
    if read.number(form, "NumMedia"):
        return (maybe(form, "MediaContentType0") or "file").partition("/")[0]
    return "location" if maybe(form, "Latitude") else None


def _attachments(form: Form) -> tuple[Attachment, ...]:
    """Return what is attached as far as it can be fetched; the kind is as declared, and looked at again when it is there."""
    if (maybe(form, "MessageType") or "").lower() == "sticker":
        return ()
    named = range(min(read.number(form, "NumMedia"), MAX_MEDIA))
    return tuple(one for place in named if (one := _attachment(form, place)))


def _attachment(form: Form, place: int) -> Attachment | None:
    address, declared = maybe(form, f"MediaUrl{place}"), maybe(form, f"MediaContentType{place}") or ""
    kind = _KINDS.get(declared.partition("/")[0].lower())
    return Attachment(kind, address, content_type=declared) if kind and address else None


def _sent_at(form: Form) -> datetime | None:
    """Return when a message was sent, where a list told it (`missed`); a webhook brings it at once and does not say."""
    given = maybe(form, "DateSent")
    try:
        moment = datetime.fromisoformat(given) if given else None
    except ValueError:
        return None
    return moment if moment and moment.tzinfo else None


def _flag(form: Form, name: str) -> bool:
    return (maybe(form, name) or "").lower() == "true"


def _status(form: Form) -> FailedDeliveryEvent | DeliveredEvent:
    status, sid = maybe(form, "MessageStatus") or "unknown", field(form, "MessageSid")
    address = ChatAddress(maybe(form, "To") or "")
    if delivery.tells(status):
        return DeliveredEvent(address, NOBODY, message_id=sid, delivery=status)
    code = maybe(form, "ErrorCode") or status
    return FailedDeliveryEvent(
        address,
        NOBODY,
        message_id=sid,
        reason=f"twilio_{code}"[:40],
        gone=is_gone(code),
        too_late=is_too_late(code),
    )
