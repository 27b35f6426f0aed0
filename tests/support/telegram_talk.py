"""Talking over the fake Telegram, and the model that sees: what tests of pictures, voices and edits have in common."""

from collections.abc import AsyncIterator

import pytest

from tests.fakes.model import ModelServer
from tests.fakes.telegram import TelegramServer
from tests.fakes.telegram.people import User
from tests.support.road import Road
from tests.support.whatsapp import settled

SEES = "qwen3-vl-4b"


@pytest.fixture
async def seeing_model() -> AsyncIterator[ModelServer]:
    """A model that sees."""
    async with ModelServer(name=SEES, sees=True, window=8192) as server:
        yield server


async def read(server: TelegramServer, user: User, words: str, timeout_s: float = 20) -> str:
    """Return the newest message that a person got with `words` in it, once it is there."""
    await server.wait_for(lambda: any(words in m.text for m in user.chat.from_bot), timeout_s)
    return next(m.text for m in reversed(user.chat.from_bot) if words in m.text)


async def known(telegram: Road, server: TelegramServer, first_words: str) -> User:
    """Return somebody who has said their first words and was answered."""
    user = server.user("Ann")
    user.say(first_words)
    await read(server, user, f"You said: {first_words}")
    await settled(telegram)
    return user


async def allow_training(telegram: Road, server: TelegramServer, user: User) -> None:
    """Let somebody allow everything; words of theirs may train from here on."""
    user.say("/learn on")
    await read(server, user, "On: I may learn")
    user.say("only words")
    await read(server, user, "You said: only words")
    await settled(telegram)
    (turn,) = await telegram.rows("select learnable from turns order by number desc limit 1")
    assert turn["learnable"]
