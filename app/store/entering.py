"""What an update leads to, in one statement: its chat, its bot's identity, what its person allows and has used lately.

Whoever writes opens the chat: what was held until then is due again, by the same statement and before any reply.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, ColumnElement, DateTime, Row, Select, Uuid, bindparam, func, select, true
from sqlalchemy.dialects.postgresql import insert

from app.domain.consent import ConsentEvent, Consents, Purpose
from app.domain.event import ChatAddress
from app.domain.person import Chat, Identity
from app.domain.quota import MINUTE_S, Usage
from app.store.clock import after, seconds_left_today, seconds_since, today
from app.store.engine import Tx
from app.store.holding import released
from app.store.people import chat_in, chat_made_or_known, identity_of, latest_answers, newest_identity, placed
from app.store.tables import people as t
from app.store.tables.road import inbox, turns


@dataclass(frozen=True, slots=True)
class Entered:
    """Where an update leads: its chat, its bot's newest identity, and what its person allows there (in groups nothing).

    `has_body` is false when who sent it was forgotten since it was claimed. `usage` is what its person asked of the model
    lately, wherever that was; `invited`: they came with an invitation.
    """

    chat: Chat
    identity: Identity | None
    consents: Consents
    has_body: bool
    usage: Usage
    invited: bool


async def enter(
    tx: Tx, bot_id: UUID, address: ChatAddress, person_id: UUID, inbox_id: int, said_at: datetime | None = None
) -> Entered:
    """Return what an update of this person leads to; the chat is made when it is new and locked until `tx` ends.

    `said_at` is when they wrote, where that was not as the update came in.

    The person's row is held already, so that forgetting waits and the update's body stays. An answer to a consent may come
    in between: whoever keeps something of theirs asks again.
    """
    values = placed(bot_id, address, person_id) | {"inbox": inbox_id, "sender": person_id, "said_at": said_at}
    row = (await tx.execute(_ENTERED, values)).one()
    answers = zip(row.purposes or (), row.events or (), row.moments or (), row.notices or (), strict=True)
    allowed = Consents.of(ConsentEvent(Purpose(purpose), *answer) for purpose, *answer in answers)
    return Entered(
        chat_in(row), identity_of(row) if row.identity_id else None, allowed, row.has_body, _usage(row), row.invited
    )


def _entered() -> Select[tuple[object, ...]]:
    received = select(inbox.c.received_at).where(inbox.c.id == bindparam("inbox", type_=BigInteger)).scalar_subquery()
    said_at = bindparam("said_at", type_=DateTime(timezone=True))
    chat = chat_made_or_known(func.coalesce(said_at, received, func.now())).cte("chat")
    identity = newest_identity(chat.c.bot_id).lateral("identity")
    answer = latest_answers().subquery("answer")
    columns = {"purposes": answer.c.purpose, "events": answer.c.event, "moments": answer.c.at}
    columns |= {"notices": answer.c.notice_version}
    said = select(*(func.array_agg(column).label(name) for name, column in columns.items())).subquery("said")
    body = select(inbox.c.body.is_not(None)).where(inbox.c.id == bindparam("inbox", type_=BigInteger))
    has_body = func.coalesce(body.scalar_subquery(), False).label("has_body")
    with_code = select(t.invitations.c.id).where(t.invitations.c.person_id == bindparam("sender", type_=Uuid))
    invited = with_code.exists().label("invited")
    found = select(chat, identity, said, has_body, invited, *_used_lately())
    return found.select_from(chat.outerjoin(identity, true()).join(said, true())).add_cte(
        released(select(chat.c.id).scalar_subquery()).cte("released")
    )


def _used_lately() -> tuple[ColumnElement[Any], ...]:
    sender = bindparam("sender", type_=Uuid)
    lately = select(func.count().label("replies"), func.min(turns.c.created_at).label("oldest")).where(
        turns.c.person_id == sender, turns.c.created_at > after(-MINUTE_S)
    )
    tokens = select(t.usage.c.tokens).where(t.usage.c.person_id == sender, t.usage.c.day == today())
    seen = lately.subquery("lately")
    return (
        select(seen.c.replies).scalar_subquery().label("replies"),
        select(seconds_since(seen.c.oldest)).scalar_subquery().label("oldest_s"),
        func.coalesce(tokens.scalar_subquery(), 0).label("tokens"),
        seconds_left_today().label("day_left_s"),
    )


def _usage(row: Row[tuple[object, ...]]) -> Usage:
    return Usage(row.replies, row.oldest_s or 0.0, row.tokens, row.day_left_s)


async def use(tx: Tx, person_id: UUID, tokens: int, replies: int = 1) -> None:
    """Count a reply and its tokens, those of the prompt included, for today; what is written beside replies, by tokens alone."""
    made = insert(t.usage).values(person_id=person_id, day=today(), messages=replies, tokens=tokens)
    more = {"messages": t.usage.c.messages + made.excluded.messages, "tokens": t.usage.c.tokens + made.excluded.tokens}
    await tx.execute(made.on_conflict_do_update(index_elements=["person_id", "day"], set_=more))


_ENTERED = _entered()
