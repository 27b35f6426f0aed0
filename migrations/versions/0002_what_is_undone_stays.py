"""what is undone stays until it is forgotten: the comment of memory_lines says so."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_BEFORE = "A preference or personal fact that one sentence can say, its use and its failures. Until undone or forgotten. Memory."
_AFTER = (
    "A preference or personal fact that one sentence can say, its use and its failures. Until forgotten: an `undone` one is "
    "kept and not used. Memory."
)


def upgrade() -> None:
    """Apply."""
    op.create_table_comment("memory_lines", _AFTER, existing_comment=_BEFORE)


def downgrade() -> None:
    """Take back."""
    op.create_table_comment("memory_lines", _BEFORE, existing_comment=_AFTER)
