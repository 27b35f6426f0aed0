"""Choices in words: what a number means where a channel has no buttons.

`/2` chooses from the newest message that offers choices, or from the one replied to. A bare `2` does so only while that
message is the newest of all: later it is an answer to something else, and beside a picture it is a caption.
"""

import re

from app.domain.event import MessageEvent, PressEvent
from app.domain.outgoing import Content
from app.store import Tx, outbox
from bots.dialogue.room import Room

LOOKED_AT = 20
_NUMBER = re.compile(r"[1-9][0-9]?")


async def chosen(tx: Tx, room: Room, event: MessageEvent) -> PressEvent | None:
    """Return the press that a message stands for; None when it is a message."""
    number = _NUMBER.fullmatch(event.command or event.text.strip())
    caption = not event.command and (event.media or event.pictures)
    if number is None or event.forwarded or caption:
        return None
    offer = await _offer(tx, room, event)
    if offer is None:
        return None
    message_id, content = offer
    place = int(number[0]) - 1
    if place >= len(content.choices):
        return None
    data = content.choices[place].data
    return PressEvent(event.chat, event.sender, press_id=event.message_id, message_id=message_id, data=data)


async def _offer(tx: Tx, room: Room, event: MessageEvent) -> tuple[str, Content] | None:
    if event.reply_to:
        content = await outbox.content_of(tx, room.chat.id, event.reply_to)
        return (event.reply_to, content) if content and content.choices else None
    newest = await outbox.newest_sent(tx, room.chat.id, LOOKED_AT if event.command else 1)
    return next((found for found in newest if found[1].choices), None)
