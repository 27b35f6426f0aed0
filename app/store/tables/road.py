"""The road of a message: dedupe keys, inbox, lanes, turns, outbox, quarantine, polling leases."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, REAL

from app.store.tables.base import born, document, link, metadata, moment, one_of, uuid_key, words

dedupe_keys = Table(
    "dedupe_keys",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    born("seen_at"),
    comment="Keyed digests (HMAC) of every update ever accepted, so that a repeat has no effect. Kept for ever. No personal data.",
)

inbox = Table(
    "inbox",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    link("bot_id", "bots"),
    words("lane", nullable=False),
    Column("body", LargeBinary),
    words("state", nullable=False, default="stored"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    words("owner"),
    moment("lease_until"),
    moment("due_at"),
    words("error"),
    born("received_at"),
    moment("finished_at"),
    one_of("state", "stored", "claimed", "done", "refused", "quarantined", "dead"),
    Index("ix_inbox_waiting", "lane", "id", postgresql_where=text("state in ('stored', 'claimed')")),
    Index("ix_inbox_claimed", "lane", unique=True, postgresql_where=text("state = 'claimed'")),
    Index("ix_inbox_lane_id", "lane", "id"),
    comment="Raw updates as they came, before parsing; one claimed row per lane keeps a chat in order. Bodies go after "
    "RAW_BODY_DAYS or when forgotten. Service.",
)

polling_leases = Table(
    "polling_leases",
    metadata,
    link("bot_id", "bots"),
    words("owner", nullable=False),
    Column("next_offset", BigInteger, nullable=False, server_default="0"),
    moment("lease_until", nullable=False),
    UniqueConstraint("bot_id"),
    comment="Which gateway polls a bot, and from which offset. While it polls. No personal data.",
)

turns = Table(
    "turns",
    metadata,
    uuid_key(),
    link("session_id", "sessions"),
    link("chat_id", "chats"),
    link("person_id", "people", nullable=True),
    Column("inbox_id", BigInteger),
    link("sibling_of", "turns", nullable=True, ondelete="SET NULL"),
    Column("number", BigInteger, Identity(always=True), nullable=False, unique=True),
    words("state", nullable=False, default="waiting"),
    words("user_text"),
    words("user_message_id"),
    words("reply_text"),
    document("flags"),
    Column("prompt_token_ids", ARRAY(Integer)),
    Column("response_token_ids", ARRAY(Integer)),
    Column("response_logprobs", ARRAY(REAL)),
    document("sampling"),
    words("base_id"),
    words("base_revision"),
    words("tokenizer_digest"),
    words("template_digest"),
    link("checkpoint_id", "checkpoints", nullable=True, ondelete="SET NULL"),
    link("release_id", "releases", nullable=True, ondelete="SET NULL"),
    link("identity_id", "bot_identities", nullable=True, ondelete="SET NULL"),
    Column("memory_version", Integer, nullable=False, server_default="0"),
    document("memory_used"),
    words("prompt_version"),
    words("finish_reason"),
    words("failure"),
    Column("learnable", Boolean, nullable=False, server_default="false"),
    Column("stop_requested", Boolean, nullable=False, server_default="false"),
    Column("first_token_ms", Float),
    Column("duration_ms", Float),
    born(),
    moment("finished_at"),
    UniqueConstraint("inbox_id"),
    one_of("state", "waiting", "generating", "done", "failed", "stopped"),
    Index("ix_turns_person_created_at", "person_id", "created_at"),
    Index("ix_turns_session_number", "session_id", "number"),
    comment="One message and its reply, with what made it: token ids, logprobs (where training is allowed), base, checkpoint, memory "
    "and prompt versions. Texts live as long as the session without memory consent, else until forgotten. Service; memory; "
    "training by item.",
)

turn_pictures = Table(
    "turn_pictures",
    metadata,
    link("turn_id", "turns"),
    Column("number", Integer, nullable=False),
    link("person_id", "people", nullable=True),
    words("content_type", nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("width", Integer, nullable=False),
    Column("height", Integer, nullable=False),
    PrimaryKeyConstraint("turn_id", "number"),
    comment="Pictures that came with a message, as the model saw them: scaled down, without what cameras write beside the "
    "pixels. As long as the texts of their turn. Service; never training.",
)

outbox = Table(
    "outbox",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    link("chat_id", "chats"),
    link("turn_id", "turns", nullable=True),
    Column("part", Integer, nullable=False, server_default="0"),
    words("kind", nullable=False, default="notice"),
    document("content"),
    Column("version", Integer, nullable=False, server_default="1"),
    Column("sent_version", Integer, nullable=False, server_default="0"),
    words("provider_message_id"),
    words("state", nullable=False, default="due"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    words("owner"),
    moment("lease_until"),
    moment("due_at"),
    words("error"),
    words("delivery"),
    born(),
    moment("released_at"),
    moment("sent_at"),
    UniqueConstraint("turn_id", "part"),
    one_of("kind", "reply", "notice", "file"),
    one_of("state", "due", "sending", "held", "sent", "failed", "withdrawn"),
    one_of("delivery", "delivered", "read"),
    Index("ix_outbox_held", "chat_id", postgresql_where=text("state = 'held'")),
    Index("ix_outbox_due", "chat_id", "id", postgresql_where=text("state in ('due', 'sending')")),
    Index("ix_outbox_provider", "chat_id", "provider_message_id"),
    Index("ix_outbox_changed", "chat_id", "version", postgresql_where=text("version > 1")),
    comment="One row per message part: what it should show (version), what the platform has (sent_version, its id), and how far it "
    "came (`delivery`, where the platform tells). `held`: waits for the person's next word, HELD_DAYS at most; `released_at`: when "
    "that came. As long as its turn; notices RAW_BODY_DAYS. Service.",
)
