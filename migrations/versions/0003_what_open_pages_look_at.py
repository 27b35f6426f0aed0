"""what open pages look at every two seconds is found without reading what does not change."""

from alembic import op
from sqlalchemy import text

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.create_index("ix_outbox_changed", "outbox", ["chat_id", "version"], postgresql_where=text("version > 1"))
    op.create_index("ix_jobs_person", "jobs", ["person_id", "created_at"])
    op.create_index("ix_releases_person", "releases", ["person_id"])


def downgrade() -> None:
    """Take back."""
    op.drop_index("ix_releases_person", "releases")
    op.drop_index("ix_jobs_person", "jobs")
    op.drop_index("ix_outbox_changed", "outbox")
