"""Which turns a released adapter answers: every one of a session that pins it, and none where the server has lost it."""

from sqlalchemy import text

from tests.fakes.model import ModelServer
from tests.support.releases import ADAPTER, live_release
from tests.support.road import Road


async def test_the_base_answers_where_the_server_has_lost_the_adapter(running: Road, model: ModelServer) -> None:
    async with running.visitor() as visitor:
        await visitor.ask("hello")
        async with running.store.begin() as tx:
            release = await live_release(tx, await tx.scalar(text("select person_id from chats")))
            await tx.execute(text("update sessions set release_id = :r"), {"r": release})
        reply = await visitor.ask("and now?")
        turns = await running.rows("select checkpoint_id, release_id, state from turns order by number")
    assert reply["plain"] == "You said: and now?"
    assert [(t["checkpoint_id"], t["release_id"], t["state"]) for t in turns] == [(None, None, "done")] * 2
    # A request for an adapter that is not there never becomes a generation.
    assert [call.model for call in model.calls] == [model.name] * 2


async def test_the_first_turn_of_a_session_is_answered_by_its_adapter_too(running: Road, model: ModelServer) -> None:
    async with running.visitor() as visitor:
        await visitor.ask("hello")
        async with running.store.begin() as tx:
            await live_release(tx, await tx.scalar(text("select id from people")))
            await tx.execute(text("update sessions set ended_at = now()"))
        model.adapters.loaded[ADAPTER] = "x"
        await visitor.ask("first of the second session")
        await visitor.ask("second of the second session")
        turns = await running.rows("select checkpoint_id is not null as adapted from turns order by number")
    assert [t["adapted"] for t in turns] == [False, True, True]
