"""How rows become data, and the consent condition that guards every text."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Executable, and_, case, exists, func, null, select

from app.domain.consent import GRANTING, Purpose
from app.store.engine import Tx
from app.store.tables.people import consent_events, people

T = TypeVar("T")


async def read_all(tx: Tx, make: Callable[..., T], query: Executable) -> Sequence[T]:
    """Return one `make(**row)` per row."""
    return [make(**row) for row in (await tx.execute(query)).mappings()]


async def read_one(tx: Tx, make: Callable[..., T], query: Executable) -> T | None:
    """Return `make(**row)` of the only row, or None."""
    row = (await tx.execute(query)).mappings().one_or_none()
    return make(**row) if row else None


def allows_now(person_id: ColumnElement[Any], purpose: Purpose) -> ColumnElement[bool]:
    """Whether the person's latest answer for `purpose` grants it, at this moment; of two at the same instant, the refusal."""
    granting = consent_events.c.event.in_(sorted(GRANTING))
    latest = (
        select(consent_events.c.event.in_(sorted(GRANTING)))
        .where(consent_events.c.person_id == person_id, consent_events.c.purpose == purpose.value)
        .order_by(consent_events.c.at.desc(), granting.asc())
        .limit(1)
        .scalar_subquery()
    )
    here = exists().where(people.c.id == person_id, people.c.status != "forgotten")
    return and_(func.coalesce(latest, False), here)


def only_if(condition: ColumnElement[bool], column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return `column` where `condition` holds, else NULL."""
    return case((condition, column), else_=null())
