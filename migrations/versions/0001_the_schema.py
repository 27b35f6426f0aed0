"""the schema."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

_APPEND_ONLY = (
    """
create function audit_log_is_append_only() returns trigger language plpgsql as $$
begin
    raise exception 'audit_log is append-only';
end $$
""",
    """
create trigger audit_log_append_only before update or delete or truncate on audit_log
    for each statement execute function audit_log_is_append_only()
""",
)

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:  # noqa: PLR0915 - the whole schema in one step
    """Apply."""
    op.create_table(
        "admin_links",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("purpose", sa.Text(), server_default="first_admin", nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("purpose in ('first_admin', 'reset')", name=op.f("ck_admin_links_purpose")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_admin_links")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_admin_links_token_hash")),
        comment="One-time links that create or reset an admin. Until used or expired. None.",
    )
    op.create_table(
        "admins",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("login", sa.Text(), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), server_default="owner", nullable=False),
        sa.Column("language", sa.Text(), nullable=True),
        sa.Column("active", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "role in ('viewer', 'reviewer', 'trainer', 'releaser', 'privacy', 'owner')", name=op.f("ck_admins_role")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_admins")),
        comment="People who may open the panel. Until removed. Own account.",
    )
    op.create_index("uq_admins_login", "admins", ["login"], unique=True)
    op.create_table(
        "audit_log",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("before_digest", sa.Text(), nullable=True),
        sa.Column("after_digest", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column(
            "detail", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_log")),
        comment="Append-only: who did what (subject:object:action), digests before and after, why. Kept for ever. Digests, no texts.",
    )
    op.create_index("ix_audit_log_at", "audit_log", ["at"], unique=False)
    op.create_table(
        "bots",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bots")),
        sa.UniqueConstraint("channel", "external_id", name=op.f("uq_bots_channel_external_id")),
        comment="One bot account on one channel. Kept while configured. No personal data.",
    )
    op.create_table(
        "dedupe_keys",
        sa.Column("key", sa.LargeBinary(), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_dedupe_keys")),
        comment="Keyed digests (HMAC) of every update ever accepted, so that a repeat has no effect. Kept for ever. No personal data.",
    )
    op.create_table(
        "forget_receipts",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("code_hash", sa.LargeBinary(), nullable=False),
        sa.Column(
            "summary", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("state", sa.Text(), server_default="running", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("state in ('running', 'done')", name=op.f("ck_forget_receipts_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_forget_receipts")),
        sa.UniqueConstraint("code_hash", name=op.f("uq_forget_receipts_code_hash")),
        comment="What a /forget removed, as counts; found by the receipt code alone. Kept for ever. No personal data.",
    )
    op.create_table(
        "login_attempts",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("subject_digest", sa.LargeBinary(), nullable=False),
        sa.Column("count", sa.Integer(), server_default="1", nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_login_attempts")),
        comment="Failed logins by digest of name or address, for limits. One day. None.",
    )
    op.create_index(op.f("ix_login_attempts_subject_digest"), "login_attempts", ["subject_digest"], unique=False)
    op.create_table(
        "model_servers",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("url", sa.Text(), server_default="", nullable=False),
        sa.Column("base_id", sa.Text(), nullable=True),
        sa.Column("probe_state", sa.Text(), server_default="unknown", nullable=False),
        sa.Column(
            "probe_detail",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("probed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("probe_state in ('unknown', 'passed', 'failed')", name=op.f("ck_model_servers_probe_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_servers")),
        sa.UniqueConstraint("url", name=op.f("uq_model_servers_url")),
        comment="A model server and whether its isolation probe passed since its start; if not, no adapter is routed to it. No personal data.",
    )
    op.create_table(
        "people",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("language", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), server_default="active", nullable=False),
        sa.Column("display_name", sa.Text(), nullable=True),
        sa.Column("recovery_hash", sa.LargeBinary(), nullable=True),
        sa.Column("memory_version", sa.Integer(), server_default="0", nullable=False),
        sa.Column("asked_consent", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("status in ('active', 'blocked', 'opted_out', 'forgotten')", name=op.f("ck_people_status")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_people")),
        sa.UniqueConstraint("recovery_hash", name=op.f("uq_people_recovery_hash")),
        comment="A person who talks. Kept until forgotten. Service.",
    )
    op.create_table(
        "switches",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("paused", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("changed_by", sa.Text(), nullable=True),
        sa.Column("changed_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("name in ('intake', 'scoring', 'training', 'release')", name=op.f("ck_switches_name")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_switches")),
        comment="Pause of intake, scoring, training, release. Kept for ever. No personal data.",
    )
    op.create_index("uq_switches_name", "switches", ["name"], unique=True)
    op.create_table(
        "accounts",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column("bot_id", sa.Uuid(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("alias", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), server_default="active", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("status in ('active', 'blocked', 'opted_out')", name=op.f("ck_accounts_status")),
        sa.ForeignKeyConstraint(["bot_id"], ["bots.id"], name=op.f("fk_accounts_bot_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_accounts_person_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_accounts")),
        sa.UniqueConstraint("bot_id", "external_id", name=op.f("uq_accounts_bot_id_external_id")),
        comment="A person's identity on one channel (Telegram user id, WhatsApp id, web cookie digest). Until forgotten. Service.",
    )
    op.create_index(
        "ix_accounts_alias", "accounts", ["bot_id", "alias"], unique=True, postgresql_where=sa.text("alias is not null")
    )
    op.create_index(op.f("ix_accounts_bot_id"), "accounts", ["bot_id"], unique=False)
    op.create_index(op.f("ix_accounts_person_id"), "accounts", ["person_id"], unique=False)
    op.create_table(
        "admin_sessions",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("admin_id", sa.Uuid(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("csrf_hash", sa.LargeBinary(), nullable=False),
        sa.Column("user_agent", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["admin_id"], ["admins.id"], name=op.f("fk_admin_sessions_admin_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_admin_sessions")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_admin_sessions_token_hash")),
        comment="Panel sessions by digest of an opaque id, with idle and absolute end. 30 days after their end. Own account.",
    )
    op.create_index(op.f("ix_admin_sessions_admin_id"), "admin_sessions", ["admin_id"], unique=False)
    op.create_table(
        "bot_identities",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("bot_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("system_prompt", sa.Text(), nullable=False),
        sa.Column(
            "facts", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("contact", sa.Text(), nullable=True),
        sa.Column("privacy_notice", sa.Text(), nullable=False),
        sa.Column("languages", postgresql.ARRAY(sa.Text()), server_default=sa.text("'{en,ko}'"), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["bot_id"], ["bots.id"], name=op.f("fk_bot_identities_bot_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bot_identities")),
        sa.UniqueConstraint("bot_id", "version", name=op.f("uq_bot_identities_bot_id_version")),
        comment="Versions of a bot's identity: name, system prompt, facts, contact, privacy notice. Kept for ever. No personal data.",
    )
    op.create_index(op.f("ix_bot_identities_bot_id"), "bot_identities", ["bot_id"], unique=False)
    op.create_table(
        "chats",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("bot_id", sa.Uuid(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("thread", sa.Text(), server_default="", nullable=False),
        sa.Column("kind", sa.Text(), server_default="private", nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=True),
        sa.Column("status", sa.Text(), server_default="active", nullable=False),
        sa.Column(
            "state", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("kind in ('private', 'group', 'channel')", name=op.f("ck_chats_kind")),
        sa.CheckConstraint("status in ('active', 'paused', 'gone')", name=op.f("ck_chats_status")),
        sa.ForeignKeyConstraint(["bot_id"], ["bots.id"], name=op.f("fk_chats_bot_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_chats_person_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chats")),
        sa.UniqueConstraint("bot_id", "external_id", "thread", name=op.f("uq_chats_bot_id_external_id_thread")),
        comment="One (bot, chat, thread); `state` holds what the dialogue waits for. Until its person is forgotten. Service.",
    )
    op.create_index(op.f("ix_chats_bot_id"), "chats", ["bot_id"], unique=False)
    op.create_index(op.f("ix_chats_person_id"), "chats", ["person_id"], unique=False)
    op.create_table(
        "consent_events",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("notice_version", sa.Text(), nullable=False),
        sa.Column("notice_language", sa.Text(), nullable=False),
        sa.Column("notice_digest", sa.LargeBinary(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "event in ('given', 'refused', 'withdrawn', 'expired', 'renewed')", name=op.f("ck_consent_events_event")
        ),
        sa.CheckConstraint(
            "purpose in ('service', 'memory', 'personal_training', 'shared_training', 'human_review', 'outside_judge')",
            name=op.f("ck_consent_events_purpose"),
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("fk_consent_events_person_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_consent_events")),
        comment="The log of consent, one event per purpose: what was asked in which words, and the answer. Until forgotten. Service.",
    )
    op.create_index("ix_consent_events_latest", "consent_events", ["person_id", "purpose", "at"], unique=False)
    op.create_index(op.f("ix_consent_events_person_id"), "consent_events", ["person_id"], unique=False)
    op.create_table(
        "inbox",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("bot_id", sa.Uuid(), nullable=False),
        sa.Column("lane", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.Column("state", sa.Text(), server_default="stored", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("received_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state in ('stored', 'claimed', 'done', 'refused', 'quarantined', 'dead')", name=op.f("ck_inbox_state")
        ),
        sa.ForeignKeyConstraint(["bot_id"], ["bots.id"], name=op.f("fk_inbox_bot_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_inbox")),
        comment="Raw updates as they came, before parsing; one claimed row per lane keeps a chat in order. Bodies go after RAW_BODY_DAYS or when forgotten. Service.",
    )
    op.create_index(op.f("ix_inbox_bot_id"), "inbox", ["bot_id"], unique=False)
    op.create_index("ix_inbox_claimed", "inbox", ["lane"], unique=True, postgresql_where=sa.text("state = 'claimed'"))
    op.create_index(
        "ix_inbox_waiting",
        "inbox",
        ["lane", "id"],
        unique=False,
        postgresql_where=sa.text("state in ('stored', 'claimed')"),
    )
    op.create_table(
        "invitations",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("code_hash", sa.LargeBinary(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("person_id", sa.Uuid(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("fk_invitations_person_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitations")),
        sa.UniqueConstraint("code_hash", name=op.f("uq_invitations_code_hash")),
        comment="One-time codes that let a newcomer in where the gateway is reachable beyond loopback. Until used or expired. None.",
    )
    op.create_index(op.f("ix_invitations_person_id"), "invitations", ["person_id"], unique=False)
    op.create_table(
        "jobs",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=True),
        sa.Column(
            "payload", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("state", sa.Text(), server_default="queued", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("max_attempts", sa.Integer(), server_default="3", nullable=False),
        sa.Column("fence", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("woken_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "progress", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("cancel_requested", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("queue in ('score', 'train', 'evaluate', 'release')", name=op.f("ck_jobs_queue")),
        sa.CheckConstraint("state in ('queued', 'running', 'done', 'failed', 'cancelled')", name=op.f("ck_jobs_state")),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_jobs_person_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        comment="Work for the learner; a broker message carries only the id. Finished jobs 90 days. Ids only, no texts.",
    )
    op.create_index(
        "ix_jobs_due",
        "jobs",
        ["queue", "due_at"],
        unique=False,
        postgresql_where=sa.text("state in ('queued', 'running')"),
    )
    op.create_index(
        "ix_jobs_live_key", "jobs", ["key"], unique=True, postgresql_where=sa.text("state in ('queued', 'running')")
    )
    op.create_index(op.f("ix_jobs_person_id"), "jobs", ["person_id"], unique=False)
    op.create_table(
        "polling_leases",
        sa.Column("bot_id", sa.Uuid(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("next_offset", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["bot_id"], ["bots.id"], name=op.f("fk_polling_leases_bot_id"), ondelete="CASCADE"),
        sa.UniqueConstraint("bot_id", name=op.f("uq_polling_leases_bot_id")),
        comment="Which gateway polls a bot, and from which offset. While it polls. No personal data.",
    )
    op.create_index(op.f("ix_polling_leases_bot_id"), "polling_leases", ["bot_id"], unique=False)
    op.create_table(
        "snapshots",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=True),
        sa.Column(
            "manifest", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("salt", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("scope in ('person', 'global')", name=op.f("ck_snapshots_scope")),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_snapshots_person_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_snapshots")),
        sa.UniqueConstraint("digest", name=op.f("uq_snapshots_digest")),
        comment="An immutable, content-addressed manifest of what trains: salted item digests, settings, seed; no bodies. Until its person is forgotten. Personal or shared training.",
    )
    op.create_index(op.f("ix_snapshots_person_id"), "snapshots", ["person_id"], unique=False)
    op.create_table(
        "usage",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("messages", sa.Integer(), server_default="0", nullable=False),
        sa.Column("tokens", sa.Integer(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_usage_person_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_usage")),
        sa.UniqueConstraint("person_id", "day", name=op.f("uq_usage_person_id_day")),
        comment="Messages and tokens of a person per day, for quotas. Until forgotten. Service.",
    )
    op.create_index(op.f("ix_usage_person_id"), "usage", ["person_id"], unique=False)
    op.create_table(
        "snapshot_items",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("snapshot_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("item_id", sa.Uuid(), nullable=False),
        sa.Column("salted_digest", sa.LargeBinary(), nullable=False),
        sa.Column("split", sa.Text(), nullable=False),
        sa.CheckConstraint("kind in ('prompt', 'example', 'memory', 'feedback')", name=op.f("ck_snapshot_items_kind")),
        sa.CheckConstraint("split in ('train', 'gate')", name=op.f("ck_snapshot_items_split")),
        sa.ForeignKeyConstraint(
            ["snapshot_id"], ["snapshots.id"], name=op.f("fk_snapshot_items_snapshot_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_snapshot_items")),
        sa.UniqueConstraint("snapshot_id", "kind", "item_id", name=op.f("uq_snapshot_items_snapshot_id_kind_item_id")),
        comment="Which rows a snapshot names, so that forgetting one finds what it made. With its snapshot. Personal or shared training.",
    )
    op.create_index(op.f("ix_snapshot_items_item_id"), "snapshot_items", ["item_id"], unique=False)
    op.create_index(op.f("ix_snapshot_items_snapshot_id"), "snapshot_items", ["snapshot_id"], unique=False)
    op.create_table(
        "training_runs",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("snapshot_id", sa.Uuid(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=True),
        sa.Column("person_id", sa.Uuid(), nullable=True),
        sa.Column("state", sa.Text(), server_default="running", nullable=False),
        sa.Column("algorithm", sa.Text(), nullable=False),
        sa.Column(
            "settings", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("code_revision", sa.Text(), nullable=False),
        sa.Column(
            "metrics", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("state in ('running', 'done', 'failed', 'cancelled')", name=op.f("ck_training_runs_state")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_training_runs_job_id"), ondelete="SET NULL"),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("fk_training_runs_person_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["snapshot_id"], ["snapshots.id"], name=op.f("fk_training_runs_snapshot_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_training_runs")),
        comment="One training in its own process: settings, seed, code revision, metrics. With its snapshot. Personal or shared training.",
    )
    op.create_index(op.f("ix_training_runs_job_id"), "training_runs", ["job_id"], unique=False)
    op.create_index(op.f("ix_training_runs_person_id"), "training_runs", ["person_id"], unique=False)
    op.create_index(op.f("ix_training_runs_snapshot_id"), "training_runs", ["snapshot_id"], unique=False)
    op.create_table(
        "checkpoints",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=True),
        sa.Column("run_id", sa.Uuid(), nullable=True),
        sa.Column("parent_id", sa.Uuid(), nullable=True),
        sa.Column("base_id", sa.Text(), nullable=False),
        sa.Column("base_revision", sa.Text(), nullable=False),
        sa.Column("tokenizer_digest", sa.Text(), nullable=False),
        sa.Column("template_digest", sa.Text(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("targets", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), server_default="candidate", nullable=False),
        sa.Column("memory_ids", postgresql.ARRAY(sa.Uuid()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("scope in ('person', 'global')", name=op.f("ck_checkpoints_scope")),
        sa.CheckConstraint(
            "state in ('candidate', 'passed', 'refused', 'parked', 'retired', 'deleted')",
            name=op.f("ck_checkpoints_state"),
        ),
        sa.ForeignKeyConstraint(
            ["parent_id"], ["checkpoints.id"], name=op.f("fk_checkpoints_parent_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("fk_checkpoints_person_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["training_runs.id"], name=op.f("fk_checkpoints_run_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_checkpoints")),
        sa.UniqueConstraint("name", name=op.f("uq_checkpoints_name")),
        comment="One immutable trained adapter by content name, with base, tokenizer and template identity. The file goes when its person forgets it. Personal or shared training.",
    )
    op.create_index(op.f("ix_checkpoints_parent_id"), "checkpoints", ["parent_id"], unique=False)
    op.create_index(op.f("ix_checkpoints_person_id"), "checkpoints", ["person_id"], unique=False)
    op.create_index(op.f("ix_checkpoints_run_id"), "checkpoints", ["run_id"], unique=False)
    op.create_table(
        "rollout_artifacts",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=True),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["training_runs.id"], name=op.f("fk_rollout_artifacts_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rollout_artifacts")),
        sa.UniqueConstraint("run_id", name=op.f("uq_rollout_artifacts_run_id")),
        comment="Rollouts made for a run, as a second hashed artifact: snapshot + rollouts + settings + seed give the same adapter. With its run; the file goes when forgotten. Personal or shared training.",
    )
    op.create_index(op.f("ix_rollout_artifacts_run_id"), "rollout_artifacts", ["run_id"], unique=False)
    op.create_table(
        "training_steps",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("loss", sa.Float(), nullable=True),
        sa.Column(
            "metrics", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["training_runs.id"], name=op.f("fk_training_steps_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_training_steps")),
        sa.UniqueConstraint("run_id", "step", name=op.f("uq_training_steps_run_id_step")),
        comment="Loss, KL, tokens of each update. With its run. Figures only.",
    )
    op.create_index(op.f("ix_training_steps_run_id"), "training_steps", ["run_id"], unique=False)
    op.create_table(
        "gate_runs",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("checkpoint_id", sa.Uuid(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=True),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column(
            "thresholds", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("suite_digest", sa.Text(), nullable=True),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("verdict in ('passed', 'refused', 'inconclusive')", name=op.f("ck_gate_runs_verdict")),
        sa.ForeignKeyConstraint(
            ["checkpoint_id"], ["checkpoints.id"], name=op.f("fk_gate_runs_checkpoint_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_gate_runs_job_id"), ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gate_runs")),
        comment="One measurement of a checkpoint against all gates, with its thresholds. With its checkpoint. Figures only.",
    )
    op.create_index(op.f("ix_gate_runs_checkpoint_id"), "gate_runs", ["checkpoint_id"], unique=False)
    op.create_index(op.f("ix_gate_runs_job_id"), "gate_runs", ["job_id"], unique=False)
    op.create_table(
        "loaded_adapters",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("server_id", sa.Uuid(), nullable=False),
        sa.Column("checkpoint_id", sa.Uuid(), nullable=False),
        sa.Column("state", sa.Text(), server_default="loading", nullable=False),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("changed_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "state in ('loading', 'ready', 'failed', 'unloading')", name=op.f("ck_loaded_adapters_state")
        ),
        sa.ForeignKeyConstraint(
            ["checkpoint_id"], ["checkpoints.id"], name=op.f("fk_loaded_adapters_checkpoint_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["server_id"], ["model_servers.id"], name=op.f("fk_loaded_adapters_server_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_loaded_adapters")),
        sa.UniqueConstraint("server_id", "checkpoint_id", name=op.f("uq_loaded_adapters_server_id_checkpoint_id")),
        comment="Which checkpoint is loaded, warmed and checked on which server. While loaded. Ids only.",
    )
    op.create_index(op.f("ix_loaded_adapters_checkpoint_id"), "loaded_adapters", ["checkpoint_id"], unique=False)
    op.create_index(op.f("ix_loaded_adapters_server_id"), "loaded_adapters", ["server_id"], unique=False)
    op.create_table(
        "releases",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=True),
        sa.Column("checkpoint_id", sa.Uuid(), nullable=False),
        sa.Column("previous_id", sa.Uuid(), nullable=True),
        sa.Column("state", sa.Text(), server_default="pending", nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("actor", sa.Text(), nullable=True),
        sa.Column("announced_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("kept_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("scope in ('person', 'global')", name=op.f("ck_releases_scope")),
        sa.CheckConstraint(
            "state in ('pending', 'shadow', 'canary', 'live', 'superseded', 'rolled_back', 'retired')",
            name=op.f("ck_releases_state"),
        ),
        sa.ForeignKeyConstraint(
            ["checkpoint_id"], ["checkpoints.id"], name=op.f("fk_releases_checkpoint_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_releases_person_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["previous_id"], ["releases.id"], name=op.f("fk_releases_previous_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_releases")),
        comment="A checkpoint's place in routing and how it came and went. With its checkpoint. Service.",
    )
    op.create_index(op.f("ix_releases_checkpoint_id"), "releases", ["checkpoint_id"], unique=False)
    op.create_index(
        "ix_releases_live_global",
        "releases",
        ["scope"],
        unique=True,
        postgresql_where=sa.text("state = 'live' and scope = 'global'"),
    )
    op.create_index(
        "ix_releases_live_person",
        "releases",
        ["person_id"],
        unique=True,
        postgresql_where=sa.text("state = 'live' and scope = 'person'"),
    )
    op.create_index(op.f("ix_releases_person_id"), "releases", ["person_id"], unique=False)
    op.create_index(op.f("ix_releases_previous_id"), "releases", ["previous_id"], unique=False)
    op.create_table(
        "gate_results",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("gate_run_id", sa.Uuid(), nullable=False),
        sa.Column("gate", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("value", sa.Float(), nullable=True),
        sa.Column("bound", sa.Float(), nullable=True),
        sa.Column("threshold", sa.Float(), nullable=True),
        sa.Column(
            "detail", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.CheckConstraint(
            "outcome in ('passed', 'failed', 'inconclusive', 'skipped')", name=op.f("ck_gate_results_outcome")
        ),
        sa.ForeignKeyConstraint(
            ["gate_run_id"], ["gate_runs.id"], name=op.f("fk_gate_results_gate_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gate_results")),
        sa.UniqueConstraint("gate_run_id", "gate", name=op.f("uq_gate_results_gate_run_id_gate")),
        comment="One gate's outcome with n, value and bound. With its gate run. Figures only.",
    )
    op.create_index(op.f("ix_gate_results_gate_run_id"), "gate_results", ["gate_run_id"], unique=False)
    op.create_table(
        "sessions",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("chat_id", sa.Uuid(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=True),
        sa.Column("release_id", sa.Uuid(), nullable=True),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("split", sa.Text(), server_default="train", nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("last_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("split in ('train', 'heldout')", name=op.f("ck_sessions_split")),
        sa.ForeignKeyConstraint(["chat_id"], ["chats.id"], name=op.f("fk_sessions_chat_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_sessions_person_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["release_id"], ["releases.id"], name=op.f("fk_sessions_release_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("chat_id", "number", name=op.f("uq_sessions_chat_id_number")),
        comment="Turns of one chat until /new, 30 idle minutes or 24 hours; pins a release; `split` keeps gate prompts apart from training from the start. Until forgotten; without memory consent its turns' texts go when it ends. Service.",
    )
    op.create_index(op.f("ix_sessions_chat_id"), "sessions", ["chat_id"], unique=False)
    op.create_index(
        "ix_sessions_open", "sessions", ["chat_id"], unique=True, postgresql_where=sa.text("ended_at is null")
    )
    op.create_index(op.f("ix_sessions_person_id"), "sessions", ["person_id"], unique=False)
    op.create_index(op.f("ix_sessions_release_id"), "sessions", ["release_id"], unique=False)
    op.create_table(
        "turns",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("chat_id", sa.Uuid(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=True),
        sa.Column("inbox_id", sa.BigInteger(), nullable=True),
        sa.Column("sibling_of", sa.Uuid(), nullable=True),
        sa.Column("number", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("state", sa.Text(), server_default="waiting", nullable=False),
        sa.Column("user_text", sa.Text(), nullable=True),
        sa.Column("user_message_id", sa.Text(), nullable=True),
        sa.Column("reply_text", sa.Text(), nullable=True),
        sa.Column(
            "flags", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("prompt_token_ids", postgresql.ARRAY(sa.Integer()), nullable=True),
        sa.Column("response_token_ids", postgresql.ARRAY(sa.Integer()), nullable=True),
        sa.Column("response_logprobs", postgresql.ARRAY(sa.REAL()), nullable=True),
        sa.Column(
            "sampling", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("base_id", sa.Text(), nullable=True),
        sa.Column("base_revision", sa.Text(), nullable=True),
        sa.Column("tokenizer_digest", sa.Text(), nullable=True),
        sa.Column("template_digest", sa.Text(), nullable=True),
        sa.Column("checkpoint_id", sa.Uuid(), nullable=True),
        sa.Column("release_id", sa.Uuid(), nullable=True),
        sa.Column("identity_id", sa.Uuid(), nullable=True),
        sa.Column("memory_version", sa.Integer(), server_default="0", nullable=False),
        sa.Column(
            "memory_used",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("prompt_version", sa.Text(), nullable=True),
        sa.Column("finish_reason", sa.Text(), nullable=True),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("learnable", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("stop_requested", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("first_token_ms", sa.Float(), nullable=True),
        sa.Column("duration_ms", sa.Float(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state in ('waiting', 'generating', 'done', 'failed', 'stopped')", name=op.f("ck_turns_state")
        ),
        sa.ForeignKeyConstraint(["chat_id"], ["chats.id"], name=op.f("fk_turns_chat_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["checkpoint_id"], ["checkpoints.id"], name=op.f("fk_turns_checkpoint_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["identity_id"], ["bot_identities.id"], name=op.f("fk_turns_identity_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_turns_person_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["release_id"], ["releases.id"], name=op.f("fk_turns_release_id"), ondelete="SET NULL"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_turns_session_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["sibling_of"], ["turns.id"], name=op.f("fk_turns_sibling_of"), ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_turns")),
        sa.UniqueConstraint("inbox_id", name=op.f("uq_turns_inbox_id")),
        sa.UniqueConstraint("number", name=op.f("uq_turns_number")),
        comment="One message and its reply, with what made it: token ids, logprobs, base, checkpoint, memory and prompt versions. Texts live as long as the session without memory consent, else until forgotten. Service; memory; training by item.",
    )
    op.create_index(op.f("ix_turns_chat_id"), "turns", ["chat_id"], unique=False)
    op.create_index(op.f("ix_turns_checkpoint_id"), "turns", ["checkpoint_id"], unique=False)
    op.create_index(op.f("ix_turns_identity_id"), "turns", ["identity_id"], unique=False)
    op.create_index(op.f("ix_turns_person_id"), "turns", ["person_id"], unique=False)
    op.create_index(op.f("ix_turns_release_id"), "turns", ["release_id"], unique=False)
    op.create_index(op.f("ix_turns_session_id"), "turns", ["session_id"], unique=False)
    op.create_index("ix_turns_session_number", "turns", ["session_id", "number"], unique=False)
    op.create_index(op.f("ix_turns_sibling_of"), "turns", ["sibling_of"], unique=False)
    op.create_table(
        "feedback",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("turn_id", sa.Uuid(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("class", sa.Text(), nullable=True),
        sa.Column("scope", sa.Text(), server_default="person", nullable=False),
        sa.Column("duration", sa.Text(), server_default="lasting", nullable=False),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("evidence", sa.Text(), nullable=True),
        sa.Column("confidence", sa.Float(), nullable=True),
        sa.Column("classified_by", sa.Text(), nullable=True),
        sa.Column(
            "consents", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("language", sa.Text(), nullable=True),
        sa.Column(
            "flags", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("review_state", sa.Text(), server_default="new", nullable=False),
        sa.Column("review_reason", sa.Text(), nullable=True),
        sa.Column("reviewed_by", sa.Text(), nullable=True),
        sa.Column("reviewed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("quarantined", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("excluded", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "class in ('wrong_fact', 'style', 'preference', 'personal_fact', 'one_off', 'topic_change', 'abuse', 'praise', 'unclear')",
            name=op.f("ck_feedback_class"),
        ),
        sa.CheckConstraint(
            "classified_by in ('rule', 'judge', 'person', 'reviewer')", name=op.f("ck_feedback_classified_by")
        ),
        sa.CheckConstraint("duration in ('once', 'session', 'lasting')", name=op.f("ck_feedback_duration")),
        sa.CheckConstraint(
            "kind in ('vote', 'reason', 'correction', 'rewrite', 'implicit')", name=op.f("ck_feedback_kind")
        ),
        sa.CheckConstraint(
            "review_state in ('new', 'approved', 'rejected', 'quarantined', 'relabelled')",
            name=op.f("ck_feedback_review_state"),
        ),
        sa.CheckConstraint("scope in ('person', 'shared')", name=op.f("ck_feedback_scope")),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_feedback_person_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"], name=op.f("fk_feedback_turn_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_feedback")),
        comment="One thing a person said about a reply: class, scope, duration, evidence, confidence, the consents at that moment. Until forgotten; `excluded` rows never train. Service; human_review to be read; training by purpose.",
    )
    op.create_index(op.f("ix_feedback_person_id"), "feedback", ["person_id"], unique=False)
    op.create_index("ix_feedback_review", "feedback", ["review_state", "created_at"], unique=False)
    op.create_index(op.f("ix_feedback_turn_id"), "feedback", ["turn_id"], unique=False)
    op.create_table(
        "outbox",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("chat_id", sa.Uuid(), nullable=False),
        sa.Column("turn_id", sa.Uuid(), nullable=True),
        sa.Column("part", sa.Integer(), server_default="0", nullable=False),
        sa.Column("kind", sa.Text(), server_default="notice", nullable=False),
        sa.Column(
            "content", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("version", sa.Integer(), server_default="1", nullable=False),
        sa.Column("sent_version", sa.Integer(), server_default="0", nullable=False),
        sa.Column("provider_message_id", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), server_default="due", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("kind in ('reply', 'notice', 'file')", name=op.f("ck_outbox_kind")),
        sa.CheckConstraint("state in ('due', 'sending', 'sent', 'failed', 'withdrawn')", name=op.f("ck_outbox_state")),
        sa.ForeignKeyConstraint(["chat_id"], ["chats.id"], name=op.f("fk_outbox_chat_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"], name=op.f("fk_outbox_turn_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
        sa.UniqueConstraint("turn_id", "part", name=op.f("uq_outbox_turn_id_part")),
        comment="One row per message part: what it should show (version) and what the platform has (sent_version, its id). As long as its turn; notices RAW_BODY_DAYS. Service.",
    )
    op.create_index(op.f("ix_outbox_chat_id"), "outbox", ["chat_id"], unique=False)
    op.create_index(
        "ix_outbox_due",
        "outbox",
        ["chat_id", "id"],
        unique=False,
        postgresql_where=sa.text("state in ('due', 'sending')"),
    )
    op.create_index("ix_outbox_provider", "outbox", ["chat_id", "provider_message_id"], unique=False)
    op.create_index(op.f("ix_outbox_turn_id"), "outbox", ["turn_id"], unique=False)
    op.create_table(
        "scores",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("turn_id", sa.Uuid(), nullable=False),
        sa.Column("judge", sa.Text(), nullable=False),
        sa.Column("judge_version", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="pending", nullable=False),
        sa.Column("value", sa.Integer(), nullable=True),
        sa.Column("confidence", sa.Float(), nullable=True),
        sa.Column(
            "detail", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("state in ('pending', 'scored', 'no_verdict')", name=op.f("ck_scores_state")),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"], name=op.f("fk_scores_turn_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_scores")),
        sa.UniqueConstraint("turn_id", "judge", "judge_version", name=op.f("uq_scores_turn_id_judge_judge_version")),
        comment="A judge's majority verdict on a turn (process reward model). As long as its turn. Personal or shared training.",
    )
    op.create_index(op.f("ix_scores_turn_id"), "scores", ["turn_id"], unique=False)
    op.create_table(
        "vote_events",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("turn_id", sa.Uuid(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column("value", sa.Integer(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("fk_vote_events_person_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"], name=op.f("fk_vote_events_turn_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_vote_events")),
        comment="Every change of a vote. As long as its turn. Service.",
    )
    op.create_index(op.f("ix_vote_events_person_id"), "vote_events", ["person_id"], unique=False)
    op.create_index(op.f("ix_vote_events_turn_id"), "vote_events", ["turn_id"], unique=False)
    op.create_table(
        "votes",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("turn_id", sa.Uuid(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column("value", sa.Integer(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_votes_person_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"], name=op.f("fk_votes_turn_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_votes")),
        sa.UniqueConstraint("turn_id", "person_id", name=op.f("uq_votes_turn_id_person_id")),
        comment="The vote now in force of one person on one turn: 1, -1 or 0 (taken back). As long as its turn. Service.",
    )
    op.create_index(op.f("ix_votes_person_id"), "votes", ["person_id"], unique=False)
    op.create_index(op.f("ix_votes_turn_id"), "votes", ["turn_id"], unique=False)
    op.create_table(
        "evaluation_items",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("feedback_id", sa.Uuid(), nullable=True),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column(
            "checker", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("state", sa.Text(), server_default="candidate", nullable=False),
        sa.Column("reviewed_by", sa.Text(), nullable=True),
        sa.Column("origin_digest", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("state in ('candidate', 'approved', 'retired')", name=op.f("ck_evaluation_items_state")),
        sa.ForeignKeyConstraint(
            ["feedback_id"], ["feedback.id"], name=op.f("fk_evaluation_items_feedback_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluation_items")),
        comment="Facts and behaviours that several people corrected, reviewed, for gates of a global adapter. Until retired. shared_training.",
    )
    op.create_index(op.f("ix_evaluation_items_feedback_id"), "evaluation_items", ["feedback_id"], unique=False)
    op.create_table(
        "memory_lines",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column("feedback_id", sa.Uuid(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("checker", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("state", sa.Text(), server_default="active", nullable=False),
        sa.Column("uses", sa.Integer(), server_default="0", nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("session_ids", postgresql.ARRAY(sa.Uuid()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("checkpoint_id", sa.Uuid(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("kind in ('preference', 'fact')", name=op.f("ck_memory_lines_kind")),
        sa.CheckConstraint(
            "state in ('active', 'undone', 'graduated', 'replaced')", name=op.f("ck_memory_lines_state")
        ),
        sa.ForeignKeyConstraint(
            ["checkpoint_id"], ["checkpoints.id"], name=op.f("fk_memory_lines_checkpoint_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["feedback_id"], ["feedback.id"], name=op.f("fk_memory_lines_feedback_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("fk_memory_lines_person_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_memory_lines")),
        comment="A preference or personal fact that one sentence can say, its use and its failures. Until undone or forgotten. Memory.",
    )
    op.create_index(
        "ix_memory_lines_active",
        "memory_lines",
        ["person_id"],
        unique=False,
        postgresql_where=sa.text("state = 'active'"),
    )
    op.create_index(op.f("ix_memory_lines_checkpoint_id"), "memory_lines", ["checkpoint_id"], unique=False)
    op.create_index(op.f("ix_memory_lines_feedback_id"), "memory_lines", ["feedback_id"], unique=False)
    op.create_index(op.f("ix_memory_lines_person_id"), "memory_lines", ["person_id"], unique=False)
    op.create_table(
        "rewrites",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("feedback_id", sa.Uuid(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="offered", nullable=False),
        sa.Column("passed", sa.Boolean(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("state in ('offered', 'approved', 'declined', 'unfit')", name=op.f("ck_rewrites_state")),
        sa.ForeignKeyConstraint(
            ["feedback_id"], ["feedback.id"], name=op.f("fk_rewrites_feedback_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_rewrites_person_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rewrites")),
        comment="Retries sampled after a correction and what the person made of them. With their feedback. Service.",
    )
    op.create_index(op.f("ix_rewrites_feedback_id"), "rewrites", ["feedback_id"], unique=False)
    op.create_index(op.f("ix_rewrites_person_id"), "rewrites", ["person_id"], unique=False)
    op.create_table(
        "score_votes",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("score_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("value", sa.Integer(), nullable=True),
        sa.Column("hint", sa.Text(), nullable=True),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["score_id"], ["scores.id"], name=op.f("fk_score_votes_score_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_score_votes")),
        sa.UniqueConstraint("score_id", "number", name=op.f("uq_score_votes_score_id_number")),
        comment="One judge vote of m, or why there is none. As its score. Personal or shared training.",
    )
    op.create_index(op.f("ix_score_votes_score_id"), "score_votes", ["score_id"], unique=False)
    op.create_table(
        "examples",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("memory_id", sa.Uuid(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column("turn_id", sa.Uuid(), nullable=True),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column("bad", sa.Text(), nullable=True),
        sa.Column("good", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("source in ('approved', 'written')", name=op.f("ck_examples_source")),
        sa.ForeignKeyConstraint(
            ["memory_id"], ["memory_lines.id"], name=op.f("fk_examples_memory_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_examples_person_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"], name=op.f("fk_examples_turn_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_examples")),
        comment="What a good reply looks like for a memory line: approved by 👍 or written by the person; (bad, good) is an anchor. With its line. Memory; personal_training to train.",
    )
    op.create_index(op.f("ix_examples_memory_id"), "examples", ["memory_id"], unique=False)
    op.create_index(op.f("ix_examples_person_id"), "examples", ["person_id"], unique=False)
    op.create_index(op.f("ix_examples_turn_id"), "examples", ["turn_id"], unique=False)
    op.create_table(
        "ladder_decisions",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column("feedback_id", sa.Uuid(), nullable=True),
        sa.Column("memory_id", sa.Uuid(), nullable=True),
        sa.Column("rung", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column(
            "figures", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column(
            "thresholds", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "rung in ('nothing', 'ask', 'memory', 'adapter', 'evaluation')", name=op.f("ck_ladder_decisions_rung")
        ),
        sa.ForeignKeyConstraint(
            ["feedback_id"], ["feedback.id"], name=op.f("fk_ladder_decisions_feedback_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["memory_id"], ["memory_lines.id"], name=op.f("fk_ladder_decisions_memory_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("fk_ladder_decisions_person_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ladder_decisions")),
        comment="Each decision of the authority ladder: the rung, the rule that chose it, the figures and thresholds. As its feedback. Service.",
    )
    op.create_index(op.f("ix_ladder_decisions_feedback_id"), "ladder_decisions", ["feedback_id"], unique=False)
    op.create_index(op.f("ix_ladder_decisions_memory_id"), "ladder_decisions", ["memory_id"], unique=False)
    op.create_index(op.f("ix_ladder_decisions_person_id"), "ladder_decisions", ["person_id"], unique=False)
    op.create_table(
        "memory_events",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column("memory_id", sa.Uuid(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["memory_id"], ["memory_lines.id"], name=op.f("fk_memory_events_memory_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("fk_memory_events_person_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_memory_events")),
        sa.UniqueConstraint("person_id", "version", name=op.f("uq_memory_events_person_id_version")),
        comment="The versions of a person's memory: which line came, went, returned. Until forgotten. Memory.",
    )
    op.create_index(op.f("ix_memory_events_memory_id"), "memory_events", ["memory_id"], unique=False)
    op.create_index(op.f("ix_memory_events_person_id"), "memory_events", ["person_id"], unique=False)

    for statement in _APPEND_ONLY:
        op.execute(statement)


def downgrade() -> None:  # noqa: PLR0915 - the whole schema in one step
    """Take back."""
    op.drop_index(op.f("ix_memory_events_person_id"), table_name="memory_events")
    op.drop_index(op.f("ix_memory_events_memory_id"), table_name="memory_events")
    op.drop_table("memory_events")
    op.drop_index(op.f("ix_ladder_decisions_person_id"), table_name="ladder_decisions")
    op.drop_index(op.f("ix_ladder_decisions_memory_id"), table_name="ladder_decisions")
    op.drop_index(op.f("ix_ladder_decisions_feedback_id"), table_name="ladder_decisions")
    op.drop_table("ladder_decisions")
    op.drop_index(op.f("ix_examples_turn_id"), table_name="examples")
    op.drop_index(op.f("ix_examples_person_id"), table_name="examples")
    op.drop_index(op.f("ix_examples_memory_id"), table_name="examples")
    op.drop_table("examples")
    op.drop_index(op.f("ix_score_votes_score_id"), table_name="score_votes")
    op.drop_table("score_votes")
    op.drop_index(op.f("ix_rewrites_person_id"), table_name="rewrites")
    op.drop_index(op.f("ix_rewrites_feedback_id"), table_name="rewrites")
    op.drop_table("rewrites")
    op.drop_index(op.f("ix_memory_lines_person_id"), table_name="memory_lines")
    op.drop_index(op.f("ix_memory_lines_feedback_id"), table_name="memory_lines")
    op.drop_index(op.f("ix_memory_lines_checkpoint_id"), table_name="memory_lines")
    op.drop_index("ix_memory_lines_active", table_name="memory_lines", postgresql_where=sa.text("state = 'active'"))
    op.drop_table("memory_lines")
    op.drop_index(op.f("ix_evaluation_items_feedback_id"), table_name="evaluation_items")
    op.drop_table("evaluation_items")
    op.drop_index(op.f("ix_votes_turn_id"), table_name="votes")
    op.drop_index(op.f("ix_votes_person_id"), table_name="votes")
    op.drop_table("votes")
    op.drop_index(op.f("ix_vote_events_turn_id"), table_name="vote_events")
    op.drop_index(op.f("ix_vote_events_person_id"), table_name="vote_events")
    op.drop_table("vote_events")
    op.drop_index(op.f("ix_scores_turn_id"), table_name="scores")
    op.drop_table("scores")
    op.drop_index(op.f("ix_outbox_turn_id"), table_name="outbox")
    op.drop_index("ix_outbox_provider", table_name="outbox")
    op.drop_index("ix_outbox_due", table_name="outbox", postgresql_where=sa.text("state in ('due', 'sending')"))
    op.drop_index(op.f("ix_outbox_chat_id"), table_name="outbox")
    op.drop_table("outbox")
    op.drop_index(op.f("ix_feedback_turn_id"), table_name="feedback")
    op.drop_index("ix_feedback_review", table_name="feedback")
    op.drop_index(op.f("ix_feedback_person_id"), table_name="feedback")
    op.drop_table("feedback")
    op.drop_index(op.f("ix_turns_sibling_of"), table_name="turns")
    op.drop_index("ix_turns_session_number", table_name="turns")
    op.drop_index(op.f("ix_turns_session_id"), table_name="turns")
    op.drop_index(op.f("ix_turns_release_id"), table_name="turns")
    op.drop_index(op.f("ix_turns_person_id"), table_name="turns")
    op.drop_index(op.f("ix_turns_identity_id"), table_name="turns")
    op.drop_index(op.f("ix_turns_checkpoint_id"), table_name="turns")
    op.drop_index(op.f("ix_turns_chat_id"), table_name="turns")
    op.drop_table("turns")
    op.drop_index(op.f("ix_sessions_release_id"), table_name="sessions")
    op.drop_index(op.f("ix_sessions_person_id"), table_name="sessions")
    op.drop_index("ix_sessions_open", table_name="sessions", postgresql_where=sa.text("ended_at is null"))
    op.drop_index(op.f("ix_sessions_chat_id"), table_name="sessions")
    op.drop_table("sessions")
    op.drop_index(op.f("ix_gate_results_gate_run_id"), table_name="gate_results")
    op.drop_table("gate_results")
    op.drop_index(op.f("ix_releases_previous_id"), table_name="releases")
    op.drop_index(op.f("ix_releases_person_id"), table_name="releases")
    op.drop_index(
        "ix_releases_live_person",
        table_name="releases",
        postgresql_where=sa.text("state = 'live' and scope = 'person'"),
    )
    op.drop_index(
        "ix_releases_live_global",
        table_name="releases",
        postgresql_where=sa.text("state = 'live' and scope = 'global'"),
    )
    op.drop_index(op.f("ix_releases_checkpoint_id"), table_name="releases")
    op.drop_table("releases")
    op.drop_index(op.f("ix_loaded_adapters_server_id"), table_name="loaded_adapters")
    op.drop_index(op.f("ix_loaded_adapters_checkpoint_id"), table_name="loaded_adapters")
    op.drop_table("loaded_adapters")
    op.drop_index(op.f("ix_gate_runs_job_id"), table_name="gate_runs")
    op.drop_index(op.f("ix_gate_runs_checkpoint_id"), table_name="gate_runs")
    op.drop_table("gate_runs")
    op.drop_index(op.f("ix_training_steps_run_id"), table_name="training_steps")
    op.drop_table("training_steps")
    op.drop_index(op.f("ix_rollout_artifacts_run_id"), table_name="rollout_artifacts")
    op.drop_table("rollout_artifacts")
    op.drop_index(op.f("ix_checkpoints_run_id"), table_name="checkpoints")
    op.drop_index(op.f("ix_checkpoints_person_id"), table_name="checkpoints")
    op.drop_index(op.f("ix_checkpoints_parent_id"), table_name="checkpoints")
    op.drop_table("checkpoints")
    op.drop_index(op.f("ix_training_runs_snapshot_id"), table_name="training_runs")
    op.drop_index(op.f("ix_training_runs_person_id"), table_name="training_runs")
    op.drop_index(op.f("ix_training_runs_job_id"), table_name="training_runs")
    op.drop_table("training_runs")
    op.drop_index(op.f("ix_snapshot_items_snapshot_id"), table_name="snapshot_items")
    op.drop_index(op.f("ix_snapshot_items_item_id"), table_name="snapshot_items")
    op.drop_table("snapshot_items")
    op.drop_index(op.f("ix_usage_person_id"), table_name="usage")
    op.drop_table("usage")
    op.drop_index(op.f("ix_snapshots_person_id"), table_name="snapshots")
    op.drop_table("snapshots")
    op.drop_index(op.f("ix_polling_leases_bot_id"), table_name="polling_leases")
    op.drop_table("polling_leases")
    op.drop_index(op.f("ix_jobs_person_id"), table_name="jobs")
    op.drop_index("ix_jobs_live_key", table_name="jobs", postgresql_where=sa.text("state in ('queued', 'running')"))
    op.drop_index("ix_jobs_due", table_name="jobs", postgresql_where=sa.text("state in ('queued', 'running')"))
    op.drop_table("jobs")
    op.drop_index(op.f("ix_invitations_person_id"), table_name="invitations")
    op.drop_table("invitations")
    op.drop_index("ix_inbox_waiting", table_name="inbox", postgresql_where=sa.text("state in ('stored', 'claimed')"))
    op.drop_index("ix_inbox_claimed", table_name="inbox", postgresql_where=sa.text("state = 'claimed'"))
    op.drop_index(op.f("ix_inbox_bot_id"), table_name="inbox")
    op.drop_table("inbox")
    op.drop_index(op.f("ix_consent_events_person_id"), table_name="consent_events")
    op.drop_index("ix_consent_events_latest", table_name="consent_events")
    op.drop_table("consent_events")
    op.drop_index(op.f("ix_chats_person_id"), table_name="chats")
    op.drop_index(op.f("ix_chats_bot_id"), table_name="chats")
    op.drop_table("chats")
    op.drop_index(op.f("ix_bot_identities_bot_id"), table_name="bot_identities")
    op.drop_table("bot_identities")
    op.drop_index(op.f("ix_admin_sessions_admin_id"), table_name="admin_sessions")
    op.drop_table("admin_sessions")
    op.drop_index(op.f("ix_accounts_person_id"), table_name="accounts")
    op.drop_index(op.f("ix_accounts_bot_id"), table_name="accounts")
    op.drop_index("ix_accounts_alias", table_name="accounts", postgresql_where=sa.text("alias is not null"))
    op.drop_table("accounts")
    op.drop_index("uq_switches_name", table_name="switches")
    op.drop_table("switches")
    op.drop_table("people")
    op.drop_table("model_servers")
    op.drop_index(op.f("ix_login_attempts_subject_digest"), table_name="login_attempts")
    op.drop_table("login_attempts")
    op.drop_table("forget_receipts")
    op.drop_table("dedupe_keys")
    op.drop_table("bots")
    op.drop_index("ix_audit_log_at", table_name="audit_log")
    op.drop_table("audit_log")
    op.drop_index("uq_admins_login", table_name="admins")
    op.drop_table("admins")
    op.drop_table("admin_links")
    op.execute("drop function audit_log_is_append_only")
