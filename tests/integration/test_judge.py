"""The judge where rules are unsure: asked only with its consent, read by its schema alone, missed by nobody when it is down."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from app import main
from tests.fakes.model import ModelServer
from tests.support.process import free_port
from tests.support.road import Visitor, road

UNCLEAR = "like a pirate would"


@dataclass
class Judge:
    """A server that answers as it is told, in two pieces, and keeps what it was asked."""

    content: str = json.dumps({"class": "style", "confidence": 0.9})
    status: int = 200
    silence_s: float = 0.0
    asked: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(await request.text())
        body = json.dumps({"choices": [{"message": {"content": self.content}}]}).encode()
        await asyncio.sleep(self.silence_s)
        response = web.StreamResponse(status=self.status)
        await response.prepare(request)
        await response.write(body[:9])
        await response.write(body[9:])
        return response


@pytest.fixture
def judge() -> Judge:
    return Judge()


@asynccontextmanager
async def gateway_with(judge: Judge, database_url: str, model: ModelServer) -> AsyncIterator[Visitor]:
    """Somebody in a web chat whose gateway has this judge."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", judge.answer)
    async with TestServer(app) as server:
        address = f"http://127.0.0.1:{server.port}"
        async with (
            road(database_url, model.url, judge_base_url=address, judge_model="judge") as gateway,
            gateway.visitor() as somebody,
        ):
            await somebody.allow("memory")
            yield somebody


@pytest.fixture
async def visitor(database_url: str, model: ModelServer, judge: Judge) -> AsyncIterator[Visitor]:
    """Somebody in a web chat whose gateway has a judge."""
    async with gateway_with(judge, database_url, model) as somebody:
        yield somebody


async def correct(visitor: Visitor) -> None:
    reply = await visitor.ask("What is tea?")
    await visitor.say(UNCLEAR, reply_to=reply["message_id"])


async def test_its_class_decides_where_rules_are_unsure(visitor: Visitor, judge: Judge) -> None:
    await visitor.allow("outside_judge")
    await correct(visitor)
    await visitor.told(f"I'll keep this in mind from now on: “{UNCLEAR}”")
    assert len(judge.asked) == 1


async def test_without_consent_it_is_told_nothing(visitor: Visitor, judge: Judge) -> None:
    await correct(visitor)
    await visitor.told("I'm not sure what you meant")
    assert judge.asked == []


@pytest.mark.parametrize(
    ("status", "content"),
    [
        (500, "{}"),
        (200, "not JSON"),
        (200, '{"class": "style"}'),
        (200, '{"class": "obedience", "confidence": 1}'),
        (200, '{"class": "style", "confidence": 7}'),
        (200, '{"class": "style", "confidence": true}'),
        (200, '{"class": "style", "confidence": "0.9"}'),
        (200, '{"class": "style", "confidence": NaN}'),
        (200, f'{{"class": "style", "confidence": {"9" * 400}}}'),
        (200, '{"class": ["style"], "confidence": 1}'),
        (200, "[" * 100_000),
        (200, "x" * 300_000),
    ],
)
async def test_no_verdict_is_never_a_verdict(visitor: Visitor, judge: Judge, status: int, content: str) -> None:
    judge.status, judge.content = status, content
    await visitor.allow("outside_judge")
    await correct(visitor)
    await visitor.told("I'm not sure what you meant")
    assert len(judge.asked) == 1


async def test_one_that_is_silent_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, database_url: str, model: ModelServer
) -> None:
    monkeypatch.setattr(main, "JUDGE_TIMEOUT_S", 0.5)
    judge = Judge(silence_s=30.0)
    async with gateway_with(judge, database_url, model) as visitor:
        await visitor.allow("outside_judge")
        await correct(visitor)
        await visitor.told("I'm not sure what you meant", 5)
        assert len(judge.asked) == 1
        assert "You said: and on" in (await visitor.ask("and on"))["plain"]


async def test_one_that_is_down_is_missed_by_nobody(database_url: str, model: ModelServer) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    async with (
        road(database_url, model.url, judge_base_url=address, judge_model="judge") as gateway,
        gateway.visitor() as visitor,
    ):
        await visitor.allow("memory", "outside_judge")
        await correct(visitor)
        await visitor.told("I'm not sure what you meant")
        assert "You said: and on" in (await visitor.ask("and on"))["plain"]
