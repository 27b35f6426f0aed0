"""The append-only audit log: who did what to which subject, digests before and after, and why. Digests, never texts.

The database itself refuses to change or remove a row (migration 0001). Write in the transaction of the act.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from sqlalchemy import Select, insert, select

from app.store.engine import Tx
from app.store.tables.admin import audit_log


def person(person_id: UUID) -> str:
    """Return a person as an act's subject: who has the id finds what was done to them, and the log tells nobody the id."""
    return f"person:{hashlib.sha256(person_id.bytes).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class Act:
    """One act.

    Attributes:
        actor: an admin's login, or `system:<part>`.
        event: `subject:object:action`, such as `release:live:roll_back`.
        subject: what it was done to, such as `release:<id>`.
        reason: why, in the actor's words.
        before: the state that was there; only its digest is kept. None: nothing was there.
        after: the state that is there now; likewise.
        detail: figures, ids and vocabulary words that may be kept for ever.
    """

    actor: str
    event: str
    subject: str | None = None
    reason: str | None = None
    before: Mapping[str, object] | None = None
    after: Mapping[str, object] | None = None
    detail: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A line of the log."""

    id: int
    at: datetime
    actor: str
    event: str
    subject: str | None
    reason: str | None
    before_digest: str | None
    after_digest: str | None
    detail: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which lines to show; an empty field does not filter. `event` and `subject` match from their beginning."""

    actor: str = ""
    event: str = ""
    subject: str = ""


def digest(state: Mapping[str, object] | None) -> str | None:
    """Return the SHA-256 of the canonical JSON of `state`, in hex."""
    if state is None:
        return None
    canonical = json.dumps(state, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()


async def record(tx: Tx, act: Act) -> None:
    """Append one act."""
    await tx.execute(
        insert(audit_log).values(
            actor=act.actor,
            event=act.event,
            subject=act.subject,
            reason=act.reason,
            before_digest=digest(act.before),
            after_digest=digest(act.after),
            detail=json.loads(json.dumps(dict(act.detail), default=str)),
        )
    )


async def page(tx: Tx, wanted: AuditFilter, *, older_than: int | None, limit: int) -> Sequence[AuditRow]:
    """Return the newest lines first, those with an id below `older_than` where it is given."""
    query = _filtered(select(audit_log), wanted).order_by(audit_log.c.id.desc()).limit(limit)
    if older_than is not None:
        query = query.where(audit_log.c.id < older_than)
    return [AuditRow(**{**row, "detail": row["detail"] or {}}) for row in (await tx.execute(query)).mappings()]


def _filtered(query: Select[tuple[object, ...]], wanted: AuditFilter) -> Select[tuple[object, ...]]:
    if wanted.actor:
        query = query.where(audit_log.c.actor == wanted.actor)
    if wanted.event:
        query = query.where(audit_log.c.event.startswith(wanted.event, autoescape=True))
    if wanted.subject:
        query = query.where(audit_log.c.subject.startswith(wanted.subject, autoescape=True))
    return query
