"""Who opted out, whose bot is silent, who is long gone."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import func, or_, select, update

from app.store.clock import after
from app.store.engine import Tx
from app.store.people import OPTED_OUT
from app.store.tables import people as t

PAUSED = "paused"
DAY_S = 86_400
_ANSWERING: dict[str, object] = {"status": "active", "paused_at": None, "told_at": None}


async def leave(tx: Tx, account_id: UUID) -> None:
    """Note that a person opted out of a channel; how to come back they are told at their next message."""
    await _set_account(tx, account_id, status=OPTED_OUT, told_at=None)


async def come_back(tx: Tx, account_id: UUID) -> None:
    """Note that a person who opted out of a channel is there again."""
    await _set_account(tx, account_id, status="active", told_at=None)


async def _set_account(tx: Tx, account_id: UUID, **values: object) -> None:
    await tx.execute(update(t.accounts).where(t.accounts.c.id == account_id).values(**values))


async def first_since_leaving(tx: Tx, account_id: UUID) -> bool:
    """Whether this is the first message since a person opted out; from now on it was."""
    told = update(t.accounts).where(t.accounts.c.id == account_id, t.accounts.c.told_at.is_(None))
    return (await tx.execute(told.values(told_at=func.now()))).rowcount == 1


async def silenced(tx: Tx, account_id: UUID, chat_id: UUID) -> bool:
    """Whether a person has opted out of a channel by now, or waits for a human in this chat."""
    gone = select(t.accounts.c.id).where(t.accounts.c.id == account_id, t.accounts.c.status == OPTED_OUT)
    quiet = select(t.chats.c.id).where(t.chats.c.id == chat_id, t.chats.c.status == PAUSED)
    return bool(await tx.scalar(select(or_(gone.exists(), quiet.exists()))))


async def pause_chat(tx: Tx, chat_id: UUID) -> None:
    """Note that a chat's person waits for a human: the bot is silent from now on, and they know."""
    await _set_chat(tx, chat_id, status=PAUSED, paused_at=func.now(), told_at=func.now(), state={})


async def resume_chat(tx: Tx, chat_id: UUID) -> None:
    """Let the bot answer in a chat again."""
    await _set_chat(tx, chat_id, **_ANSWERING)


async def resume_chats(tx: Tx, person_id: UUID) -> int:
    """Let the bot answer a person again wherever it is silent; return in how many chats that was."""
    paused = update(t.chats).where(t.chats.c.person_id == person_id, t.chats.c.status == PAUSED)
    return (await tx.execute(paused.values(_ANSWERING))).rowcount


async def _set_chat(tx: Tx, chat_id: UUID, **values: object) -> None:
    await tx.execute(update(t.chats).where(t.chats.c.id == chat_id).values(**values))


async def untold_for(tx: Tx, chat_id: UUID, seconds: float) -> bool:
    """Whether nobody was told in this chat for so long why the bot does not answer; from now on they were."""
    long_ago = t.chats.c.told_at.is_(None) | (t.chats.c.told_at < after(-seconds))
    told = update(t.chats).where(t.chats.c.id == chat_id, long_ago).values(told_at=func.now())
    return (await tx.execute(told)).rowcount == 1


async def long_gone(tx: Tx, *, left_days: int, silent_days: int, most: int) -> Sequence[UUID]:
    """Return people who were last seen so long ago: less long where they opted out or blocked the bot; 0 stands for never."""
    seen = func.coalesce(t.people.c.last_seen_at, t.people.c.created_at)
    reachable = (
        select(t.accounts.c.id)
        .join(t.chats, (t.chats.c.person_id == t.accounts.c.person_id) & (t.chats.c.bot_id == t.accounts.c.bot_id))
        .where(t.accounts.c.person_id == t.people.c.id, t.accounts.c.status == "active", t.chats.c.status != "gone")
        .exists()
    )
    over = [seen < after(-days * DAY_S) for days in (silent_days,) if days]
    over += [(seen < after(-days * DAY_S)) & ~reachable for days in (left_days,) if days]
    if not over:
        return []
    query = select(t.people.c.id).where(or_(*over), t.people.c.status != "forgotten").order_by(seen).limit(most)
    return list(await tx.scalars(query))
