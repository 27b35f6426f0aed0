"""Both ways of asking that the bench compares, against a gateway with a model server whose pace is known."""

import asyncio

import pytest

from app.bench.road import _tokens_per_s
from app.bench.streaming import Page, Straight, opened
from tests.fakes.model import ModelServer
from tests.fakes.model.faults import Slow
from tests.support.road import Road

SYSTEM = "You are a helpful assistant."
FIRST_S, TOKEN_S = 0.4, 0.03


@pytest.fixture
async def page(running: Road, model: ModelServer) -> Page:
    model.pace = Slow(FIRST_S, TOKEN_S)
    return await opened(running.url)


async def test_first_and_last_text_are_timed_alike_on_both_ways(page: Page, model: ModelServer) -> None:
    straight = Straight(model.url, model.name, SYSTEM, 64)
    question = "please say this back to me word by word"
    through, direct = await page.ask(question), await straight.ask(question)
    again = await page.ask(question)
    await asyncio.gather(page.close(), straight.close())
    for timed in (through, direct, again):
        assert FIRST_S <= timed.first_s < FIRST_S + 1.0
        assert timed.last > timed.first
    assert direct.tokens > 5
    assert through.turn != again.turn


async def test_a_conversation_is_fresh_each_time(page: Page, model: ModelServer) -> None:
    await page.ask("first words")
    await page.ask_anew("second words")
    await page.close()
    assert "first words" not in str(model.calls[-1].messages)


async def test_a_crowd_is_timed_together(running: Road, page: Page) -> None:
    pages = [page, *[await opened(running.url) for _ in range(3)]]
    replies = await asyncio.gather(*(one.ask(f"question {n}") for n, one in enumerate(pages)))
    await asyncio.gather(*(one.close() for one in pages))
    assert len({reply.turn for reply in replies}) == 4
    assert max(r.asked for r in replies) - min(r.asked for r in replies) < 1.0
    assert _tokens_per_s(replies) == 0.0
