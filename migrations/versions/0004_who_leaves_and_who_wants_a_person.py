"""who opted out is told once how to come back; who asked for a human has a silent bot."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_ACCOUNTS_BEFORE = (
    "A person's identity on one channel (Telegram user id, WhatsApp id, web cookie digest). Until forgotten. Service."
)
_ACCOUNTS_AFTER = (
    "A person's identity on one channel (Telegram user id, WhatsApp id, web cookie digest); `told_at`: since they opted out "
    "they were told how to come back. Until forgotten. Service."
)
_CHATS_BEFORE = (
    "One (bot, chat, thread); `state` holds what the dialogue waits for. Until its person is forgotten. Service."
)
_CHATS_AFTER = (
    "One (bot, chat, thread); `state` holds what the dialogue waits for; `paused_at`: its person asked for a human, `told_at`: "
    "when it was last told why the bot does not answer. Until its person is forgotten. Service."
)


def upgrade() -> None:
    """Apply."""
    op.add_column("accounts", sa.Column("told_at", sa.DateTime(timezone=True)))
    op.create_table_comment("accounts", _ACCOUNTS_AFTER, existing_comment=_ACCOUNTS_BEFORE)
    op.add_column("chats", sa.Column("paused_at", sa.DateTime(timezone=True)))
    op.add_column("chats", sa.Column("told_at", sa.DateTime(timezone=True)))
    op.create_table_comment("chats", _CHATS_AFTER, existing_comment=_CHATS_BEFORE)


def downgrade() -> None:
    """Take back."""
    op.create_table_comment("chats", _CHATS_BEFORE, existing_comment=_CHATS_AFTER)
    op.drop_column("chats", "told_at")
    op.drop_column("chats", "paused_at")
    op.create_table_comment("accounts", _ACCOUNTS_BEFORE, existing_comment=_ACCOUNTS_AFTER)
    op.drop_column("accounts", "told_at")
