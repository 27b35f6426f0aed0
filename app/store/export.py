"""Everything held about one person, table by table, found by the schema's own references to `people`; and what was sent to
them or waits for it, which hangs on their chat.
"""

import base64
from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from sqlalchemy import RowMapping, Table, Uuid, bindparam, select

from app.store import pictures
from app.store.engine import Tx
from app.store.tables import metadata
from app.store.tables.people import chats, people
from app.store.tables.road import outbox, turn_pictures

# Held for the machine's sake, and no words of the person: keys of dedupe, digests, leases.
HIDDEN = frozenset({"recovery_hash", "owner", "lease_until", "salt", "salted_digest", "notice_digest", "code_hash"})

# The newest that fit are taken along whole, the others by their size: a platform must still carry the document.
MOST_PICTURE_BYTES = 8_000_000


def tables_of_people() -> Mapping[str, tuple[Table, str]]:
    """Return each table that names a person, with the column that does."""
    found = {}
    for table in metadata.sorted_tables:
        for column in table.c:
            if any(key.column is people.c.id for key in column.foreign_keys):
                found[table.name] = (table, column.name)
    return found


async def everything(tx: Tx, person_id: UUID) -> dict[str, object]:
    """Return every row that names a person, as JSON data, by table."""
    person = (await tx.execute(select(people).where(people.c.id == person_id))).mappings().one_or_none()
    if person is None:
        return {}
    held: dict[str, object] = {"person": _row(person)}
    for name, (table, column) in tables_of_people().items():
        if table is turn_pictures:
            rows = await pictures.taken_along(tx, person_id, MOST_PICTURE_BYTES)
        else:
            rows = (await tx.execute(select(table).where(table.c[column] == person_id))).mappings().all()
        if rows:
            held[name] = [_row(row) for row in rows]
    if sent := (await tx.execute(_SENT, {"person": person_id})).mappings().all():
        held["outbox"] = [_row(row) for row in sent]
    return held


# An earlier export would hold all that this one holds, and the one before it.
_SENT = (
    select(outbox)
    .join(chats, chats.c.id == outbox.c.chat_id)
    .where(chats.c.person_id == bindparam("person", type_=Uuid), outbox.c.kind != "file")
    .order_by(outbox.c.id)
)


def _row(row: RowMapping) -> dict[str, object]:
    return {str(key): _value(value) for key, value in row.items() if key not in HIDDEN and value is not None}


def _value(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, list):
        return [_value(item) for item in value]
    return value
