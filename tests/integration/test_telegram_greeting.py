"""The first word of a person: who this is and the question of consent are said once, however often handling it is cut off."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.fakes.model import ModelServer, faults
from tests.fakes.telegram import TelegramServer
from tests.fakes.telegram.people import User
from tests.support.road import Road, road
from tests.support.whatsapp import settled

pytestmark = pytest.mark.usefixtures("brisk")
CUT_OFF = "update inbox set state = 'stored', owner = null, lease_until = null, finished_at = null"


@pytest.fixture
async def telegram(database_url: str, model: ModelServer, telegram_server: TelegramServer) -> AsyncIterator[Road]:
    """A gateway that polls the Bot API server, and asks early how its replies are."""
    named = {"telegram_bot_token": telegram_server.token, "telegram_base_url": telegram_server.base_url}
    async with road(database_url, model.url, ask_after_silent_replies=1, **named) as gateway:
        yield gateway


def greetings(user: User) -> list[int]:
    """Return how often somebody was greeted, and asked for consent."""
    said = [message.text for message in user.chat.from_bot]
    return [sum(words in text for text in said) for words in ("Hello, I'm", "your choice counts")]


@pytest.mark.parametrize("words", ["/start", "/help", "/privacy"])
async def test_a_command_that_was_cut_off_greets_once(
    telegram: Road, telegram_server: TelegramServer, words: str
) -> None:
    ann = telegram_server.user("Ann")
    ann.say(words)
    await telegram_server.wait_for(lambda: greetings(ann) == [1, 1] or words == "/privacy", 20)
    await settled(telegram, beyond=0)
    before = greetings(ann)
    assert before[0] == 1
    # The greeting stood, and the process was killed before the command did.
    await telegram.store_execute(CUT_OFF)
    async with asyncio.timeout(20):
        while await telegram.rows("select 1 from inbox where attempts < 2 or state <> 'done'"):
            await asyncio.sleep(0.05)
    await settled(telegram)
    assert greetings(ann)[0] == 1
    if words != "/privacy":  # which is asked for itself
        assert greetings(ann) == before == [1, 1]


async def test_a_first_reply_that_was_cut_off_is_not_asked_about(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer
) -> None:
    ann = telegram_server.user("Ann")
    model.next(faults.Slow(first_token_s=1.0))
    ann.say("hello")
    await telegram_server.wait_for(lambda: greetings(ann) == [1, 1], 20)
    await telegram.store_execute(f"{CUT_OFF} where state = 'claimed'")
    await telegram_server.wait_for(lambda: any("You said: hello" in m.text for m in ann.chat.from_bot), 20)
    await settled(telegram)
    assert (await telegram.rows("select attempts from inbox"))[0]["attempts"] >= 2
    assert greetings(ann) == [1, 1]
    assert await telegram.rows("select 1 from asks") == []
    ann.say("and now?")
    await telegram_server.wait_for(lambda: any("How was that reply?" in m.text for m in ann.chat.from_bot), 20)
    assert greetings(ann) == [1, 1]
