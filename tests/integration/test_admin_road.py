"""The panel on the whole gateway: what a person allows in the chat decides what a reviewer sees, and acts reach the road."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
from argon2 import PasswordHasher
from sqlalchemy import text
from yarl import URL

from app.admin.auth import Passwords
from tests.support.panel import Admin
from tests.support.road import Road, Visitor

CORRECTION = "I am allergic to nuts"


@pytest.fixture
async def owner(running: Road) -> AsyncIterator[Admin]:
    passwords = Passwords(PasswordHasher(time_cost=1, memory_cost=64, parallelism=1))
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        admin = Admin(URL(running.url), session, running.store, passwords)
        await admin.sign_in("owner", "mina")
        yield admin


async def correct(running: Road, visitor: Visitor) -> None:
    reply = await visitor.ask("What can you tell me about rivers?")
    await visitor.say(CORRECTION, reply_to=reply["message_id"])
    async with asyncio.timeout(20):
        while not await count(running, "select count(*) from feedback"):
            await asyncio.sleep(0.05)
        while await count(running, "select count(*) from inbox where state in ('stored', 'claimed')"):
            await asyncio.sleep(0.05)


async def count(running: Road, query: str) -> int:
    async with running.store.begin() as tx:
        return int(await tx.scalar(text(query)) or 0)


async def test_a_reviewer_sees_what_its_author_allows(running: Road, visitor: Visitor, owner: Admin) -> None:
    await visitor.allow("memory")
    await correct(running, visitor)
    closed = await owner.get("/feedback?state=")
    assert "Only metadata" in closed.text
    assert CORRECTION not in closed.text
    await visitor.allow("human_review")
    await visitor.ask("and about lakes?")
    shown = await owner.get("/feedback?state=")
    assert CORRECTION in shown.text


async def test_a_pause_of_intake_loses_nothing(visitor: Visitor, owner: Admin) -> None:
    await owner.post("/switches/intake", {"position": "paused", "reason": "moving house"})
    await visitor.say("are you there?")
    assert "moving house" in (await owner.get("/")).text
    await owner.post("/switches/intake", {"position": "running", "reason": "moved"})
    await visitor.wait(lambda items: [i for i in items if i["who"] == "bot" and i.get("kind") == "reply"])


async def test_forgetting_through_the_panel_gives_a_receipt(running: Road, visitor: Visitor, owner: Admin) -> None:
    await visitor.allow("memory")
    await correct(running, visitor)
    async with running.store.begin() as tx:
        person = str(await tx.scalar(text("select id from people")))
    await owner.get(f"/people/{person}/forget")
    done = await owner.post(f"/people/{person}/forget", {"reason": "asked by mail", "confirm": person[:8]})
    assert done.status == 200
    assert 'class="receipt"' in done.text
    assert await count(running, "select count(*) from turns") == 0
    async with running.store.begin() as tx:
        entry = (await tx.execute(text("select * from audit_log where event like 'person:%'"))).mappings().one()
    assert (entry["actor"], entry["reason"]) == ("mina", "asked by mail")


async def test_who_wants_a_human_is_shown_until_the_bot_answers_again(
    running: Road, visitor: Visitor, owner: Admin
) -> None:
    await visitor.command("human")
    await visitor.told("Until then I keep quiet")
    assert "Somebody wants to talk to a person." in (await owner.get("/")).text
    await visitor.say("are you there?")
    (who,) = await running.rows("select id from people")
    page = f"/people/{who['id']}"
    assert "Let the bot answer again" in (await owner.get(page)).text
    assert (await owner.post(f"{page}/resume", {"reason": ""})).status == 400
    await owner.post(f"{page}/resume", {"reason": "we talked"})
    assert "Somebody wants" not in (await owner.get("/")).text
    assert "Let the bot answer again" not in (await owner.get(page)).text
    assert (await owner.post(f"{page}/resume", {"reason": "twice"})).status == 409
    await visitor.say("and now?")
    await visitor.told("You said: and now?")
    assert await count(running, "select count(*) from turns") == 1
    log = await owner.get("/audit")
    assert "Bot answers somebody again" in log.text
    assert str(who["id"]) not in log.text
