"""Admins, their sessions, one-time links and failed logins. Every age is measured by the clock of the database.

Sees digests of session ids and links only; the secrets themselves never come here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy import Update, delete, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert

from app.store.engine import Tx
from app.store.tables.admin import admin_links, admin_sessions, admins, login_attempts

# Held while attempts are counted, so that parallel guesses cannot slip under the limit together.
_ATTEMPTS_LOCK = 4_718_205


@dataclass(frozen=True, slots=True)
class Account:
    """What a login needs to know."""

    id: UUID
    login: str
    password_hash: str
    active: bool

    def __repr__(self) -> str:
        return f"Account({self.login!r})"


@dataclass(frozen=True, slots=True)
class SignedIn:
    """Who is behind a session."""

    admin_id: UUID
    login: str
    role: str
    language: str | None
    csrf_hash: bytes


async def create_link(tx: Tx, purpose: str, token_hash: bytes, lifetime: timedelta) -> None:
    """Store a one-time link; an older unused one stops working."""
    await tx.execute(delete(admin_links).where(admin_links.c.used_at.is_(None)))
    await tx.execute(
        insert(admin_links).values(purpose=purpose, token_hash=token_hash, expires_at=func.now() + lifetime)
    )


async def link_purpose(tx: Tx, token_hash: bytes) -> str | None:
    """Return what a link that still works is for."""
    query = select(admin_links.c.purpose).where(
        admin_links.c.token_hash == token_hash, admin_links.c.used_at.is_(None), admin_links.c.expires_at > func.now()
    )
    purpose: str | None = await tx.scalar(query)
    return purpose


async def spend_link(tx: Tx, token_hash: bytes) -> str | None:
    """Use up a link; return what it was for, or None when it is unknown, used or expired."""
    query = (
        update(admin_links)
        .where(
            admin_links.c.token_hash == token_hash,
            admin_links.c.used_at.is_(None),
            admin_links.c.expires_at > func.now(),
        )
        .values(used_at=func.now())
        .returning(admin_links.c.purpose)
    )
    purpose: str | None = await tx.scalar(query)
    return purpose


async def any_admin(tx: Tx) -> bool:
    """Whether somebody can sign in at all."""
    return bool(await tx.scalar(select(func.count()).select_from(admins).where(admins.c.active)))


async def put_admin(tx: Tx, login: str, password_hash: str, role: str) -> UUID:
    """Create an admin, or give an existing one a new password; every session of theirs ends."""
    query = upsert(admins).values(login=login, password_hash=password_hash, role=role)
    query = query.on_conflict_do_update(index_elements=["login"], set_={"password_hash": password_hash, "active": True})
    admin_id = (await tx.execute(query.returning(admins.c.id))).scalar_one()
    await end_sessions_of(tx, admin_id)
    return UUID(str(admin_id))


async def find_account(tx: Tx, login: str) -> Account | None:
    """Return the account called `login`."""
    query = select(admins.c.id, admins.c.login, admins.c.password_hash, admins.c.active).where(admins.c.login == login)
    row = (await tx.execute(query)).mappings().one_or_none()
    return Account(**row) if row else None


async def renew_hash(tx: Tx, admin_id: UUID, password_hash: str) -> None:
    """Store the same password under newer hashing parameters."""
    await tx.execute(update(admins).where(admins.c.id == admin_id).values(password_hash=password_hash))


async def set_language(tx: Tx, admin_id: UUID, language: str) -> None:
    """Remember the language of the panel for an admin."""
    await tx.execute(update(admins).where(admins.c.id == admin_id).values(language=language))


async def open_session(
    tx: Tx, admin_id: UUID, token_hash: bytes, csrf_hash: bytes, user_agent: str, lifetime: timedelta
) -> None:
    """Store a new session that ends `lifetime` from now at the latest."""
    await tx.execute(
        insert(admin_sessions).values(
            admin_id=admin_id,
            token_hash=token_hash,
            csrf_hash=csrf_hash,
            user_agent=user_agent[:200],
            seen_at=func.now(),
            expires_at=func.now() + lifetime,
        )
    )


async def touch_session(tx: Tx, token_hash: bytes, idle: timedelta) -> SignedIn | None:
    """Return who is behind a live session and note that it was used."""
    return await _session(tx, update(admin_sessions).values(seen_at=func.now()), token_hash, idle)


async def peek_session(tx: Tx, token_hash: bytes, idle: timedelta) -> SignedIn | None:
    """Return who is behind a live session without keeping it awake: for pages that refresh themselves."""
    return await _session(tx, update(admin_sessions).values(seen_at=admin_sessions.c.seen_at), token_hash, idle)


async def _session(tx: Tx, change: Update, token_hash: bytes, idle: timedelta) -> SignedIn | None:
    query = change.where(
        admin_sessions.c.token_hash == token_hash,
        admin_sessions.c.ended_at.is_(None),
        admin_sessions.c.expires_at > func.now(),
        admin_sessions.c.seen_at > func.now() - idle,
        admin_sessions.c.admin_id == admins.c.id,
        admins.c.active,
    ).returning(admin_sessions.c.admin_id, admins.c.login, admins.c.role, admins.c.language, admin_sessions.c.csrf_hash)
    row = (await tx.execute(query)).mappings().one_or_none()
    return SignedIn(**row) if row else None


async def drop_old(tx: Tx) -> None:
    """Remove sessions and links a month after they stopped working."""
    long_ago = func.now() - timedelta(days=30)
    await tx.execute(
        delete(admin_sessions).where(func.coalesce(admin_sessions.c.ended_at, admin_sessions.c.expires_at) < long_ago)
    )
    await tx.execute(delete(admin_links).where(admin_links.c.expires_at < long_ago))


async def end_session(tx: Tx, token_hash: bytes) -> None:
    """End one session at once."""
    await tx.execute(
        update(admin_sessions)
        .where(admin_sessions.c.token_hash == token_hash, admin_sessions.c.ended_at.is_(None))
        .values(ended_at=func.now())
    )


async def end_sessions_of(tx: Tx, admin_id: UUID) -> None:
    """End every session of an admin at once."""
    await tx.execute(
        update(admin_sessions)
        .where(admin_sessions.c.admin_id == admin_id, admin_sessions.c.ended_at.is_(None))
        .values(ended_at=func.now())
    )


async def count_attempt(tx: Tx, subjects: Sequence[bytes], window: timedelta) -> Mapping[bytes, int]:
    """Note one attempt for each subject and return how many each has within `window`, this one included."""
    await tx.execute(select(func.pg_advisory_xact_lock(_ATTEMPTS_LOCK)))
    await tx.execute(delete(login_attempts).where(login_attempts.c.at < func.now() - text("interval '1 day'")))
    await tx.execute(insert(login_attempts), [{"subject_digest": subject} for subject in subjects])
    query = (
        select(login_attempts.c.subject_digest, func.sum(login_attempts.c.count))
        .where(login_attempts.c.subject_digest.in_(subjects), login_attempts.c.at > func.now() - window)
        .group_by(login_attempts.c.subject_digest)
    )
    return {bytes(row[0]): int(row[1]) for row in await tx.execute(query)}


async def clear_attempts(tx: Tx, subjects: Sequence[bytes]) -> None:
    """Forget the attempts of subjects that proved who they are."""
    await tx.execute(delete(login_attempts).where(login_attempts.c.subject_digest.in_(subjects)))
