"""On WhatsApp words by themselves opt out, stop a reply, bring back, and call a human."""

import asyncio

import pytest

from tests.fakes.model import ModelServer, faults
from tests.fakes.twilio import Person, TwilioServer
from tests.support.road import Road, road
from tests.support.whatsapp import connect, count, settings, settled, until

CONTACT = "bakery@example.org"
BACK = "Write START to come back"


async def account(gateway: Road) -> str:
    (row,) = await gateway.rows("select status from accounts")
    return str(row["status"])


async def answers(gateway: Road, purpose: str) -> list[str]:
    query = "select event from consent_events where purpose = :purpose order by at"
    return [row["event"] for row in await gateway.rows(query, purpose=purpose)]


async def somebody(gateway: Road, server: TwilioServer) -> Person:
    """Return a person who has talked before, with memory and training allowed."""
    person = server.person()
    await person.say("/learn on")
    await until(person, "On: I may learn")
    await settled(gateway)
    return person


async def opted_out(person: Person, word: str = "stop") -> None:
    await person.say(word)
    await until(person, BACK)


async def writing(person: Person, model: ModelServer) -> None:
    """Let a reply be on its way that takes long."""
    model.next(faults.Slow(first_token_s=60.0))
    await person.say("tell me a long story")
    await begun(model)


@pytest.mark.parametrize("word", ["STOP", "unsubscribe", "Stop.", "수신거부"])
async def test_a_word_opts_out_of_messages_and_training(whatsapp: Road, twilio_server: TwilioServer, word: str) -> None:
    ann = await somebody(whatsapp, twilio_server)
    await opted_out(ann, word)
    await settled(whatsapp)
    assert await account(whatsapp) == "opted_out"
    assert await answers(whatsapp, "personal_training") == ["given", "withdrawn"]
    assert await answers(whatsapp, "memory") == ["given"]
    assert await count(whatsapp, "turns") == 0


async def test_later_messages_are_answered_once_with_the_way_back(whatsapp: Road, twilio_server: TwilioServer) -> None:
    ann = await somebody(whatsapp, twilio_server)
    await opted_out(ann)
    before = len(ann.got)
    for text in ("hello?", "are you there?", "👍"):
        await ann.say(text)
        await settled(whatsapp)
    assert [text[:30] for text in ann.texts[before:]] == ["You opted out, so I don't answ"]
    assert await count(whatsapp, "turns") == 0


async def test_who_left_comes_back_by_a_word_and_training_stays_off(
    whatsapp: Road, twilio_server: TwilioServer
) -> None:
    ann = await somebody(whatsapp, twilio_server)
    for _ in range(2):
        await opted_out(ann)
        await ann.say("Start")
        await until(ann, "Welcome back")
        await ann.say("what is bread?")
        await until(ann, "You said: what is bread?")
        ann.got.clear()
    assert await account(whatsapp) == "active"
    assert await answers(whatsapp, "personal_training") == ["given", "withdrawn"]


async def test_who_left_may_still_see_and_forget_their_data(whatsapp: Road, twilio_server: TwilioServer) -> None:
    ann = await somebody(whatsapp, twilio_server)
    await opted_out(ann)
    await ann.say("/privacy")
    await until(ann, "Your choices now")
    await ann.say("/forget")
    await until(ann, "What shall I forget?")
    await ann.say("/3")
    await until(ann, "Forgotten. Your receipt")
    assert await count(whatsapp, "people") == 0


async def test_a_newcomer_who_begins_with_the_word_is_only_told(whatsapp: Road, twilio_server: TwilioServer) -> None:
    ann = twilio_server.person()
    await ann.say("STOP")
    await until(ann, BACK)
    await settled(whatsapp)
    assert len(ann.got) == 1


@pytest.mark.parametrize("word", ["stop", "cancel", "End", "quit", "그만"])
async def test_while_a_reply_is_written_the_word_stops_it_and_asks(
    whatsapp: Road, twilio_server: TwilioServer, model: ModelServer, word: str
) -> None:
    ann = await somebody(whatsapp, twilio_server)
    await writing(ann, model)
    await ann.say(word)
    await until(ann, "I stopped writing")
    await settled(whatsapp)
    assert await account(whatsapp) == "active"
    assert not model.running
    await ann.say("2")
    await until(ann, "we go on as before")
    await ann.say("and now?")
    await until(ann, "You said: and now?")


async def test_a_word_that_was_answered_as_a_message_stays_one_when_it_is_tried_again(
    database_url: str, model: ModelServer, twilio_server: TwilioServer
) -> None:
    async with road(database_url, model.url, **settings(twilio_server)) as gateway:
        connect(twilio_server, gateway)
        ann = await somebody(gateway, twilio_server)
        model.next(faults.Slow(first_token_s=60.0))
        await ann.say("그만")  # nothing is being written: a message like any other
        await begun(model)
        while not await gateway.rows("select 1 from turns"):
            await asyncio.sleep(0.02)
        await gateway.gateway.lanes.stop(0.1)
        await twilio_server.hang_up()
    async with road(database_url, model.url, **settings(twilio_server)) as gateway:
        connect(twilio_server, gateway)
        await gateway.store_execute("update inbox set lease_until = now() where state = 'claimed'")
        await until(ann, "You said: 그만")
        await settled(gateway)
        assert [row["state"] for row in await gateway.rows("select state from turns")] == ["done"]
        assert not any("I stopped writing" in text for text in ann.texts)
        await twilio_server.hang_up()


async def test_who_confirms_leaves(whatsapp: Road, twilio_server: TwilioServer, model: ModelServer) -> None:
    ann = await somebody(whatsapp, twilio_server)
    await writing(ann, model)
    await ann.say("stop")
    await until(ann, "I stopped writing")
    await ann.say("1")
    await until(ann, BACK)
    assert await account(whatsapp) == "opted_out"


async def test_a_clear_word_ends_a_reply_too_and_nothing_of_it_is_sent(
    whatsapp: Road, twilio_server: TwilioServer, model: ModelServer
) -> None:
    ann = await somebody(whatsapp, twilio_server)
    await writing(ann, model)
    await ann.say("UNSUBSCRIBE")
    await until(ann, BACK)
    await settled(whatsapp)
    assert BACK in ann.texts[-1]
    assert not model.running


@pytest.mark.parametrize("word", ["cancel", "end", "quit"])
async def test_where_nothing_is_written_it_is_asked_what_was_meant(
    whatsapp: Road, twilio_server: TwilioServer, word: str
) -> None:
    ann = await somebody(whatsapp, twilio_server)
    await ann.say(word)
    await until(ann, "Do you want no more messages from me?")
    assert await account(whatsapp) == "active"
    await ann.say("1")
    await until(ann, BACK)


@pytest.mark.parametrize("gone", ["/human", "unsubscribe"])
async def test_a_choice_that_would_learn_has_no_effect_while_the_bot_is_silent(
    whatsapp: Road, twilio_server: TwilioServer, gone: str
) -> None:
    ann = twilio_server.person()
    await ann.say("hello")
    reply = await until(ann, "You said: hello")
    await ann.say("Answer in one sentence", reply_to=reply)
    offer = await until(ann, "you haven't allowed memory")
    await settled(whatsapp)
    known = await count(whatsapp, "inbox where lane not like '%status:%'")
    await ann.say(gone)
    await settled(whatsapp, beyond=known)
    await ann.say("/1", reply_to=offer)
    await settled(whatsapp, beyond=known + 1)
    assert await answers(whatsapp, "memory") == []
    assert await count(whatsapp, "memory_lines") == 0


@pytest.mark.parametrize("text", ["please stop", "취소", "how do I unsubscribe?", "상담원 몇 명이에요?"])
async def test_anything_else_is_answered(whatsapp: Road, twilio_server: TwilioServer, text: str) -> None:
    ann = await somebody(whatsapp, twilio_server)
    await ann.say(text)
    await until(ann, f"You said: {text}")
    assert await account(whatsapp) == "active"


@pytest.mark.parametrize("word", ["상담원", "Talk to a person", "/human"])
async def test_who_wants_a_human_has_a_silent_bot(whatsapp: Road, twilio_server: TwilioServer, word: str) -> None:
    await with_contact(whatsapp)
    ann = await somebody(whatsapp, twilio_server)
    await ann.say("what is bread?")
    reply = await until(ann, "You said: what is bread?")
    await ann.say(word)
    await until(ann, CONTACT)
    before = len(ann.got)
    await ann.say("hello?")
    await ann.say("👎", reply_to=reply)
    await ann.say("shorter, please", reply_to=reply)
    await settled(whatsapp)
    assert len(ann.got) == before
    assert await count(whatsapp, "turns") == 1
    assert await count(whatsapp, "feedback") == await count(whatsapp, "votes") == 0
    (chat,) = await whatsapp.rows("select status, paused_at from chats")
    assert chat["status"] == "paused"
    assert chat["paused_at"]
    await ann.say("bot")
    await until(ann, "It's me again")
    await ann.say("and now?")
    await until(ann, "You said: and now?")


async def test_after_a_day_of_silence_it_is_said_once_more(whatsapp: Road, twilio_server: TwilioServer) -> None:
    await with_contact(whatsapp)
    ann = await somebody(whatsapp, twilio_server)
    await ann.say("human")
    await until(ann, CONTACT)
    await whatsapp.store_execute("update chats set told_at = now() - interval '25 hours'")
    before = len(ann.got)
    for text in ("hello?", "anybody?"):
        await ann.say(text)
        await settled(whatsapp)
    assert len(ann.got) == before + 1
    assert CONTACT in ann.texts[-1]


async def test_from_silence_one_may_leave(whatsapp: Road, twilio_server: TwilioServer) -> None:
    await with_contact(whatsapp)
    ann = await somebody(whatsapp, twilio_server)
    await ann.say("human")
    await until(ann, CONTACT)
    await opted_out(ann)
    await ann.say("start")
    await until(ann, "Welcome back")
    await ann.say("what is bread?")
    await until(ann, "You said: what is bread?")
    assert [row["status"] for row in await whatsapp.rows("select status from chats")] == ["active"]


@pytest.mark.parametrize(("word", "answer"), [("UNSUBSCRIBE", BACK), ("상담원", CONTACT)])
async def test_a_rewrite_that_is_still_being_tried_is_not_offered_any_more(
    whatsapp: Road, twilio_server: TwilioServer, model: ModelServer, word: str, answer: str
) -> None:
    await with_contact(whatsapp)
    ann = await somebody(whatsapp, twilio_server)
    await ann.say("what is bread?")
    reply = await until(ann, "You said: what is bread?")
    model.pace = faults.Slow(first_token_s=2.0)
    await ann.say("Please always end with 'Bye!'", reply_to=reply)
    await begun(model)
    await ann.say(word)
    await until(ann, answer)
    before = len(ann.got)
    await settled(whatsapp)
    assert len(ann.got) == before


async def begun(model: ModelServer) -> None:
    async with asyncio.timeout(10):
        while not model.running:
            await asyncio.sleep(0.02)


async def with_contact(gateway: Road) -> None:
    await gateway.store_execute("update bot_identities set contact = :contact", contact=CONTACT)
