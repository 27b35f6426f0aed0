"""Two gateways on one database: any of them may take the next turn of a chat, and no turn is taken twice or too early."""

import asyncio
import signal
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import text

from app.services import lanes
from app.store import Store, inbox
from tests.fakes.model import ModelServer, faults
from tests.fakes.telegram import TelegramServer, User
from tests.support.process import free_port, gateway_process
from tests.support.road import SECRET, Road, Visitor, replies, road

CHATS, MESSAGES = 4, 6


@pytest.fixture
async def second(running: Road, database_url: str, model: ModelServer) -> AsyncIterator[Road]:
    """Another gateway on the database of `running`, with leases of its own."""
    async with road(database_url, model.url) as gateway:
        yield gateway


def beside(visitor: Visitor, gateway: Road) -> Visitor:
    """The same person, who reaches another gateway."""
    return Visitor(gateway.url, visitor.session, visitor.me)


async def test_chats_keep_their_order_whoever_takes_the_next_turn(
    running: Road, second: Road, model: ModelServer
) -> None:
    model.always(faults.Slow(first_token_s=0.02))

    async def talk(chat: int) -> None:
        async with running.visitor() as here:
            there = beside(here, second)
            for number in range(MESSAGES):
                await (here, there)[number % 2].say(f"{chat}: {number}")
            await here.wait(lambda items: len(replies(items)) == MESSAGES, 60)

    # Whoever takes in a message while nothing waits is awake first: so each of them works on at least one.
    for gateway in (running, second):
        async with gateway.visitor() as alone:
            await alone.ask("alone")
    await asyncio.gather(*(talk(chat) for chat in range(CHATS)))
    rows = await running.rows("select user_text, state, created_at, finished_at from turns order by created_at")
    assert len(rows) == CHATS * MESSAGES + 2
    for chat in range(CHATS):
        turns = [row for row in rows if row["user_text"].startswith(f"{chat}:")]
        assert [(t["user_text"], t["state"]) for t in turns] == [(f"{chat}: {n}", "done") for n in range(MESSAGES)]
        assert all(a["finished_at"] <= b["created_at"] for a, b in pairwise(turns))
    assert len(model.calls) == CHATS * MESSAGES + 2
    assert len(await running.rows("select distinct owner from inbox")) == 2


async def test_a_silence_longer_than_a_lease_stays_with_who_waits(
    database_url: str, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "LEASE_S", 1)
    monkeypatch.setattr(lanes, "RENEW_S", 0.3)
    model.always(faults.Slow(first_token_s=3.0))
    async with (
        road(database_url, model.url) as running,
        road(database_url, model.url),
        running.visitor() as visitor,
    ):
        await visitor.ask("think about it")
        assert len(model.calls) == 1
        assert [row["attempts"] for row in await running.rows("select attempts from inbox")] == [1]


async def _say_until_killed(ann: User, process: asyncio.subprocess.Process) -> int:
    """Say numbered messages until the gateway is gone; return how many."""
    said = 0
    async with asyncio.timeout(40):
        while process.returncode is None:
            ann.say(f"number {said}")
            said += 1
            await asyncio.sleep(0.2)
    assert process.returncode == -signal.SIGKILL
    return said


async def _let_leases_run_out(store: Store, process: asyncio.subprocess.Process) -> None:
    """Do what the clock would do within two minutes: nobody holds anything for the killed process any more."""
    async with store.begin() as tx:
        for table in ("inbox", "outbox", "polling_leases"):
            over = f"update {table} set lease_until = now() - interval '1 second' where owner like :owner"  # noqa: S608
            await tx.execute(text(over), {"owner": f"%:{process.pid}"})


@pytest.mark.slow
async def test_one_killed_in_the_middle_of_a_chat_is_followed_by_the_other(
    database_url: str, store: Store, model: ModelServer, telegram_server: TelegramServer, tmp_path: Path
) -> None:
    environment = {
        "DATABASE_URL": database_url,
        "VLLM_BASE_URL": model.url,
        "BROKER_URL": "redis://127.0.0.1:1/0",
        "MENTEE_SECRET": SECRET,
        "MENTEE_HOME": str(tmp_path),
        "TELEGRAM_BOT_TOKEN": telegram_server.token,
        "TELEGRAM_BASE_URL": telegram_server.base_url,
    }
    ann = telegram_server.user("Ann")
    async with (
        gateway_process(free_port(), environment | {"MENTEE_KILL_AT": "converse:streaming"}) as killed,
        gateway_process(free_port(), environment),
    ):
        said = await _say_until_killed(ann, killed)
        for number in range(said, said + 3):
            ann.say(f"number {number}")
        await _let_leases_run_out(store, killed)
        last = f"You said: number {said + 2}"
        await telegram_server.wait_for(lambda: any(last in m.text for m in ann.chat.from_bot), 60)
    answered = [m.text for m in ann.chat.from_bot if m.text.startswith("You said")]
    assert answered == [f"You said: number {number}" for number in range(said + 3)]
    async with store.begin() as tx:
        turns = (await tx.execute(text("select user_text, state from turns order by number"))).all()
        assert [tuple(t) for t in turns] == [(f"number {number}", "done") for number in range(said + 3)]
        assert list(await tx.scalars(text("select distinct state from inbox"))) == ["done"]


async def test_a_stop_that_was_asked_for_elsewhere_is_seen(running: Road, model: ModelServer) -> None:
    model.next(faults.Slow(first_token_s=60.0))
    async with running.visitor() as visitor:
        await visitor.say("a long story")
        async with asyncio.timeout(10):
            while not (model.running and await running.rows("select 1 from turns")):
                await asyncio.sleep(0.02)
        # What another gateway leaves behind that takes up /stop.
        async with running.store.begin() as tx:
            await tx.execute(text("update turns set stop_requested = true"))
        async with asyncio.timeout(10):
            while model.running:
                await asyncio.sleep(0.02)
        await visitor.wait(replies, 10)
    assert [t["state"] for t in await running.rows("select state from turns")] == ["stopped"]
