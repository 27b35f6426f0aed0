"""the comment of turns says that logprobs are kept only where training is allowed."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_BEFORE = (
    "One message and its reply, with what made it: token ids, logprobs, base, checkpoint, memory and prompt versions. "
    "Texts live as long as the session without memory consent, else until forgotten. Service; memory; training by item."
)
_AFTER = (
    "One message and its reply, with what made it: token ids, logprobs (where training is allowed), base, checkpoint, memory and "
    "prompt versions. Texts live as long as the session without memory consent, else until forgotten. Service; memory; training "
    "by item."
)


def upgrade() -> None:
    op.create_table_comment("turns", _AFTER, existing_comment=_BEFORE)


def downgrade() -> None:
    op.create_table_comment("turns", _BEFORE, existing_comment=_AFTER)
