"""what may not be sent yet is held until the person writes again; a question how a reply was is counted with its answer."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_CHATS_BEFORE = (
    "One (bot, chat, thread); `state` holds what the dialogue waits for; `paused_at`: its person asked for a human, `told_at`: "
    "when it was last told why the bot does not answer. Until its person is forgotten. Service."
)
_CHATS_AFTER = (
    "One (bot, chat, thread); `state` holds what the dialogue waits for; `paused_at`: its person asked for a human, `told_at`: "
    "when it was last told why the bot does not answer; `heard_at`: when somebody last wrote or tapped in it, `news_at`: when they "
    "were last told by template that something waits for them. Until its person is forgotten. Service."
)
_OUTBOX_BEFORE = (
    "One row per message part: what it should show (version) and what the platform has (sent_version, its id). "
    "As long as its turn; notices RAW_BODY_DAYS. Service."
)
_OUTBOX_AFTER = (
    "One row per message part: what it should show (version), what the platform has (sent_version, its id), and how far it "
    "came (`delivery`, where the platform tells). `held`: waits for the person's next word, HELD_DAYS at most; `released_at`: when "
    "that came. As long as its turn; notices RAW_BODY_DAYS. Service."
)
_TEMPLATES = (
    "Content templates that `mentee whatsapp setup` made at Twilio: which question or notice, in which language, the digest of "
    "what it says, and whether Meta approved it. Until replaced. No personal data."
)
_ASKS = "Each question how a reply was: why it was asked, in which message, and what came of it. As long as its turn. Service."
_STATES_BEFORE = "state in ('due', 'sending', 'sent', 'failed', 'withdrawn')"
_STATES_AFTER = "state in ('due', 'sending', 'held', 'sent', 'failed', 'withdrawn')"


def upgrade() -> None:
    """Apply."""
    op.add_column("chats", sa.Column("heard_at", sa.DateTime(timezone=True)))
    op.add_column("chats", sa.Column("news_at", sa.DateTime(timezone=True)))
    op.create_table_comment("chats", _CHATS_AFTER, existing_comment=_CHATS_BEFORE)
    op.add_column("outbox", sa.Column("delivery", sa.Text()))
    op.add_column("outbox", sa.Column("released_at", sa.DateTime(timezone=True)))
    op.create_check_constraint("delivery", "outbox", "delivery in ('delivered', 'read')")
    _states(_STATES_AFTER)
    op.create_index("ix_outbox_held", "outbox", ["chat_id"], postgresql_where=sa.text("state = 'held'"))
    op.create_table_comment("outbox", _OUTBOX_AFTER, existing_comment=_OUTBOX_BEFORE)
    _templates()
    _asks()


def _states(states: str) -> None:
    op.drop_constraint("state", "outbox", type_="check")
    op.create_check_constraint("state", "outbox", states)


def _templates() -> None:
    op.create_table(
        "content_templates",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), primary_key=True),
        sa.Column("bot_id", sa.Uuid(), sa.ForeignKey("bots.id", ondelete="CASCADE"), nullable=False, index=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("content_sid", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("approval", sa.Text(), server_default="unsubmitted", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("checked_at", sa.DateTime(timezone=True)),
        sa.UniqueConstraint("bot_id", "name", "language"),
        sa.CheckConstraint(
            "approval in ('unsubmitted', 'received', 'pending', 'approved', 'rejected', 'paused', 'disabled')",
            name="approval",
        ),
        comment=_TEMPLATES,
    )


def _asks() -> None:
    op.create_table(
        "asks",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), primary_key=True),
        sa.Column("turn_id", sa.Uuid(), sa.ForeignKey("turns.id", ondelete="CASCADE"), nullable=False, unique=True),
        sa.Column("person_id", sa.Uuid(), sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=False),
        sa.Column("outbox_id", sa.BigInteger(), index=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("answered_at", sa.DateTime(timezone=True)),
        sa.Column("answer", sa.Text()),
        sa.CheckConstraint(
            "reason in ('judge_unsure', 'votes_split', 'new_checkpoint', 'long_silence')", name="reason"
        ),
        sa.CheckConstraint("answer in ('up', 'down', 'words')", name="answer"),
        comment=_ASKS,
    )
    op.create_index("ix_asks_person_asked_at", "asks", ["person_id", "asked_at"])


def downgrade() -> None:
    """Take back. What was held is given up."""
    op.drop_table("asks")
    op.drop_table("content_templates")
    op.create_table_comment("outbox", _OUTBOX_BEFORE, existing_comment=_OUTBOX_AFTER)
    op.drop_index("ix_outbox_held", "outbox")
    op.execute("update outbox set state = 'failed' where state = 'held'")
    _states(_STATES_BEFORE)
    op.drop_constraint("delivery", "outbox", type_="check")
    op.drop_column("outbox", "released_at")
    op.drop_column("outbox", "delivery")
    op.create_table_comment("chats", _CHATS_BEFORE, existing_comment=_CHATS_AFTER)
    op.drop_column("chats", "news_at")
    op.drop_column("chats", "heard_at")
