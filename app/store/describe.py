"""Writes `docs/data.md` from the schema itself: `python -m app.store.describe > docs/data.md`. A test holds them equal."""

import sys

from sqlalchemy import Table

from app.store.tables import admin, feedback, learning, metadata, people, road

ROOMS = (
    ("People", people),
    ("The road of a message", road),
    ("Feedback and memory", feedback),
    ("Learning", learning),
    ("Panel", admin),
)
HEAD = """# What is held, how long, and under which consent

Every table, from the schema's own comments. *Service* is what answering needs; every other purpose is asked apart and
off until allowed. Raw update bodies live `RAW_BODY_DAYS`. Without consent to memory, the texts and pictures of a
conversation (and the token ids that would give them back) are dropped when it ends; a reply still on its way keeps its
words until it is there or given up. Recordings of voices are not kept. `/forget` removes the rows of a person everywhere
below, the adapter files, and everything made from them; the audit log and receipts keep digests and counts only.
Forgetting only what was learnt takes its words also out of raw updates, of the notices that told of them, and of the
prompts (as token ids) of the replies that memory was used for.
Column names of the house: `*_id` points at a row, `*_at` is a moment in UTC, `state` is a closed vocabulary.
"""


def markdown() -> str:
    """Return the whole document."""
    parts = [HEAD]
    for title, room in ROOMS:
        tables = [value for value in vars(room).values() if isinstance(value, Table) and value.metadata is metadata]
        parts += [f"## {title}\n", *(_described(table) for table in dict.fromkeys(tables))]
    return "\n".join(parts)


def _described(table: Table) -> str:
    columns = ", ".join(f"`{column.name}`" for column in table.c)
    return f"### `{table.name}`\n\n{table.comment}\n\n{columns}\n"


if __name__ == "__main__":
    sys.stdout.write(markdown())
