"""Private bots: who is neither allowed by name nor invited is told so, once a day, and nothing of theirs is answered.

A code of `mentee invite` opens: as the argument of /start (`https://t.me/<bot>?start=<code>`), or as a whole message. What
was noted of somebody is theirs to see and to have forgotten wherever they stand (`OWN`).
"""

import hashlib
import re
from dataclasses import replace

from app.domain.event import EditEvent, Event, MessageEvent, PressEvent
from app.store import Tx, leaving, webchat
from bots.dialogue import choices
from bots.dialogue.room import EXPLAINED_EVERY_S, Room

_CODE = re.compile(r"[A-Za-z0-9_-]{12,64}")
OWN = frozenset({"forget", "export"})
_FORGETS = "f:"


async def of_their_own(tx: Tx, room: Room, event: Event) -> MessageEvent | PressEvent | None:
    """Return what somebody outside asks of their own data; None for everything else."""
    if not room.chat.private:
        return None
    if isinstance(event, MessageEvent) and event.command in OWN:
        return event
    pressed: Event | None = event
    if isinstance(event, MessageEvent) and not room.channel.capabilities.buttons:
        pressed = await choices.chosen(tx, room, event)
    return pressed if isinstance(pressed, PressEvent) and pressed.data.startswith(_FORGETS) else None


async def let_in(tx: Tx, room: Room, event: Event) -> Room | None:
    """Return the room with its person let in, where a code does that; else say that the bot is private: None."""
    if not room.chat.private:
        return None  # among others nobody is turned away aloud
    code = _code(event)
    if code and await webchat.spend_invitation(tx, hashlib.sha256(code.encode()).digest(), room.person_id):
        await room.tell(tx, room.say("let_in"))
        return replace(room, admitted=True)
    if await leaving.untold_for(tx, room.chat.id, 0.0 if code else EXPLAINED_EVERY_S):
        await room.tell(tx, room.say("wrong_code" if code else "private_bot"))
    return None


def without_code(event: MessageEvent) -> MessageEvent:
    """Return what is left of a message that let somebody in: a greeting is due."""
    return replace(event, command="start", argument="", text="/start")


def _code(event: Event) -> str | None:
    if isinstance(event, EditEvent):
        event = event.written or event  # who mends a code that they mistyped
    if not isinstance(event, MessageEvent) or event.forwarded:
        return None
    given = event.argument if event.command in {"start", "pair"} else event.text
    found = _CODE.fullmatch(given.strip())
    return found[0] if found else None
