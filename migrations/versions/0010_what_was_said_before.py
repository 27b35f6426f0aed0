"""What was said before in a lane is found by an index, however much a house has heard."""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.create_index("ix_inbox_lane_id", "inbox", ["lane", "id"])


def downgrade() -> None:
    """Take back."""
    op.drop_index("ix_inbox_lane_id", "inbox")
