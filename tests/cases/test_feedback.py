"""Feedback: given again after it is gone, answered so that a person sees it, taken out again, and never undone by later lessons."""

import json
from dataclasses import replace

import pytest
from sqlalchemy import text

from app.domain.memory import Example
from app.store import Store, memory
from learner.dataset.admit import admit
from learner.gate.decide import decide
from tests.cases.talk import count, got, replied, settled, texts, told
from tests.fakes.telegram import Message, TelegramServer, User
from tests.fakes.twilio import TwilioServer
from tests.support.lessons import LADDER, Pupil, pupil
from tests.support.road import Road
from tests.unit.test_gate_decide import GOOD, outcome, target


@pytest.fixture
def ann(telegram_server: TelegramServer) -> User:
    """Somebody on Telegram."""
    return telegram_server.user("Ann")


def data(message: Message, verb: str) -> str:
    """Return what the button with a verb says."""
    return next(b.data or "" for b in message.buttons if (b.data or "").startswith(verb))


async def rated(server: TelegramServer, message: Message, label: str) -> None:
    """Wait until a reply's buttons show a vote."""
    await server.wait_for(lambda: any(b.text == label for b in message.buttons), 20)


SEQUENCES = {
    "taken back and given": (["👍", "👍 ✓", "👍"], [1, 0, 1]),
    "taken back and turned": (["👍", "👍 ✓", "👎"], [1, 0, -1]),
    "turned twice": (["👎", "👍", "👎"], [-1, 1, -1]),
    "taken back twice": (["👎", "👎 ✓", "👍", "👍 ✓"], [-1, 0, 1, 0]),
}


@pytest.mark.parametrize(("labels", "values"), SEQUENCES.values(), ids=list(SEQUENCES))
async def test_g70_a_rating_taken_back_can_be_given_again(
    telegram: Road, telegram_server: TelegramServer, ann: User, labels: list[str], values: list[int]
) -> None:
    """G70 · https://github.com/open-webui/open-webui/issues/30076: after a rating is taken back the next one is stored and shown
    as if it were the first; every change is kept.
    """
    ann.say("rate this")
    reply = await replied(telegram_server, ann, "You said: rate this")
    for label, value in zip(labels, values, strict=True):
        ann.press(reply, label)
        mark = {1: "👍 ✓", -1: "👎 ✓"}.get(value)
        if mark:
            await rated(telegram_server, reply, mark)
        else:
            await telegram_server.wait_for(lambda: not any("✓" in b.text for b in reply.buttons), 20)
    assert [row["value"] for row in await telegram.rows("select value from votes")] == [values[-1]]
    assert [row["value"] for row in await telegram.rows("select value from vote_events order by at")] == values


@pytest.mark.parametrize(("before", "after"), [("👍", "👍 ✓"), ("👍", "👎"), ("👎", "👍")])
async def test_g70_a_rating_that_was_deleted_is_made_anew(
    telegram: Road, telegram_server: TelegramServer, ann: User, before: str, after: str
) -> None:
    """G70 · https://github.com/open-webui/open-webui/issues/30076: the entry is gone from the store while its buttons are still
    there: the next press makes a new one, or takes back what is no more; nobody reads of anything missing.
    """
    ann.say("rate this")
    reply = await replied(telegram_server, ann, "You said: rate this")
    ann.press(reply, before)
    await rated(telegram_server, reply, f"{before} ✓")
    await settled(telegram)
    await telegram.rows("delete from votes returning id")
    known = await count(telegram, "inbox")
    ann.press(reply, after)
    await settled(telegram, beyond=known)
    wanted = {"👍 ✓": [], "👎": [-1], "👍": [1]}[after]
    assert [row["value"] for row in await telegram.rows("select value from votes")] == wanted
    assert await count(telegram, "inbox where state <> 'done'") == 0
    ann.say("/help")
    await told(telegram_server, ann, "Just write to me. In words")


async def test_g70_a_rating_of_what_was_forgotten_harms_nothing(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    """G70 · https://github.com/open-webui/open-webui/issues/30076: a button of a conversation that was forgotten has no effect;
    the next reply can be rated.
    """
    ann.say("rate this")
    reply = await replied(telegram_server, ann, "You said: rate this")
    ann.press(reply, "👍")
    await rated(telegram_server, reply, "👍 ✓")
    ann.say("/forget")
    question = await told(telegram_server, ann, "What shall I forget?")
    ann.press(question, "Everything")
    await told(telegram_server, ann, "Your receipt")
    await settled(telegram)
    ann.press_data(reply, data(reply, "v:"))
    ann.say("a new beginning")
    again = await replied(telegram_server, ann, "You said: a new beginning")
    ann.press(again, "👎")
    await rated(telegram_server, again, "👎 ✓")
    assert [row["value"] for row in await telegram.rows("select value from votes")] == [-1]
    assert not any("not found" in shown.lower() or "error" in shown.lower() for shown in texts(ann))


async def test_g70_a_correction_taken_back_can_be_made_again(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    """G70 · https://github.com/open-webui/open-webui/issues/30076: the same words, after they were undone, are a new entry."""
    ann.say("/learn on")
    await told(telegram_server, ann, "On: I may learn")
    ann.say("What is tea?")
    reply = await replied(telegram_server, ann, "You said: What is tea?")
    for number in (1, 2):
        ann.say("I am allergic to nuts", reply_to=reply)
        await telegram_server.wait_for(lambda n=number: sum("keep this in mind" in t for t in texts(ann)) == n, 20)  # type: ignore[misc]
        if number == 1:
            ann.say("/undo")
            await told(telegram_server, ann, "I don't use this any more")
    await settled(telegram)
    states = await telegram.rows("select state from memory_lines order by created_at")
    assert sorted(row["state"] for row in states) in (["active"], ["active", "undone"])
    assert len(await telegram.rows("select 1 from feedback where text = 'I am allergic to nuts'")) == 2


@pytest.mark.parametrize(
    ("language", "label", "note", "mark"),
    [
        ("en", "👍", "Thanks!", "👍 ✓"),
        ("en", "👎", "Noted", "👎 ✓"),
        ("ko", "👍", "고마워요!", "👍 ✓"),
        ("de", "👎", "Noted", "👎 ✓"),
    ],
)
async def test_g72_a_vote_is_acknowledged_and_stays_visible(
    telegram: Road, telegram_server: TelegramServer, language: str, label: str, note: str, mark: str
) -> None:
    """G72 · https://github.com/Mintplex-Labs/anything-llm/issues/920: who presses a thumb reads a word at once and sees the vote
    on the button from then on; a 👎 is asked what was wrong.
    """
    ann = telegram_server.user("Ann", language_code=language)
    ann.say("rate this")
    reply = await replied(telegram_server, ann, "You said: rate this")
    press = ann.press(reply, label)
    await rated(telegram_server, reply, mark)
    assert press.text == note
    if label == "👎":
        await told(telegram_server, ann, "What was wrong?")


async def test_g72_what_came_of_feedback_can_be_looked_at(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    """G72 · https://github.com/Mintplex-Labs/anything-llm/issues/920: what a correction led to is said, and can be seen later with
    how far it is, as can what answers now.
    """
    ann.say("/learn on")
    await told(telegram_server, ann, "On: I may learn")
    ann.say("What is tea?")
    reply = await replied(telegram_server, ann, "You said: What is tea?")
    ann.say("Please always end with 'Cheers!'", reply_to=reply)
    await told(telegram_server, ann, "I'll keep this in mind")
    ann.say("/memory")
    shown = await told(telegram_server, ann, "What I remember about you")
    assert "always end with 'Cheers!'" in shown.text
    assert any("Undo" in button.text for button in shown.buttons)
    ann.say("/whoami")
    await told(telegram_server, ann, "Answering: the base model")


@pytest.mark.parametrize(("thumb", "words"), [("👎", "What was wrong?"), ("👎🏽", "What was wrong?")])
async def test_g72_on_whatsapp_a_thumb_down_is_answered(
    whatsapp: Road, twilio_server: TwilioServer, thumb: str, words: str
) -> None:
    """G72 · https://github.com/Mintplex-Labs/anything-llm/issues/920: without buttons the answer to a 👎 is the question why."""
    person = twilio_server.person()
    await person.say("rate this")
    await got(person, "You said: rate this")
    await person.say(thumb)
    await got(person, words)
    assert [row["value"] for row in await whatsapp.rows("select value from votes")] == [-1]


async def test_g72_on_whatsapp_a_thumb_up_is_answered(whatsapp: Road, twilio_server: TwilioServer) -> None:
    """G72 · https://github.com/Mintplex-Labs/anything-llm/issues/920: a 👍 as a message is acknowledged as well."""
    person = twilio_server.person()
    await person.say("rate this")
    await got(person, "You said: rate this")
    await settled(whatsapp)
    before = len(person.texts)
    await person.say("👍")
    await settled(whatsapp)
    assert len(person.texts) > before


@pytest.mark.parametrize(
    "words", ["I am allergic to nuts", "I am allergic to 땅콩 🥜", 'I am allergic to "quotes" \\ and\nlines']
)
async def test_g73_feedback_can_be_taken_out(
    telegram: Road, telegram_server: TelegramServer, ann: User, words: str
) -> None:
    """G73 · https://github.com/open-webui/pipelines/issues/222: votes and corrections are handed over as data, each with the
    question and the reply it is about, so that something can be trained from them.
    """
    ann.say("/learn on")
    await told(telegram_server, ann, "On: I may learn")
    ann.say("What is tea?")
    reply = await replied(telegram_server, ann, "You said: What is tea?")
    ann.press(reply, "👍")
    await rated(telegram_server, reply, "👍 ✓")
    ann.say(words, reply_to=reply)
    await told(telegram_server, ann, "I'll keep this in mind")
    ann.say("/export")
    await told(telegram_server, ann, "Everything I hold about you is in this file")
    (sent,) = [m for m in ann.chat.from_bot if "document" in m.extra]
    held = json.loads(telegram_server.world.files[sent.extra["document"]["file_id"]].data)
    (turn,) = held["turns"]
    (vote,) = held["votes"]
    (correction,) = held["feedback"]
    assert (turn["user_text"], turn["reply_text"]) == ("What is tea?", "You said: What is tea?")
    assert (vote["turn_id"], vote["value"]) == (turn["id"], 1)
    assert (correction["turn_id"], correction["text"]) == (turn["id"], words)
    assert turn["prompt_token_ids"]
    assert turn["response_token_ids"]


async def second_lesson(store: Store, who: Pupil) -> object:
    """Give a person whose first lesson is in an adapter a second one that is ripe; return its line."""
    async with store.begin() as tx:
        await memory.set_state(tx, who.person_id, who.line_id, "graduated")
        given = text(
            "insert into feedback (turn_id, person_id, kind, text, class)"
            " values (:t, :p, 'correction', 'Begin with Well', 'style') returning id"
        )
        feedback_id = await tx.scalar(given, {"t": who.turns[1], "p": who.person_id})
        line_id = await memory.add(
            tx,
            who.person_id,
            kind="preference",
            text="Begin every answer with: Well.",
            checker={"all": [{"kind": "starts_with", "value": "Well."}]},
            feedback_id=feedback_id,
        )
        ripe = text("update memory_lines set uses = 9, session_ids = :s where id = :i")
        await tx.execute(ripe, {"i": line_id, "s": list(who.sessions)})
        line = await memory.access_line(tx, who.person_id, line_id)
        await memory.add_example(tx, line, Example("Is snow cold?", "Well. It is.", "It is.", "written"), who.turns[1])
    return line_id


async def test_g74_an_earlier_lesson_is_taught_again_with_a_later_one(store: Store) -> None:
    """G74: what an adapter learnt before is part of the next training and of its measurement, with its examples."""
    who = await pupil(store)
    later = await second_lesson(store, who)
    async with store.begin() as tx:
        admitted = await admit(tx, who.person_id, LADDER)
    assert {line.line.id for line in admitted.lines} == {who.line_id, later}
    assert all(line.examples for line in admitted.lines)


@pytest.mark.parametrize(
    ("kept", "verdict"), [(14, "passed"), (15, "passed"), (8, "refused"), (3, "refused"), (0, "refused")]
)
def test_g74_an_adapter_that_unlearnt_an_earlier_lesson_is_refused(kept: int, verdict: str) -> None:
    """G74: a candidate that has the new lesson but lost one which the present adapter holds does not go live."""
    earlier = target(0, 14, kept, parent=14)
    later = tuple(replace(row, lesson_id="l2") for row in target(0, 14, 15))
    measured = replace(GOOD, lessons={"l1": frozenset(), "l2": frozenset()}, target=(*earlier, *later))
    report = decide(measured)
    assert report.verdict == verdict
    assert outcome(report, "kept/l1")[0] == ("passed" if verdict == "passed" else "failed")
    assert report.result("kept/l1").detail["against"] == "parent"
