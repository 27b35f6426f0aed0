"""The panel's own rows: admins, their sessions and one-time links, switches, the append-only audit log."""

from sqlalchemy import BigInteger, Boolean, Column, Identity, Index, Integer, LargeBinary, Table

from app.store.tables.base import born, document, link, metadata, moment, one_of, uuid_key, words

admins = Table(
    "admins",
    metadata,
    uuid_key(),
    words("login", nullable=False),
    words("password_hash", nullable=False),
    words("role", nullable=False, default="owner"),
    words("language"),
    Column("active", Boolean, nullable=False, server_default="true"),
    born(),
    Index("uq_admins_login", "login", unique=True),
    one_of("role", "viewer", "reviewer", "trainer", "releaser", "privacy", "owner"),
    comment="People who may open the panel. Until removed. Own account.",
)

admin_sessions = Table(
    "admin_sessions",
    metadata,
    uuid_key(),
    link("admin_id", "admins"),
    Column("token_hash", LargeBinary, nullable=False, unique=True),
    Column("csrf_hash", LargeBinary, nullable=False),
    words("user_agent"),
    born(),
    moment("seen_at", nullable=False),
    moment("expires_at", nullable=False),
    moment("ended_at"),
    comment="Panel sessions by digest of an opaque id, with idle and absolute end. 30 days after their end. Own account.",
)

admin_links = Table(
    "admin_links",
    metadata,
    uuid_key(),
    Column("token_hash", LargeBinary, nullable=False, unique=True),
    words("purpose", nullable=False, default="first_admin"),
    moment("expires_at", nullable=False),
    moment("used_at"),
    born(),
    one_of("purpose", "first_admin", "reset"),
    comment="One-time links that create or reset an admin. Until used or expired. None.",
)

login_attempts = Table(
    "login_attempts",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("subject_digest", LargeBinary, nullable=False, index=True),
    Column("count", Integer, nullable=False, server_default="1"),
    born("at"),
    comment="Failed logins by digest of name or address, for limits. One day. None.",
)

switches = Table(
    "switches",
    metadata,
    uuid_key(),
    words("name", nullable=False),
    Column("paused", Boolean, nullable=False, server_default="false"),
    words("reason"),
    words("changed_by"),
    born("changed_at"),
    Index("uq_switches_name", "name", unique=True),
    one_of("name", "intake", "scoring", "training", "release"),
    comment="Pause of intake, scoring, training, release. Kept for ever. No personal data.",
)

audit_log = Table(
    "audit_log",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    words("actor", nullable=False),
    words("event", nullable=False),
    words("subject"),
    words("before_digest"),
    words("after_digest"),
    words("reason"),
    document("detail"),
    born("at"),
    Index("ix_audit_log_at", "at"),
    comment="Append-only: who did what (subject:object:action), digests before and after, why. Kept for ever. Digests, no texts.",
)
