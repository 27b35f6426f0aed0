"""Edits: what somebody changed in their last message is answered again, in their last correction replaces what it taught.

A command, or what was turned away, began nothing that could change: with other words it is as if it had just been sent.
"""

from collections.abc import Sequence

from app.domain.event import EditEvent, MessageEvent
from app.domain.feedback import Feedback
from app.domain.outgoing import Content
from app.domain.text import is_blank, storable
from app.errors import InvalidInputError
from app.services.feedback import Said
from app.services.lanes import Work
from app.store import Tx, feedback, inbox, memory, turns
from bots.dialogue import correction, message, personal
from bots.dialogue.parts import Parts
from bots.dialogue.room import Room

LOOKED_AT = 20


async def is_like_new(tx: Tx, room: Room, event: EditEvent, work: Work) -> bool:
    """Whether an edit is of the last thing that its person said here, and that was a command or was turned away."""
    begun = await turns.of_update(tx, work.claimed.id) if work.claimed.attempts > 1 else None
    if begun:
        return begun.sibling_of is None  # a try that was cut off took it so
    if await turns.by_user_message(tx, room.chat.id, event.message_id) or await _superseded(tx, room, event, work):
        return False
    for state, body in await inbox.ahead(tx, work.claimed, LOOKED_AT):
        said = next((one for one in _brought(room, body) if isinstance(one, MessageEvent)), None)
        if said:
            same = said.message_id == event.message_id and said.text != event.text
            return same and (said.command is not None or state == "refused")
    return False


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
        corrected = None if edited or superseded else await _corrected(tx, room, event, text, work)
    if first:
        await message.answer(parts, room, event, text, work, first=first)  # a try that was cut off began to
        return
    changes = not superseded and not is_blank(text)
    if not changes or (edited and (newest is None or edited.id != newest.id or text == edited.user_text)):
        return
    if (edited or corrected) and len(text) > parts.settings.max_input_chars:
        async with parts.store.begin() as tx:
            await room.tell(tx, Content(room.say("too_long", length=len(text), limit=parts.settings.max_input_chars)))
            await work.done(tx)
        parts.due.set()
        return
    if edited:
        await message.answer(parts, room, event, text, work, first=edited)
    elif corrected:
        await _correct_anew(parts, room, corrected, text, work)


async def _corrected(tx: Tx, room: Room, event: EditEvent, text: str, work: Work) -> Feedback | None:
    """Return the correction that is edited, where it is the newest of its chat and was no question."""
    found = await feedback.last_correction(tx, room.person_id, room.chat.id)
    if found is None or found[0].question or not found[1].startswith(message.FROM_INBOX):
        return None
    given, evidence = found
    if evidence == message.evidence_of(work):
        return given  # a try that was cut off kept it
    if given.text == text:
        return None
    body = await inbox.body_of(tx, int(evidence.removeprefix(message.FROM_INBOX)))
    return given if body and _speaks_of(room, event, body) else None


async def _correct_anew(parts: Parts, room: Room, given: Feedback, text: str, work: Work) -> None:
    """Take back what the first wording taught, and take the new one for the correction."""
    async with parts.store.begin() as tx:
        turn = await turns.access_turn(tx, room.person_id, given.turn_id)
        kept = await feedback.by_evidence(tx, room.person_id, message.evidence_of(work))  # by a try that was cut off
        if not kept and (line := await memory.by_feedback(tx, given.id)):
            await personal.put_line_away(tx, room, line)
        if not kept:
            await feedback.retract(tx, given.id)
    said = Said(turn, room.person_id, text, "correction", message.evidence_of(work), room.consents, room.language)
    await correction.correct(parts, room, said, work)


async def _superseded(tx: Tx, room: Room, event: EditEvent, work: Work) -> bool:
    """Whether the same message was changed again while this change waited."""
    return any(
        _speaks_of(room, event, body, (EditEvent,)) for _, body in await inbox.behind(tx, work.claimed, LOOKED_AT)
    )


def _speaks_of(room: Room, event: EditEvent, body: bytes, kinds: tuple[type, ...] = (MessageEvent, EditEvent)) -> bool:
    """Whether an update brought the edited message, or an edit of it."""
    return any(isinstance(one, kinds) and one.message_id == event.message_id for one in _brought(room, body))


def _brought(room: Room, body: bytes) -> Sequence[MessageEvent | EditEvent]:
    """Return the messages and edits in an update; none in one that cannot be read, which is quarantined in its own turn."""
    try:
        return [one for one in room.channel.parse(body) if isinstance(one, MessageEvent | EditEvent)]
    except InvalidInputError:
        return []
