"""Telegram through a whole gateway: python-telegram-bot unmodified, a server that speaks the Bot API, people behind it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import text

from app.domain.messages import text as say
from app.services.forget import forget_person
from app.services.housekeeping import clean
from app.store import Store
from bots.telegram.part import MENU
from tests.fakes.model import ModelServer, faults
from tests.fakes.model import replies as scripts
from tests.fakes.telegram import TelegramServer, User
from tests.fakes.telegram.messages import Message
from tests.support.lessons import base_folder
from tests.support.road import Road, road
from tests.support.whatsapp import settled

pytestmark = pytest.mark.usefixtures("brisk")


@pytest.fixture
async def telegram(
    database_url: str, model: ModelServer, telegram_server: TelegramServer, tmp_path: Path
) -> AsyncIterator[Road]:
    """A gateway that polls the Bot API server, and knows which base it serves, so that replies may train."""
    named = {"telegram_bot_token": telegram_server.token, "telegram_base_url": telegram_server.base_url}
    async with road(database_url, model.url, model_dir=base_folder(tmp_path / "base"), **named) as gateway:
        yield gateway


def shown(user: object) -> list[str]:
    return [m.text for m in user.chat.from_bot]  # type: ignore[attr-defined]


async def until(server: TelegramServer, user: object, words: str) -> object:
    await server.wait_for(lambda: any(words in text for text in shown(user)), 20)
    return next(m for m in reversed(user.chat.from_bot) if words in m.text)  # type: ignore[attr-defined]


def label(message: object, part: str) -> str:
    return next(b.text for b in message.buttons if part in b.text)  # type: ignore[attr-defined]


async def test_first_contact_greets_asks_consent_and_answers(telegram: Road, telegram_server: TelegramServer) -> None:
    ann = telegram_server.user("Ann")
    ann.say("hello")
    reply = await until(telegram_server, ann, "You said: hello")
    assert "Hello, I'm" in shown(ann)[0]
    assert any("your choice counts" in text for text in shown(ann))
    assert [b.text for b in reply.buttons][:2] == ["👍", "👎"]
    (turn,) = await telegram.rows("select state, learnable from turns")
    assert (turn["state"], turn["learnable"]) == ("done", False)  # nothing is allowed yet


async def test_a_korean_person_is_spoken_to_in_korean(telegram: Road, telegram_server: TelegramServer) -> None:
    minji = telegram_server.user("Minji", language_code="ko")
    minji.start()
    await until(telegram_server, minji, "안녕하세요")
    await telegram_server.wait_for(lambda: len(minji.chat.from_bot) == 2, 10)
    assert "안녕하세요" in shown(minji)[0]  # hello first, then the question of consent
    assert minji.menu() == list(MENU)


async def test_a_vote_by_button_is_stored_then_shown_then_asked_about(
    telegram: Road, telegram_server: TelegramServer
) -> None:
    ann = telegram_server.user("Ann")
    ann.say("rate this")
    reply = await until(telegram_server, ann, "You said: rate this")
    press = ann.press(reply, "👎")
    await until(telegram_server, ann, "What was wrong?")
    await telegram_server.wait_for(lambda: any(b.text == "👎 ✓" for b in reply.buttons), 10)
    assert press.answered
    assert [v["value"] for v in await telegram.rows("select value from votes")] == [-1]


@pytest.mark.parametrize("after", ["👍", "👎 ✓"], ids=["switched", "cleared"])
async def test_who_likes_it_after_all_is_not_asked_any_more_what_was_wrong(
    telegram: Road, telegram_server: TelegramServer, after: str
) -> None:
    ann = telegram_server.user("Ann")
    ann.say("rate this")
    reply = await until(telegram_server, ann, "You said: rate this")
    ann.press(reply, "👎")
    asked = await until(telegram_server, ann, "What was wrong?")
    assert len(asked.buttons) == 4  # type: ignore[attr-defined]
    await telegram_server.wait_for(lambda: any(b.text == "👎 ✓" for b in reply.buttons), 10)
    ann.press(reply, after)
    await telegram_server.wait_for(lambda: not asked.buttons, 10)  # type: ignore[attr-defined]
    assert [b.text for b in reply.buttons][:2] == (["👍 ✓", "👎"] if after == "👍" else ["👍", "👎"])


async def test_a_reaction_is_a_vote_and_its_removal_takes_it_back(
    telegram: Road, telegram_server: TelegramServer
) -> None:
    ann = telegram_server.user("Ann")
    ann.say("react to this")
    reply = await until(telegram_server, ann, "You said: react to this")
    for symbols, value in [(("👍",), 1), (("👎",), -1), ((), 0), (("❤",), 0)]:
        ann.react(reply, *symbols)
        for _ in range(100):
            votes = [v["value"] for v in await telegram.rows("select value from votes")]
            if votes == [value]:
                break
            await asyncio.sleep(0.1)
        assert votes == [value], symbols


async def test_a_correction_by_replying_becomes_memory(telegram: Road, telegram_server: TelegramServer) -> None:
    ann = telegram_server.user("Ann")
    ann.say("/learn on")
    await until(telegram_server, ann, "On: I may learn")
    ann.say("What is tea?")
    reply = await until(telegram_server, ann, "You said: What is tea?")
    ann.say("Please always end with 'Cheers!'", reply_to=reply)
    kept = await until(telegram_server, ann, "I'll keep this in mind")
    ann.press(kept, label(kept, "Undo"))
    await until(telegram_server, ann, "I don't use this any more")
    assert [m["state"] for m in await telegram.rows("select state from memory_lines")] == ["undone"]


async def test_a_repeated_update_is_answered_once(telegram: Road, telegram_server: TelegramServer) -> None:
    ann = telegram_server.user("Ann")
    ann.say("only once")
    await until(telegram_server, ann, "You said: only once")
    telegram_server.deliver_again(telegram_server.world.queue.sent[-1])
    ann.say("and this")
    await until(telegram_server, ann, "You said: and this")
    assert [t["user_text"] for t in await telegram.rows("select user_text from turns order by number")] == [
        "only once",
        "and this",
    ]


async def test_exactly_one_answer_under_floods_and_lost_responses(
    telegram: Road, telegram_server: TelegramServer
) -> None:
    ann = telegram_server.user("Ann")
    ann.say("/help")
    await until(telegram_server, ann, "Just write to me")
    telegram_server.flood_next("editMessageText", 2)
    telegram_server.lose_response("editMessageText")
    ann.say("answer me")
    await until(telegram_server, ann, "You said: answer me")
    await asyncio.sleep(3)
    assert shown(ann).count("You said: answer me") == 1


async def test_a_long_reply_arrives_in_parts_with_buttons_on_the_last(
    database_url: str, telegram_server: TelegramServer, model: ModelServer
) -> None:
    model.reply_with(scripts.LONG)
    ann = telegram_server.user("Ann")
    token, address = telegram_server.token, telegram_server.base_url
    async with road(
        database_url, model.url, telegram_bot_token=token, telegram_base_url=address, max_reply_tokens=1900
    ):
        ann.say("tell me everything")
        await telegram_server.wait_for(lambda: len([t for t in shown(ann) if "A sentence" in t]) >= 2, 30)
        parts = [m for m in ann.chat.from_bot if "A sentence" in m.text]
        await telegram_server.wait_for(lambda: bool(parts[-1].buttons), 10)
    assert all(len(m.text.encode("utf-16-le")) // 2 <= 4096 for m in parts)
    assert not any(m.buttons for m in parts[:-1])


async def test_broken_markdown_and_a_parse_refusal_still_arrive(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer
) -> None:
    model.reply_with(scripts.BROKEN_MARKDOWN)
    ann = telegram_server.user("Ann")
    ann.say("format!")
    assert "print" in (await until(telegram_server, ann, "Bold that never ends")).text


async def test_an_edit_of_the_last_message_is_answered_again(telegram: Road, telegram_server: TelegramServer) -> None:
    ann = telegram_server.user("Ann")
    said = ann.say("first wording")
    await until(telegram_server, ann, "You said: first wording")
    ann.edit(said, "second wording")
    await until(telegram_server, ann, "You said: second wording")
    rows = await telegram.rows("select sibling_of from turns order by number")
    assert rows[1]["sibling_of"] is not None


async def taken_from_its_gateway(telegram: Road, words: str) -> None:
    """Let the update that is being handled be claimed anew, as after the death of whoever handles it."""
    async with asyncio.timeout(10):
        while not await telegram.rows("select 1 from turns where state = 'generating' and user_text = :w", w=words):
            await asyncio.sleep(0.02)
    async with telegram.store.begin() as tx:
        await tx.execute(
            text("update inbox set state = 'stored', owner = null, lease_until = null where state = 'claimed'")
        )


async def test_an_edit_whose_handling_was_cut_off_is_still_answered(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer
) -> None:
    ann = telegram_server.user("Ann")
    said = ann.say("first wording")
    await until(telegram_server, ann, "You said: first wording")
    model.pace = faults.Slow(2.0, 0.0)
    ann.edit(said, "second wording")
    await taken_from_its_gateway(telegram, "second wording")
    model.pace = faults.Slow(0.0, 0.0)
    await until(telegram_server, ann, "You said: second wording")
    assert [t["state"] for t in await telegram.rows("select state from turns order by number")] == ["done", "done"]


async def test_a_message_whose_answer_was_cut_off_does_not_become_a_correction(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer
) -> None:
    ann = telegram_server.user("Ann")
    ann.say("one")
    first = await until(telegram_server, ann, "You said: one")
    model.pace = faults.Slow(2.0, 0.0)
    ann.say("two")
    async with asyncio.timeout(10):
        while len(await telegram.rows("select 1 from turns")) < 2:
            await asyncio.sleep(0.02)
    ann.press(first, "👎")
    await until(telegram_server, ann, "What was wrong?")
    await taken_from_its_gateway(telegram, "two")
    model.pace = faults.Slow(0.0, 0.0)
    await until(telegram_server, ann, "You said: two")
    assert await telegram.rows("select 1 from feedback where text = 'two'") == []
    assert [t["state"] for t in await telegram.rows("select state from turns order by number")] == ["done", "done"]


@pytest.mark.parametrize(
    "body",
    [
        {"update_id": 900001, "something_new": {"x": 1}},
        {"update_id": 900002, "message": {"message_id": 5}},
        {"update_id": 900003, "channel_post": {"message_id": 1, "date": 1, "chat": {"id": -100, "type": "channel"}}},
        {"update_id": 900004, "message_reaction": {"chat": {"id": 1, "type": "private"}, "message_id": 1}},
        {"nothing": "at all"},
    ],
)
async def test_odd_updates_never_stop_the_next_one(
    telegram: Road, telegram_server: TelegramServer, body: dict[str, object]
) -> None:
    telegram_server.emit(body)
    ann = telegram_server.user("Ann")
    ann.say("still there?")
    assert await until(telegram_server, ann, "You said: still there?")


async def test_groups_use_nothing_private_and_answer_only_when_addressed(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer
) -> None:
    ann, bob = telegram_server.user("Ann"), telegram_server.user("Bob")
    ann.say("/learn on")
    await until(telegram_server, ann, "On: I may learn")
    ann.say("What is tea?")
    reply = await until(telegram_server, ann, "You said: What is tea?")
    ann.say("I am allergic to nuts", reply_to=reply)
    await until(telegram_server, ann, "I'll keep this in mind")
    group = telegram_server.group("Kitchen", ann, bob)
    group.promote_bot()
    ann.say("nobody asked you", group.chat)
    ann.say(f"@{telegram_server.world.bot['username']} what now?", group.chat)
    await telegram_server.wait_for(lambda: any("what now?" in m.text for m in group.chat.from_bot), 20)
    assert "allergic" not in str(model.calls[-1].body)
    assert not any("nobody asked you" in m.text for m in group.chat.from_bot)
    ann.say("/memory", group.chat)
    await telegram_server.wait_for(lambda: any("private chat" in m.text for m in group.chat.from_bot), 20)
    assert not any("allergic" in m.text for m in group.chat.from_bot)
    rows = await telegram.rows("select (flags->>'group')::boolean as among, learnable from turns order by number")
    assert [(row["among"], row["learnable"]) for row in rows] == [(False, True), (True, False)]


async def test_somebody_else_cannot_vote_in_a_group(telegram: Road, telegram_server: TelegramServer) -> None:
    ann, bob = telegram_server.user("Ann"), telegram_server.user("Bob")
    group = telegram_server.group("Kitchen", ann, bob)
    ann.say(f"@{telegram_server.world.bot['username']} hello", group.chat)
    await telegram_server.wait_for(lambda: any("hello" in m.text and m.buttons for m in group.chat.from_bot), 20)
    reply = next(m for m in group.chat.from_bot if m.buttons)
    pressed = bob.press(reply, "👍")
    ann.press(reply, "👎")
    await telegram_server.wait_for(lambda: any(b.text == "👎 ✓" for b in reply.buttons), 10)
    assert [v["value"] for v in await telegram.rows("select value from votes")] == [-1]
    assert pressed.answered
    assert pressed.text == say("en", "button_gone")  # nobody is thanked for what does not count


async def test_a_person_who_blocked_the_bot_is_left_alone(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer
) -> None:
    model.always(faults.Slow(first_token_s=1.0))
    ann = telegram_server.user("Ann")
    ann.say("bye")
    await asyncio.sleep(0.5)
    ann.block()
    for _ in range(100):
        chats = await telegram.rows("select status from chats")
        if chats and chats[0]["status"] == "gone":
            break
        await asyncio.sleep(0.1)
    assert chats[0]["status"] == "gone"
    ann.unblock()
    model.heal()
    ann.say("I am back")
    await until(telegram_server, ann, "You said: I am back")


async def test_the_model_being_away_is_said_with_a_retry(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer
) -> None:
    model.next(faults.Refuse(500))
    ann = telegram_server.user("Ann")
    ann.say("anyone?")
    told = await until(telegram_server, ann, "can't reach the model")
    ann.press(told, label(told, "Try again"))
    assert await until(telegram_server, ann, "You said: anyone?")


async def test_forged_buttons_have_no_effect(telegram: Road, telegram_server: TelegramServer) -> None:
    ann = telegram_server.user("Ann")
    ann.say("hello")
    reply = await until(telegram_server, ann, "You said: hello")
    for data in ("v:AAAAAAAAAAAAAAAAAAAAAA:u", "nonsense", "s:service:0", "k:x:back", "f::everything"):
        ann.press_data(reply, data)
    ann.say("still fine?")
    await until(telegram_server, ann, "You said: still fine?")
    assert await telegram.rows("select 1 from votes") == []


async def test_an_answer_to_the_bots_question_may_quote_it(telegram: Road, telegram_server: TelegramServer) -> None:
    ann = telegram_server.user("Ann")
    ann.say("/learn on")
    await until(telegram_server, ann, "On: I may learn")
    ann.say("What is tea?")
    reply = await until(telegram_server, ann, "You said: What is tea?")
    ann.press(reply, "👎")
    asked = await until(telegram_server, ann, "What was wrong?")
    ann.say("I am allergic to nuts", reply_to=asked)
    await until(telegram_server, ann, "I'll keep this in mind")
    assert [m["text"] for m in await telegram.rows("select text from memory_lines")] == ["I am allergic to nuts"]
    assert len(await telegram.rows("select 1 from turns")) == 1  # it was no new message


async def test_who_only_talks_beside_the_bot_stays_unknown_to_it(
    telegram: Road, telegram_server: TelegramServer
) -> None:
    ann, bob = telegram_server.user("Ann"), telegram_server.user("Bob")
    group = telegram_server.group("Kitchen", ann, bob)
    group.promote_bot()
    said = bob.say("Ann, salt?", group.chat)
    bob.edit(said, "Ann, salt please?")
    ann.say(f"@{telegram_server.world.bot['username']} hello", group.chat)
    await telegram_server.wait_for(lambda: any("hello" in m.text for m in group.chat.from_bot), 20)
    assert [p["display_name"] for p in await telegram.rows("select display_name from people")] == ["Ann"]


async def test_what_is_personal_is_not_asked_in_a_group(telegram: Road, telegram_server: TelegramServer) -> None:
    ann = telegram_server.user("Ann")
    group = telegram_server.group("Kitchen", ann, telegram_server.user("Bob"))
    ann.say(f"@{telegram_server.world.bot['username']} hello", group.chat)
    await telegram_server.wait_for(lambda: any("hello" in m.text and m.buttons for m in group.chat.from_bot), 20)
    reply = next(m for m in group.chat.from_bot if m.buttons)
    ann.press(reply, label(reply, "Correct"))
    await telegram_server.wait_for(lambda: any("private chat" in m.text for m in group.chat.from_bot), 20)
    assert [c["state"] for c in await telegram.rows("select state from chats")] == [{}]


async def test_the_consent_notice_comes_with_the_first_word_not_the_first_update(
    telegram: Road, telegram_server: TelegramServer
) -> None:
    ann = telegram_server.user("Ann")
    said = ann.say("/help")
    await until(telegram_server, ann, "your choice counts")
    ann.say("/learn off")
    await until(telegram_server, ann, "Off")
    await telegram.rows("update people set asked_consent = false returning id")
    ann.edit(said, "changed my mind")  # of an older command: nothing comes of it
    ann.say("hello")
    await telegram_server.wait_for(lambda: sum("your choice counts" in t for t in shown(ann)) == 2, 20)
    await until(telegram_server, ann, "You said: hello")
    assert [u["user_text"] for u in await telegram.rows("select user_text from turns")] == ["hello"]


async def test_a_gateway_that_stops_lets_another_poll_at_once(
    database_url: str, store: Store, model: ModelServer, telegram_server: TelegramServer
) -> None:
    model.always(faults.Slow(first_token_s=1.0))
    ann = telegram_server.user("Ann")
    async with road(
        database_url, model.url, telegram_bot_token=telegram_server.token, telegram_base_url=telegram_server.base_url
    ) as gateway:
        ann.say("one more thing")
        await telegram_server.wait_for(lambda: any("…" in text for text in shown(ann)), 20)
        assert await gateway.rows("select 1 from polling_leases")
    async with store.begin() as tx:
        assert (await tx.execute(text("select 1 from polling_leases"))).all() == []
        assert list(await tx.scalars(text("select state from turns"))) == ["done"]


async def test_a_heart_takes_no_vote_back_that_was_given_by_button(
    telegram: Road, telegram_server: TelegramServer
) -> None:
    ann = telegram_server.user("Ann")
    ann.say("rate this")
    reply = await until(telegram_server, ann, "You said: rate this")
    ann.press(reply, "👍")
    await telegram_server.wait_for(lambda: any(b.text == "👍 ✓" for b in reply.buttons), 10)
    ann.react(reply, "❤")
    ann.react(reply)
    ann.say("and go on")
    await until(telegram_server, ann, "You said: and go on")
    # Reactions have a lane of their own; only when everything is handled does the vote that is left say something.
    async with asyncio.timeout(10):
        while await telegram.rows("select 1 from inbox where state <> 'done'"):
            await asyncio.sleep(0.05)
    assert [v["value"] for v in await telegram.rows("select value from votes")] == [1]


async def test_a_reaction_in_a_topic_finds_its_turn_and_makes_nobody_known(
    telegram: Road, telegram_server: TelegramServer
) -> None:
    ann, bob = telegram_server.user("Ann"), telegram_server.user("Bob")
    group = telegram_server.group("Kitchen", ann, bob, forum=True)
    group.promote_bot()
    topic = group.topic("tea")
    asked = ann.say(f"@{telegram_server.world.bot['username']} hello", group.chat, thread=topic)
    await telegram_server.wait_for(lambda: any("hello" in m.text and m.buttons for m in group.chat.from_bot), 20)
    reply = next(m for m in group.chat.from_bot if m.buttons)
    bob.react(asked, "👍")
    bob.react(reply, "👎")
    ann.react(asked, "👎")
    ann.react(reply, "👍")
    async with asyncio.timeout(10):
        while not (votes := await telegram.rows("select value from votes")):
            await asyncio.sleep(0.05)
    assert votes == [{"value": 1}]
    group_chats = "select thread from chats where external_id = :id"
    threads = {row["thread"] for row in await telegram.rows(group_chats, id=str(group.chat.chat_id))}
    assert str(topic) in threads
    assert len(await telegram.rows("select 1 from people")) == 1


async def test_what_was_said_in_a_group_goes_with_its_session_whatever_anybody_allows(
    telegram: Road, telegram_server: TelegramServer
) -> None:
    ann = telegram_server.user("Ann")
    ann.say("/learn on")
    await until(telegram_server, ann, "On: I may learn")
    group = telegram_server.group("Kitchen", ann, telegram_server.user("Bob"))
    ann.say(f"@{telegram_server.world.bot['username']} hello", group.chat)
    await telegram_server.wait_for(lambda: any("hello" in m.text and m.buttons for m in group.chat.from_bot), 20)
    ann.say("/new", group.chat)
    await telegram_server.wait_for(lambda: any("fresh conversation" in m.text for m in group.chat.from_bot), 20)
    await clean(telegram.store, telegram.settings)
    assert await telegram.rows("select user_text, reply_text from turns") == [{"user_text": None, "reply_text": None}]
    reply = next(m for m in group.chat.from_bot if m.buttons)
    ann.press(reply, "👍")
    await telegram_server.wait_for(lambda: group.chat.from_bot[-1].text != "", 5)
    ann.say("/help", group.chat)
    await telegram_server.wait_for(lambda: any("Just write to me" in m.text for m in group.chat.from_bot), 20)
    assert "hello" in reply.text  # a vote after that changes nothing of what is shown


BOB = {"type": "hidden_user", "sender_user_name": "Bob"}


@pytest.mark.parametrize("way", ["button", "command"])
async def test_somebody_elses_words_stay_theirs_when_they_are_answered_again(
    telegram: Road, telegram_server: TelegramServer, way: str
) -> None:
    ann = telegram_server.user("Ann")
    ann.say("/learn on")
    await until(telegram_server, ann, "On: I may learn")
    ann.forward("somebody else's words", BOB)
    reply = await until(telegram_server, ann, "You said: somebody else's words")
    await telegram_server.wait_for(lambda: bool(reply.buttons), 10)
    if way == "button":
        ann.press_data(reply, next(b.data for b in reply.buttons if b.data.startswith("t:")))
    else:
        ann.say("/retry")
    await telegram_server.wait_for(lambda: sum("You said: somebody" in t for t in shown(ann)) == 2, 20)
    async with asyncio.timeout(10):
        while len(rows := await telegram.rows("select flags, learnable from turns where state = 'done'")) < 2:
            await asyncio.sleep(0.05)
    assert [(r["flags"]["forwarded"], r["learnable"]) for r in rows] == [(True, False)] * 2


async def test_an_edited_message_that_quoted_something_still_does(
    telegram: Road, telegram_server: TelegramServer
) -> None:
    ann = telegram_server.user("Ann")
    said = ann.say("first wording")
    await until(telegram_server, ann, "You said: first wording")
    await telegram.rows("update turns set flags = jsonb_set(flags, '{quoted}', 'true') returning id")
    ann.edit(said, "second wording")
    await until(telegram_server, ann, "You said: second wording")
    rows = await telegram.rows("select flags from turns order by number")
    assert [row["flags"]["quoted"] for row in rows] == [True, True]


async def test_a_button_on_its_way_brings_nobody_back_who_was_forgotten(
    telegram: Road, telegram_server: TelegramServer, tmp_path: Path
) -> None:
    ann = telegram_server.user("Ann")
    ann.say("hello")
    reply = await until(telegram_server, ann, "You said: hello")
    await telegram_server.wait_for(lambda: bool(reply.buttons), 10)
    (person,) = await telegram.rows("select id from people")
    telegram_server.delay("answerCallbackQuery", 2.0)
    ann.press(reply, "👍")
    async with asyncio.timeout(10):
        while not await telegram.rows("select 1 from inbox where state = 'claimed'"):
            await asyncio.sleep(0.02)
    await forget_person(telegram.store, tmp_path, person["id"], "all", "admin:test", "asked")
    async with asyncio.timeout(10):
        while await telegram.rows("select 1 from inbox where state <> 'done'"):
            await asyncio.sleep(0.05)
    for table in ("people", "accounts", "votes"):
        assert await telegram.rows(f"select 1 from {table}") == [], table  # noqa: S608


async def test_somebody_elses_words_passed_on_are_no_correction(
    telegram: Road, telegram_server: TelegramServer
) -> None:
    ann = telegram_server.user("Ann")
    ann.say("/learn on")
    await until(telegram_server, ann, "On: I may learn")
    ann.say("What is tea?")
    reply = await until(telegram_server, ann, "You said: What is tea?")
    ann.press(reply, "👎")
    await until(telegram_server, ann, "What was wrong?")
    ann.forward("I am allergic to nuts", BOB)
    await until(telegram_server, ann, "You said: I am allergic to nuts")
    assert await telegram.rows("select 1 from memory_lines") == []


LONG = "tell me of the long way over the hills and down to the sea, and of everyone who walks there in the evening"


async def test_a_reply_whose_beginning_was_deleted_comes_anew(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer
) -> None:
    """What stood in its place while it was written is gone, and with it the message to be edited: the reply is not."""
    ann = telegram_server.user("Ann")
    model.next(faults.Slow(per_token_s=0.08))
    ann.say(LONG)
    await telegram_server.wait_for(lambda: any(m.text.endswith("…") for m in ann.chat.from_bot), 20)
    ann.delete(next(m for m in ann.chat.from_bot if m.text.endswith("…")))
    reply = await until(telegram_server, ann, f"You said: {LONG}")
    await telegram_server.wait_for(lambda: reply.buttons, 10)  # type: ignore[attr-defined]
    ann.delete(reply)  # type: ignore[arg-type]
    ann.press(reply, "👍", gone=True)  # type: ignore[arg-type]
    ann.say("and then?")
    await until(telegram_server, ann, "You said: and then?")
    assert [v["value"] for v in await telegram.rows("select value from votes")] == [1]
    assert sum(LONG in text for text in shown(ann)) == 0  # read and deleted, it does not come again


async def test_a_reply_arrives_though_its_group_moved_meanwhile(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer
) -> None:
    ann = telegram_server.user("Ann")
    group = telegram_server.group("Kitchen", ann, kind="group")
    before = group.chat
    model.next(faults.Slow(per_token_s=0.08))
    ann.say(f"@{telegram_server.world.bot['username']} {LONG}", group.chat)
    await telegram_server.wait_for(lambda: before.from_bot, 20)
    group.migrate()
    await telegram_server.wait_for(lambda: any(LONG in m.text for m in group.chat.from_bot), 20)
    assert sum(LONG in m.text for m in group.chat.from_bot) == 1


async def test_a_command_that_another_bot_of_the_group_may_know_is_left_to_it(
    telegram: Road, telegram_server: TelegramServer
) -> None:
    ann, bob = telegram_server.user("Ann"), telegram_server.user("Bob")
    group = telegram_server.group("Kitchen", ann, bob)
    group.promote_bot()
    name = telegram_server.world.bot["username"]
    bob.say("/roll 20", group.chat)
    ann.say(f"/roll@{name} 20", group.chat)
    await telegram_server.wait_for(lambda: any("don't know that command" in m.text for m in group.chat.from_bot), 20)
    ann.say("/help", group.chat)
    await telegram_server.wait_for(lambda: any("Just write to me" in m.text for m in group.chat.from_bot), 20)
    assert sum("don't know that command" in m.text for m in group.chat.from_bot) == 1
    assert [p["display_name"] for p in await telegram.rows("select display_name from people")] == ["Ann"]


async def test_of_many_edits_in_a_row_the_last_is_answered(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer
) -> None:
    ann = telegram_server.user("Ann")
    said = ann.say("wording 0")
    await until(telegram_server, ann, "You said: wording 0")
    model.next(faults.Slow(first_token_s=1.0))
    for number in range(1, 16):
        ann.edit(said, f"wording {number}")
    await until(telegram_server, ann, "You said: wording 15")
    answered = [t["user_text"] for t in await telegram.rows("select user_text from turns order by number")]
    assert answered[-1] == "wording 15"
    assert len(answered) <= 4  # what came while nothing was being written may have been answered as well


async def test_a_reaction_to_a_reply_that_is_being_written_counts(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer
) -> None:
    ann = telegram_server.user("Ann")
    ann.say("hello")
    first = await until(telegram_server, ann, "You said: hello")
    model.next(faults.Slow(per_token_s=0.08))
    ann.say(LONG)
    await telegram_server.wait_for(lambda: ann.chat.from_bot[-1].text.endswith("…"), 20)
    reply = ann.chat.from_bot[-1]
    ann.react(reply, "👍")
    ann.react(first, "👎")  # type: ignore[arg-type]
    await telegram_server.wait_for(lambda: label(first, "👎") == "👎 ✓", 10)
    assert not reply.buttons  # what was said of others did not wait for it
    await telegram_server.wait_for(lambda: [b.text for b in reply.buttons][:2] == ["👍 ✓", "👎"], 20)
    assert [v["value"] for v in await telegram.rows("select value from votes order by value")] == [-1, 1]
    assert await telegram.rows("select 1 from inbox where state <> 'done'") == []


async def test_an_edit_of_what_began_nothing_is_as_if_it_were_just_sent(
    telegram: Road, telegram_server: TelegramServer
) -> None:
    ann = telegram_server.user("Ann")
    said = ann.say("/hepl")
    await until(telegram_server, ann, "don't know that command")
    ann.edit(said, "/help")
    await until(telegram_server, ann, "Just write to me. In words")
    said = ann.say("\u2800")  # nothing of it is seen
    await until(telegram_server, ann, "I only see spaces there")
    ann.edit(said, "shorter")
    await until(telegram_server, ann, "You said: shorter")
    ann.edit(said, "and shorter")  # by now it is a message that was answered
    await until(telegram_server, ann, "You said: and shorter")
    await settled(telegram)
    asked = await telegram.rows("select user_text, sibling_of from turns order by number")
    assert [turn["user_text"] for turn in asked] == ["shorter", "and shorter"]
    assert asked[1]["sibling_of"] is not None


async def test_an_edit_of_an_older_command_does_nothing(telegram: Road, telegram_server: TelegramServer) -> None:
    ann = telegram_server.user("Ann")
    said = ann.say("/hepl")
    await until(telegram_server, ann, "don't know that command")
    ann.say("hello")
    await until(telegram_server, ann, "You said: hello")
    ann.edit(said, "/new")
    ann.say("and now?")
    await until(telegram_server, ann, "You said: and now?")
    await settled(telegram)
    assert len(await telegram.rows("select distinct session_id from turns")) == 1


async def corrected(server: TelegramServer, who: User, words: str) -> Message:
    """Let somebody allow learning and correct a reply; return their correction."""
    who.say("/learn on")
    await until(server, who, "On: I may learn")
    who.say("What is tea?")
    reply = await until(server, who, "You said: What is tea?")
    said = who.say(words, reply_to=reply)  # type: ignore[arg-type]
    await until(server, who, words)
    return said


async def test_an_edit_of_a_correction_replaces_it(telegram: Road, telegram_server: TelegramServer) -> None:
    ann = telegram_server.user("Ann")
    said = await corrected(telegram_server, ann, "I am allergic to nuts")
    for words in ("I am allergic to milk", "I am allergic to eggs"):
        ann.edit(said, words)
        await until(telegram_server, ann, words)
    lines = await telegram.rows("select text, state from memory_lines order by created_at")
    assert [(line["text"], line["state"]) for line in lines] == [
        ("I am allergic to nuts", "undone"),
        ("I am allergic to milk", "undone"),
        ("I am allergic to eggs", "active"),
    ]
    kept = await telegram.rows("select text, excluded from feedback order by created_at")
    assert [row["excluded"] for row in kept] == [True, True, False]
    assert len(await telegram.rows("select 1 from turns")) == 1


async def test_an_edited_correction_whose_handling_was_cut_off_is_kept_once(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer
) -> None:
    ann = telegram_server.user("Ann")
    said = await corrected(telegram_server, ann, "always answer in one sentence")
    model.always(faults.Slow(first_token_s=1.0))
    ann.edit(said, "Please always answer in two sentences")
    await until(telegram_server, ann, "answer in two sentences")
    async with telegram.store.begin() as tx:
        await tx.execute(
            text("update inbox set state = 'stored', owner = null, lease_until = null where state = 'claimed'")
        )
    async with asyncio.timeout(20):
        while await telegram.rows("select 1 from inbox where state <> 'done'"):
            await asyncio.sleep(0.05)
    kept = await telegram.rows("select text, excluded from feedback order by created_at")
    assert [row["excluded"] for row in kept] == [True, False]
    lines = await telegram.rows("select state from memory_lines order by created_at")
    assert [line["state"] for line in lines] == ["undone", "active"]
    assert sum("keep this in mind" in told and "two sentences" in told for told in shown(ann)) == 1
