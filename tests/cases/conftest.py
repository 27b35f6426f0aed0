"""Fixtures of the replayed cases: those of the integration tier, and a gateway on each platform."""

from collections.abc import AsyncIterator

import pytest

from tests.fakes.model import ModelServer
from tests.fakes.telegram import TelegramServer
from tests.fakes.twilio import TwilioServer
from tests.integration.conftest import brisk, model
from tests.support.road import Road, road
from tests.support.whatsapp import PUBLIC, connect, settings

__all__ = ["PUBLIC", "brisk", "model"]
SEES = "qwen3-vl-4b"


def telegram_settings(server: TelegramServer) -> dict[str, object]:
    """Return what switches Telegram on."""
    return {"telegram_bot_token": server.token, "telegram_base_url": server.base_url}


@pytest.fixture
async def telegram(
    database_url: str, model: ModelServer, telegram_server: TelegramServer, brisk: None
) -> AsyncIterator[Road]:
    """A gateway that polls the Bot API server, at a brisk pace."""
    async with road(database_url, model.url, max_reply_tokens=1900, **telegram_settings(telegram_server)) as gateway:
        yield gateway


@pytest.fixture
async def eyes() -> AsyncIterator[ModelServer]:
    """A model that sees."""
    async with ModelServer(name=SEES, sees=True) as server:
        yield server


@pytest.fixture
async def seeing_telegram(
    database_url: str, eyes: ModelServer, telegram_server: TelegramServer, brisk: None
) -> AsyncIterator[Road]:
    """A gateway of that model that polls the Bot API server."""
    async with road(database_url, eyes.url, model=SEES, **telegram_settings(telegram_server)) as gateway:
        yield gateway


@pytest.fixture
async def seeing_whatsapp(database_url: str, eyes: ModelServer, twilio_server: TwilioServer) -> AsyncIterator[Road]:
    """A gateway of that model that Twilio posts to."""
    async with road(database_url, eyes.url, model=SEES, **settings(twilio_server)) as gateway:
        connect(twilio_server, gateway)
        yield gateway
        await twilio_server.hang_up()


@pytest.fixture
async def whatsapp(database_url: str, model: ModelServer, twilio_server: TwilioServer) -> AsyncIterator[Road]:
    """A gateway that Twilio posts to."""
    async with road(database_url, model.url, max_reply_tokens=1900, **settings(twilio_server)) as gateway:
        connect(twilio_server, gateway)
        yield gateway
        await twilio_server.hang_up()
