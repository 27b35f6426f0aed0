"""Every command by Telegram, as a person types it, with its buttons pressed; and a reply as it is seen growing."""

import asyncio
import json
import re

import aiohttp
import pytest

from app.domain.consent import OPTIONAL, Purpose
from bots.telegram.part import MENU
from tests.fakes.model import ModelServer, faults
from tests.fakes.telegram import TelegramServer
from tests.fakes.telegram.messages import Message
from tests.fakes.telegram.people import User
from tests.integration.test_telegram_road import label, shown, telegram, until
from tests.support.road import Road

pytestmark = pytest.mark.usefixtures("brisk")

__all__ = ["telegram"]  # the fixture

ALLOWED = "select distinct on (purpose) purpose, event from consent_events order by purpose, at desc"
OFFERED = [purpose for purpose in OPTIONAL if purpose is not Purpose.OUTSIDE_JUDGE]


@pytest.fixture
def ann(telegram_server: TelegramServer) -> User:
    return telegram_server.user("Ann")


async def told(server: TelegramServer, user: User, words: str) -> Message:
    """Return the newest message with `words`, once it is there."""
    found = await until(server, user, words)
    assert isinstance(found, Message)
    return found


async def taught(server: TelegramServer, user: User) -> None:
    user.say("/learn on")
    await told(server, user, "On: I may learn")
    user.say("What is tea?")
    reply = await told(server, user, "You said: What is tea?")
    user.say("I am allergic to nuts", reply_to=reply)
    await told(server, user, "I'll keep this in mind")


async def test_start_greets_every_time_and_asks_once(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    ann.start()
    await told(telegram_server, ann, "your choice counts")
    ann.start()
    await telegram_server.wait_for(lambda: sum("Hello, I'm" in text for text in shown(ann)) == 2, 20)
    assert sum("your choice counts" in text for text in shown(ann)) == 1
    assert await telegram.rows("select 1 from turns") == []


async def test_help_names_what_the_menu_offers(telegram: Road, telegram_server: TelegramServer, ann: User) -> None:
    ann.say("/help")
    text = (await told(telegram_server, ann, "Just write to me. In words")).text
    assert [name for name in MENU if f"/{name}" not in text] == ["help"]
    assert await telegram.rows("select 1 from turns") == []


async def test_retry_answers_the_last_message_again(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    ann.say("/retry")
    await told(telegram_server, ann, "no reply to try again")
    ann.say("sing")
    await told(telegram_server, ann, "You said: sing")
    model.reply_with("La la.")
    ann.say("/retry")
    await told(telegram_server, ann, "La la.")
    first, second = await telegram.rows("select id, user_text, sibling_of from turns order by number")
    assert (second["user_text"], second["sibling_of"]) == ("sing", first["id"])


async def test_undo_takes_the_last_line_back(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    await taught(telegram_server, ann)
    ann.say("/undo")
    await told(telegram_server, ann, "I don't use this any more: “I am allergic to nuts”")
    ann.say("A cake, please")
    await told(telegram_server, ann, "You said: A cake, please")
    assert "allergic" not in str(model.calls[-1].body)
    ann.say("/undo")
    await told(telegram_server, ann, "nothing to undo")
    assert [m["state"] for m in await telegram.rows("select state from memory_lines")] == ["undone"]


async def test_forget_asks_then_forgets_everything_and_gives_a_receipt_that_works(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    await taught(telegram_server, ann)
    ann.say("/forget")
    asked = await told(telegram_server, ann, "What shall I forget?")
    assert [b.text for b in asked.buttons] == ["This chat", "What you learnt about me", "Everything", "Nothing"]
    ann.press(asked, "Nothing")
    await told(telegram_server, ann, "Nothing was forgotten")
    await telegram_server.wait_for(lambda: not asked.buttons)
    ann.say("/forget")
    await telegram_server.wait_for(lambda: "Everything" in [b.text for b in ann.chat.buttons()])
    ann.press(ann.chat.last, "Everything")
    receipt = await told(telegram_server, ann, "Your receipt: ")
    code = re.search(r"Your receipt: (\S+)", receipt.text)
    assert code
    for table in ("people", "accounts", "turns", "memory_lines", "feedback", "consent_events"):
        assert await telegram.rows(f"select 1 from {table}") == [], table  # noqa: S608 - the names above
    async with aiohttp.ClientSession() as session, session.get(f"{telegram.url}/receipt?code={code[1]}") as page:
        assert page.status == 200


@pytest.mark.parametrize("scope", ["This chat", "What you learnt about me", "Everything", "Nothing"])
async def test_what_to_forget_is_asked_once_and_a_slip_later_forgets_nothing_more(
    telegram: Road, telegram_server: TelegramServer, ann: User, scope: str
) -> None:
    await taught(telegram_server, ann)
    ann.say("/forget")
    asked = await told(telegram_server, ann, "What shall I forget?")
    ann.press(asked, scope)
    await told(telegram_server, ann, "Nothing was forgotten" if scope == "Nothing" else "Your receipt: ")
    await telegram_server.wait_for(lambda: not asked.buttons)
    assert asked.text.startswith("What shall I forget?")


async def test_what_a_command_switched_the_switches_of_a_message_show(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    ann.say("/privacy")
    asked = await told(telegram_server, ann, "Your choices now")
    ann.say("/learn on")
    await telegram_server.wait_for(lambda: "✅ Memory" in [b.text for b in asked.buttons])
    ann.press(asked, "✅ Memory")
    await telegram_server.wait_for(lambda: "⬜ Memory" in [b.text for b in asked.buttons])
    allowed = {row["purpose"]: row["event"] for row in await telegram.rows(ALLOWED)}
    assert allowed == {"memory": "withdrawn", "personal_training": "given"}


async def test_export_sends_what_is_held_as_a_file(telegram: Road, telegram_server: TelegramServer, ann: User) -> None:
    await taught(telegram_server, ann)
    ann.say("/export")
    await told(telegram_server, ann, "Everything I hold about you is in this file")
    (sent,) = [m for m in ann.chat.from_bot if "document" in m.extra]
    document = sent.extra["document"]
    assert document["file_name"] == "mentee-export.json"
    held = json.loads(telegram_server.world.files[document["file_id"]].data)
    assert "I am allergic to nuts" in json.dumps(held)
    assert "What is tea?" in json.dumps(held)
    assert await telegram.rows("select 1 from outbox where state not in ('sent')") == []


async def test_whoami_names_the_person_and_what_answers(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    ann.say("/whoami")
    text = (await told(telegram_server, ann, "Answering: the base model")).text
    (person,) = await telegram.rows("select id from people")
    assert str(person["id"]) in text
    assert str(ann.user_id) not in text


async def test_learn_off_ends_training_and_leaves_memory(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    await taught(telegram_server, ann)
    ann.say("/learn off")
    await told(telegram_server, ann, "Off: nothing of yours trains anything")
    allowed = {row["purpose"]: row["event"] for row in await telegram.rows(ALLOWED)}
    assert (allowed["memory"], allowed["personal_training"]) == ("given", "withdrawn")
    assert [m["state"] for m in await telegram.rows("select state from memory_lines")] == ["active"]
    ann.say("/learn perhaps")
    await told(telegram_server, ann, "/learn on lets me")


async def test_each_switch_of_privacy_is_one_purpose_and_shows_what_is_stored(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    ann.start()
    await told(telegram_server, ann, "your choice counts")
    ann.say("/privacy")
    asked = await told(telegram_server, ann, "Your choices now")
    assert [b.text[:1] for b in asked.buttons] == ["⬜"] * len(OFFERED)
    for mark, event in (("✅", "given"), ("⬜", "withdrawn")):
        for place in range(len(OFFERED)):
            ann.press(asked, asked.buttons[place])
            await telegram_server.wait_for(lambda at=place, now=mark: asked.buttons[at].text.startswith(now), 10)  # type: ignore[misc]
        answers = {row["purpose"]: row["event"] for row in await telegram.rows(ALLOWED)}
        assert answers == {purpose.value: event for purpose in OFFERED}


async def test_who_begins_with_privacy_sees_the_switches_once(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    ann.say("/privacy")
    asked = await told(telegram_server, ann, "Your choices now")
    ann.say("hello")
    await told(telegram_server, ann, "You said: hello")
    assert [m for m in ann.chat.from_bot if any("⬜" in b.text for b in m.buttons)] == [asked]
    assert "Hello, I'm" in shown(ann)[0]


async def test_what_is_no_text_is_named_in_the_persons_language(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    minji = telegram_server.user("Minji", language_code="ko")
    minji.send_photo()
    await told(telegram_server, minji, "보내신 것(사진)")
    ann.send_voice()
    await told(telegram_server, ann, "(a voice message)")
    assert await telegram.rows("select 1 from turns") == []


WORDS = "one two three four five six seven eight nine ten"


async def test_a_reply_is_seen_growing_and_a_late_edit_never_covers_its_end(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    model.reply_with(WORDS)
    model.always(faults.Slow(per_token_s=0.35))
    ann.say("count")
    reply = await told(telegram_server, ann, "ten")
    await telegram_server.wait_for(lambda: reply.text == WORDS, 10)
    grown = [revision.text for revision in reply.revisions]
    between = [text.removesuffix(" …") for text in grown if text.endswith(" …")]
    assert between, grown
    assert all(WORDS.startswith(text) for text in between)
    assert sorted(between, key=len) == between

    telegram_server.delay("editMessageText", 4.0)
    ann.say("again")
    await telegram_server.wait_for(
        lambda: len([m for m in ann.chat.from_bot if m.text == WORDS and m.buttons]) == 2, 30
    )
    second = [m for m in ann.chat.from_bot if m.text == WORDS][-1]
    states = await telegram.rows("select state from turns order by number")
    assert [row["state"] for row in states] == ["done", "done"]
    await telegram_server.wait_for(lambda: len(second.revisions) > 1, 10)
    assert second.revisions[-1].text == WORDS
    assert any(revision.text.endswith(" …") for revision in second.revisions)  # the one that came late
    assert label(second, "👍")


async def test_who_wants_a_human_has_a_silent_bot_until_they_say_so(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    question = ann.say("What is tea?")
    reply = await told(telegram_server, ann, "You said: What is tea?")
    ann.say("/human")
    await told(telegram_server, ann, "Write /bot to talk to me again")
    before = len(shown(ann))
    ann.say("hello?")
    ann.edit(question, "What is coffee?")
    ann.press(reply, "👎")
    ann.say("shorter, please", reply_to=reply)
    ann.say("/privacy")
    await told(telegram_server, ann, "Your choices now")
    assert len(shown(ann)) == before + 1
    for table in ("feedback", "votes"):
        assert await telegram.rows(f"select 1 from {table}") == []  # noqa: S608 - a test's own words
    ann.say("/bot")
    await told(telegram_server, ann, "It's me again")
    ann.say("and now?")
    await told(telegram_server, ann, "You said: and now?")


async def test_stop_behind_the_bots_name_overtakes_the_reply_in_a_group(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer
) -> None:
    ann = telegram_server.user("Ann")
    group, name = telegram_server.group("Kitchen", ann), telegram_server.world.bot["username"]
    model.next(faults.Slow(per_token_s=0.2))
    ann.say(f"@{name} " + "one word after another " * 40, group.chat)
    await telegram_server.wait_for(lambda: any("one word" in m.text for m in group.chat.from_bot), 20)
    ann.say(f"@{name} /stop", group.chat)
    async with asyncio.timeout(10):  # the whole reply takes half a minute
        while not await telegram.rows("select 1 from turns where state = 'stopped'"):
            await asyncio.sleep(0.05)
    assert len(model.calls) == 1
