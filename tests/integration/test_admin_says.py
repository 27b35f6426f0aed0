"""What the panel's sentences say is so: the same figure in two places, only keys that exist, what was saved, what is past."""

import re
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text

from app.admin.auth import create_admin_link
from app.store import Store
from tests.support.panel import PASSWORD, Admin, PanelServer, serving
from tests.support.panel_world import build


@pytest.fixture
async def panel(store: Store) -> AsyncIterator[PanelServer]:
    async with serving(store) as server:
        yield server


async def _signed_in(admin: Admin) -> None:
    await admin.sign_in("owner", "mina")


async def test_the_overview_counts_what_the_queue_shows(panel: PanelServer, store: Store) -> None:
    world = await build(store)
    async with store.begin() as tx:
        await tx.execute(text("update feedback set excluded = true where id = :id"), {"id": world.correction})
    async with panel.browser() as admin:
        await _signed_in(admin)
        tile = re.search(r"<b>(\d+)</b><span>waiting for review", (await admin.get("/")).text)
        queue = re.search(r'New <span class="count">(\d+)', (await admin.get("/feedback")).text)
    assert tile
    assert queue
    assert tile[1] == queue[1] != "0"


async def test_a_locked_item_lists_only_the_keys_it_has(panel: PanelServer, store: Store) -> None:
    world = await build(store)
    async with panel.browser() as admin:
        await _signed_in(admin)
        closed = (await admin.get(f"/feedback?state=&item={world.group_feedback}")).text
        opened = (await admin.get(f"/feedback?state=&item={world.correction}")).text
    assert "j next · k previous · r reject · q quarantine<" in closed
    assert "j next · k previous · a approve · r reject · q quarantine · l relabel<" in opened


async def test_a_chosen_password_is_said_to_be_saved(panel: PanelServer, store: Store) -> None:
    token = await create_admin_link(store, "first_admin")
    async with panel.browser() as admin:
        await admin.get(f"/link/{token}")
        shown = await admin.post(f"/link/{token}", {"login": "mina", "password": PASSWORD})
        assert "Saved." in shown.text
        assert "Saved." not in (await admin.get("/login")).text


async def test_a_probe_from_before_the_last_start_is_past(panel: PanelServer, store: Store) -> None:
    await build(store)
    async with store.begin() as tx:
        await tx.execute(text("update model_servers set probe_state = 'unknown' where probe_state = 'passed'"))
    async with panel.browser() as admin:
        await _signed_in(admin)
        shown = (await admin.get("/")).text
    assert "isolation last probed before its last start," in shown
    assert "of 12 differ" in shown  # of the server whose probe failed
    assert "(0 of 12 differ)" not in shown


async def test_a_running_switch_does_not_read_as_paused(panel: PanelServer) -> None:
    async with panel.browser() as admin:
        await admin.sign_in()
        assert (await admin.get("/switches")).text.count("While paused: n") == 3


async def test_what_has_no_flags_says_so_and_how_a_reply_ended_is_in_words(panel: PanelServer, store: Store) -> None:
    world = await build(store)
    async with panel.browser() as admin:
        await _signed_in(admin)
        plain = (await admin.get(f"/feedback?state=&item={world.correction}")).text
        async with store.begin() as tx:
            flags = text("""update feedback set flags = '{"forwarded": true}' where id = :id""")
            await tx.execute(flags, {"id": world.correction})
        flagged = (await admin.get(f"/feedback?state=&item={world.correction}")).text
    assert re.search(r"<dt>Flags</dt><dd><span[^>]*>–</span></dd>", plain)
    assert "ended by itself" in plain
    assert re.search(r"<dt>Flags</dt><dd><span[^>]*>forwarded</span> </dd>", flagged)


async def test_the_audit_log_says_who_and_what_in_words(panel: PanelServer, store: Store) -> None:
    token = await create_admin_link(store, "first_admin")
    async with panel.browser() as admin:
        await admin.get(f"/link/{token}")
        await admin.post(f"/link/{token}", {"login": "mina", "password": PASSWORD})
        await admin.sign_in("owner", "mina")
        shown = (await admin.get("/audit")).text
    assert "command line" in shown
    assert "One-time link made<br>" in shown
    assert re.search(r"with</span> the first admin&#39;s link", shown)
