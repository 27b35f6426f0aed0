"""Who opts out, comes back, or wants a human: what words by themselves lead to, and what holds afterwards.

    stop ──a reply is being written, or it was spoken──► that stops, and the bot asks what was meant
      └─────────else────────────────► opted out: no messages, no training; each later message is answered once with how to
                                       come back, commands about one's own data always
    talk to a person ──► the bot is silent in this chat and learns nothing from it, until the person or an operator says so

Words count where a channel has no menu (`Capabilities.words`), commands everywhere.
"""

from dataclasses import replace

from app.domain.consent import Purpose
from app.domain.event import EditEvent, Event, MessageEvent, PressEvent, ReactionEvent
from app.domain.outgoing import Button, Content
from app.domain.press import Press
from app.domain.words import ALSO_HALT, STOPS, Word, bare, word
from app.store import Tx, outbox
from app.store import leaving as left
from app.telemetry import Log
from bots.dialogue import consent
from bots.dialogue.parts import Parts
from bots.dialogue.room import EXPLAINED_EVERY_S, Room

log = Log(__name__)
TRAINING = (Purpose.PERSONAL_TRAINING, Purpose.SHARED_TRAINING)
# What concerns a person's own data is theirs to ask for, wherever they left.
ALWAYS_ANSWERED = frozenset({"privacy", "memory", "forget", "export", "whoami", "language", "learn", "help"})
# Presses that would have the bot write or learn.
SILENT_VERBS = frozenset({"a", "v", "r", "c", "n", "w", "e", "t"})


async def on_words(tx: Tx, parts: Parts, room: Room, event: MessageEvent) -> MessageEvent | None:
    """Do what a message means by itself, or what holds for who left; return what is left to handle, None for nothing."""
    if not room.chat.private:
        return event
    said = _said(room, event)
    if room.account.left:
        return await _from_outside(tx, room, event, said)
    if room.chat.paused:
        return await _while_silent(tx, parts, room, event, said)
    return await _inside(tx, parts, room, event, said)


def is_silent(room: Room, event: Event) -> bool:
    """Whether what is no message has no effect, because the bot is silent here or its person has left."""
    if not is_gone(room):
        return False
    if isinstance(event, PressEvent):
        return event.data.partition(":")[0] in SILENT_VERBS
    return isinstance(event, EditEvent | ReactionEvent)


def is_gone(room: Room) -> bool:
    """Whether the person has left, or the bot is silent in this chat."""
    return room.chat.private and (room.chat.paused or room.account.left)


def _said(room: Room, event: MessageEvent) -> Word | None:
    alone = not (event.command or event.forwarded or event.reply_to or event.media or event.pictures)
    return word(event.text) if alone and room.channel.capabilities.words else None


async def _from_outside(tx: Tx, room: Room, event: MessageEvent, said: Word | None) -> MessageEvent | None:
    if said is Word.RETURN or event.command == "start":
        await left.come_back(tx, room.account.id)
        await room.tell(tx, room.say("came_back"))
        return None
    if event.command in ALWAYS_ANSWERED:
        return event
    if await left.first_since_leaving(tx, room.account.id):
        await room.tell(tx, room.say("left_before", word=_return_word(room)))
    return None


async def _while_silent(
    tx: Tx, parts: Parts, room: Room, event: MessageEvent, said: Word | None
) -> MessageEvent | None:
    if said in {Word.BOT, Word.RETURN} or event.command in {"start", "bot"}:
        await left.resume_chat(tx, room.chat.id)
        await room.tell(tx, room.say("bot_answers"))
        return None
    if said is Word.LEAVE and not event.spoken:
        await left.resume_chat(tx, room.chat.id)
        await leave(tx, parts, room, evidence=f"word:{event.message_id}")
        return None
    if said is Word.PERSON or event.command == "human":
        await room.tell(tx, _silent(room))
        return None
    if event.command in ALWAYS_ANSWERED:
        return event
    if await left.untold_for(tx, room.chat.id, EXPLAINED_EVERY_S):
        await room.tell(tx, _silent(room))
    return None


async def _inside(tx: Tx, parts: Parts, room: Room, event: MessageEvent, said: Word | None) -> MessageEvent | None:
    if said in STOPS:
        return await _stopping(tx, parts, room, event, said)
    if said is Word.PERSON or event.command == "human":
        await call_person(tx, parts, room)
        return None
    if said is Word.RETURN or event.command == "bot":
        return replace(event, command="start", argument="")
    return event


async def _stopping(tx: Tx, parts: Parts, room: Room, event: MessageEvent, said: Word | None) -> MessageEvent | None:
    # What was heard is not always what was said: leaving takes a written word or an answer to the question.
    clear = said is Word.LEAVE and bare(event.text) not in ALSO_HALT and not event.spoken
    # Where words count nothing of a reply is shown before its end: what was written of it would only be in the way.
    halted = not clear and await parts.converse.drop(tx, room.chat.id)
    if said is Word.LEAVE and not halted and not event.spoken:
        await leave(tx, parts, room, evidence=f"word:{event.message_id}")
        return None
    if not halted and said is Word.HALT:
        return event
    await _ask(tx, room, "halted_ask_leave" if halted else "ask_leave")
    return None


async def _ask(tx: Tx, room: Room, question: str) -> None:
    choices = (("leave_yes", "out"), ("leave_no", "stay"))
    buttons = tuple((Button(room.say(key), Press("o", "", choice).data()),) for key, choice in choices)
    await room.tell(tx, Content(room.say(question), buttons))


async def leave(tx: Tx, parts: Parts, room: Room, *, evidence: str) -> None:
    """Opt a person out of this channel: what is due is not sent, nothing trains any more; one confirmation follows."""
    await left.leave(tx, room.account.id)
    await parts.converse.drop(tx, room.chat.id)
    await outbox.withdraw(tx, room.chat.id)
    for purpose in TRAINING:
        if room.allows(purpose):
            room = await consent.switch(tx, parts, room, purpose, "0", evidence)
    await room.tell(tx, room.say("left", word=_return_word(room)))


async def call_person(tx: Tx, parts: Parts, room: Room) -> None:
    """Make the bot silent in this chat, and let an operator know that somebody waits."""
    await parts.converse.stop(tx, room.chat.id)
    await left.pause_chat(tx, room.chat.id)
    await room.tell(tx, _silent(room))
    log.warning("chat:human:wanted", chat=room.chat.id)


def _silent(room: Room) -> str:
    contact = room.identity.contact
    key = "person_called" if contact else "person_called_without_contact"
    return room.say(
        key, contact=contact or "", word=room.say("word_bot") if room.channel.capabilities.words else "/bot"
    )


def _return_word(room: Room) -> str:
    return room.say("word_return") if room.channel.capabilities.words else "/start"
