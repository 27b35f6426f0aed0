"""The judge where rules are unsure: asked only with its consent, read by its schema alone, missed by nobody when it is down."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.fakes.model import ModelServer
from tests.support.road import Visitor, road

UNCLEAR = "like a pirate would"


@dataclass
class Judge:
    """A server that answers as it is told, in two pieces, and keeps what it was asked."""

    content: str = json.dumps({"class": "style", "confidence": 0.9})
    status: int = 200
    asked: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(await request.text())
        body = json.dumps({"choices": [{"message": {"content": self.content}}]}).encode()
        response = web.StreamResponse(status=self.status)
        await response.prepare(request)
        await response.write(body[:9])
        await response.write(body[9:])
        return response


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
async def visitor(database_url: str, model: ModelServer, judge: Judge) -> AsyncIterator[Visitor]:
    """Somebody in a web chat whose gateway has a judge."""
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
        (200, "x" * 300_000),
    ],
)
async def test_no_verdict_is_never_a_verdict(visitor: Visitor, judge: Judge, status: int, content: str) -> None:
    judge.status, judge.content = status, content
    await visitor.allow("outside_judge")
    await correct(visitor)
    await visitor.told("I'm not sure what you meant")
    assert len(judge.asked) == 1
