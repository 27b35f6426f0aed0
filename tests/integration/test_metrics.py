"""Figures for Prometheus: what happened, by channel; nobody is named, and only who may reads them."""

import asyncio

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from tests.fakes.model import ModelServer
from tests.support.road import Road, Visitor, road

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


async def scraped(running: Road, **headers: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"{running.url}/metrics", headers=headers) as answer:
        return answer.status, await answer.text()


async def samples(running: Road) -> Samples:
    status, text = await scraped(running)
    assert status == 200
    families = text_string_to_metric_families(text)
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def grown(before: Samples, after: Samples, name: str, **labels: str) -> float:
    key = (name, frozenset(labels.items()))
    return after.get(key, 0) - before.get(key, 0)


async def test_what_happens_is_counted_by_channel(running: Road, visitor: Visitor) -> None:
    before = await samples(running)
    update = "11111111-1111-4111-8111-111111111111"
    for _ in range(2):
        await visitor.say("a very secret question", update_id=update)
    reply = await visitor.told("You said: a very secret question")
    await visitor.press(f"v:{reply['turn']['id']}:u", reply["message_id"])
    async with asyncio.timeout(10):
        while not await running.rows("select 1 from votes"):
            await asyncio.sleep(0.05)
        while await running.rows("select 1 from outbox where state <> 'sent'"):
            await asyncio.sleep(0.05)
    after = await samples(running)
    assert grown(before, after, "mentee_updates_total", channel="web", result="new") == 2
    assert grown(before, after, "mentee_updates_total", channel="web", result="repeat") == 1
    assert grown(before, after, "mentee_turns_total", channel="web", state="done", failure="") == 1
    assert grown(before, after, "mentee_first_token_seconds_count", channel="web") == 1
    assert grown(before, after, "mentee_votes_total", channel="web", vote="up") == 1
    assert grown(before, after, "mentee_parts_total", channel="web", result="sent") >= 1
    assert after["mentee_database_up", frozenset()] == 1
    assert after["mentee_waiting", frozenset({("for_what", "inbox")})] == 0
    _, text = await scraped(running)
    ids = [str(row["id"]) for row in await running.rows("select id from people union select id from chats")]
    assert not any(word in text for word in ["secret", *ids])


async def test_from_elsewhere_only_with_the_token(database_url: str, model: ModelServer) -> None:
    elsewhere = {"X-Forwarded-For": "203.0.113.7"}
    async with road(database_url, model.url, metrics_token="a long token of ours") as running:
        assert (await scraped(running, **elsewhere))[0] == 404
        for wrong in ("Bearer nonsense", "Bearer ", "a long token", "Bearer \u00ff"):
            assert (await scraped(running, Authorization=wrong, **elsewhere))[0] == 404
        assert (await scraped(running, Authorization="Bearer a long token of ours", **elsewhere))[0] == 200
    async with road(database_url, model.url) as running:
        assert (await scraped(running, Authorization="Bearer ", **elsewhere))[0] == 404
