"""A channel whose replies go once to an address that came with the message, within a deadline: what is to be said is joined."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.domain.outgoing import Content
from app.store import outbox
from tests.fakes.model import ModelServer, faults
from tests.support import parrot
from tests.support.road import Road, road
from tests.support.whatsapp import count, settled

LATER = "still working on the answer"


@pytest.fixture
async def gateway(
    database_url: str, model: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> AsyncIterator[Road]:
    """A gateway with the channel."""
    parrot.install(monkeypatch, tmp_path)
    from tests.support.pigeon import installed

    async with road(database_url, model.url, [installed()]) as running:
        yield running


@pytest.fixture
async def pigeon(gateway: Road) -> AsyncIterator[object]:
    """The platform, where Ann was greeted already."""
    from tests.support.pigeon import platform

    async with platform(gateway.url) as running:
        await running.say("/start", "0")
        await running.until("Just write to me")
        await settled(gateway)
        yield running


async def test_everything_is_joined_into_one_call(gateway: Road, pigeon: object) -> None:
    assert len(pigeon.shown) == 1
    assert "your choice counts" in pigeon.shown[0]
    assert "/1 ⬜" in pigeon.shown[0]
    await pigeon.say("What is tea?", "1")
    assert await pigeon.until("You said") == "You said: What is tea?"
    await settled(gateway)
    assert pigeon.refused == 0


async def test_choices_in_a_joined_message_are_known_by_their_number(gateway: Road, pigeon: object) -> None:
    await pigeon.say("/1", "1")
    await settled(gateway, beyond=1)
    rows = await gateway.rows("select event from consent_events where purpose <> 'service'")
    assert [row["event"] for row in rows] == ["given"]


async def test_near_the_deadline_a_sentence_takes_the_one_use(
    gateway: Road, pigeon: object, model: ModelServer
) -> None:
    model.next(faults.Slow(first_token_s=2.5))
    await pigeon.say("What is tea?", "1")
    await pigeon.until(LATER)
    async with asyncio.timeout(10):
        while await count(gateway, "turns where state <> 'done'"):
            await asyncio.sleep(0.05)
    await pigeon.say("And coffee?", "2")
    assert await pigeon.until("coffee") == "You said: What is tea?\n\nYou said: And coffee?"
    await settled(gateway)


async def test_a_repeat_calls_nobody(gateway: Road, pigeon: object) -> None:
    await pigeon.say("What is tea?", "1")
    await pigeon.until("You said")
    await pigeon.say("What is tea?", "1")
    await settled(gateway)
    assert (pigeon.refused, len(pigeon.shown)) == (0, 2)


async def test_what_the_address_refuses_comes_with_the_next(gateway: Road, pigeon: object) -> None:
    pigeon.uses = 0
    await pigeon.say("What is tea?", "1")
    async with asyncio.timeout(10):
        while not pigeon.refused:
            await asyncio.sleep(0.02)
    pigeon.uses = 1
    await pigeon.say("And coffee?", "2")
    assert await pigeon.until("coffee") == "You said: What is tea?\n\nYou said: And coffee?"


async def test_what_finds_no_room_in_one_use_comes_with_the_next(gateway: Road, pigeon: object) -> None:
    (chat,) = await gateway.rows("select id from chats")
    async with gateway.store.begin() as tx:
        for letter in "abc":
            await outbox.put(tx, chat["id"], Content(letter * 600))
    await pigeon.say("hello", "1")
    assert await pigeon.until("aaa") == "a" * 600
    await pigeon.say("/whoami", "2")
    assert await pigeon.until("bbb") == "b" * 600
    assert await count(gateway, "outbox where state = 'due'") == 3


async def test_after_a_failure_comes_what_failed_and_nothing_before_it(
    database_url: str, model: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    parrot.install(monkeypatch, tmp_path)
    from tests.support.pigeon import FlockPart, installed, platform

    async with road(database_url, model.url, [installed(FlockPart)]) as gateway, platform(gateway.url) as pigeon:
        pigeon.uses = 3
        await pigeon.say("/start", "0")
        await pigeon.until("Just write to me")
        await settled(gateway)
        (chat,) = await gateway.rows("select id from chats")
        async with gateway.store.begin() as tx:
            for letter in "abc":
                await outbox.put(tx, chat["id"], Content(letter * 600))
        pigeon.uses = 2
        await pigeon.say("hello", "1")
        async with asyncio.timeout(10):
            while not pigeon.refused:
                await asyncio.sleep(0.02)
        pigeon.uses = 3
        await pigeon.say("and then?", "2")
        await pigeon.until("ccc")
        await settled(gateway)
        assert [text[0] for text in pigeon.shown if len(set(text[:600])) == 1] == ["a", "b", "c"]
        assert "and then?" in "".join(pigeon.shown)
        rows = await gateway.rows("select provider_message_id as id from outbox where state = 'sent'")
        assert len({row["id"] for row in rows}) == len(rows)
