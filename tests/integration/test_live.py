"""What is shown of a reply while it is written: best effort, whatever becomes of the database meanwhile."""

import asyncio
from typing import cast

import pytest

from app.domain.outgoing import Content
from app.ports import Capabilities, Channel
from app.services import live
from app.services.deliver import Deliverer
from app.services.live import LiveView, Placeholder
from app.store import Store
from tests.support.begun import HERE, begun

NOWHERE = "postgresql://nobody@127.0.0.1:1/none"


class Editing:
    """A channel on which a reply is edited as it is written."""

    name = "telegram"
    capabilities = Capabilities(live_edit_s=0.02)


async def test_a_live_view_ends_quietly_while_the_store_is_away(
    store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "QUIET_S", 0.01)
    async with store.begin() as tx:
        turn = await begun(tx)
    away = Store(NOWHERE)
    placeholder = Placeholder(away, Deliverer(away, {}, "host:1", asyncio.Event()), turn, Content("…"))
    view = LiveView(cast("Channel", Editing()), HERE, placeholder)
    async with asyncio.timeout(10):
        while "live:edits:store_away" not in caplog.text:
            await asyncio.sleep(0.02)
    await view.finish()
    await away.close()
    assert not any(record.exc_info for record in caplog.records)
