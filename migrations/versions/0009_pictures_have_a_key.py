"""turn_pictures has a primary key, and a deleted template a state of its own."""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_PLACE = ["turn_id", "number"]
_BEFORE = "approval in ('unsubmitted', 'received', 'pending', 'approved', 'rejected', 'paused', 'disabled')"
_AFTER = "approval in ('unsubmitted', 'received', 'pending', 'approved', 'rejected', 'paused', 'disabled', 'deleted')"


def upgrade() -> None:
    """Apply."""
    op.create_primary_key("pk_turn_pictures", "turn_pictures", _PLACE)
    op.drop_constraint("uq_turn_pictures_turn_id_number", "turn_pictures", type_="unique")
    _approvals(_AFTER)


def downgrade() -> None:
    """Take back."""
    op.execute("update content_templates set approval = 'disabled' where approval = 'deleted'")
    _approvals(_BEFORE)
    op.create_unique_constraint("uq_turn_pictures_turn_id_number", "turn_pictures", _PLACE)
    op.drop_constraint("pk_turn_pictures", "turn_pictures", type_="primary")


def _approvals(approvals: str) -> None:
    op.drop_constraint("approval", "content_templates", type_="check")
    op.create_check_constraint("approval", "content_templates", approvals)
