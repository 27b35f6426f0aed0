"""Pytest fixtures for the fakes, as a plugin: `pytest_plugins = ["tests.fakes.fixtures"]`.

Owns their start and stop only. Each test gets fresh servers on free loopback ports.
"""

from collections.abc import AsyncIterator

import pytest

from tests.fakes.model import ModelServer
from tests.fakes.telegram import TelegramServer
from tests.fakes.transcriber import Transcriber
from tests.fakes.twilio import TwilioServer


@pytest.fixture
async def model_server() -> AsyncIterator[ModelServer]:
    """An instant model server in vLLM's dialect."""
    async with ModelServer() as server:
        yield server


@pytest.fixture
async def telegram_server() -> AsyncIterator[TelegramServer]:
    """A Bot API server with nobody behind it yet."""
    async with TelegramServer() as server:
        yield server


@pytest.fixture
async def twilio_server() -> AsyncIterator[TwilioServer]:
    """Twilio's API with nobody behind it yet."""
    async with TwilioServer() as server:
        yield server


@pytest.fixture
async def transcriber() -> AsyncIterator[Transcriber]:
    """A server that writes down what it hears."""
    async with Transcriber() as server:
        yield server
