"""What a button is about, and whose that is. Reads only."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import ColumnElement, Table, false, select, true

from app.domain.press import Press
from app.store.engine import Tx
from app.store.tables.feedback import feedback, memory_lines, rewrites
from app.store.tables.learning import releases
from app.store.tables.people import accounts, people
from app.store.tables.road import turns

# verb -> where its row is; the others are about none.
ROWS: Mapping[str, Table] = {
    **dict.fromkeys("vctr", turns),
    **dict.fromkeys("an", feedback),
    "w": rewrites,
    "m": memory_lines,
    "k": releases,
}


@dataclass(frozen=True, slots=True)
class Presser:
    """Who pressed: the language they chose, if any, and whether what the button is about is there and theirs."""

    language: str | None
    stands: bool


async def presser(tx: Tx, bot_id: UUID, external_id: str, press: Press | None) -> Presser:
    """Return who pressed a button; None is one that is not ours."""
    whose = select(people.c.language, _stands(press).label("stands")).join(accounts)
    whose = whose.where(accounts.c.bot_id == bot_id, accounts.c.external_id == external_id)
    row = (await tx.execute(whose)).one_or_none()
    if row is None:
        return Presser(None, press is not None and press.verb not in ROWS)
    return Presser(row.language, row.stands)


def _stands(press: Press | None) -> ColumnElement[bool]:
    if press is None:
        return false()
    rows = ROWS.get(press.verb)
    if rows is None:
        return true()
    return select(rows.c.id).where(rows.c.id == press.row, rows.c.person_id == people.c.id).exists()
