"""A reply that comes at once is sent once; one that takes its time is announced first."""

import pytest

from app.services import live
from tests.fakes.model import ModelServer, faults
from tests.fakes.telegram import TelegramServer
from tests.integration.test_telegram_road import telegram, until
from tests.support.road import Road

__all__ = ["telegram"]  # the fixture


async def test_a_reply_that_comes_at_once_is_one_call(
    telegram: Road, telegram_server: TelegramServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "QUIET_S", 10.0)
    ann = telegram_server.user("Ann")
    ann.say("hello")
    reply = await until(telegram_server, ann, "You said: hello")
    assert len(reply.revisions) == 1  # type: ignore[attr-defined]
    assert telegram_server.calls_of("editMessageText") == telegram_server.calls_of("sendChatAction") == []


async def test_a_reply_that_takes_its_time_is_announced(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer
) -> None:
    ann = telegram_server.user("Ann")
    ann.say("hi")
    assert await until(telegram_server, ann, "You said: hi")  # the greeting is out
    model.always(faults.Slow(first_token_s=3.0))
    ann.say("hello")
    await telegram_server.wait_for(lambda: any(m.text == "…" for m in ann.chat.from_bot), 10)
    await telegram_server.wait_for(lambda: telegram_server.calls_of("sendChatAction"), 10)
    assert await until(telegram_server, ann, "You said: hello")
