"""Messages: commands, corrections, votes in words, and what is simply answered."""

import math
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from uuid import UUID

from app import clock
from app.domain import quota
from app.domain.event import EditEvent, MessageEvent, Sender
from app.domain.feedback import Feedback
from app.domain.person import EXAMPLES, Awaiting
from app.domain.text import is_blank, storable
from app.domain.turn import Origin, Turn
from app.domain.words import thumb
from app.errors import NotFoundError
from app.services.feedback import Said
from app.services.lanes import Work
from app.services.request import Begun, Request
from app.store import Tx, feedback, inbox, leaving, people, turns
from bots.dialogue import commands, consent, correction, media, opinion
from bots.dialogue.parts import Parts
from bots.dialogue.room import Room, held, session_of

FROM_INBOX = "inbox:"
Then = Callable[[], Awaitable[None]]
"""What is left to do once a transaction is committed."""


async def on_message(tx: Tx, parts: Parts, room: Room, event: MessageEvent, work: Work) -> Then | None:
    """Lead a message to where it belongs, as far as it goes in the transaction that resolved `room`."""
    text = storable(event.text)
    room = await _greet(tx, parts, room, event, work)
    if event.command:
        return partial(commands.run, parts, room, event, work)
    if await _begun_before(tx, work):
        # A try that was cut off began to answer it; whatever is awaited by now, it was a message.
        return await _reply(tx, parts, room, event, text, work)
    refusal = _refusal(parts, room, event, text)
    if refusal:
        await room.tell(tx, refusal)
        await work.done(tx, "refused", "unreadable")
        return None
    if event.pictures:
        # Words that come with a picture are about it, whatever was said before.
        return await _reply(tx, parts, room, event, text, work)
    asked = room.chat.awaiting is not None and room.chat.awaiting.kind in EXAMPLES
    if room.chat.private and not event.forwarded and (asked or opinion.may_be_vote(event, text)):
        return partial(_taken_or_answered, parts, room, event, text, work)
    if not room.chat.private and not event.forwarded and (value := thumb(text)) is not None:
        return partial(opinion.among_others, parts, room, event, value, work)
    return await _correct_or_answer(tx, parts, room, event, text, work)


async def as_known(tx: Tx, room: Room, event: MessageEvent, work: Work) -> MessageEvent:
    """Return a message with the words that a try that was cut off has kept of it: nothing need be fetched or heard again."""
    if work.claimed.attempts == 1 or event.command:
        return event
    turn = await turns.of_update(tx, work.claimed.id)
    if turn:
        words = event.text if turn.user_text is None else turn.user_text
        return replace(event, text=words, attachments=(), media=None, spoken=turn.origin.media)
    given = await feedback.by_evidence(tx, room.person_id, evidence_of(work))
    if given and given.text:
        return replace(event, text=given.text, attachments=(), media=None, spoken=given.spoken)
    return event


async def turned_away(tx: Tx, parts: Parts, room: Room, event: MessageEvent, work: Work) -> bool:
    """Whether a message is not answered, whatever came along: it waited too long, or its person has asked enough. Greets."""
    await _greet(tx, parts, room, event, work)
    if await _outlived(tx, parts, event, work):
        await work.done(tx, "refused", "outlived")
        return True
    return await over_quota(tx, parts, room, work)


async def _correct_or_answer(
    tx: Tx, parts: Parts, room: Room, event: MessageEvent, text: str, work: Work
) -> Then | None:
    if room.chat.private and (turn := await _corrected_turn(tx, room, event, work)):
        return partial(correction.correct, parts, room, _said(room, event, turn, text, work), work)
    return await _reply(tx, parts, room, event, text, work)


async def _reply(tx: Tx, parts: Parts, room: Room, event: MessageEvent, text: str, work: Work) -> Then | None:
    if not await _begun_before(tx, work):
        if await _outlived(tx, parts, event, work):
            await work.done(tx, "refused", "outlived")
            return None
        if event.media:
            await room.tell(tx, media.left_out(parts, room, event.media))
    begun = await _begin(tx, parts, room, event, text, work)
    return partial(parts.converse.go_on, begun) if begun else None


async def _begun_before(tx: Tx, work: Work) -> bool:
    """Whether a try that was cut off has begun to answer."""
    return work.claimed.attempts > 1 and await turns.of_update(tx, work.claimed.id) is not None


async def _outlived(tx: Tx, parts: Parts, event: MessageEvent, work: Work) -> bool:
    """Whether a message waited so long that only the newest of its chat is still worth an answer."""
    if event.sent_at is None or clock.now() - event.sent_at < timedelta(minutes=parts.settings.answer_within_minutes):
        return False
    return not await inbox.newest(tx, work.claimed)


async def _taken_or_answered(parts: Parts, room: Room, event: MessageEvent, text: str, work: Work) -> None:
    """Take a thumb for a vote and words for the reply that was asked for; what is neither is a message.

    In a transaction of its own: it holds the person first, as everybody does who holds votes or answers to a consent.
    """
    then: Then | None = None
    async with parts.store.begin() as tx:
        room = await held(tx, room)
        if await opinion.voted(tx, room, event, text) or await _exemplified(tx, parts, room, event, text):
            await work.done(tx)
        else:
            then = await _correct_or_answer(tx, parts, room, event, text, work)
    parts.due.set()
    if then:
        await then()


async def _exemplified(tx: Tx, parts: Parts, room: Room, event: MessageEvent, text: str) -> bool:
    waiting = room.chat.awaiting
    if waiting is None or waiting.kind not in EXAMPLES or await opinion.replied_to(tx, room, event):
        return False
    if event.spoken:
        # It would be learnt word for word, and what was heard is not always what was said.
        await room.tell(tx, room.say("example_in_writing"))
        return True
    return await correction.written_example(tx, parts, room, waiting, text)


async def _greet(tx: Tx, parts: Parts, room: Room, event: MessageEvent, work: Work) -> Room:
    """Say who this is and ask for consent, once, at the first word of a person; /privacy asks the same by itself.

    Return the room, in which it is their first time also for a second try of the message that was greeted.
    """
    if not room.first_time or not await people.set_asked_consent(tx, room.person_id):
        greeted = room.chat.private and await commands.welcomed(tx, parts, room, work)
        return replace(room, first_time=room.first_time or greeted)
    await commands.welcome(tx, parts, room)
    if (event.command or "").lower() != "privacy":
        await room.tell(tx, consent.notice(parts, room))
    return room


def _refusal(parts: Parts, room: Room, event: MessageEvent, text: str) -> str | None:
    if is_blank(text) and not event.pictures:
        return media.unread(parts, room, event.media) if event.media else room.say("no_words")
    limit = parts.settings.max_input_chars
    return room.say("too_long", length=len(text), limit=limit) if len(text) > limit else None


async def _corrected_turn(tx: Tx, room: Room, event: MessageEvent, work: Work) -> Turn | None:
    """Return the turn that a message corrects: the one replied to, or the one the bot asked about.

    Somebody else's words, passed on, are no correction: nothing of them may be remembered or trained.
    """
    if event.forwarded:
        return None
    if work.claimed.attempts > 1 and (known := await feedback.by_evidence(tx, room.person_id, evidence_of(work))):
        # A try that was cut off took it for a correction, and no longer waits for one.
        return await turns.access_turn(tx, room.person_id, known.turn_id)
    if turn := await opinion.replied_to(tx, room, event):
        return turn if turn.person_id == room.person_id and turn.reply_text else None
    waiting = room.chat.awaiting
    if waiting is None or waiting.kind != "correction":
        return None
    return await _awaited(tx, room, waiting)


async def _awaited(tx: Tx, room: Room, waiting: Awaiting) -> Turn | None:
    try:
        return await turns.access_turn(tx, room.person_id, UUID(waiting.turn_id))
    except NotFoundError:
        await people.set_awaiting(tx, room.chat.id, None)
        return None


def evidence_of(work: Work) -> str:
    """Return the name under which feedback keeps the update that brought it."""
    return f"{FROM_INBOX}{work.claimed.id}"


def _said(room: Room, event: MessageEvent, turn: Turn, text: str, work: Work) -> Said:
    return Said(
        turn=turn,
        person_id=room.person_id,
        text=text,
        kind="correction",
        evidence=evidence_of(work),
        consents=room.consents,
        language=room.language,
        forwarded=event.forwarded,
        spoken=event.spoken,
        reason=correction.reason_for(room, turn),
    )


async def answer(
    parts: Parts, room: Room, event: MessageEvent | EditEvent, text: str, work: Work, first: Turn | None = None
) -> None:
    """Let the model answer; `first` is the turn whose message is answered again, as it was or changed."""
    async with parts.store.begin() as tx:
        begun = await _begin(tx, parts, room, event, text, work, first)
    if begun:
        await parts.converse.go_on(begun)


async def _begin(
    tx: Tx,
    parts: Parts,
    room: Room,
    event: MessageEvent | EditEvent,
    text: str,
    work: Work,
    first: Turn | None = None,
) -> Begun | None:
    if not await _begun_before(tx, work) and await over_quota(tx, parts, room, work):
        return None
    origin = _origin(room, event)
    sibling_of = (first.sibling_of or first.id) if first else None
    session, past = await session_of(tx, parts, room, sibling_of)
    request = Request(
        channel=room.channel,
        chat=room.chat,
        session=session,
        past=past,
        person_id=room.person_id,
        language=room.language,
        consents=room.consents,
        identity=room.identity,
        text=text,
        message_id=event.message_id,
        origin=origin.again(first.origin) if first else origin,
        sibling_of=sibling_of,
        greeted=room.first_time,
        pictures=event.pictures if isinstance(event, MessageEvent) else (),
    )
    return await parts.converse.begin(tx, request, work)


async def over_quota(tx: Tx, parts: Parts, room: Room, work: Work) -> bool:
    """Say when there is room again where a person has asked for as much as they may; once, not at every message."""
    limits = parts.settings
    used_up = quota.over(
        room.usage, replies_a_minute=limits.quota_replies_per_minute, tokens_a_day=limits.quota_tokens_per_day
    )
    if used_up is None:
        return False
    if await leaving.untold_for(tx, room.chat.id, min(used_up.resets_in_s, quota.MINUTE_S)):
        minutes = math.ceil(used_up.resets_in_s / 60)
        shown = {"seconds": math.ceil(used_up.resets_in_s), "hours": minutes // 60, "minutes": minutes % 60}
        await room.tell(tx, room.say(f"quota_{used_up.quota}", **shown))
    await work.done(tx, "refused", "quota")
    return True


def _origin(room: Room, event: MessageEvent | EditEvent) -> Origin:
    forwarded = isinstance(event, MessageEvent) and event.forwarded
    quoted = isinstance(event, MessageEvent) and event.quote is not None
    along = isinstance(event, MessageEvent) and (event.spoken or bool(event.pictures))
    return Origin(forwarded, not room.chat.private, event.sender.automated, quoted, along, room.consents.document())


async def ask_anew(parts: Parts, room: Room, given: Feedback, work: Work) -> None:
    """Answer words that were first taken for something else."""
    text, sender = given.text or "", Sender(room.account.external_id)
    await answer(parts, room, MessageEvent(room.chat.address, sender, text=text, spoken=given.spoken), text, work)


async def again(parts: Parts, room: Room, turn: Turn, work: Work) -> None:
    """Answer a turn's message once more; both replies are kept as siblings. What was not kept cannot be answered again.

    Whose words they are stays as it was.
    """
    if turn.user_text is None or (not turn.user_text and not parts.sees):  # a picture alone, and a model without eyes
        async with parts.store.begin() as tx:
            await room.tell(tx, room.say("nothing_to_retry"))
            await work.done(tx)
        parts.due.set()
        return
    sender = Sender(room.account.external_id)
    event = MessageEvent(room.chat.address, sender, message_id=turn.user_message_id or "", text=turn.user_text)
    await answer(parts, room, event, turn.user_text, work, first=turn)
