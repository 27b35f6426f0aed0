"""What a release leaves in the database, without the training before it."""

import hashlib
from uuid import UUID

from app.store import Tx
from app.store.tables import learning
from tests.support.panel_world import add

ADAPTER = "person-0123456789abcdef"


async def live_release(tx: Tx, person: UUID, name: str = ADAPTER) -> UUID:
    """Make a person's live release: a passed checkpoint, loaded on a server that proved its isolation."""
    checkpoint = await add(
        tx,
        learning.checkpoints,
        name=name,
        digest=hashlib.sha256(name.encode()).hexdigest(),
        scope="person",
        person_id=person,
        base_id="b",
        base_revision="r",
        tokenizer_digest="t",
        template_digest="c",
        rank=4,
        targets=["q_proj"],
        path=name,
        size_bytes=1,
        state="passed",
    )
    await add(tx, learning.gate_runs, checkpoint_id=checkpoint, verdict="passed")
    server = await add(tx, learning.model_servers, url=f"http://127.0.0.1:1/{name}", probe_state="passed")
    await add(tx, learning.loaded_adapters, server_id=server, checkpoint_id=checkpoint, state="ready")
    return await add(tx, learning.releases, scope="person", person_id=person, checkpoint_id=checkpoint, state="live")
