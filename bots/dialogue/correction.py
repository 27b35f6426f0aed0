"""Corrections: from words about a reply to memory, a rewrite that shows it was understood, and the example that teaches it.

words ─► class ─► ladder ─► memory line ─► rewrites ─► offer ─👍─► example
                    │                                   └─👎─► next one, or "write it yourself" ─► example
                    ├ not sure      ─► four buttons
                    └ nothing to do ─► an honest sentence
"""

from dataclasses import replace
from uuid import UUID

from app.domain.consent import Purpose
from app.domain.feedback import FeedbackClass
from app.domain.ladder import Rung
from app.domain.media import Picture
from app.domain.memory import Example, MemoryLine
from app.domain.outgoing import Button, Content
from app.domain.person import EXAMPLES, Awaiting
from app.domain.press import Press, short_id
from app.domain.text import literal
from app.domain.turn import Turn
from app.errors import NotFoundError
from app.services import asking
from app.services import feedback as judging
from app.services.feedback import Judged, Said
from app.services.lanes import Work
from app.services.learn import consider
from app.services.remember import Disliked, fits, learn_example, line_text, remember
from app.store import Tx, entering, feedback, leaving, memory, outbox, people, pictures, turns
from app.telemetry import CORRECTIONS
from bots.dialogue import consent
from bots.dialogue.parts import Parts
from bots.dialogue.room import Room, held

LIVING = frozenset({"active", "graduated"})
REASON_KEYS = ("fact", "style", "once", "topic")


def reason_buttons(room: Room, turn_id: UUID) -> tuple[tuple[Button, ...], ...]:
    """Return the four buttons that ask what was wrong with a reply."""
    turn = short_id(turn_id)
    buttons = [Button(room.say(f"reason_{r}"), Press("r", turn, r).data()) for r in REASON_KEYS]
    return (tuple(buttons[:2]), tuple(buttons[2:]))


async def ask_why(tx: Tx, room: Room, turn: Turn) -> None:
    """Ask what was wrong with a reply; the next words are its correction."""
    await people.set_awaiting(tx, room.chat.id, Awaiting("correction", turn_id=str(turn.id)))
    await room.tell(tx, Content(room.say("ask_why"), reason_buttons(room, turn.id)))


async def ask_no_more(tx: Tx, room: Room, turn: Turn) -> None:
    """Take the buttons off the question what was wrong with a reply: nothing is any more. What was asked about words stays."""
    if not room.channel.capabilities.edits:
        return
    for row_id, shown in await outbox.offering(tx, room.chat.id, Press("r", short_id(turn.id)).data(), 1):
        if shown.text == room.say("ask_why"):
            await outbox.settle(tx, row_id)


async def ask_words(tx: Tx, room: Room, turn: Turn, reason: str | None = None) -> None:
    """Ask for a correction in words; `reason` is what the person chose to be wrong, and stands above what they say."""
    chosen = reason or reason_for(room, turn)
    await people.set_awaiting(tx, room.chat.id, Awaiting("correction", turn_id=str(turn.id), reason=chosen))
    await room.tell(tx, room.say("ask_correction"))


def reason_for(room: Room, turn: Turn) -> str | None:
    """Return what the person chose to be wrong with a reply whose correction is awaited; None where they chose nothing."""
    waiting = room.chat.awaiting
    return waiting.reason if waiting and waiting.turn_id == str(turn.id) else None


async def correct(parts: Parts, room: Room, said: Said, work: Work) -> None:
    """Take a correction in words, from its class to the offer of a rewrite."""
    classification = await judging.classify(said, parts.judge, parts.settings.ladder)
    async with parts.store.begin() as tx:
        room = await held(tx, room)
        if await leaving.silenced(tx, room.account.id, room.chat.id):
            await work.done(tx, "refused", "silent")
            return
        said = replace(said, consents=room.consents)
        await people.set_awaiting(tx, room.chat.id, None)
        judged = await judging.keep(tx, said, classification, parts.settings.ladder)
        CORRECTIONS.labels(room.channel.name).inc(not judged.known_before)
        await asking.answered(tx, room.channel, said.turn.id, room.person_id, "words")
        if judged.known_before:  # a try that was cut off said already what became of it
            line = await line_of(tx, room, judged.feedback_id, said.text)
        else:
            line = await act(tx, room, said.turn, judged, said.text)
        if line is None or line.kind == "fact":
            await work.done(tx)
    parts.due.set()
    if line is not None and line.kind == "preference":
        await offer(parts, room, said.turn, line, judged.feedback_id, work)


async def keep_after_all(parts: Parts, room: Room, feedback_id: UUID, press_id: str, work: Work) -> None:
    """Allow memory, and keep the wish that was not kept for want of it: the button said both."""
    async with parts.store.begin() as tx:
        room = await held(tx, room)
        if await leaving.silenced(tx, room.account.id, room.chat.id):
            await work.done(tx, "refused", "silent")
            return
        given = await feedback.access(tx, room.person_id, feedback_id)
        turn = await turns.access_turn(tx, room.person_id, given.turn_id)
        if given.question:
            raise NotFoundError  # they took it back since: there is no wish to keep
        if not room.allows(Purpose.MEMORY):
            room = await consent.switch(tx, parts, room, Purpose.MEMORY, "1", f"button:{press_id}")
            await consent.refresh(tx, parts, room, None)
        if await memory.by_feedback(tx, given.id):  # a try that was cut off kept it, or the button was pressed before
            line = await line_of(tx, room, given.id, given.text or "") if work.claimed.attempts > 1 else None
        else:
            judged = await judging.decide_anew(tx, room.person_id, given, room.consents, parts.settings.ladder)
            line = await act(tx, room, turn, judged, given.text or "")
        if line is None or line.kind == "fact":
            await work.done(tx)
    parts.due.set()
    if line is not None and line.kind == "preference":
        await offer(parts, room, turn, line, given.id, work)


async def act(tx: Tx, room: Room, turn: Turn, judged: Judged, words: str) -> MemoryLine | None:
    """Do what the ladder decided and say so; return the memory line that came of it, if any."""
    if judged.decision.rung is Rung.MEMORY:
        line = await remember(tx, room.person_id, words, judged.classification.kind, judged.feedback_id)
        await room.tell(
            tx,
            Content(room.say("remembered", line=literal(line.text)), (_line_buttons(room, line, judged.feedback_id),)),
        )
        return line
    if judged.decision.rung is Rung.ASK:
        await people.set_awaiting(tx, room.chat.id, None)
        buttons = (*reason_buttons(room, turn.id), (_new_question(room, judged.feedback_id),))
        await room.tell(tx, Content(room.say("ask_meaning"), buttons))
        return None
    await room.tell(tx, _nothing_learnt(room, judged, words))
    return None


async def line_of(tx: Tx, room: Room, feedback_id: UUID, words: str) -> MemoryLine | None:
    """Return the living line that came of a correction; said again, the words are not kept twice: it is the first one's."""
    line = await memory.by_feedback(tx, feedback_id) or await memory.saying(tx, room.person_id, line_text(words))
    return line if line and _teachable(room, line) else None


def _teachable(room: Room, line: MemoryLine) -> bool:
    return line.state in LIVING and room.allows(Purpose.MEMORY)


def _line_buttons(room: Room, line: MemoryLine, feedback_id: UUID) -> tuple[Button, ...]:
    undo = Button(room.say("button_undo"), Press("m", short_id(line.id), "undo").data())
    return (undo, _new_question(room, feedback_id))


def _new_question(room: Room, feedback_id: UUID) -> Button:
    return Button(room.say("button_new_question"), Press("n", short_id(feedback_id)).data())


def _never_mind(room: Room) -> Button:
    return Button(room.say("button_never_mind"), Press("e", "", "no").data())


def _nothing_learnt(room: Room, judged: Judged, words: str) -> Content:
    if judged.decision.rule == "no_memory_consent":
        allow = Button(room.say("button_allow"), Press("a", short_id(judged.feedback_id)).data())
        return Content(room.say("not_remembered_no_consent", line=literal(words)), ((allow,),))
    keys = {
        FeedbackClass.ONE_OFF: "once_only",
        FeedbackClass.TOPIC_CHANGE: "topic_changed",
    }
    if judged.classification.kind is FeedbackClass.WRONG_FACT:
        seen = judged.decision.rung is Rung.EVALUATION and room.allows(Purpose.HUMAN_REVIEW)
        return Content(room.say("kept_as_fact_correction" if seen else "kept_as_fact_unseen"))
    return Content(room.say(keys.get(judged.classification.kind, "kept_as_case")))


async def offer(parts: Parts, room: Room, turn: Turn, line: MemoryLine, feedback_id: UUID, work: Work) -> None:
    """Sample rewrites outside any transaction, keep them, and offer the first that fits; ask to write where none does.

    Nothing of it where the line was taken back meanwhile.
    """
    shown = await _shown(parts, turn)
    disliked = Disliked(room.identity.prompt, turn.user_text or "", turn.reply_text or "", shown)
    sampled = await parts.rewriter.sample(line, disliked, parts.settings.retries_on_correction)
    async with parts.store.begin() as tx:
        room = await held(tx, room)
        # Who opted out meanwhile, or called a human, hears no more of it.
        silent = await leaving.silenced(tx, room.account.id, room.chat.id)
        if not silent:
            current = await memory.access_line(tx, room.person_id, line.id)
            await entering.use(tx, room.person_id, sampled.tokens, replies=0)
            if _teachable(room, current):
                for text in sampled.texts:
                    await feedback.add_rewrite(tx, feedback_id, room.person_id, text, passed=fits(line, text))
                await offer_next(tx, room, turn, line, feedback_id, "ask_example")
        await work.done(tx)
    parts.due.set()


async def _shown(parts: Parts, turn: Turn) -> tuple[Picture, ...]:
    if not (parts.sees and turn.origin.media):
        return ()
    async with parts.store.begin() as tx:
        return await pictures.of_turn(tx, turn.sibling_of or turn.id)


async def offer_next(tx: Tx, room: Room, turn: Turn, line: MemoryLine, feedback_id: UUID, ask_key: str) -> None:
    """Offer the next rewrite nobody looked at; where there is none left, ask the person to write the reply."""
    rewrite = await feedback.next_rewrite(tx, feedback_id)
    if rewrite is None:
        awaiting = Awaiting("example", turn_id=str(turn.id), memory_id=str(line.id), feedback_id=str(feedback_id))
        await people.set_awaiting(tx, room.chat.id, awaiting)
        await room.tell(tx, Content(room.say(ask_key), ((_never_mind(room),),)))
        return
    row = short_id(rewrite.id)
    yes = Button(room.say("button_yes_like_this"), Press("w", row, "y").data())
    no = Button(room.say("button_not_this"), Press("w", row, "n").data())
    await room.tell(tx, Content(room.say("offer_rewrite", rewrite=rewrite.text), ((yes, no),)))


async def settle(tx: Tx, parts: Parts, room: Room, rewrite_id: UUID, choice: str) -> None:
    """Take a person's yes or no to an offered rewrite; of a line that was taken back meanwhile nothing is learnt."""
    room = await held(tx, room)
    rewrite = await feedback.access_rewrite(tx, room.person_id, rewrite_id)
    if not await feedback.settle_rewrite(tx, rewrite.id, "approved" if choice == "y" else "declined"):
        return
    given = await feedback.access(tx, room.person_id, rewrite.feedback_id)
    line = await line_of(tx, room, given.id, given.text or "")
    if line is None:
        await room.tell(tx, room.say("line_gone"))
        return
    turn = await turns.access_turn(tx, room.person_id, given.turn_id)
    if choice == "n":
        await offer_next(tx, room, turn, line, given.id, "ask_example_after_no")
        return
    example = Example(turn.user_text or "", rewrite.text, turn.reply_text, "approved")
    await _keep_example(tx, parts, room, line, example, turn)


async def written_example(tx: Tx, parts: Parts, room: Room, awaiting: Awaiting, text: str) -> bool:
    """Take the reply that a person wrote the way they want it; False when its line was taken back or forgotten.

    One that does not follow the line itself would teach the opposite: it is asked for once more, then left. `room` is one
    that `held` returned in `tx`.
    """
    await people.set_awaiting(tx, room.chat.id, None)
    try:
        line = await memory.access_line(tx, room.person_id, UUID(awaiting.memory_id))
        turn = await turns.access_turn(tx, room.person_id, UUID(awaiting.turn_id))
    except NotFoundError:
        return False
    if not _teachable(room, line):
        return False
    if fits(line, text) is False:
        await _refuse_example(tx, room, awaiting, line)
        return True
    await _keep_example(tx, parts, room, line, Example(turn.user_text or "", text, turn.reply_text, "written"), turn)
    return True


async def _refuse_example(tx: Tx, room: Room, awaiting: Awaiting, line: MemoryLine) -> None:
    if awaiting.kind == "example_again":
        await room.tell(tx, room.say("example_given_up", line=literal(line.text)))
        return
    await people.set_awaiting(tx, room.chat.id, replace(awaiting, kind="example_again"))
    await room.tell(tx, Content(room.say("example_not_fitting", line=literal(line.text)), ((_never_mind(room),),)))


async def stop_asking(tx: Tx, room: Room) -> None:
    """Wait for no example any more: the next message is a message again."""
    if room.chat.awaiting and room.chat.awaiting.kind in EXAMPLES:
        await people.set_awaiting(tx, room.chat.id, None)
        await room.tell(tx, room.say("example_not_needed"))


async def _keep_example(tx: Tx, parts: Parts, room: Room, line: MemoryLine, example: Example, turn: Turn) -> None:
    await learn_example(tx, line, example, turn.id)
    await room.tell(tx, room.say("example_kept", line=literal(line.text)))
    await consider(tx, room.person_id, parts.settings)
