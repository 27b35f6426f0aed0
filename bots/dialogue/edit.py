"""Edits: what somebody changed in their last message is answered again."""

from app.domain.event import EditEvent
from app.domain.outgoing import Content
from app.domain.text import is_blank, storable
from app.errors import InvalidInputError
from app.services.lanes import Work
from app.store import Tx, inbox, turns
from bots.dialogue import message
from bots.dialogue.parts import Parts
from bots.dialogue.room import Room

LOOKED_AT = 20


async def on_edit(parts: Parts, room: Room, event: EditEvent, work: Work) -> None:
    """An edit of the newest message is answered again, the old reply kept; edits of older ones change nothing.

    Of several that came one upon another only the last is: nobody waits for what they took back.
    """
    text = storable(event.text)
    async with parts.store.begin() as tx:
        begun = await turns.of_update(tx, work.claimed.id) if work.claimed.attempts > 1 else None
        first = await turns.access_turn(tx, room.person_id, begun.sibling_of) if begun and begun.sibling_of else None
        edited = await turns.by_user_message(tx, room.chat.id, event.message_id)
        newest = await turns.last(tx, room.chat.id)
        superseded = await _superseded(tx, room, event, work)
    if first:
        await message.answer(parts, room, event, text, work, first=first)  # a try that was cut off began to
        return
    outdated = superseded or edited is None or newest is None or edited.id != newest.id
    if outdated or edited is None or is_blank(text) or text == edited.user_text:
        return
    if len(text) > parts.settings.max_input_chars:
        async with parts.store.begin() as tx:
            await room.tell(tx, Content(room.say("too_long", length=len(text), limit=parts.settings.max_input_chars)))
            await work.done(tx)
        return
    await message.answer(parts, room, event, text, work, first=edited)


async def _superseded(tx: Tx, room: Room, event: EditEvent, work: Work) -> bool:
    """Whether the same message was changed again while this change waited."""
    return any(_changes(room, event, body) for _, body in await inbox.behind(tx, work.claimed, LOOKED_AT))


def _changes(room: Room, event: EditEvent, body: bytes) -> bool:
    try:
        later = room.channel.parse(body)
    except InvalidInputError:
        return False  # its own turn comes, and quarantines it
    return any(isinstance(one, EditEvent) and one.message_id == event.message_id for one in later)
