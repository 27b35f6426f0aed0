"""Telegram that does not take us as we are: what is wrong is said where an operator looks, and what failed once comes later."""

import asyncio
import io
import json

import aiohttp
import pytest

from app.embedded import workers
from bots.telegram import part
from bots.telegram.keys import KEPT_BYTES
from bots.telegram.part import MENU
from bots.telegram.webhook import MAX_BODY, SECRET_HEADER
from tests.fakes.model import ModelServer
from tests.fakes.telegram import TelegramServer
from tests.support.road import Item, Road, road

pytestmark = pytest.mark.usefixtures("brisk")

WRONG = "7310001:another-secret-AAAAAAAAAAAAAAAAAAA"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "AGAIN_S", 0.1)


async def readiness(gateway: Road) -> tuple[int, Item]:
    """Return the status of `/readyz` and how Telegram is."""
    async with aiohttp.ClientSession() as session, session.get(f"{gateway.url}/readyz") as answer:
        return answer.status, (await answer.json())["parts"]["telegram"]


async def until_telegram_is(gateway: Road, state: str) -> tuple[int, Item]:
    async with asyncio.timeout(10):
        while (found := await readiness(gateway))[1]["state"] != state:
            await asyncio.sleep(0.05)
    return found


async def test_a_refused_token_is_told(
    database_url: str, model: ModelServer, telegram_server: TelegramServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with road(
        database_url, model.url, telegram_bot_token=WRONG, telegram_base_url=telegram_server.base_url
    ) as gateway:
        status, telegram = await until_telegram_is(gateway, "down")
    assert status == 503
    assert telegram["detail"] == "Telegram refuses TELEGRAM_BOT_TOKEN: check it with @BotFather."
    assert "telegram:token:refused" in caplog.messages


async def test_a_platform_that_is_away_is_told_until_it_is_back(
    database_url: str, model: ModelServer, telegram_server: TelegramServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part, "AGAIN_S", 1.0)
    telegram_server.fail_next("getMe", 502)
    async with road(
        database_url, model.url, telegram_bot_token=telegram_server.token, telegram_base_url=telegram_server.base_url
    ) as gateway:
        assert await until_telegram_is(gateway, "degraded") == (
            200,
            {"state": "degraded", "detail": "Telegram cannot be reached"},
        )
        assert (await workers.broken(gateway.url))["telegram"] == "Telegram cannot be reached"  # what a start tells
        assert await until_telegram_is(gateway, "ok") == (200, {"state": "ok", "detail": None})
        assert "telegram" not in await workers.broken(gateway.url)


async def test_a_menu_that_was_refused_once_comes_later(
    database_url: str, model: ModelServer, telegram_server: TelegramServer
) -> None:
    telegram_server.fail_next("setMyCommands", 500, times=3)
    ann = telegram_server.user("Ann")
    async with road(
        database_url, model.url, telegram_bot_token=telegram_server.token, telegram_base_url=telegram_server.base_url
    ):
        ann.say("hello")
        await telegram_server.wait_for(lambda: any("You said: hello" in m.text for m in ann.chat.from_bot), 20)
        await telegram_server.wait_for(lambda: ann.menu() == list(MENU), 10)
    assert len(telegram_server.calls_of("setMyCommands")) > 3


async def test_a_reply_waits_while_the_token_is_refused(
    database_url: str, model: ModelServer, telegram_server: TelegramServer
) -> None:
    ann = telegram_server.user("Ann")
    async with road(
        database_url, model.url, telegram_bot_token=telegram_server.token, telegram_base_url=telegram_server.base_url
    ) as gateway:
        await until_telegram_is(gateway, "ok")
        telegram_server.fail_next("sendMessage", 401, "Unauthorized")
        ann.say("hello")
        async with asyncio.timeout(10):
            while not (rows := await gateway.rows("select state, attempts from outbox where error is not null")):
                await asyncio.sleep(0.05)
    assert rows == [{"state": "due", "attempts": 0}]


async def test_a_gateway_that_stops_while_it_connects_leaves_no_connection(
    database_url: str, model: ModelServer, telegram_server: TelegramServer
) -> None:
    telegram_server.delay("getMe", 5.0)
    async with road(
        database_url, model.url, telegram_bot_token=telegram_server.token, telegram_base_url=telegram_server.base_url
    ) as gateway:
        telegram = gateway.gateway.channels["telegram"]
        assert telegram
        bot = telegram.channel._bot
        async with asyncio.timeout(5):
            while not bot._requests_initialized:
                await asyncio.sleep(0.01)
    assert not bot._requests_initialized


async def test_a_post_longer_than_any_update_is_set_aside_and_the_next_one_is_answered(
    database_url: str, model: ModelServer, telegram_server: TelegramServer
) -> None:
    secret = "a-secret-for-the-webhook"
    telegram_server.fail_next("setWebhook", 500, times=1000)  # nobody posts by itself
    ann = telegram_server.user("Ann")
    async with (
        road(
            database_url,
            model.url,
            telegram_bot_token=telegram_server.token,
            telegram_base_url=telegram_server.base_url,
            telegram_mode="webhook",
            telegram_webhook_secret=secret,
            public_url="https://bot.example.org",
        ) as gateway,
        aiohttp.ClientSession(headers={SECRET_HEADER: secret}) as session,
    ):
        update = {"update_id": 900, "message": ann.say("hello").to_json()}
        long = json.dumps({**update, "update_id": 899, "padding": "x" * MAX_BODY}).encode()
        for body in (long, long, json.dumps(update).encode()):
            async with session.post(f"{gateway.url}/webhooks/telegram", data=io.BytesIO(body)) as answer:
                assert answer.status == 200
        await telegram_server.wait_for(lambda: any("You said: hello" in m.text for m in ann.chat.from_bot), 20)
        rows = await gateway.rows("select state, length(body) as kept from inbox order by id")
    assert [(row["state"], row["kept"] <= KEPT_BYTES) for row in rows] == [("quarantined", True), ("done", True)]
    assert sum("You said: hello" in m.text for m in ann.chat.from_bot) == 1
