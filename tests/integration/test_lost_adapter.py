"""A released adapter that the model server lost, as after a restart: the turn is answered by the base, and says so."""

from sqlalchemy import text

from tests.fakes.model import ModelServer
from tests.support.releases import live_release
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
