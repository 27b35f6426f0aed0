"""A channel that calls back passes the tests that every channel passes, at an address that takes one message or two; faults are found."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from parrot import PACKAGE, ParrotChannel, ParrotPart, ParrotSettings, parse
from test_parrot import SECRET, ParrotRig

from app.domain.outgoing import Content
from app.errors import DeliveryError
from app.ports import SingleCallback
from app.services.respond import Messages, Ticket
from bots.base import RawUpdate
from bots.conformance import ChannelConformance, House

USED_UP = 410


class CallingChannel(ParrotChannel):
    """Parrot's, but for how replies go."""

    capabilities = replace(ParrotChannel.capabilities, reply_mode=SingleCallback(60.0))


class CallingTwiceChannel(ParrotChannel):
    """The same where an address takes two."""

    capabilities = replace(ParrotChannel.capabilities, reply_mode=SingleCallback(60.0, uses=2))


class CallingPart(ParrotPart):
    """Answers a post at once, and calls back when there is something to say."""

    def __init__(self, rig: "CallingRig", channel: ParrotChannel) -> None:
        super().__init__(rig.house.context(PACKAGE, ParrotSettings(parrot_secret=SECRET)))
        self.channel = channel
        self._rig = rig
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _answer(self, request: web.Request, update: RawUpdate) -> web.StreamResponse:
        ticket = await self._replies.accept(update)
        if self.calls(ticket):
            task = asyncio.create_task(self.call(ticket, update.body))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return web.json_response({"messages": []})

    def calls(self, ticket: Ticket) -> bool:
        return ticket.new

    async def call(self, ticket: Ticket, body: bytes) -> None:
        async with self._replies.to(ticket, parse(body).chat, self.channel) as messages:
            for message in messages:
                await self.post(json.loads(body)["id"], message)
                await messages.shown()

    async def post(self, number: str, message: Content) -> None:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self._rig.address}/{number}", json={"text": message.text}) as answer,
        ):
            if not answer.ok:
                raise DeliveryError("the address was used up")


class CallingRig(ParrotRig):
    """The platform: an address for each post, which takes as many messages as the channel says."""

    def __init__(self, channel: ParrotChannel) -> None:
        self.house = House()
        self.part = CallingPart(self, channel)
        self.url, self.address = "", ""
        self._shown: list[str] = []
        self._used: Counter[str] = Counter()

    async def take(self, request: web.Request) -> web.Response:
        number = request.match_info["number"]
        if self._used[number] == self.part.channel.capabilities.reply_mode.uses:
            return web.Response(status=USED_UP)
        self._used[number] += 1
        self._shown.append((await request.json())["text"])
        return web.Response()


@asynccontextmanager
async def running(channel: type[ParrotChannel] = CallingChannel) -> AsyncIterator[CallingRig]:
    rig = CallingRig(channel())
    app = web.Application()
    app.router.add_post("/{number}", rig.take)
    async with TestServer(app, host="127.0.0.1") as server, rig.house.serving(rig.part) as rig.url:
        rig.address = f"http://127.0.0.1:{server.port}"
        yield rig


class TestCalling(ChannelConformance):
    """All of them."""

    @pytest.fixture
    async def rig(self) -> AsyncIterator[CallingRig]:
        async with running() as rig:
            yield rig


class TestCallingTwice(ChannelConformance):
    """All of them, where messages go one by one."""

    @pytest.fixture
    async def rig(self) -> AsyncIterator[CallingRig]:
        async with running(CallingTwiceChannel) as rig:
            yield rig


def calls_for_repeats(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CallingPart, "calls", lambda _part, _ticket: True)


def dies_before_it_asks(patch: pytest.MonkeyPatch) -> None:
    async def call(_part: CallingPart, _ticket: Ticket, body: bytes) -> None:
        json.loads(body)["callback"]

    patch.setattr(CallingPart, "call", call)


def dies_on_the_way(patch: pytest.MonkeyPatch) -> None:
    async def post(_part: CallingPart, number: str, _message: Content) -> None:
        raise LookupError(number)

    patch.setattr(CallingPart, "post", post)


def cuts_what_it_posts(patch: pytest.MonkeyPatch) -> None:
    post = CallingPart.post

    async def cut(part: CallingPart, number: str, message: Content) -> None:
        await post(part, number, replace(message, text=message.text[:100]))

    patch.setattr(CallingPart, "post", cut)


def begins_anew(patch: pytest.MonkeyPatch) -> None:
    async def unsaid(_messages: Messages) -> None:
        """Say nothing of what was taken."""

    patch.setattr(Messages, "shown", unsaid)


def leaves_the_rest(patch: pytest.MonkeyPatch) -> None:
    async def call(part: CallingPart, ticket: Ticket, body: bytes) -> None:
        async with part._replies.to(ticket, parse(body).chat, part.channel) as messages:
            with contextlib.suppress(ConnectionError):
                for message in messages:
                    await part.post(json.loads(body)["id"], message)
                    await messages.shown()

    patch.setattr(CallingPart, "call", call)


CASES: Sequence[tuple[Callable[[pytest.MonkeyPatch], None], str, str]] = [
    (calls_for_repeats, "test_a_repeat_is_not_answered_anew", "ticket.new"),
    (dies_before_it_asks, "test_what_is_due_comes_whole_and_in_order", "was never entered"),
    (dies_on_the_way, "test_what_is_due_comes_whole_and_in_order", "ended with an error"),
    (cuts_what_it_posts, "test_a_long_reply_is_shown_whole", "_in_order"),
    (begins_anew, "test_what_was_shown_before_a_failure_is_not_shown_again", "after each that was taken"),
    (leaves_the_rest, "test_what_was_shown_before_a_failure_is_not_shown_again", "DID NOT RAISE"),
]


ONE_BY_ONE = {begins_anew, leaves_the_rest}


@pytest.mark.parametrize(("fault", "name", "words"), CASES, ids=[fault.__name__ for fault, _, _ in CASES])
async def test_a_fault_is_found(
    fault: Callable[[pytest.MonkeyPatch], None], name: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    monkeypatch.setattr("bots.conformance.suite.GIVEN_S", 0.5)
    async with running(CallingTwiceChannel if fault in ONE_BY_ONE else CallingChannel) as rig:
        with pytest.raises((AssertionError, pytest.fail.Exception), match=words):
            await getattr(ChannelConformance(), name)(rig)
