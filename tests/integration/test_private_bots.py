"""A private bot answers who is allowed by name or came with a code, and tells everybody else that it is private."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from app.store import webchat
from tests.fakes.model import ModelServer
from tests.fakes.telegram import TelegramServer
from tests.fakes.twilio import TwilioServer
from tests.integration.test_telegram_road import shown, until
from tests.support import whatsapp as wa
from tests.support.road import Road, road

pytestmark = pytest.mark.usefixtures("brisk")
CODE = "Abcdefgh_1234-xy"
PRIVATE = "This bot is private"


@asynccontextmanager
async def private(database_url: str, model: ModelServer, server: TelegramServer, **more: object) -> AsyncIterator[Road]:
    settings = {"telegram_bot_token": server.token, "telegram_base_url": server.base_url, "private_bots": True} | more
    async with road(database_url, model.url, **settings) as gateway:
        yield gateway


async def test_a_stranger_is_told_once_and_answered_nothing(
    database_url: str, model: ModelServer, telegram_server: TelegramServer
) -> None:
    ann = telegram_server.user("Ann")
    async with private(database_url, model, telegram_server) as gateway:
        ann.say("hello")
        await until(telegram_server, ann, PRIVATE)
        for text in ("hello?", "/start", "/privacy"):
            ann.say(text)
        await wa.settled(gateway)
        assert [PRIVATE in text for text in shown(ann)] == [True]
        assert await gateway.rows("select 1 from turns") == []
        assert not model.calls


@pytest.mark.parametrize("text", [CODE, f"/start {CODE}", f" {CODE}\n", f"/pair {CODE}"])
async def test_a_code_opens_once(
    database_url: str, model: ModelServer, telegram_server: TelegramServer, text: str
) -> None:
    ann, ben = telegram_server.user("Ann"), telegram_server.user("Ben")
    async with private(database_url, model, telegram_server) as gateway:
        async with gateway.store.begin() as tx:
            await webchat.add_invitation(tx, hashlib.sha256(CODE.encode()).digest(), 7, "test")
        ann.say(text)
        await until(telegram_server, ann, "the code fits")
        await until(telegram_server, ann, "your choice counts")
        ann.say("What is tea?")
        await until(telegram_server, ann, "You said: What is tea?")
        ben.say(text)
        await until(telegram_server, ben, "it was used before")
        assert [row["user_text"] for row in await gateway.rows("select user_text from turns")] == ["What is tea?"]
    async with private(database_url, model, telegram_server):
        ann.say("And coffee?")
        await until(telegram_server, ann, "You said: And coffee?")


async def test_a_code_that_was_mistyped_is_mended_by_an_edit(
    database_url: str, model: ModelServer, telegram_server: TelegramServer
) -> None:
    ann = telegram_server.user("Ann")
    async with private(database_url, model, telegram_server) as gateway:
        async with gateway.store.begin() as tx:
            await webchat.add_invitation(tx, hashlib.sha256(CODE.encode()).digest(), 7, "test")
        said = ann.say(CODE[:-1])
        await until(telegram_server, ann, "I don't know this code")
        ann.edit(said, CODE)
        await until(telegram_server, ann, "the code fits")
        ann.say("What is tea?")
        await until(telegram_server, ann, "You said: What is tea?")


async def test_who_stays_outside_has_what_was_noted_of_them_forgotten(
    database_url: str, model: ModelServer, telegram_server: TelegramServer
) -> None:
    ann = telegram_server.user("Ann")
    async with private(database_url, model, telegram_server) as gateway:
        ann.say("let me in")
        await until(telegram_server, ann, PRIVATE)
        ann.say("/forget")
        asked = await until(telegram_server, ann, "What shall I forget?")
        ann.press(asked, "Everything")  # type: ignore[arg-type]
        await until(telegram_server, ann, "Your receipt")
        assert await gateway.rows("select 1 from accounts") == []
        assert not model.calls


async def test_who_stays_outside_presses_nothing_else(
    database_url: str, model: ModelServer, telegram_server: TelegramServer
) -> None:
    ann = telegram_server.user("Ann")
    async with private(database_url, model, telegram_server) as gateway:
        ann.say("hello")
        notice = await until(telegram_server, ann, PRIVATE)
        ann.press_data(notice, "s:memory:on")  # type: ignore[attr-defined]
        await wa.settled(gateway, beyond=1)
        assert await gateway.rows("select 1 from consent_events") == []


async def test_who_is_allowed_by_name_needs_no_code(
    database_url: str, model: ModelServer, telegram_server: TelegramServer
) -> None:
    ann, ben = telegram_server.user("Ann"), telegram_server.user("Ben")
    allowed = f"telegram:{ann.user_id}, whatsapp:+15550100999"
    async with private(database_url, model, telegram_server, allowed_people=allowed) as gateway:
        ann.say("What is tea?")
        await until(telegram_server, ann, "You said: What is tea?")
        ben.say("What is tea?")
        await until(telegram_server, ben, PRIVATE)
        assert len(await gateway.rows("select 1 from turns")) == 1


async def test_on_whatsapp_the_number_is_the_name(
    database_url: str, model: ModelServer, twilio_server: TwilioServer
) -> None:
    ann, ben = twilio_server.person(), twilio_server.person()
    ann.external_id = "whatsapp:KR.abc123"
    more = {"private_bots": True, "allowed_people": ann.address}
    async with road(database_url, model.url, **wa.settings(twilio_server), **more) as gateway:
        wa.connect(twilio_server, gateway)
        await ann.say("hello")
        await wa.until(ann, "You said: hello")
        await ben.say("hello")
        await wa.until(ben, PRIVATE)
        assert await wa.count(gateway, "turns") == 1
        await twilio_server.hang_up()


async def test_who_stays_outside_chooses_in_words_what_is_forgotten(
    database_url: str, model: ModelServer, twilio_server: TwilioServer
) -> None:
    ben = twilio_server.person()
    async with road(database_url, model.url, **wa.settings(twilio_server), private_bots=True) as gateway:
        wa.connect(twilio_server, gateway)
        await ben.say("hello")
        await wa.until(ben, PRIVATE)
        await ben.say("/forget")
        offered = await wa.until(ben, "What shall I forget?")
        (everything,) = [line for line in offered.body.splitlines() if line.endswith("Everything")]
        await ben.say(everything.split()[0])
        await wa.until(ben, "Your receipt")
        assert await wa.count(gateway, "accounts") == 0
        await twilio_server.hang_up()


async def test_a_code_that_two_send_at_once_lets_one_in(
    database_url: str, model: ModelServer, telegram_server: TelegramServer
) -> None:
    people = [telegram_server.user(f"Person {number}") for number in range(6)]
    async with private(database_url, model, telegram_server) as gateway:
        async with gateway.store.begin() as tx:
            await webchat.add_invitation(tx, hashlib.sha256(CODE.encode()).digest(), 7, "test")
        for person in people:
            person.say(CODE)
        await wa.settled(gateway, beyond=len(people) - 1)
        inside = [person for person in people if any("the code fits" in text for text in shown(person))]
        outside = [person for person in people if any("used before" in text for text in shown(person))]
    assert (len(inside), len(outside)) == (1, 5)
