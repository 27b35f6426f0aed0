"""Edits: what somebody changed in their last message is answered again, in their last correction replaces what it taught.

What was edited into a command is one. A command, what was turned away, or could not be handled, began nothing that could
change: with other words it is as if it had just been sent.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.event import STOPPING, EditEvent, MessageEvent
from app.domain.feedback import Feedback
from app.domain.text import is_blank, storable
from app.domain.turn import Turn
from app.errors import InvalidInputError
from app.services.feedback import Said
from app.services.lanes import Work
from app.store import Tx, feedback, inbox, memory, turns
from bots.dialogue import album, attachments, correction, media, message, personal
from bots.dialogue.parts import Parts
from bots.dialogue.room import Room

LOOKED_AT = 20
BEGAN_NOTHING = frozenset({"refused", "dead"})


@dataclass(frozen=True, slots=True)
class _Before:
    """A message before an edit: how it read, as far as that is known, how it ended, and whether nothing was said after it."""

    written: MessageEvent | None
    first: MessageEvent | None
    state: str
    last: bool

    def reads(self, written: MessageEvent) -> bool:
        """Whether it is known to have said just this already."""
        return self.written is not None and _content(self.written) == _content(written)


async def is_like_new(tx: Tx, room: Room, event: EditEvent, work: Work) -> bool:
    """Whether an edit is of the last thing that was said here, and makes a command of it or changes what began nothing."""
    if event.written is None:
        return False
    commands = event.written.command is not None
    begun = await turns.of_update(tx, work.claimed.id) if work.claimed.attempts > 1 else None
    if begun:
        return commands or begun.sibling_of is None  # a try that was cut off took it so
    if await _superseded(tx, room, event, work):
        return False
    turn = await turns.by_user_message(tx, room.chat.id, event.message_id)
    before = await _before(tx, room, event, work)
    if not before.last or before.reads(event.written):
        return False
    if commands:
        return before.written is not None or await _is_newest(tx, room, turn)
    began_nothing = before.first is not None and (before.first.command is not None or before.state in BEGAN_NOTHING)
    return turn is None and began_nothing


async def on_edit(parts: Parts, room: Room, event: EditEvent, work: Work) -> None:
    """An edit of the newest message is answered again, the old reply kept; edits of older ones change nothing.

    Of several that came one upon another only the last is: nobody waits for what they took back.
    """
    text = storable(event.text)
    async with parts.store.begin() as tx:
        begun = await turns.of_update(tx, work.claimed.id) if work.claimed.attempts > 1 else None
        first = await turns.access_turn(tx, room.person_id, begun.sibling_of) if begun and begun.sibling_of else None
        superseded = not begun and await _superseded(tx, room, event, work)
        change = None if begun or superseded else await _change(tx, parts, room, event, work)
        known = begun or superseded or change
        corrected = None if known or _commands(event) else await _corrected(tx, room, event, text, work)
        if superseded:
            await work.done(tx, error="superseded")
    if begun and first:  # a try that was cut off began to
        await message.answer(parts, room, event, begun.user_text or text, work, first=first)
    elif change:
        await _answer_anew(parts, room, change, work)
    elif corrected and not is_blank(text) and await _fits(parts, room, text, work):
        await _correct_anew(parts, room, corrected, text, work)
    parts.due.set()


@dataclass(frozen=True, slots=True)
class _Change:
    """A message that was answered by `turn`, as it reads now.

    `fetched`: what came along is to be taken in anew; `left_out`: something else came along that cannot be.
    """

    turn: Turn
    written: MessageEvent
    fetched: bool
    left_out: str | None

    @property
    def text(self) -> str:
        """Its words."""
        return storable(self.written.text)


async def _change(tx: Tx, parts: Parts, room: Room, event: EditEvent, work: Work) -> _Change | None:
    """Return what an edit changed in the newest message that was answered; None where it is no such edit."""
    if _commands(event):
        return None
    written = await album.as_edited(tx, room.channel, event.as_sent, work)
    turn = await turns.by_user_message(tx, room.chat.id, written.message_id)
    before = await _before(tx, room, event, work)
    if turn is None or before.reads(event.as_sent) or not await _is_newest(tx, room, turn):
        return None
    wanted = attachments.wanted(parts, written)
    same = before.written is not None and _files(before.written) == _files(event.as_sent)
    # What was heard is kept only as words, among those that were written.
    fetched = any(one.kind == "voice" or not same for one in wanted)
    left_out = None if same or wanted else event.as_sent.media
    change = _Change(turn, written, fetched, left_out)
    nothing = change.text == turn.user_text or (is_blank(change.text) and not wanted)
    return None if nothing and not (fetched or left_out) else change


async def _answer_anew(parts: Parts, room: Room, change: _Change, work: Work) -> None:
    written: MessageEvent | None = change.written
    if change.fetched:
        written = await _fetched(parts, room, change, work)
    elif change.left_out:
        written = await _without(parts, room, change, change.left_out, work)
    if written and await _fits(parts, room, text := storable(written.text), work):
        await message.answer(parts, room, written, text, work, first=change.turn)


async def _fetched(parts: Parts, room: Room, change: _Change, work: Work) -> MessageEvent | None:
    """Take in what came along; None where nothing of it can be, which is said, or its person wants no answer any more."""
    async with parts.store.begin() as tx:
        if await message.over_quota(tx, parts, room, work):
            return None
    with work.waiting():
        taken = await attachments.take_in(parts, room, change.written, ())
    async with parts.store.begin() as tx:
        if await inbox.stopped(tx, work.claimed):
            await work.done(tx, "refused", "stopped")
            return None
        await attachments.tell(tx, room, taken, work.claimed)
        if not (taken.event.pictures or taken.event.spoken):
            await work.done(tx, "refused", "unreadable")
            return None
    return taken.event


async def _without(parts: Parts, room: Room, change: _Change, left_out: str, work: Work) -> MessageEvent | None:
    """Say that something cannot be taken in; None where the words are the same as before."""
    async with parts.store.begin() as tx:
        await attachments.tell_once(tx, room, media.left_out(parts, room, left_out), work.claimed)
        if change.text == change.turn.user_text or is_blank(change.text):
            await work.done(tx)
            return None
    return change.written


async def _fits(parts: Parts, room: Room, text: str, work: Work) -> bool:
    """Whether a wording is short enough; else say so."""
    limit = parts.settings.max_input_chars
    if len(text) <= limit:
        return True
    async with parts.store.begin() as tx:
        await room.tell(tx, room.say("too_long", length=len(text), limit=limit))
        await work.done(tx)
    return False


def _commands(event: EditEvent) -> bool:
    return event.written is not None and event.written.command is not None


async def _is_newest(tx: Tx, room: Room, turn: Turn | None) -> bool:
    newest = await turns.last(tx, room.chat.id)
    return turn is not None and newest is not None and turn.id == newest.id


async def _corrected(tx: Tx, room: Room, event: EditEvent, text: str, work: Work) -> Feedback | None:
    """Return the correction that is edited, where it is the newest of its chat and was no question."""
    if await turns.by_user_message(tx, room.chat.id, event.message_id):
        return None
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


async def _before(tx: Tx, room: Room, event: EditEvent, work: Work) -> _Before:
    """Return what is known of a message before an edit; an edit that was refused, or overtaken by the next, changed nothing."""
    written: MessageEvent | None = None
    last = True
    for earlier in await inbox.ahead(tx, work.claimed, LOOKED_AT):
        for one in _brought(room, earlier.body):
            same = one.message_id == event.message_id
            if isinstance(one, MessageEvent) and same:
                return _Before(written or one, one, earlier.state, last)
            if isinstance(one, EditEvent) and same and earlier.state == "done" and not earlier.error:
                written = written or one.as_sent
            last = last and (isinstance(one, EditEvent) or one.command in STOPPING)  # who stops says nothing more
    return _Before(written, None, "", last)


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


def _content(written: MessageEvent) -> tuple[object, ...]:
    return written.text, written.media, _files(written)


def _files(written: MessageEvent) -> tuple[str, ...]:
    return tuple(one.file for one in written.attachments)
