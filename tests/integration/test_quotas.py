"""Quotas: who asked for as much as they may is told when there is room again, once; commands and votes go on."""

import asyncio

from sqlalchemy import text

from tests.fakes.model import ModelServer
from tests.support.road import Road, Visitor, road


async def spent(running: Road, visitor: Visitor, count: int) -> None:
    for number in range(count):
        await visitor.ask(f"question {number}")


async def turns(running: Road) -> int:
    return len(await running.rows("select 1 from turns"))


async def test_replies_within_a_minute(database_url: str, model: ModelServer) -> None:
    async with road(database_url, model.url, quota_replies_per_minute=3) as running, running.visitor() as visitor:
        await spent(running, visitor, 3)
        for word in ("one", "two"):
            await visitor.say(f"one more: {word}")
        shown = await visitor.told("That was a lot in one minute")
        seconds = int("".join(c for c in shown["plain"] if c.isdigit()))
        assert 1 <= seconds <= 60
        await visitor.command("whoami")
        await visitor.told("This chat:")
        assert sum("That was a lot" in i.get("plain", "") for i in await visitor.messages()) == 1
        assert await turns(running) == 3
        async with running.store.begin() as tx:
            await tx.execute(text("update turns set created_at = created_at - interval '2 minutes'"))
        await visitor.say("and now?")
        await visitor.told("You said: and now?")


async def test_one_person_does_not_use_up_anothers(database_url: str, model: ModelServer) -> None:
    limited = road(database_url, model.url, quota_replies_per_minute=1)
    async with limited as running, running.visitor() as ann, running.visitor() as ben:
        await spent(running, ann, 1)
        await ann.say("more")
        await ann.told("That was a lot in one minute")
        await ben.ask("hello")
        assert await turns(running) == 2


async def test_tokens_within_a_day(database_url: str, model: ModelServer) -> None:
    async with road(database_url, model.url, quota_tokens_per_day=10) as running, running.visitor() as visitor:
        await spent(running, visitor, 1)
        (used,) = await running.rows("select messages, tokens, day from usage")
        (turn,) = await running.rows(
            "select cardinality(prompt_token_ids) + cardinality(response_token_ids) as n from turns"
        )
        assert (used["messages"], used["tokens"]) == (1, turn["n"])
        assert turn["n"] >= 10
        await visitor.say("more")
        await visitor.told("used up what one person may use in a day")
        async with running.store.begin() as tx:
            await tx.execute(text("update usage set day = '2020-01-01'"))
        await visitor.say("tomorrow")
        await visitor.told("You said: tomorrow")


async def test_the_rewrites_of_a_correction_count_by_their_tokens(database_url: str, model: ModelServer) -> None:
    async with road(database_url, model.url, retries_on_correction=2) as running, running.visitor() as visitor:
        await visitor.allow("memory")
        reply = await visitor.ask("question")
        (before,) = await running.rows("select messages, tokens from usage")
        await visitor.say("Shorter, please", reply_to=reply["message_id"])
        async with asyncio.timeout(10):
            while not await running.rows("select 1 from rewrites"):
                await asyncio.sleep(0.05)
        (after,) = await running.rows("select messages, tokens from usage")
        assert after["messages"] == before["messages"]
        assert after["tokens"] >= before["tokens"] + 20


async def test_answering_again_counts_too(database_url: str, model: ModelServer) -> None:
    async with road(database_url, model.url, quota_replies_per_minute=1) as running, running.visitor() as visitor:
        await spent(running, visitor, 1)
        await visitor.command("retry")
        await visitor.told("That was a lot in one minute")
        assert await turns(running) == 1


async def test_without_a_limit_nobody_is_held_up(database_url: str, model: ModelServer) -> None:
    async with road(database_url, model.url, quota_replies_per_minute=0) as running, running.visitor() as visitor:
        await spent(running, visitor, 35)
        assert await turns(running) == 35
