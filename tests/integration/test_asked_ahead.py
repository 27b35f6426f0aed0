"""The model is asked while the turn is being committed: what the turn does not keep is never heard of."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest
from sqlalchemy import text

from app.errors import ModelUnavailableError
from app.ports import Delta
from app.services.ahead import Ahead
from tests.fakes.model import ModelServer, faults
from tests.support.road import Road, road

SOON_S = 5.0


class Pieces:
    """A stream of three pieces that tells how far it came and whether it was closed."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.given = 0
        self.closed = False
        self.go_on = asyncio.Event()

    async def stream(self) -> AsyncGenerator[Delta]:
        try:
            await self.go_on.wait()
            if self.error:
                raise self.error
            for word in ("one", "two", "three"):
                self.given += 1
                yield Delta(text=word)
        finally:
            self.closed = True


async def test_the_first_piece_comes_without_anybody_reading_and_none_is_missed() -> None:
    pieces = Pieces()
    pieces.go_on.set()
    async with aclosing(Ahead(pieces.stream())) as ahead:
        await ahead.start()
        await asyncio.sleep(0.01)
        assert pieces.given == 1
        assert [delta.text async for delta in ahead] == ["one", "two", "three"]
    assert pieces.closed


async def test_closed_before_it_was_read_it_stops_asking() -> None:
    pieces = Pieces()
    async with aclosing(Ahead(pieces.stream())) as ahead:
        await ahead.start()
    assert pieces.closed
    assert pieces.given == 0


async def test_who_stops_waiting_for_the_first_piece_stops_the_stream() -> None:
    pieces = Pieces()
    async with aclosing(Ahead(pieces.stream())) as ahead:
        await ahead.start()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await anext(ahead)
        assert pieces.closed


@pytest.mark.parametrize("read", [True, False])
async def test_an_error_reaches_who_reads_and_nobody_else(read: bool) -> None:
    pieces = Pieces(ModelUnavailableError())
    pieces.go_on.set()
    async with aclosing(Ahead(pieces.stream())) as ahead:
        await ahead.start()
        await asyncio.sleep(0.01)
        if read:
            with pytest.raises(ModelUnavailableError):
                await anext(ahead)
    assert pieces.closed


REFUSE = """
create function refuse() returns trigger language plpgsql as $$ begin raise 'no turn today'; end $$;
create trigger refuse before insert on turns for each row execute function refuse()
"""


@asynccontextmanager
async def no_turn_can_be_stored(running: Road) -> AsyncIterator[None]:
    async with running.store.begin() as tx:
        for statement in REFUSE.split(";\n"):
            await tx.execute(text(statement))
    try:
        yield
    finally:
        async with running.store.begin() as tx:
            await tx.execute(text("drop trigger refuse on turns"))


async def test_a_turn_that_cannot_be_stored_lets_go_of_the_model(database_url: str, model: ModelServer) -> None:
    async with road(database_url, model.url) as running, running.visitor() as visitor:
        model.next(faults.Slow(first_token_s=60.0))
        async with no_turn_can_be_stored(running):
            await visitor.say("hello")
            async with asyncio.timeout(SOON_S):
                while not model.calls or model.running:
                    await asyncio.sleep(0.02)
        assert (await visitor.told("You said: hello"))["turn"]["state"] == "done"
        turns = await running.rows("select user_text, state from turns")
    assert [(t["user_text"], t["state"]) for t in turns] == [("hello", "done")]
    assert not model.running


async def test_a_gateway_that_stops_in_between_lets_go_of_the_model(database_url: str, model: ModelServer) -> None:
    async with road(database_url, model.url) as running, running.visitor() as visitor:
        model.next(faults.Slow(first_token_s=60.0))
        async with running.store.begin() as tx:
            await tx.execute(text("lock table turns in share mode"))  # reads go on, no turn can be stored
            await visitor.say("hello")
            async with asyncio.timeout(SOON_S):
                while not model.running:
                    await asyncio.sleep(0.02)
            await running.gateway.lanes.stop(0.1)
            async with asyncio.timeout(SOON_S):
                while model.running:
                    await asyncio.sleep(0.02)
        assert await running.rows("select 1 from turns") == []
        (row,) = await running.rows("select state, attempts from inbox")
    # Its lease runs out, or the next start of this host gives it back.
    assert row == {"state": "claimed", "attempts": 1}
    async with road(database_url, model.url) as running:
        async with running.store.begin() as tx:
            await tx.execute(text("update inbox set lease_until = now()"))
        async with asyncio.timeout(SOON_S):
            while [row["state"] for row in await running.rows("select state from turns")] != ["done"]:
                await asyncio.sleep(0.05)
