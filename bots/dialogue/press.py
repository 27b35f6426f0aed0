"""Buttons: what a press leads to, after checking whose row it is. Guessed and foreign data have no effect."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from app.domain.event import PressEvent
from app.domain.feedback import REASONS, Feedback, classify_by_person
from app.domain.ladder import Rung
from app.domain.memory import MemoryLine
from app.domain.outgoing import Content
from app.domain.press import Press, parse
from app.domain.text import literal
from app.domain.turn import Turn
from app.errors import DeliveryError, InvalidInputError, NotFoundError
from app.failpoints import reach
from app.services import feedback as judging
from app.services.lanes import Work
from app.store import Tx, feedback, memory, outbox, people, siblings, turns
from app.telemetry import Log
from bots.dialogue import consent, correction, leaving, message, personal, voting
from bots.dialogue.parts import Parts
from bots.dialogue.pressed import IN_GROUPS
from bots.dialogue.room import Room, held

log = Log(__name__)
# What takes long and is asked once: its buttons go before the work begins.
SETTLED_AT_ONCE = frozenset({"a", "r", "n", "f"})
# Scopes of forgetting that take the chat's own rows.
FORGETS_CHAT = frozenset({"chat", "all"})
BARE_S = 5.0
VALUES = {"u": 1, "d": -1, "0": 0}
Step = Callable[[Tx, Parts, Room, Press, PressEvent], Awaitable[None]]


async def on_press(parts: Parts, room: Room, event: PressEvent, work: Work) -> None:
    """Do what a button says."""
    try:
        press = parse(event.data)
        if not room.chat.private and press.verb not in IN_GROUPS:
            await _in_private(parts, room, work)
            return
        if press.verb in SLOW:
            if press.verb in SETTLED_AT_ONCE:
                async with parts.store.begin() as tx:
                    await _take_buttons_off(tx, room, event)
            await SLOW[press.verb](parts, room, press, event, work)
            return
        async with parts.store.begin() as tx:
            await QUICK[press.verb](tx, parts, room, press, event)
            await work.done(tx)
        reach("press:stored")
    except (NotFoundError, InvalidInputError) as error:
        # Forged, foreign, or of a row that is gone: that was said in answer to the press, where its channel can show it.
        log.warning("press:data:refused", kind=type(error).__name__, inbox=work.claimed.id)
        async with parts.store.begin() as tx:
            await work.done(tx, "refused", type(error).__name__)
    parts.due.set()


async def _in_private(parts: Parts, room: Room, work: Work) -> None:
    async with parts.store.begin() as tx:
        await room.tell(tx, room.say("personal_in_private", link=room.channel.private_link()))
        await work.done(tx)
    parts.due.set()


async def _vote(tx: Tx, _parts: Parts, room: Room, press: Press, _event: PressEvent) -> None:
    turn = await turns.access_turn(tx, room.person_id, press.row)
    await voting.vote(tx, room, turn, VALUES[press.choice], "button")


async def _ask_words(tx: Tx, _parts: Parts, room: Room, press: Press, _event: PressEvent) -> None:
    turn = await turns.access_turn(tx, room.person_id, press.row)
    await correction.ask_words(tx, room, turn)


async def _settle(tx: Tx, parts: Parts, room: Room, press: Press, event: PressEvent) -> None:
    await correction.settle(tx, parts, room, press.row, press.choice)
    await _take_buttons_off(tx, room, event)


async def _no_example(tx: Tx, _parts: Parts, room: Room, _press: Press, event: PressEvent) -> None:
    await correction.stop_asking(tx, room)
    await _take_buttons_off(tx, room, event)


async def _undo_line(tx: Tx, _parts: Parts, room: Room, press: Press, event: PressEvent) -> None:
    line = await memory.access_line(tx, room.person_id, press.row)
    if await personal.take_line_back(tx, room, line):
        await room.tell(tx, room.say("memory_undone", line=literal(line.text)))
    await _take_buttons_off(tx, room, event)


async def _switch(tx: Tx, parts: Parts, room: Room, press: Press, event: PressEvent) -> None:
    purpose = consent.purpose_of(press.subject)
    now = await consent.switch(tx, parts, room, purpose, press.choice, f"button:{event.press_id}")
    redrawn = await consent.refresh(tx, parts, now, event.message_id)
    if event.message_id is None:
        return  # pressed on the page's own panel, which shows the state itself
    if not redrawn or not room.channel.capabilities.edits:
        key = "consent_changed_on" if press.choice == "1" else "consent_changed_off"
        await room.tell(tx, room.say(key, purpose=room.say(f"consent_{purpose.value}")))


async def _stop(tx: Tx, parts: Parts, room: Room, _press: Press, _event: PressEvent) -> None:
    await parts.converse.stop(tx, room.chat.id)


async def _opt_out(tx: Tx, parts: Parts, room: Room, press: Press, event: PressEvent) -> None:
    if press.choice == "out":
        await leaving.leave(tx, parts, room, evidence=f"button:{event.press_id}")
    else:
        await room.tell(tx, room.say("stays"))
    await _take_buttons_off(tx, room, event)


async def _take_buttons_off(tx: Tx, room: Room, event: PressEvent) -> None:
    """Show that a question is settled: the message stays, its buttons go, wherever the same button was pressed."""
    message_id = event.message_id or await outbox.message_with(tx, room.chat.id, event.data)
    shown = await outbox.content_of(tx, room.chat.id, message_id) if message_id else None
    if message_id and shown and shown.buttons:
        await outbox.replace(tx, room.chat.id, message_id, Content(shown.text))


async def _reason(parts: Parts, room: Room, press: Press, _event: PressEvent, work: Work) -> None:
    """A person chose what was wrong; where that makes a memory line, a rewrite is offered."""
    async with parts.store.begin() as tx:
        room = await held(tx, room)
        turn = await turns.access_turn(tx, room.person_id, press.row)
        given = await feedback.open_of_turn(tx, room.person_id, turn.id)
        if given is None or not given.text:
            if not (given and _chosen_already(given, press) and not _asked_anew(room, turn)):
                await _reason_without_words(tx, parts, room, press, turn, work)
            await work.done(tx)
            return
        if _chosen_already(given, press):
            line = await _chosen_before(tx, room, given, work)
        else:
            line = await _choose(tx, parts, room, press, turn, given)
        if line is None or line.kind == "fact":
            await work.done(tx)
    parts.due.set()
    if line is not None and line.kind == "preference":
        await correction.offer(parts, room, turn, line, given.id, work)


def _chosen_already(given: Feedback, press: Press) -> bool:
    return given.classified_by == "person" and given.feedback_class is REASONS[press.choice]


def _asked_anew(room: Room, turn: Turn) -> bool:
    """Whether a 👎 that came after an earlier choice asks once more what was wrong."""
    waiting = room.chat.awaiting
    return bool(waiting and waiting.kind == "correction" and waiting.turn_id == str(turn.id) and not waiting.reason)


async def _chosen_before(tx: Tx, room: Room, given: Feedback, work: Work) -> MemoryLine | None:
    """Return the line whose rewrites a try that was cut off still owes; None for a button that was pressed twice."""
    return await correction.line_of(tx, room, given.id, given.text or "") if work.claimed.attempts > 1 else None


async def _choose(tx: Tx, parts: Parts, room: Room, press: Press, turn: Turn, given: Feedback) -> MemoryLine | None:
    ladder = parts.settings.ladder
    judged = await judging.choose_reason(tx, room.person_id, given.id, press.choice, room.consents, ladder)
    if judged.decision.rung is not Rung.MEMORY and (line := await memory.by_feedback(tx, given.id)):
        # They had it kept and thought better of it: what follows says that nothing is learnt.
        await personal.put_line_away(tx, room, line)
    return await correction.act(tx, room, turn, judged, given.text or "")


async def _reason_without_words(tx: Tx, parts: Parts, room: Room, press: Press, turn: Turn, work: Work) -> None:
    said = judging.Said(turn, room.person_id, "", "reason", message.evidence_of(work), room.consents, room.language)
    judged = await judging.keep(tx, said, classify_by_person(press.choice), parts.settings.ladder)
    if press.choice in {"fact", "style"}:
        # The class alone says nothing a sentence could keep: the words are asked for.
        await correction.ask_words(tx, room, turn, press.choice)
    else:
        await people.set_awaiting(tx, room.chat.id, None)
        await correction.act(tx, room, turn, judged, "")


async def _new_question(parts: Parts, room: Room, press: Press, _event: PressEvent, work: Work) -> None:
    """What was taken for a correction was a question: nothing is learnt from it, and it is answered."""
    async with parts.store.begin() as tx:
        given = await feedback.access(tx, room.person_id, press.row)
        if not await feedback.was_a_question(tx, given.id, work.claimed.id):
            await work.done(tx)
            return
        await feedback.retract(tx, given.id)
        line = await memory.by_feedback(tx, given.id)
        if line:
            await personal.put_line_away(tx, room, line)
        await people.set_awaiting(tx, room.chat.id, None)
    await message.ask_anew(parts, room, given, work)


async def _again(parts: Parts, room: Room, press: Press, _event: PressEvent, work: Work) -> None:
    async with parts.store.begin() as tx:
        turn = await turns.access_turn(tx, room.person_id, press.row)
        if await siblings.was_being_written(tx, turn, work.claimed.id):
            await work.done(tx)  # tapped while it was on its way: one more reply is what they wanted
            return
    await message.again(parts, room, turn, work)


async def _release(tx: Tx, parts: Parts, room: Room, press: Press, event: PressEvent) -> None:
    await personal.choose_release(tx, parts, room, press.row, press.choice)
    await _take_buttons_off(tx, room, event)


async def _allow_and_keep(parts: Parts, room: Room, press: Press, event: PressEvent, work: Work) -> None:
    await correction.keep_after_all(parts, room, press.row, event.press_id, work)


async def _forget(parts: Parts, room: Room, press: Press, event: PressEvent, work: Work) -> None:
    if press.choice in FORGETS_CHAT and event.message_id:
        await _bare_at_once(parts, room, event.message_id)
    await personal.forget(parts, room, press.choice, work)


async def _bare_at_once(parts: Parts, room: Room, message_id: str) -> None:
    """Take the buttons off a message whose row is about to go; left there, one slip would forget everything."""
    async with parts.store.begin() as tx:
        shown = await outbox.content_of(tx, room.chat.id, message_id)
    if shown is None:
        return
    with suppress(DeliveryError, TimeoutError):
        async with asyncio.timeout(BARE_S):
            await room.channel.edit(room.chat.address, message_id, Content(shown.text))


QUICK: dict[str, Step] = {
    "v": _vote,
    "c": _ask_words,
    "w": _settle,
    "e": _no_example,
    "m": _undo_line,
    "k": _release,
    "s": _switch,
    "x": _stop,
    "o": _opt_out,
}
SLOW: dict[str, Callable[[Parts, Room, Press, PressEvent, Work], Awaitable[None]]] = {
    "a": _allow_and_keep,
    "r": _reason,
    "n": _new_question,
    "t": _again,
    "f": _forget,
}
