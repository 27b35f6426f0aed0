"""Rows behind the web chat: who a cookie belongs to, how newcomers arrive, come back and leave.

What the page shows is read in `webchat_read.py`. Knows nothing of HTTP; digests come in, tokens never do. Every read
takes the visitor, so that nobody's rows can be asked for by id alone.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import bindparam, exists, func, insert, select, update

from app.clock import now
from app.domain.consent import Purpose
from app.store.clock import after
from app.store.engine import Tx
from app.store.people import record_consent
from app.store.pool import StatementPool
from app.store.tables.admin import login_attempts
from app.store.tables.people import accounts, chats, invitations, people
from app.store.tables.road import inbox

CHANNEL = "web"
BOT_EXTERNAL_ID = "web"

DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Visitor:
    """The person behind a cookie. The chat's id is also its external id and that of the person's first account."""

    bot_id: UUID
    account_id: UUID
    account_external_id: str
    person_id: UUID
    chat_id: UUID
    chat_external_id: str
    language: str | None
    status: str


@dataclass(frozen=True, slots=True)
class Newcomer:
    """What is known of a person at the first visit: digests only, and the notice that was shown."""

    account_external_id: str
    recovery_hash: bytes
    language: str
    notice: str
    refused: tuple[Purpose, ...] = ()
    """The purposes that were asked about at the first visit and left off."""


def _visitor(bot_id: UUID, row: Mapping[str, Any]) -> Visitor:
    return Visitor(bot_id=bot_id, **row)


async def find(pool: StatementPool, bot_id: UUID, account_external_id: str) -> Visitor | None:
    """Return whose cookie it is; None for a stranger and for somebody forgotten."""
    rows = await pool.fetch(_FIND, {"bot": bot_id, "account": account_external_id})
    return _visitor(bot_id, dict(rows[0])) if rows else None


# Every request runs it: put together once.
_FIND = (
    select(
        accounts.c.id.label("account_id"),
        accounts.c.external_id.label("account_external_id"),
        people.c.id.label("person_id"),
        chats.c.id.label("chat_id"),
        chats.c.external_id.label("chat_external_id"),
        people.c.language,
        people.c.status,
    )
    .join_from(accounts, people, accounts.c.person_id == people.c.id)
    .join(chats, (chats.c.person_id == people.c.id) & (chats.c.bot_id == accounts.c.bot_id))
    .where(accounts.c.bot_id == bindparam("bot"), accounts.c.external_id == bindparam("account"))
    .where(people.c.status != "forgotten", chats.c.kind == "private")
    .order_by(chats.c.created_at)
    .limit(1)
)


async def arrive(tx: Tx, bot_id: UUID, newcomer: Newcomer) -> UUID:
    """Make person, account and chat, keep the agreement to the service and what was left off, return the person's id."""
    person_id, account_id = uuid4(), uuid4()
    await tx.execute(
        insert(people).values(
            id=person_id,
            language=newcomer.language,
            recovery_hash=newcomer.recovery_hash,
            asked_consent=True,
            last_seen_at=func.now(),
        )
    )
    await _add_account(tx, bot_id, person_id, account_id, newcomer.account_external_id)
    # The chat takes the account's id for its own, so that a channel that knows the address knows the row.
    await tx.execute(
        insert(chats).values(
            id=account_id, bot_id=bot_id, external_id=str(account_id), kind="private", person_id=person_id
        )
    )
    await _record_answers(tx, person_id, newcomer)
    return person_id


async def _record_answers(tx: Tx, person_id: UUID, newcomer: Newcomer) -> None:
    answers = {Purpose.SERVICE: "given"} | dict.fromkeys(newcomer.refused, "refused")
    for purpose, answer in answers.items():
        await record_consent(
            tx,
            person_id,
            purpose,
            answer,
            notice=newcomer.notice,
            language=newcomer.language,
            channel=CHANNEL,
            evidence="start",
        )


async def _add_account(tx: Tx, bot_id: UUID, person_id: UUID, account_id: UUID, external_id: str) -> None:
    await tx.execute(
        insert(accounts).values(id=account_id, person_id=person_id, bot_id=bot_id, external_id=external_id)
    )


async def add_invitation(tx: Tx, code_hash: bytes, days: int, created_by: str) -> None:
    """Keep a one-time invitation that works within `days`."""
    made = insert(invitations).values(code_hash=code_hash, created_by=created_by, expires_at=after(days * DAY_S))
    await tx.execute(made)


async def spend_invitation(tx: Tx, code_hash: bytes, person_id: UUID) -> bool:
    """Mark the invitation as used by `person_id`; False when there is none, it expired or was used."""
    usable = (
        update(invitations)
        .where(invitations.c.code_hash == code_hash, invitations.c.used_at.is_(None))
        .where(invitations.c.expires_at.is_(None) | (invitations.c.expires_at > func.now()))
        .values(used_at=func.now(), person_id=person_id)
        .returning(invitations.c.id)
    )
    return (await tx.execute(usable)).first() is not None


async def recover(tx: Tx, bot_id: UUID, recovery_hash: bytes, account_external_id: str) -> bool:
    """Give the person with this recovery code another cookie; the others stay. False when nobody has the code."""
    query = select(people.c.id).where(people.c.recovery_hash == recovery_hash, people.c.status != "forgotten")
    person_id = (await tx.execute(query)).scalar_one_or_none()
    if person_id is None:
        return False
    await _add_account(tx, bot_id, person_id, uuid4(), account_external_id)
    return True


async def leave(tx: Tx, visitor: Visitor, lanes: Sequence[str]) -> None:
    """Make the cookie worthless. While an update of it waits, its account must still be found, so then it stays valid."""
    waiting = exists().where(inbox.c.lane.in_(lanes), inbox.c.state.in_(("stored", "claimed")))
    await tx.execute(
        update(accounts)
        .where(accounts.c.id == visitor.account_id, ~waiting)
        .values(external_id=f"left:{secrets.token_hex(32)}")
    )


async def renew_recovery(tx: Tx, visitor: Visitor, recovery_hash: bytes) -> None:
    """Replace the recovery code; the old one is worthless from now on."""
    await tx.execute(update(people).where(people.c.id == visitor.person_id).values(recovery_hash=recovery_hash))


async def attempts(tx: Tx, subject_digest: bytes, within: timedelta) -> int:
    """Return how many attempts were noted for the subject lately."""
    query = select(func.count()).where(
        login_attempts.c.subject_digest == subject_digest, login_attempts.c.at > now() - within
    )
    return int((await tx.execute(query)).scalar_one())


async def note_attempt(tx: Tx, subject_digest: bytes) -> None:
    """Count one attempt of the subject."""
    await tx.execute(insert(login_attempts).values(subject_digest=subject_digest))
