"""A stored web update, read: the same events as any other channel's.

The body was wrapped by `receive`, so a form that does not fit is a fault of ours or of an older version: quarantine.
"""

import re
from collections.abc import Mapping
from uuid import UUID

from app.domain.event import ChatAddress, MessageEvent, PressEvent, Sender
from app.domain.text import storable
from app.errors import InvalidInputError
from bots.web import body as form

_COMMAND = re.compile(r"\s*/([A-Za-z_]{1,32})(?:\s+(.*))?", re.DOTALL)


def parse(stored: bytes) -> MessageEvent | PressEvent:
    """Return what a stored update says.

    Raises:
        InvalidInputError: it is not of the form that `receive` writes.
    """
    wrapped = form.parse_object(stored)
    update = wrapped.get("update")
    if not isinstance(update, dict):
        raise InvalidInputError("update must be an object")
    chat = ChatAddress(form.words(wrapped, "chat"))
    sender = Sender(form.words(wrapped, "account"), language=form.optional_words(wrapped, "language", most=16))
    if update.get("kind") == "press":
        return _press(chat, sender, update)
    return _message(chat, sender, update)


def _press(chat: ChatAddress, sender: Sender, update: Mapping[str, object]) -> PressEvent:
    # The press id names the chat, so that its note finds the open page.
    return PressEvent(
        chat=chat,
        sender=sender,
        press_id=f"{chat.external_id}:{form.words(update, 'id')}",
        message_id=_optional(update, "reply_to"),
        data=storable(form.words(update, "data")),
    )


def _message(chat: ChatAddress, sender: Sender, update: Mapping[str, object]) -> MessageEvent:
    kind = form.words(update, "kind")
    text = storable(form.words(update, "text"))
    if kind == "command":
        name = form.words(update, "command")
        return _event(chat, sender, update, text=f"/{name} {text}".strip(), command=name, argument=text.strip())
    if kind == "correction":
        return _event(chat, sender, update, text=text, reply_to=_optional(update, "reply_to"))
    if kind != "message":
        raise InvalidInputError("kind is unknown")
    typed = _COMMAND.fullmatch(text)
    if typed:
        return _event(chat, sender, update, text=text, command=typed[1].lower(), argument=(typed[2] or "").strip())
    return _event(chat, sender, update, text=text)


def _event(
    chat: ChatAddress,
    sender: Sender,
    update: Mapping[str, object],
    *,
    text: str,
    command: str | None = None,
    argument: str = "",
    reply_to: str | None = None,
) -> MessageEvent:
    return MessageEvent(
        chat=chat,
        sender=sender,
        message_id=form.words(update, "id"),
        text=text,
        command=command,
        argument=argument,
        reply_to=reply_to,
    )


def _optional(update: Mapping[str, object], name: str) -> str | None:
    value = update.get(name)
    return storable(value) if isinstance(value, str) else None


def chat_of_press(press_id: str) -> UUID | None:
    """Return the chat that a press id names."""
    try:
        return UUID(press_id.partition(":")[0])
    except ValueError:
        return None
