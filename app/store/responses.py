"""What is due in a chat that cannot be written to: taken as a whole by the answer to a request, and known again by it.

The parts that an answer showed have its key in their platform ids (`<key>.<number>`), by which a repeat of the request is
given the same. Like any claim, one is held by a lease whose end is its fence (`app/store/outbox.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text

from app.domain.event import ChatAddress
from app.domain.outgoing import Content
from app.store import outbox
from app.store.engine import Tx

LEASE_S = 20


@dataclass(frozen=True, slots=True)
class Taken:
    """What was due, oldest first; `held`: somebody else is about to show some, so nothing was taken."""

    rows: Sequence[outbox.Due] = ()
    held: bool = False
    language: str | None = None


_CHAT = text("""
    select c.id, p.language from chats c left join people p on p.id = c.person_id
    where c.bot_id = :bot and c.external_id = :chat and c.thread = :thread
    for update of c
""")
_HELD = text("select 1 from outbox where chat_id = :chat and state = 'sending' and lease_until >= now() limit 1")
_TAKE = text("""
    with ready as (
        select id from outbox
        where chat_id = :chat and state in ('due', 'sending') and (due_at is null or due_at <= now())
        order by id for update
    )
    update outbox taken
    set state = 'sending', owner = :owner, attempts = taken.attempts + 1,
        lease_until = now() + make_interval(secs => :lease)
    from ready where taken.id = ready.id
    returning taken.id, taken.chat_id, taken.turn_id, taken.content, taken.version, taken.provider_message_id,
              taken.attempts, taken.lease_until
""")
_GIVEN = text("""
    select o.content from outbox o join chats c on c.id = o.chat_id
    where c.bot_id = :bot and c.external_id = :chat and c.thread = :thread and o.provider_message_id like :key || '.%'
      and o.content ->> 'text' <> ''
    order by o.id
""")


async def take(tx: Tx, owner: str, bot_id: UUID, chat: ChatAddress) -> Taken:
    """Hold everything that is due in a chat, unless somebody holds some of it."""
    place = {"bot": bot_id, "chat": chat.external_id, "thread": chat.thread}
    found = (await tx.execute(_CHAT, place)).one_or_none()
    if found is None:
        return Taken()
    if await tx.scalar(_HELD, {"chat": found.id}):
        return Taken(held=True, language=found.language)
    rows = await tx.execute(_TAKE, {"chat": found.id, "owner": owner, "lease": LEASE_S})
    due = [
        outbox.Due(
            id=r.id,
            chat_id=r.chat_id,
            bot_id=bot_id,
            address=chat,
            turn_id=r.turn_id,
            content=Content.of(r.content),
            version=r.version,
            provider_message_id=r.provider_message_id,
            attempts=r.attempts,
            lease_until=r.lease_until,
        )
        for r in rows
    ]
    return Taken(sorted(due, key=lambda row: row.id), language=found.language)


async def given(tx: Tx, bot_id: UUID, chat: ChatAddress, key: str) -> Sequence[Content]:
    """Return what the answer to a request showed, as far as its words are still kept."""
    values = {"bot": bot_id, "chat": chat.external_id, "thread": chat.thread, "key": key}
    return [Content.of(row.content) for row in await tx.execute(_GIVEN, values)]


async def shown(tx: Tx, rows: Sequence[outbox.Due], key: str, first: int = 0) -> bool:
    """Record that the answer with this key showed these parts, numbered from `first`.

    Returns False when some had been taken by somebody else since.
    """
    receipts = [
        await outbox.sent(tx, row, row.provider_message_id or f"{key}.{number}")
        for number, row in enumerate(rows, first)
    ]
    return all(receipt.recorded for receipt in receipts)


async def give_back(tx: Tx, rows: Sequence[outbox.Due]) -> None:
    """Let go of parts that were not shown; the next answer takes them."""
    for row in rows:
        await outbox.put_back(tx, row, 0.0, "not_taken")
