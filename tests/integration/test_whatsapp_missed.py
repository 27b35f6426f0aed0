"""What was said to the bot while nobody listened is asked for at the start and now and then, and answered once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bots.whatsapp import part
from tests.fakes.model import ModelServer
from tests.fakes.twilio import TwilioServer
from tests.support.road import Road, road
from tests.support.whatsapp import connect, count, settings, settled, until


@asynccontextmanager
async def listening(database_url: str, model: ModelServer, server: TwilioServer) -> AsyncIterator[Road]:
    """A gateway that Twilio posts to, until the block ends."""
    async with road(database_url, model.url, **settings(server)) as gateway:
        connect(server, gateway)
        server.reports = True
        yield gateway
        await server.hang_up()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was lost a moment ago need not wait until its webhook cannot come any more."""
    monkeypatch.setattr(part, "ON_ITS_WAY_S", -5.0)


async def test_what_came_while_the_gateway_was_away(
    database_url: str, model: ModelServer, twilio_server: TwilioServer
) -> None:
    ann = twilio_server.person()
    async with listening(database_url, model, twilio_server) as gateway:
        await ann.say("before")
        await until(ann, "You said: before")
        await settled(gateway)
    ann.unheard = True
    for text in ("are you there?", "hello? 👋 & more", "한국어로"):
        await ann.say(text)
    async with listening(database_url, model, twilio_server) as gateway:
        await until(ann, "You said: 한국어로")
        await settled(gateway)
        turns = await gateway.rows("select user_text, state from turns order by number")
        assert [row["user_text"] for row in turns] == ["before", "are you there?", "hello? 👋 & more", "한국어로"]
        assert {row["state"] for row in turns} == {"done"}


async def test_what_a_webhook_lost_is_found_a_little_later_and_once(
    database_url: str, model: ModelServer, twilio_server: TwilioServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part, "CATCH_UP_S", 0.2)
    ann = twilio_server.person()
    async with listening(database_url, model, twilio_server) as gateway:
        await ann.say("heard")
        await until(ann, "You said: heard")
        ann.unheard = True
        await ann.say("lost")
        await until(ann, "You said: lost")
        await settled(gateway)
        for _ in range(3):
            await until(ann, "You said: lost")
        assert [text for text in ann.texts if text.startswith("You said")] == ["You said: heard", "You said: lost"]


async def test_more_than_a_page_comes_in_order(
    database_url: str, model: ModelServer, twilio_server: TwilioServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bots.whatsapp.missed.PAGE", 3)
    ann = twilio_server.person()
    async with listening(database_url, model, twilio_server) as gateway:
        await ann.say("0")
        await until(ann, "You said: 0")
    ann.unheard = True
    for number in range(1, 9):
        await ann.say(str(number))
    async with listening(database_url, model, twilio_server) as gateway:
        await until(ann, "You said: 8")
        await settled(gateway)
        turns = await gateway.rows("select user_text from turns order by number")
        assert [row["user_text"] for row in turns] == [str(number) for number in range(9)]


async def test_what_was_said_before_the_bot_was_there_is_not_answered(
    database_url: str, model: ModelServer, twilio_server: TwilioServer
) -> None:
    ann = twilio_server.person()
    ann.unheard, ann.earlier = True, timedelta(hours=2)
    await ann.say("is there a bot?")
    async with listening(database_url, model, twilio_server) as gateway:
        ann.unheard, ann.earlier = False, timedelta(0)
        await ann.say("hello")
        await until(ann, "You said: hello")
        await settled(gateway)
        assert await count(gateway, "turns") == 1


async def test_of_what_waited_long_only_the_newest_is_answered(
    database_url: str, model: ModelServer, twilio_server: TwilioServer
) -> None:
    ann = twilio_server.person()
    async with listening(database_url, model, twilio_server) as gateway:
        await ann.say("hello")
        await until(ann, "You said: hello")
        await gateway.store_execute("update bots set created_at = now() - interval '2 days'")
    ann.unheard, ann.earlier = True, timedelta(hours=3)
    for text in ("one", "two", "three"):
        await ann.say(text)
    async with listening(database_url, model, twilio_server) as gateway:
        await until(ann, "You said: three")
        await settled(gateway)
        turns = await gateway.rows("select user_text from turns order by number")
        assert [row["user_text"] for row in turns] == ["hello", "three"]


async def test_a_list_that_failed_is_asked_for_again_as_far_back(
    database_url: str, model: ModelServer, twilio_server: TwilioServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = twilio_server.person()
    async with listening(database_url, model, twilio_server) as gateway:
        await ann.say("before")
        await until(ann, "You said: before")
        await gateway.store_execute("update bots set created_at = now() - interval '2 days'")
    monkeypatch.setattr(part, "CATCH_UP_S", 0.1)
    ann.unheard, ann.earlier, twilio_server.unlisted = True, timedelta(minutes=3), 2
    await ann.say("are you there?")
    async with listening(database_url, model, twilio_server) as gateway:
        await until(ann, "You said: are you there?")
        await settled(gateway)
        assert twilio_server.unlisted == 0


async def test_media_that_are_not_given_out_hold_up_no_words(
    database_url: str, model: ModelServer, twilio_server: TwilioServer
) -> None:
    ann, bo = twilio_server.person(), twilio_server.person("Bo")
    async with listening(database_url, model, twilio_server):
        await ann.say("before")
        await until(ann, "You said: before")
    ann.unheard = bo.unheard = twilio_server.media_refused = True
    await ann.send_picture("look at this")
    await bo.say("are you there?")
    async with listening(database_url, model, twilio_server) as gateway:
        await until(bo, "You said: are you there?")
        await settled(gateway)
        assert await count(gateway, "inbox where lane not like '%status:%' and state in ('done', 'refused')") == 3


async def test_what_may_still_come_by_itself_is_left_to_that(
    database_url: str, model: ModelServer, twilio_server: TwilioServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part, "ON_ITS_WAY_S", 60.0)
    monkeypatch.setattr(part, "CATCH_UP_S", 0.1)
    ann = twilio_server.person()
    async with listening(database_url, model, twilio_server) as gateway:
        ann.unheard = True
        await ann.say("still on its way")
        await asyncio.sleep(1)
        assert await count(gateway, "inbox where lane not like '%status:%'") == 0
        twilio_server.inbound[0] = replace(twilio_server.inbound[0], at=datetime.now(UTC) - timedelta(seconds=90))
        await gateway.store_execute("update bots set created_at = now() - interval '1 day'")
    async with listening(database_url, model, twilio_server) as gateway:
        await until(ann, "You said: still on its way")
        await settled(gateway)
