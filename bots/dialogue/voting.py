"""Votes: a state of (turn, person) that can be set, switched and cleared; the buttons show what is stored."""

from dataclasses import replace

from app.domain.turn import Turn
from app.domain.words import thumb
from app.services import asking
from app.services.feedback import vote as store_vote
from app.services.replies import vote_buttons
from app.store import Tx, outbox, people, votes
from app.telemetry import VOTES
from bots.dialogue import correction
from bots.dialogue.room import Room


async def vote(tx: Tx, room: Room, turn: Turn, value: int, source: str) -> None:
    """Store a vote and redraw the reply's buttons; a new 👎 asks why, one that is gone does not wait for an answer.

    Only the person who was answered may vote.
    """
    if not votable(room, turn):
        return
    if not await store_vote(tx, turn, room.person_id, value, source):
        return
    VOTES.labels(room.channel.name, {1: "up", -1: "down"}.get(value, "cleared")).inc()
    await redraw(tx, room, turn, value)
    if value:
        await asking.answered(tx, room.channel, turn.id, room.person_id, "up" if value > 0 else "down")
    if value > 0 and room.chat.private and not room.channel.capabilities.edits:
        await room.tell(tx, room.say("vote_kept"))  # no button can show it
    if value >= 0:
        await people.stop_awaiting(tx, room.chat.id, turn.id)
        await correction.ask_no_more(tx, room, turn)
    if value < 0 and room.chat.private:
        await correction.ask_why(tx, room, turn)


def votable(room: Room, turn: Turn) -> bool:
    """Whether this person may vote on a turn: it was theirs, and it has a reply."""
    return turn.person_id == room.person_id and turn.state in {"done", "stopped"}


async def react(tx: Tx, room: Room, turn: Turn, emoji: frozenset[str]) -> None:
    """Take a reaction as a vote. One without a thumb takes back a thumb that was a reaction, never a vote by button."""
    value = of_reaction(emoji)
    if value or await votes.source(tx, turn.id, room.person_id) == "reaction":
        await vote(tx, room, turn, value, "reaction")


async def redraw(tx: Tx, room: Room, turn: Turn, value: int) -> None:
    """Show the stored vote on the buttons of a reply's last part."""
    part = await outbox.last_part(tx, turn.id)
    if part is None:
        return
    number, content = part
    if not content.text:
        return  # the words are not kept any more; what the platform still shows is left as it is
    await outbox.put_part(
        tx, room.chat.id, turn.id, number, replace(content, buttons=vote_buttons(room.language, turn.id, value))
    )


def of_reaction(emoji: frozenset[str]) -> int:
    """Return the vote that a set of emoji means; both thumbs or neither are no vote."""
    votes_in = {thumb(one) for one in emoji}
    return int(1 in votes_in) - int(-1 in votes_in)
