"""How rows become data, and the consent condition that guards every text."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Executable, and_, case, exists, null

from app.domain.consent import Purpose
from app.store import consents
from app.store.engine import Tx
from app.store.tables.people import people

T = TypeVar("T")


async def read_all(tx: Tx, make: Callable[..., T], query: Executable) -> Sequence[T]:
    """Return one `make(**row)` per row."""
    return [make(**row) for row in (await tx.execute(query)).mappings()]


async def read_one(tx: Tx, make: Callable[..., T], query: Executable) -> T | None:
    """Return `make(**row)` of the only row, or None."""
    row = (await tx.execute(query)).mappings().one_or_none()
    return make(**row) if row else None


def allows_now(person_id: ColumnElement[Any], purpose: Purpose) -> ColumnElement[bool]:
    """Whether the person allows `purpose` at this moment and was not forgotten."""
    here = exists().where(people.c.id == person_id, people.c.status != "forgotten")
    return and_(consents.allows_now(person_id, purpose), here)


def only_if(condition: ColumnElement[bool], column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return `column` where `condition` holds, else NULL."""
    return case((condition, column), else_=null())
