"""Message parts to be shown: desired content against what the platform has. One row per part, sent in the order of its chat.

A claim is a lease by the database's clock. Its end is the fence of whatever is written about it: it tells this claim from
a later one, also from one of the same process.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from sqlalchemy import ColumnElement, Integer, Row, bindparam, case, func, select, text, update
from sqlalchemy.dialects.postgresql import JSONB, Insert, insert

from app.domain.event import ChatAddress
from app.domain.outgoing import Content, ContentDocument
from app.store.claims import claiming
from app.store.clock import after
from app.store.engine import Tx
from app.store.tables.people import chats
from app.store.tables.road import inbox, outbox, turns

LEASE_S = 60
DAY_S = 86_400
SETTLED = ("sent", "failed", "withdrawn")


@dataclass(frozen=True, slots=True)
class Receipt:
    """Whether what was sent is recorded, False when the claim was lost; whether more may wait in its chat."""

    recorded: bool
    followed: bool


@dataclass(frozen=True, slots=True)
class Due:
    """A part whose content the platform does not have yet; `gone`: nothing reaches its chat any more.

    `heard_at`: when somebody last wrote in its chat, `silent_s` ago, None where nobody knows; `behind_held`: something before
    it waits for their next word.
    """

    id: int
    chat_id: UUID
    bot_id: UUID
    address: ChatAddress
    turn_id: UUID | None
    content: Content
    version: int
    provider_message_id: str | None
    attempts: int
    lease_until: datetime
    gone: bool = False
    heard_at: datetime | None = None
    silent_s: float | None = None
    behind_held: bool = False


async def put(tx: Tx, chat_id: UUID, content: Content, *, kind: str = "notice") -> int:
    """Add a message that belongs to no turn; return its row."""
    made = insert(outbox).values(chat_id=chat_id, content=content.document(), kind=kind)
    return int(await tx.scalar(made.returning(outbox.c.id)) or 0)


async def put_part(tx: Tx, chat_id: UUID, turn_id: UUID, part: int, content: Content) -> None:
    """Say what part `part` of a turn's reply should show; a changed content is sent as an edit of the same message."""
    row = {"chat_id": chat_id, "turn_id": turn_id, "part": part, "content": content.document()}
    await tx.execute(_PUT_PART, row)


_PUT_PLACEHOLDER = text("""
    insert into outbox (kind, chat_id, turn_id, content)
    select 'reply', chat_id, id, :content from turns where id = :turn and state in ('waiting', 'generating')
    on conflict (turn_id, part) do nothing
""").bindparams(bindparam("content", type_=JSONB))


async def put_placeholder(tx: Tx, turn_id: UUID, content: Content) -> bool:
    """Show something in the place of a reply that is still being made; False where it has ended, or something is shown."""
    return (await tx.execute(_PUT_PLACEHOLDER, {"turn": turn_id, "content": content.document()})).rowcount == 1


def _changed(content: object) -> dict[str, object]:
    # A part on its way stays with whoever sends it: claimed anew before its platform id is known, it would be sent twice.
    # What the platform took and could not deliver is there to be changed for nobody: it stays at the version that it took.
    undelivered = (outbox.c.state == "failed") & (outbox.c.sent_version == outbox.c.version)
    state = case((outbox.c.state.in_(("sending", "held")) | undelivered, outbox.c.state), else_="due")
    return {
        "content": content,
        "version": case((undelivered, outbox.c.version), else_=outbox.c.version + 1),
        "state": state,
        "due_at": None,
        "error": case((undelivered, outbox.c.error), else_=None),
    }


# The same where a reply takes the place of its placeholder, claimed by whoever sends it unless somebody sends that now.
CHANGED = """
    content = excluded.content, version = outbox.version + 1, due_at = null, error = null,
    state = case when outbox.state in ('sending', 'held') then outbox.state else excluded.state end,
    owner = case when outbox.state in ('sending', 'held') then outbox.owner else excluded.owner end,
    lease_until = case when outbox.state in ('sending', 'held') then outbox.lease_until else excluded.lease_until end,
    attempts = outbox.attempts + case when outbox.state in ('sending', 'held') then 0 else excluded.attempts end
"""


def _part_put() -> Insert:
    made = insert(outbox).values(
        kind="reply",
        chat_id=bindparam("chat_id"),
        turn_id=bindparam("turn_id"),
        part=bindparam("part"),
        content=bindparam("content"),
    )
    return made.on_conflict_do_update(index_elements=["turn_id", "part"], set_=_changed(made.excluded.content))


# Every reply runs it: put together once.
_PUT_PART = _part_put()


async def replace(tx: Tx, chat_id: UUID, message_id: str, content: Content) -> bool:
    """Change a message that the platform already shows; False when it is not one of this chat's."""
    shown = update(outbox).where(outbox.c.chat_id == chat_id, outbox.c.provider_message_id == message_id)
    return (await tx.execute(shown.values(_changed(content.document())))).rowcount > 0


async def content_of(tx: Tx, chat_id: UUID, message_id: str) -> Content | None:
    """Return what a message of this chat should show."""
    query = select(outbox.c.content).where(outbox.c.chat_id == chat_id, outbox.c.provider_message_id == message_id)
    found = await tx.scalar(query)
    return Content.of(cast("ContentDocument", found)) if found else None


async def message_with(tx: Tx, chat_id: UUID, data: str) -> str | None:
    """Return the newest message of this chat that offers the button `data`, once it was sent."""
    offered = outbox.c.content["buttons"].contains([[{"data": data}]])
    query = select(outbox.c.provider_message_id).where(outbox.c.chat_id == chat_id, offered)
    found: str | None = await tx.scalar(query.order_by(outbox.c.id.desc()).limit(1))
    return found


_OFFERING = text("""
    select id, content from outbox
    where chat_id = :chat and state in ('due', 'sending', 'held', 'sent') and jsonb_path_exists(content, '$.buttons[*][*].data ? (@ starts with $head)', :heads)
    order by id desc limit :limit
""").bindparams(bindparam("heads", type_=JSONB))


async def offering(tx: Tx, chat_id: UUID, head: str, limit: int) -> Sequence[tuple[int, Content]]:
    """Return a chat's newest messages, sent or still to be, with a button whose data begin with `head`; each with its row."""
    rows = await tx.execute(_OFFERING, {"chat": chat_id, "heads": {"head": head}, "limit": limit})
    return [(int(row.id), Content.of(row.content)) for row in rows]


async def change(tx: Tx, row_id: int, content: Content) -> None:
    """Change a message, whether the platform shows it already or not."""
    await tx.execute(update(outbox).where(outbox.c.id == row_id).values(_changed(content.document())))


async def settle(tx: Tx, row_id: int) -> None:
    """Take the buttons off a message: its question is settled."""
    found = await tx.scalar(select(outbox.c.content).where(outbox.c.id == row_id))
    content = Content.of(cast("ContentDocument", found)) if found else None
    if content and content.buttons:
        await change(tx, row_id, Content(content.text))


async def newest_sent(tx: Tx, chat_id: UUID, limit: int) -> Sequence[tuple[str, Content]]:
    """Return a chat's newest sent messages, newest first, each with its platform id."""
    query = select(outbox.c.provider_message_id, outbox.c.content).where(
        outbox.c.chat_id == chat_id, outbox.c.provider_message_id.is_not(None)
    )
    rows = await tx.execute(query.order_by(outbox.c.id.desc()).limit(limit))
    return [(str(row.provider_message_id), Content.of(row.content)) for row in rows]


async def told_since(tx: Tx, chat_id: UUID, words: str, inbox_id: int) -> bool:
    """Whether a chat was told just these words since an update came in."""
    came = select(inbox.c.received_at).where(inbox.c.id == inbox_id).scalar_subquery()
    same = (outbox.c.chat_id == chat_id) & (outbox.c.content["text"].astext == words) & outbox.c.turn_id.is_(None)
    return await tx.scalar(select(outbox.c.id).where(same, outbox.c.created_at >= came).limit(1)) is not None


async def last_part(tx: Tx, turn_id: UUID) -> tuple[int, Content] | None:
    """Return number and content of a reply's last part, where its buttons are."""
    query = (
        select(outbox.c.part, outbox.c.content)
        .where(outbox.c.turn_id == turn_id)
        .order_by(outbox.c.part.desc())
        .limit(1)
    )
    row = (await tx.execute(query)).one_or_none()
    return (row.part, Content.of(row.content)) if row else None


async def provider_id(tx: Tx, turn_id: UUID, part: int = 0) -> str | None:
    """Return the platform's id of a part, once it was sent."""
    found = await tx.scalar(
        select(outbox.c.provider_message_id).where(outbox.c.turn_id == turn_id, outbox.c.part == part)
    )
    return str(found) if found else None


# What is told of a claimed row `taken` of the chat `c`.
DUE = """
    taken.id, taken.chat_id, taken.turn_id, taken.content, taken.version, taken.sent_version, taken.provider_message_id,
    taken.attempts, taken.lease_until, c.bot_id, c.external_id, c.thread, c.kind, c.status, c.heard_at,
    extract(epoch from now() - c.heard_at)::float as silent_s,
    exists (select 1 from outbox h where h.chat_id = c.id and h.state = 'held') as behind_held
"""
# A part of a bot that this gateway has no channel for is for another one, or waits until its token is back.
_OF_BOTS = "exists (select 1 from chats b where b.id = r.chat_id and b.bot_id = any(:bots))"
_CLAIM = text(
    claiming("outbox", "chat_id", waiting="due", held="sending", only=_OF_BOTS)
    + """
    from ready, chats c
    where taken.id = ready.id and c.id = taken.chat_id
    returning """
    + DUE
)


async def claim(tx: Tx, owner: str, limit: int, bots: Collection[UUID]) -> list[Due]:
    """Claim up to `limit` parts of `bots`, at most one a chat, oldest first."""
    rows = await tx.execute(_CLAIM, {"owner": owner, "limit": limit, "lease": LEASE_S, "bots": list(bots)})
    return [due_in(row) for row in rows]


def due_in(row: Row[Any]) -> Due:
    """Return the claimed part that `DUE` tells of."""
    return Due(
        id=row.id,
        chat_id=row.chat_id,
        bot_id=row.bot_id,
        address=ChatAddress(row.external_id, row.thread, row.kind),
        turn_id=row.turn_id,
        content=Content.of(row.content),
        version=row.version,
        # What the platform took and never delivered is sent anew, not edited.
        provider_message_id=row.provider_message_id if row.sent_version else None,
        attempts=row.attempts,
        lease_until=row.lease_until,
        gone=row.status == "gone",
        heard_at=row.heard_at,
        silent_s=row.silent_s,
        behind_held=row.behind_held,
    )


async def give_back(tx: Tx, owner: str, bots: Collection[UUID], handled: Collection[int]) -> int:
    """Give back parts of `bots` that `owner` has claimed and does not send, because it never learnt of it; return how many."""
    unknown = (outbox.c.owner == owner) & (outbox.c.state == "sending") & outbox.c.id.not_in(handled)
    theirs = select(chats.c.id).where(chats.c.bot_id.in_(bots))
    given = update(outbox).where(unknown, outbox.c.chat_id.in_(theirs))
    freed = {"state": "due", "owner": None, "lease_until": None, "attempts": outbox.c.attempts - 1}
    return (await tx.execute(given.values(freed))).rowcount


async def sent(tx: Tx, row: Due, provider_message_id: str) -> Receipt:
    """Record what the platform has now; a content that changed meanwhile stays due. What is recorded already stays as it is."""
    values = _claim_of(row) | {"message_id": provider_message_id, "shown": row.version}
    followed = (await tx.execute(_SENT, values)).scalar_one_or_none()
    return Receipt(recorded=followed is not None, followed=followed is not False)


def _behind() -> ColumnElement[bool]:
    other = outbox.alias("behind")
    return (
        select(other.c.id)
        .where(other.c.chat_id == outbox.c.chat_id, other.c.id != outbox.c.id, text("behind.state = 'due'"))
        .exists()
    )


_HELD = update(outbox).where(outbox.c.id == bindparam("row"), outbox.c.lease_until == bindparam("lease"))
_SHOWN = bindparam("shown", type_=Integer)
_SENT = (
    _HELD.where(outbox.c.state == "sending")
    .values(
        provider_message_id=bindparam("message_id"),
        sent_version=_SHOWN,
        sent_at=func.now(),
        attempts=0,
        error=None,
        state=case((outbox.c.version == _SHOWN, "sent"), else_="due"),
    )
    .returning((outbox.c.version != _SHOWN) | _behind())
)


async def is_unread(tx: Tx, row: Due) -> bool:
    """Whether a part was last shown before its turn was finished: what it said then was not the reply."""
    shown_before = select(outbox.c.id).join(turns, turns.c.id == outbox.c.turn_id)
    shown_before = shown_before.where(outbox.c.id == row.id, outbox.c.sent_at < turns.c.finished_at)
    return await tx.scalar(shown_before) is not None


async def retry(tx: Tx, row: Due, delay_s: float, error: str) -> None:
    """Try again later; the chat's later parts wait for this one."""
    await tx.execute(_HELD.values(_later(delay_s, error)), _claim_of(row))


async def put_back(tx: Tx, row: Due, delay_s: float, error: str) -> None:
    """Give a part back that the platform did not look at; this was no try."""
    await tx.execute(_HELD.values(_later(delay_s, error) | {"attempts": outbox.c.attempts - 1}), _claim_of(row))


async def fail(tx: Tx, row: Due, error: str) -> None:
    """Give a part up, with the reason that the panel shows; a content that changed meanwhile is tried in its turn."""
    state = case((outbox.c.version == row.version, "failed"), else_="due")
    await tx.execute(_HELD.values(state=state, error=error, lease_until=None), _claim_of(row))


def _claim_of(row: Due) -> dict[str, object]:
    return {"row": row.id, "lease": row.lease_until}


def _later(delay_s: float, error: str) -> dict[str, object]:
    return {"state": "due", "owner": None, "lease_until": None, "due_at": after(delay_s), "error": error}


async def withdraw(tx: Tx, chat_id: UUID) -> None:
    """Drop what was still to be sent to a chat that is gone."""
    waiting = update(outbox).where(outbox.c.chat_id == chat_id, outbox.c.state.in_(("due", "sending", "held")))
    await tx.execute(waiting.values(state="withdrawn", lease_until=None))


async def purge_notices(tx: Tx, days: int) -> Sequence[int]:
    """Drop notices older than `days`, whether or not they arrived."""
    old = func.coalesce(outbox.c.sent_at, outbox.c.created_at) < after(-days * DAY_S)
    gone = outbox.delete().where(outbox.c.turn_id.is_(None), outbox.c.state.in_(SETTLED), old)
    return list(await tx.scalars(gone.returning(outbox.c.id)))


async def give_up_waiting(tx: Tx, days: int) -> Sequence[int]:
    """Give up what nobody could send for `days`, as when a bot's token never comes back; return the rows."""
    since = func.coalesce(outbox.c.released_at, outbox.c.created_at)
    waiting = (outbox.c.state == "due") & outbox.c.sent_at.is_(None) & (since < after(-days * DAY_S))
    given_up = update(outbox).where(waiting).values(state="failed", error="waited_too_long")
    return list(await tx.scalars(given_up.returning(outbox.c.id)))
