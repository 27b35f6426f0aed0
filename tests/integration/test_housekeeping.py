"""What ends by itself: no text stays behind because its message was on its way, refused or taken back."""

from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from app.config import Settings
from app.domain.event import ChatAddress, Sender
from app.domain.outgoing import Content
from app.services.housekeeping import clean
from app.store import Store, outbox, people
from app.store.outbox import Due
from tests.support.begun import begun

SETTINGS = Settings(_env_file=None)
OLD = "now() - interval '4 days'"


async def due_part(store: Store, words: str) -> Due:
    """Return a reply of an ended conversation that is being sent."""
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
        turn = await begun(tx)
        await outbox.put_part(tx, turn.chat_id, turn.id, 0, Content(words))
        await tx.execute(text("update sessions set ended_at = now()"))
        (due,) = await outbox.claim(tx, "host:1", 1, [bot])
    return due


async def kept(store: Store) -> list[str]:
    """Return the texts that the outbox holds."""
    async with store.begin() as tx:
        return list(await tx.scalars(text("select content ->> 'text' from outbox")))


@pytest.mark.parametrize("end", ["sent", "failed", "withdrawn"])
async def test_a_reply_on_its_way_when_its_conversation_ends_is_dropped_once_it_is_settled(
    store: Store, end: str
) -> None:
    part = await due_part(store, "the reply")
    await clean(store, SETTINGS)
    assert await kept(store) == ["the reply"]
    async with store.begin() as tx:
        match end:
            case "sent":
                await outbox.sent(tx, part, "17")
            case "failed":
                await outbox.fail(tx, part, "refused")
            case _:
                await outbox.withdraw(tx, part.chat_id)
    await clean(store, SETTINGS)
    assert await kept(store) == [""]


async def old_notice(store: Store, state: str) -> None:
    """Leave a file that was made four days ago and never sent."""
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
        chat = await people.chat_of(tx, bot, ChatAddress("71"), None)
        await outbox.put(tx, chat.id, Content('{"turns": []}', file_name="export.json"), kind="file")
        await tx.execute(text(f"update outbox set state = '{state}', created_at = {OLD}"))  # noqa: S608


@pytest.mark.parametrize("state", ["failed", "withdrawn"])
async def test_a_notice_that_never_arrived_goes_too(store: Store, state: str) -> None:
    await old_notice(store, state)
    await clean(store, SETTINGS)
    assert await kept(store) == []


async def test_what_nobody_could_send_for_days_is_given_up(store: Store) -> None:
    await old_notice(store, "due")
    await clean(store, SETTINGS)
    assert await kept(store) == []


async def test_what_is_young_or_on_its_way_stays(store: Store) -> None:
    await old_notice(store, "sending")
    async with store.begin() as tx:
        chat = await tx.scalar(text("select id from chats"))
        await outbox.put(tx, chat, Content("new"))
    await clean(store, SETTINGS)
    assert sorted(await kept(store)) == ["new", '{"turns": []}']


async def somebody(store: Store, *, days_ago: float, account: str = "active", chat: str = "active") -> UUID:
    """Return a person on Telegram who was last seen so many days ago."""
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
        made = await people.account_of(tx, bot, Sender(uuid4().hex))
        place = await people.chat_of(tx, bot, ChatAddress(made.external_id), made.person_id)
        await tx.execute(text("update accounts set status = :s where id = :id"), {"s": account, "id": made.id})
        await tx.execute(text("update chats set status = :s where id = :id"), {"s": chat, "id": place.id})
        await tx.execute(
            text("update people set last_seen_at = now() - make_interval(secs => :s) where id = :id"),
            {"s": days_ago * 86_400, "id": made.person_id},
        )
    return made.person_id


async def left(store: Store) -> set[UUID]:
    async with store.begin() as tx:
        return set(await tx.scalars(text("select id from people")))


async def test_who_is_long_gone_is_forgotten(store: Store, tmp_path: Path) -> None:
    limits = Settings(_env_file=None, mentee_home=tmp_path, retention_left_days=30, retention_silent_days=700)
    stay = {
        await somebody(store, days_ago=699),
        await somebody(store, days_ago=29, account="opted_out"),
        await somebody(store, days_ago=29, chat="gone"),
        await somebody(store, days_ago=0, chat="paused"),
    }
    for gone in ({"account": "opted_out"}, {"chat": "gone"}):
        await somebody(store, days_ago=31, **gone)
    await somebody(store, days_ago=701)
    await clean(store, limits)
    assert await left(store) == stay
    async with store.begin() as tx:
        log = (await tx.execute(text("select actor, event from audit_log"))).all()
    assert [tuple(row) for row in log] == [("system:retention", "person:data:forgotten")] * 3


async def test_where_nothing_is_set_nobody_is(store: Store, tmp_path: Path) -> None:
    forever = Settings(_env_file=None, mentee_home=tmp_path, retention_left_days=0, retention_silent_days=0)
    stay = {await somebody(store, days_ago=9999), await somebody(store, days_ago=9999, account="opted_out")}
    await clean(store, forever)
    assert await left(store) == stay
