"""Who talks where, and what each person allowed: identities, people, accounts, chats, sessions, consent."""

from sqlalchemy import Boolean, Column, Index, Integer, LargeBinary, Table, Text, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import ARRAY

from app.store.tables.base import born, document, link, metadata, moment, one_of, uuid_key, words

bots = Table(
    "bots",
    metadata,
    uuid_key(),
    words("channel", nullable=False),
    words("external_id", nullable=False),
    born(),
    UniqueConstraint("channel", "external_id"),
    comment="One bot account on one channel. Kept while configured. No personal data.",
)

bot_identities = Table(
    "bot_identities",
    metadata,
    uuid_key(),
    link("bot_id", "bots"),
    Column("version", Integer, nullable=False),
    words("name", nullable=False),
    words("system_prompt", nullable=False),
    document("facts"),
    words("contact"),
    words("privacy_notice", nullable=False),
    Column("languages", ARRAY(Text), nullable=False, server_default=text("'{en,ko}'")),
    words("created_by"),
    born(),
    UniqueConstraint("bot_id", "version"),
    comment="Versions of a bot's identity: name, system prompt, facts, contact, privacy notice. Kept for ever. No personal data.",
)

content_templates = Table(
    "content_templates",
    metadata,
    uuid_key(),
    link("bot_id", "bots"),
    words("name", nullable=False),
    words("language", nullable=False),
    words("content_sid", nullable=False),
    Column("digest", LargeBinary, nullable=False),
    words("approval", nullable=False, default="unsubmitted"),
    born(),
    moment("checked_at"),
    UniqueConstraint("bot_id", "name", "language"),
    one_of("approval", "unsubmitted", "received", "pending", "approved", "rejected", "paused", "disabled", "deleted"),
    comment="Content templates that `mentee whatsapp setup` made at Twilio: which question or notice, in which language, the digest of "
    "what it says, and whether Meta approved it. Until replaced. No personal data.",
)

people = Table(
    "people",
    metadata,
    uuid_key(),
    words("language"),
    words("status", nullable=False, default="active"),
    words("display_name"),
    Column("recovery_hash", LargeBinary, unique=True),
    Column("memory_version", Integer, nullable=False, server_default="0"),
    Column("asked_consent", Boolean, nullable=False, server_default="false"),
    moment("last_seen_at"),
    born(),
    one_of("status", "active", "blocked", "opted_out", "forgotten"),
    comment="A person who talks. Kept until forgotten. Service.",
)

accounts = Table(
    "accounts",
    metadata,
    uuid_key(),
    link("person_id", "people"),
    link("bot_id", "bots"),
    words("external_id", nullable=False),
    words("alias"),
    words("status", nullable=False, default="active"),
    moment("told_at"),
    born(),
    UniqueConstraint("bot_id", "external_id"),
    Index("ix_accounts_alias", "bot_id", "alias", unique=True, postgresql_where=text("alias is not null")),
    one_of("status", "active", "blocked", "opted_out"),
    comment="A person's identity on one channel (Telegram user id, WhatsApp id, web cookie digest); `told_at`: since they opted out "
    "they were told how to come back. Until forgotten. Service.",
)

chats = Table(
    "chats",
    metadata,
    uuid_key(),
    link("bot_id", "bots"),
    words("external_id", nullable=False),
    words("thread", nullable=False, default=""),
    words("kind", nullable=False, default="private"),
    link("person_id", "people", nullable=True),
    words("status", nullable=False, default="active"),
    document("state"),
    moment("paused_at"),
    moment("told_at"),
    moment("heard_at"),
    moment("news_at"),
    born(),
    UniqueConstraint("bot_id", "external_id", "thread"),
    one_of("kind", "private", "group", "channel"),
    one_of("status", "active", "paused", "gone"),
    comment="One (bot, chat, thread); `state` holds what the dialogue waits for; `paused_at`: its person asked for a human, `told_at`: "
    "when it was last told why the bot does not answer; `heard_at`: when somebody last wrote or tapped in it, `news_at`: when they "
    "were last told by template that something waits for them. Until its person is forgotten. Service.",
)

sessions = Table(
    "sessions",
    metadata,
    uuid_key(),
    link("chat_id", "chats"),
    link("person_id", "people", nullable=True),
    link("release_id", "releases", nullable=True, ondelete="SET NULL"),
    Column("number", Integer, nullable=False),
    words("split", nullable=False, default="train"),
    born("started_at"),
    born("last_at"),
    moment("ended_at"),
    UniqueConstraint("chat_id", "number"),
    one_of("split", "train", "heldout"),
    Index("ix_sessions_open", "chat_id", unique=True, postgresql_where=text("ended_at is null")),
    comment="Turns of one chat until /new, 30 idle minutes or 24 hours; pins a release; `split` keeps gate prompts apart from "
    "training from the start. Until forgotten; without memory consent its turns' texts go when it ends. Service.",
)

consent_events = Table(
    "consent_events",
    metadata,
    uuid_key(),
    link("person_id", "people"),
    words("purpose", nullable=False),
    words("event", nullable=False),
    words("notice_version", nullable=False),
    words("notice_language", nullable=False),
    Column("notice_digest", LargeBinary, nullable=False),
    words("channel", nullable=False),
    words("evidence"),
    born("at"),
    one_of("purpose", "service", "memory", "personal_training", "shared_training", "human_review", "outside_judge"),
    one_of("event", "given", "refused", "withdrawn", "expired", "renewed"),
    Index("ix_consent_events_latest", "person_id", "purpose", "at"),
    comment="The log of consent, one event per purpose: what was asked in which words, and the answer. Until forgotten. Service.",
)

invitations = Table(
    "invitations",
    metadata,
    uuid_key(),
    Column("code_hash", LargeBinary, nullable=False, unique=True),
    words("created_by"),
    moment("expires_at"),
    moment("used_at"),
    link("person_id", "people", nullable=True, ondelete="SET NULL"),
    born(),
    comment="One-time codes that let a newcomer in where the gateway is reachable beyond loopback. Until used or expired. None.",
)

usage = Table(
    "usage",
    metadata,
    uuid_key(),
    link("person_id", "people"),
    Column("day", Text, nullable=False),
    Column("messages", Integer, nullable=False, server_default="0"),
    Column("tokens", Integer, nullable=False, server_default="0"),
    UniqueConstraint("person_id", "day"),
    comment="Messages and tokens of a person per day, for quotas. Until forgotten. Service.",
)

forget_receipts = Table(
    "forget_receipts",
    metadata,
    uuid_key(),
    Column("code_hash", LargeBinary, nullable=False, unique=True),
    document("summary"),
    words("state", nullable=False, default="running"),
    born(),
    moment("finished_at"),
    one_of("state", "running", "done"),
    comment="What a /forget removed, as counts; found by the receipt code alone. Kept for ever. No personal data.",
)
