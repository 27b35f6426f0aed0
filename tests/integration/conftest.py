"""Fixtures of the integration tier: a gateway on real PostgreSQL with the instant model server."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.fakes.model import ModelServer
from tests.fakes.twilio import TwilioServer
from tests.support.pace import brisk_pace
from tests.support.road import Road, Visitor, road
from tests.support.whatsapp import connect, settings

MODEL = "smollm2-135m"


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    """An instant model server under the name that the gateway expects."""
    async with ModelServer(name=MODEL) as server:
        yield server


@pytest.fixture
async def running(database_url: str, model: ModelServer) -> AsyncIterator[Road]:
    """A running gateway."""
    async with road(database_url, model.url) as gateway:
        yield gateway


@pytest.fixture
async def visitor(running: Road) -> AsyncIterator[Visitor]:
    """Somebody in the web chat."""
    async with running.visitor() as somebody:
        yield somebody


@pytest.fixture
def brisk() -> Iterator[None]:
    """Telegram's pace, ten times as fast, and no quiet moment before a reply shows that it is being written."""
    with brisk_pace():
        yield


@pytest.fixture
async def whatsapp(database_url: str, model: ModelServer, twilio_server: TwilioServer) -> AsyncIterator[Road]:
    """A gateway that Twilio posts to."""
    async with road(database_url, model.url, **settings(twilio_server)) as gateway:
        connect(twilio_server, gateway)
        yield gateway
        await twilio_server.hang_up()
