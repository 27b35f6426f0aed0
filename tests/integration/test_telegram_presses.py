"""A button whose row is gone, or is somebody else's: the presser's client says so instead of waiting or saying nothing."""

import uuid
from collections.abc import AsyncIterator

import pytest

from app.domain.messages import text as say
from app.domain.press import VERBS, Press, short_id
from app.store.presses import ROWS
from tests.fakes.model import ModelServer
from tests.fakes.telegram import TelegramServer
from tests.fakes.telegram.messages import Message
from tests.fakes.telegram.people import User
from tests.fakes.telegram.world import Press as Pressed
from tests.support.road import Road, road
from tests.support.whatsapp import settled

pytestmark = pytest.mark.usefixtures("brisk")
GONE = say("en", "button_gone")


@pytest.fixture
async def telegram(database_url: str, model: ModelServer, telegram_server: TelegramServer) -> AsyncIterator[Road]:
    """A gateway that polls the Bot API server."""
    named = {"telegram_bot_token": telegram_server.token, "telegram_base_url": telegram_server.base_url}
    async with road(database_url, model.url, **named) as gateway:
        yield gateway


async def replied(server: TelegramServer, telegram: Road, user: User, words: str = "hello") -> Message:
    """Return the reply to somebody's words, once it is whole."""
    user.say(words)
    await server.wait_for(lambda: any(words in m.text and m.buttons for m in user.chat.from_bot), 20)
    await settled(telegram)
    return next(m for m in reversed(user.chat.from_bot) if words in m.text and m.buttons)


async def answer(server: TelegramServer, press: Pressed) -> str:
    """Return what a press was answered with, once it was."""
    await server.wait_for(lambda: press.answered, 20)
    return press.text or ""


def about(verb: str, row: uuid.UUID) -> str:
    """Return the data of a button about a row."""
    return Press(verb, short_id(row), next(iter(VERBS[verb]), "")).data()


@pytest.mark.parametrize("verb", sorted(ROWS))
async def test_a_button_about_nothing_says_so(telegram: Road, telegram_server: TelegramServer, verb: str) -> None:
    ann = telegram_server.user("Ann")
    reply = await replied(telegram_server, telegram, ann)
    before = len(ann.chat.from_bot)
    assert await answer(telegram_server, ann.press_data(reply, about(verb, uuid.uuid4()))) == GONE
    await settled(telegram, beyond=1)
    assert len(ann.chat.from_bot) == before


@pytest.mark.parametrize("data", ["v:not-an-id:u", "t:x", "z:z", "", "v"])
async def test_data_that_is_not_ours_says_so(telegram: Road, telegram_server: TelegramServer, data: str) -> None:
    ann = telegram_server.user("Ann")
    reply = await replied(telegram_server, telegram, ann)
    assert await answer(telegram_server, ann.press_data(reply, data)) == GONE


async def test_what_was_forgotten_says_so_in_the_language_that_was_chosen(
    telegram: Road, telegram_server: TelegramServer
) -> None:
    ann = telegram_server.user("Ann", language_code="en")
    reply = await replied(telegram_server, telegram, ann)
    ann.say("/language ko")
    await settled(telegram, beyond=1)
    await telegram.store_execute("delete from turns")
    presses = [ann.press(reply, "👎"), ann.press(reply, next(b.text for b in reply.buttons if b.data[:1] == "t"))]
    assert [await answer(telegram_server, press) for press in presses] == [say("ko", "button_gone")] * 2


async def test_somebody_whom_nobody_knows_any_more_reads_it_in_their_own_language(
    telegram: Road, telegram_server: TelegramServer
) -> None:
    minji = telegram_server.user("Minji", language_code="ko")
    reply = await replied(telegram_server, telegram, minji)
    await telegram.store_execute("delete from people")
    assert await answer(telegram_server, minji.press(reply, "👍")) == say("ko", "button_gone")


async def test_in_a_group_somebody_elses_reply_says_so_to_them_alone(
    telegram: Road, telegram_server: TelegramServer
) -> None:
    ann, bob = telegram_server.user("Ann"), telegram_server.user("Bob")
    group = telegram_server.group("Kitchen", ann, bob)
    ann.say(f"@{telegram_server.world.bot['username']} hello", group.chat)
    await telegram_server.wait_for(lambda: any("hello" in m.text and m.buttons for m in group.chat.from_bot), 20)
    await settled(telegram)
    reply = next(m for m in group.chat.from_bot if m.buttons)
    again = next(b.text for b in reply.buttons if b.data[:1] == "t")
    assert [await answer(telegram_server, bob.press(reply, which)) for which in ("👍", again)] == [GONE] * 2
    assert await answer(telegram_server, ann.press(reply, "👍")) == ""
    await settled(telegram, beyond=4)
    assert len(group.chat.from_bot) == 1


async def test_what_is_there_is_answered_as_before(telegram: Road, telegram_server: TelegramServer) -> None:
    ann = telegram_server.user("Ann")
    reply = await replied(telegram_server, telegram, ann)
    assert await answer(telegram_server, ann.press(reply, "👍")) == say("en", "vote_up")
    again = next(b.text for b in reply.buttons if b.data[:1] == "t")
    assert await answer(telegram_server, ann.press(reply, again)) == ""
    assert await answer(telegram_server, ann.press_data(reply, "x")) == ""
