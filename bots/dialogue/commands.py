"""Commands: the same words on every channel. Personal ones are answered in private only."""

from collections.abc import Awaitable, Callable

from app.domain.consent import Purpose
from app.domain.event import STOPPING, MessageEvent
from app.domain.messages import LANGUAGES
from app.domain.messages import text as say
from app.domain.outgoing import Content
from app.services.lanes import Work
from app.services.replies import as_shown
from app.store import Tx, outbox, people, sessions, turns
from bots.dialogue import consent, message, opinion, personal
from bots.dialogue.parts import Parts
from bots.dialogue.room import Room

LEARNING = (Purpose.MEMORY, Purpose.PERSONAL_TRAINING)


async def run(parts: Parts, room: Room, event: MessageEvent, work: Work) -> None:
    """Do what a command says."""
    name = (event.command or "").lower()
    if name in PERSONAL and not room.chat.private:
        async with parts.store.begin() as tx:
            await room.tell(tx, room.say("personal_in_private", link=room.channel.private_link()))
            await work.done(tx)
        parts.due.set()
        return
    if name in SLOW:
        await SLOW[name](parts, room, work)
    else:
        async with parts.store.begin() as tx:
            await QUICK.get(name, _unknown)(tx, parts, room, event)
            await work.done(tx)
    parts.due.set()


async def welcome(tx: Tx, parts: Parts, room: Room) -> None:
    """Say who this is, and how small the model is where that is so."""
    await room.tell(tx, _welcome(parts, room))


async def welcomed(tx: Tx, parts: Parts, room: Room, work: Work) -> bool:
    """Whether a try of this update that was cut off has said who this is."""
    if work.claimed.attempts == 1:
        return False
    first, *_ = as_shown(room.channel, Content(_welcome(parts, room)))
    return await outbox.told_since(tx, room.chat.id, first.text, work.claimed.id)


def _welcome(parts: Parts, room: Room) -> str:
    can = room.channel.capabilities
    in_words = "welcome_without_buttons" if can.reply_to else "welcome_in_words"
    text = room.say("welcome" if can.buttons else in_words, name=room.identity.name)
    if parts.small_model:
        text += "\n\n" + room.say("model_note")
    return text


async def _start(tx: Tx, parts: Parts, room: Room, _event: MessageEvent) -> None:
    if not room.first_time:  # else it was said with the first word
        await welcome(tx, parts, room)


async def _help(tx: Tx, _parts: Parts, room: Room, _event: MessageEvent) -> None:
    await room.tell(tx, room.say("help"))


async def _new(tx: Tx, _parts: Parts, room: Room, _event: MessageEvent) -> None:
    await sessions.end(tx, room.chat.id)
    await people.set_awaiting(tx, room.chat.id, None)
    await room.tell(tx, room.say("new_session"))


async def _privacy(tx: Tx, parts: Parts, room: Room, _event: MessageEvent) -> None:
    await room.tell(tx, consent.privacy(parts, room))


async def _learn(tx: Tx, parts: Parts, room: Room, event: MessageEvent) -> None:
    choice = event.argument.strip().lower()
    if choice not in {"on", "off"}:
        await room.tell(tx, room.say("learn_how"))
        return
    purposes = LEARNING if choice == "on" else LEARNING[1:]
    usable_here = [purpose for purpose in purposes if room.data_use.serves(purpose)]
    for purpose in usable_here:
        room = await consent.switch(
            tx, parts, room, purpose, "1" if choice == "on" else "0", f"command:/learn {choice}"
        )
    await consent.refresh(tx, parts, room, None)
    if choice == "on" and usable_here == [Purpose.MEMORY]:
        await room.tell(tx, room.say("consent_changed_on", purpose=room.say("consent_memory")))
        return
    await room.tell(tx, room.say(f"learn_{choice}"))


async def _memory(tx: Tx, parts: Parts, room: Room, _event: MessageEvent) -> None:
    await personal.show_memory(tx, parts, room)


async def _forget(tx: Tx, parts: Parts, room: Room, _event: MessageEvent) -> None:
    await personal.ask_forget(tx, parts, room)


async def _export(tx: Tx, parts: Parts, room: Room, _event: MessageEvent) -> None:
    await personal.export(tx, parts, room)


async def _whoami(tx: Tx, _parts: Parts, room: Room, _event: MessageEvent) -> None:
    await personal.whoami(tx, room)


async def _language(tx: Tx, _parts: Parts, room: Room, event: MessageEvent) -> None:
    choice = event.argument.strip().lower()
    if choice not in LANGUAGES:
        await room.tell(tx, room.say("language_how"))
        return
    await people.set_language(tx, room.person_id, choice)
    await room.tell(tx, say(choice, "language_set"))


async def _good(tx: Tx, _parts: Parts, room: Room, event: MessageEvent) -> None:
    await opinion.rate(tx, room, event, 1)


async def _bad(tx: Tx, _parts: Parts, room: Room, event: MessageEvent) -> None:
    await opinion.rate(tx, room, event, -1)


async def _unknown(tx: Tx, _parts: Parts, room: Room, _event: MessageEvent) -> None:
    await room.tell(tx, room.say("unknown_command"))


async def _undo(tx: Tx, parts: Parts, room: Room, _event: MessageEvent) -> None:
    await personal.undo(tx, parts, room)


async def _retry(parts: Parts, room: Room, work: Work) -> None:
    async with parts.store.begin() as tx:
        turn = await turns.last(tx, room.chat.id)
        if turn is None or turn.person_id != room.person_id or turn.user_text is None:
            await room.tell(tx, room.say("nothing_to_retry"))
            await work.done(tx)
            return
    await message.again(parts, room, turn, work)


async def _stop(parts: Parts, room: Room, work: Work) -> None:
    async with parts.store.begin() as tx:
        if not await parts.converse.stop(tx, room.chat.id):
            await room.tell(tx, room.say("nothing_to_stop"))
        await work.done(tx)


QUICK: dict[str, Callable[[Tx, Parts, Room, MessageEvent], Awaitable[None]]] = {
    "start": _start,
    "help": _help,
    "new": _new,
    "reset": _new,
    "privacy": _privacy,
    "learn": _learn,
    "memory": _memory,
    "undo": _undo,
    "forget": _forget,
    "export": _export,
    "whoami": _whoami,
    "language": _language,
    "good": _good,
    "bad": _bad,
}
SLOW: dict[str, Callable[[Parts, Room, Work], Awaitable[None]]] = {
    "retry": _retry,
    **dict.fromkeys(STOPPING, _stop),
}
KNOWN = frozenset({*QUICK, *SLOW, "human", "bot"})
PERSONAL = frozenset({"privacy", "learn", "memory", "undo", "forget", "export", "whoami", "language"})
