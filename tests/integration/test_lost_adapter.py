"""A released adapter that the model server lost, as after a restart: the turn is answered by the base, and says so."""

from uuid import UUID

from sqlalchemy import text

from app.store import Tx
from app.store.tables import learning
from tests.fakes.model import ModelServer
from tests.support.panel_world import add
from tests.support.road import Road

ADAPTER = "person-0123456789abcdef"


async def _live_release(tx: Tx, person: UUID) -> UUID:
    """Leave what a release leaves: a passed checkpoint, live, and loaded on a server that proved its isolation."""
    checkpoint = await add(
        tx,
        learning.checkpoints,
        name=ADAPTER,
        digest="0" * 64,
        scope="person",
        person_id=person,
        base_id="b",
        base_revision="r",
        tokenizer_digest="t",
        template_digest="c",
        rank=4,
        targets=["q_proj"],
        path=ADAPTER,
        size_bytes=1,
        state="passed",
    )
    await add(tx, learning.gate_runs, checkpoint_id=checkpoint, verdict="passed")
    server = await add(tx, learning.model_servers, url="http://127.0.0.1:1", probe_state="passed")
    await add(tx, learning.loaded_adapters, server_id=server, checkpoint_id=checkpoint, state="ready")
    return await add(tx, learning.releases, scope="person", person_id=person, checkpoint_id=checkpoint, state="live")


async def test_the_base_answers_where_the_server_has_lost_the_adapter(running: Road, model: ModelServer) -> None:
    async with running.visitor() as visitor:
        await visitor.ask("hello")
        async with running.store.begin() as tx:
            person = await tx.scalar(text("select person_id from chats"))
            release = await _live_release(tx, person)
            await tx.execute(text("update sessions set release_id = :r"), {"r": release})
        reply = await visitor.ask("and now?")
        turns = await running.rows("select checkpoint_id, release_id, state from turns order by number")
    assert reply["plain"] == "You said: and now?"
    assert [(t["checkpoint_id"], t["release_id"], t["state"]) for t in turns] == [(None, None, "done")] * 2
    # A request for an adapter that is not there never becomes a generation.
    assert [call.model for call in model.calls] == [model.name] * 2
