"""A thumb by itself in a group: a vote like a reaction there, and never words for the model."""

from collections.abc import AsyncIterator

import pytest

from app.domain.messages import text as say
from tests.fakes.model import ModelServer
from tests.fakes.telegram import TelegramServer
from tests.fakes.telegram.messages import Message
from tests.fakes.telegram.people import User
from tests.support.road import Road, road
from tests.support.whatsapp import settled

pytestmark = pytest.mark.usefixtures("brisk")


@pytest.fixture
async def telegram(database_url: str, model: ModelServer, telegram_server: TelegramServer) -> AsyncIterator[Road]:
    """A gateway that polls the Bot API server."""
    named = {"telegram_bot_token": telegram_server.token, "telegram_base_url": telegram_server.base_url}
    async with road(database_url, model.url, **named) as gateway:
        yield gateway


@pytest.fixture
def ann(telegram_server: TelegramServer) -> User:
    return telegram_server.user("Ann")


async def answered(server: TelegramServer, telegram: Road, user: User, group: object) -> Message:
    """Return the reply to somebody in a group."""
    chat = group.chat  # type: ignore[attr-defined]
    user.say(f"@{server.world.bot['username']} hello", chat)
    await server.wait_for(lambda: any("hello" in m.text and m.buttons for m in chat.from_bot), 20)
    await settled(telegram)
    return next(m for m in chat.from_bot if m.buttons)


async def votes(telegram: Road) -> list[int]:
    return [row["value"] for row in await telegram.rows("select value from votes")]


@pytest.mark.parametrize(
    ("thumb", "value"), [("👍", 1), ("👎", -1), ("👍🏽", 1), ("👎\ufe0f", -1), ("👍\ufe0e", 1), (" 👎🏿 ", -1)]
)
async def test_a_thumb_in_reply_to_ones_own_answer_is_a_vote(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User, thumb: str, value: int
) -> None:
    group = telegram_server.group("Kitchen", ann)
    reply = await answered(telegram_server, telegram, ann, group)
    ann.say(thumb, group.chat, reply_to=reply)
    await settled(telegram, beyond=2)
    assert await votes(telegram) == [value]
    await telegram_server.wait_for(lambda: any(b.text.endswith("✓") for b in reply.buttons), 10)
    assert len(model.calls) == len(group.chat.from_bot) == 1  # neither answered nor asked why, where others read along
    assert {row["state"] for row in await telegram.rows("select state from inbox")} == {"done"}


async def test_a_thumb_for_somebody_elses_answer_is_their_own_talk(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    bob = telegram_server.user("Bob")
    group = telegram_server.group("Kitchen", ann, bob)
    reply = await answered(telegram_server, telegram, ann, group)
    bob.say("👍", group.chat, reply_to=reply)
    await settled(telegram, beyond=2)
    assert await votes(telegram) == []
    assert len(model.calls) == len(group.chat.from_bot) == 1


async def test_a_thumb_for_the_bot_by_name_is_about_the_last_answer(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    bob = telegram_server.user("Bob")
    group = telegram_server.group("Kitchen", ann, bob)
    await answered(telegram_server, telegram, ann, group)
    name = telegram_server.world.bot["username"]
    ann.say(f"@{name} 👍", group.chat)
    await settled(telegram, beyond=2)
    assert await votes(telegram) == [1]
    bob.say(f"@{name} 👎", group.chat)
    nothing = say("en", "vote_without_reply")
    await telegram_server.wait_for(lambda: group.chat.from_bot[-1].text == nothing, 20)
    assert await votes(telegram) == [1]
    assert len(model.calls) == 1


async def test_a_thumb_with_words_is_answered(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    group = telegram_server.group("Kitchen", ann)
    reply = await answered(telegram_server, telegram, ann, group)
    ann.say("👍 and now?", group.chat, reply_to=reply)
    await telegram_server.wait_for(lambda: any("and now?" in m.text for m in group.chat.from_bot), 20)
    assert await votes(telegram) == []
