"""Votes in words: a thumb, or words that are the whole message (`app/domain/words.py`), about the last reply or the one replied to.

A thumb counts anywhere, in a group as a reaction does. Words that can hardly mean anything else count where a channel has
no menu; words that may as well answer what the model said ("good") count only while the bot's own question how that reply
was waits for them.
"""

from app.domain.event import MessageEvent
from app.domain.turn import Turn
from app.domain.words import opinion, thumb
from app.services.lanes import Work
from app.store import Tx, asks, turns
from bots.dialogue import voting
from bots.dialogue.parts import Parts
from bots.dialogue.room import Room, held


def may_be_vote(event: MessageEvent, text: str) -> bool:
    """Whether a message may be a vote by what it says."""
    return thumb(text) is not None or (not event.media and opinion(text) is not None)


async def voted(tx: Tx, room: Room, event: MessageEvent, text: str) -> bool:
    """Take a message for a vote where it is one; False where it is a message."""
    value = thumb(text)
    if value is not None:
        return await _rated(tx, room, event, value)
    said = opinion(text)
    if said is None or event.media:
        return False
    turn = await rated_turn(tx, room, event)
    if turn is None or not voting.votable(room, turn):
        return False
    clear = said.clear and room.channel.capabilities.words
    if not clear and not await asks.is_open(tx, turn.id):
        return False
    await voting.vote(tx, room, turn, said.value, "words")
    return True


async def among_others(parts: Parts, room: Room, event: MessageEvent, value: int, work: Work) -> None:
    """Take a thumb in a group as a reaction is taken there: it counts on a reply to who sent it, and else is their own talk.

    Who names the bot instead of replying is told where there is nothing to rate.
    """
    async with parts.store.begin() as tx:
        await held(tx, room)
        turn = await rated_turn(tx, room, event)
        if turn and voting.votable(room, turn):
            await voting.vote(tx, room, turn, value, "words")
        elif not event.reply_to:
            await room.tell(tx, room.say("vote_without_reply"))
        await work.done(tx)
    parts.due.set()


async def rate(tx: Tx, room: Room, event: MessageEvent, value: int) -> None:
    """Vote as a command says; who has no reply to rate is told so."""
    if not await _rated(tx, room, event, value):
        await room.tell(tx, room.say("vote_without_reply"))


async def _rated(tx: Tx, room: Room, event: MessageEvent, value: int) -> bool:
    turn = await rated_turn(tx, room, event)
    if turn is None:
        return False
    if voting.votable(room, turn):
        await voting.vote(tx, room, turn, value, "words")
    else:
        await room.tell(tx, room.say("vote_without_reply"))
    return True


async def rated_turn(tx: Tx, room: Room, event: MessageEvent) -> Turn | None:
    """Return the turn whose reply a vote in words is about."""
    return await (replied_to(tx, room, event) if event.reply_to else turns.last_seen(tx, room.chat.id))


async def replied_to(tx: Tx, room: Room, event: MessageEvent) -> Turn | None:
    """Return the turn whose reply a message quotes, or whose reply the quoted question asks about; None for another question."""
    return await turns.by_message(tx, room.chat.id, event.reply_to) if event.reply_to else None
