"""A platform whose posts bring an address that takes replies for a while, and only so often; and the channel for it."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer
from parrot import PACKAGE as PARROT
from parrot import ParrotChannel, ParrotPart, parse, raw_update

from app.domain.outgoing import Content
from app.errors import DeliveryError, DeliveryUncertainError
from app.gateway.channels import Installed
from app.ports import SingleCallback
from app.services.respond import Ticket
from bots.package import ChannelContext, Handler
from tests.support.parrot import KEY


class PigeonChannel(ParrotChannel):
    """Parrot's, but for how replies go."""

    name = "pigeon"
    capabilities = replace(ParrotChannel.capabilities, reply_mode=SingleCallback(2.0))


class FlockChannel(ParrotChannel):
    """The same where an address takes three."""

    name = "pigeon"
    capabilities = replace(ParrotChannel.capabilities, reply_mode=SingleCallback(2.0, uses=3))


class PigeonPart(ParrotPart):
    """Answers a post at once, and calls back when there is something to say."""

    speaks = PigeonChannel

    def __init__(self, context: ChannelContext) -> None:
        super().__init__(context)
        self.channel = self.speaks()
        self._flights: set[asyncio.Task[None]] = set()

    @property
    def routes(self) -> Mapping[str, Handler]:
        return {"/webhooks/pigeon": self._take}

    async def close(self) -> None:
        for flight in self._flights:
            flight.cancel()
        await asyncio.gather(*self._flights, return_exceptions=True)

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        ticket = await self._replies.accept(raw_update(body))
        if ticket.new:
            flight = asyncio.create_task(self._fly(ticket, body))
            self._flights.add(flight)
            flight.add_done_callback(self._flights.discard)
        return web.Response()

    async def _fly(self, ticket: Ticket, body: bytes) -> None:
        async with self._replies.to(ticket, parse(body).chat, self.channel) as messages:
            for message in messages:
                await _post(json.loads(body)["callback"], message)
                await messages.shown()


class FlockPart(PigeonPart):
    """The same where an address takes three."""

    speaks = FlockChannel


async def _post(url: str, message: Content) -> None:
    try:
        async with aiohttp.ClientSession() as session, session.post(url, json={"text": message.text}) as answer:
            if answer.status != 200:
                raise DeliveryError("the address was used up")
    except aiohttp.ClientError as error:
        raise DeliveryUncertainError from error


def installed(part: type[PigeonPart] = PigeonPart) -> Installed:
    """Return the channel, switched on."""
    package = replace(PARROT, name="pigeon", build=part)
    return Installed(package, PARROT.settings(_env_file=None, parrot_secret=KEY))


@dataclass
class Pigeon:
    """The platform."""

    gateway: str
    url: str
    uses: int = 1
    shown: list[str] = field(default_factory=list)
    refused: int = 0
    _used: dict[str, int] = field(default_factory=dict)

    async def say(self, text: str, number: str) -> None:
        """Post a message with an address for the reply."""
        body = {"id": number, "user": "ann", "text": text, "callback": f"{self.url}/{number}"}
        async with aiohttp.ClientSession() as session, session.post(f"{self.gateway}/webhooks/pigeon", json=body) as ok:
            assert ok.status == 200

    async def until(self, words: str, timeout_s: float = 10.0) -> str:
        """Return the newest message with `words` in it, once it is there."""
        async with asyncio.timeout(timeout_s):
            while not any(words in text for text in self.shown):
                await asyncio.sleep(0.02)
        return next(text for text in reversed(self.shown) if words in text)

    async def take(self, request: web.Request) -> web.Response:
        """Take a reply, as often as an address may be used."""
        number = request.match_info["number"]
        self._used[number] = self._used.get(number, 0) + 1
        if self._used[number] > self.uses:
            self.refused += 1
            return web.Response(status=410)
        self.shown.append((await request.json())["text"])
        return web.Response()


@asynccontextmanager
async def platform(gateway: str) -> AsyncIterator[Pigeon]:
    """Run the platform for a gateway."""
    pigeon = Pigeon(gateway, "")
    app = web.Application()
    app.router.add_post("/{number}", pigeon.take)
    async with TestServer(app, host="127.0.0.1") as server:
        pigeon.url = f"http://127.0.0.1:{server.port}"
        yield pigeon
