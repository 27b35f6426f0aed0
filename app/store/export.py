"""Everything held about one person, table by table, found by the schema's own references to `people`; and what hangs on
their chat: what was sent to them or waits for it, and their updates as the platform posted them.
"""

import base64
import json
import re
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from uuid import UUID

from sqlalchemy import Executable, RowMapping, Table, Uuid, bindparam, select, text

from app.store.engine import Tx
from app.store.forget import THEIR_UPDATES
from app.store.tables import metadata
from app.store.tables.people import chats, people
from app.store.tables.road import outbox

# Held for the machine's sake, and no words of the person: keys of dedupe, digests, leases.
HIDDEN = frozenset({"recovery_hash", "owner", "lease_until", "salt", "salted_digest", "notice_digest", "code_hash"})

PERSON = "person"
# A row may hold a picture of a megabyte.
ROWS_AT_ONCE = 8


def tables_of_people() -> Mapping[str, tuple[Table, str]]:
    """Return each table that names a person, with the column that does."""
    found = {}
    for table in metadata.sorted_tables:
        for column in table.c:
            if any(key.column is people.c.id for key in column.foreign_keys):
                found[table.name] = (table, column.name)
    return found


async def rows(tx: Tx, person_id: UUID) -> AsyncIterator[tuple[str, Mapping[str, object]]]:
    """Yield every row that names a person, as JSON data with its table's name: the person first, then table by table.

    Only a few are in memory at a time. Of somebody who was forgotten there are none.
    """
    person = (await tx.execute(select(people).where(people.c.id == person_id))).mappings().one_or_none()
    if person is None:
        return
    yield PERSON, _row(person)
    for name, (table, column) in tables_of_people().items():
        async for row in _read(tx, select(table).where(table.c[column] == person_id)):
            yield name, _row(row)
    async for row in _read(tx, _SENT, person=person_id):
        yield "outbox", _without_links(_row(row))
    async for row in _read(tx, _POSTED, person=person_id):
        yield "inbox", _row(row) | {"body": bytes(row["body"]).decode("utf-8", "replace")}


async def _read(tx: Tx, query: Executable, **values: UUID) -> AsyncIterator[RowMapping]:
    async with tx.stream(query.execution_options(yield_per=ROWS_AT_ONCE), values) as found:
        async for row in found.mappings():
            yield row


def _without_links(row: dict[str, object]) -> dict[str, object]:
    """Return a part without the links in it that open an export: whoever is given the file is not given the next one."""
    content = json.loads(_LINK.sub(r"\1…", json.dumps(row["content"], ensure_ascii=False)))
    return row | {"content": content}


_LINK = re.compile(r"(/export/)[\w.~-]+")


# An earlier export would hold all that this one holds, and the one before it.
_SENT = (
    select(outbox)
    .join(chats, chats.c.id == outbox.c.chat_id)
    .where(chats.c.person_id == bindparam("person", type_=Uuid), chats.c.kind == "private", outbox.c.kind != "file")
    .order_by(outbox.c.id)
)
_POSTED = text(f"""
    select i.id, i.state, i.received_at, i.body from inbox i where i.body is not null and ({THEIR_UPDATES}) order by i.id
""")  # noqa: S608 - a constant of ours


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
