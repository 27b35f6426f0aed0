"""how many replies a person asked for within a minute is found without reading all that they ever asked."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.create_index("ix_turns_person_created_at", "turns", ["person_id", "created_at"])


def downgrade() -> None:
    """Take back."""
    op.drop_index("ix_turns_person_created_at", "turns")
