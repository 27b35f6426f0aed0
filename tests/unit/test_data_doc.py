"""`docs/data.md` says what the schema says."""

from pathlib import Path

from app.store.describe import markdown
from app.store.tables import metadata


def test_the_document_is_the_schema() -> None:
    written = (Path(__file__).parents[2] / "docs" / "data.md").read_text("utf-8")
    assert written == markdown(), "run: python -m app.store.describe > docs/data.md"


def test_every_table_says_what_it_holds_and_how_long() -> None:
    for table in metadata.sorted_tables:
        assert table.comment, table.name
        assert len(table.comment) > 40, table.name
