"""What people said about replies, and what was made of it: votes, feedback, decisions, memory, scores."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Uuid

from app.store.tables.base import born, document, link, metadata, moment, one_of, uuid_key, words

ASK_REASONS = ("judge_unsure", "votes_split", "new_checkpoint", "long_silence")
CLASSES = (
    "wrong_fact",
    "style",
    "preference",
    "personal_fact",
    "one_off",
    "topic_change",
    "abuse",
    "praise",
    "unclear",
)

votes = Table(
    "votes",
    metadata,
    uuid_key(),
    link("turn_id", "turns"),
    link("person_id", "people"),
    Column("value", Integer, nullable=False),
    words("source", nullable=False),
    born("changed_at"),
    UniqueConstraint("turn_id", "person_id"),
    comment="The vote now in force of one person on one turn: 1, -1 or 0 (taken back). As long as its turn. Service.",
)

vote_events = Table(
    "vote_events",
    metadata,
    uuid_key(),
    link("turn_id", "turns"),
    link("person_id", "people"),
    Column("value", Integer, nullable=False),
    words("source", nullable=False),
    born("at"),
    comment="Every change of a vote. As long as its turn. Service.",
)

asks = Table(
    "asks",
    metadata,
    uuid_key(),
    Column("turn_id", Uuid, ForeignKey("turns.id", ondelete="CASCADE"), nullable=False, unique=True),
    Column("person_id", Uuid, ForeignKey("people.id", ondelete="CASCADE"), nullable=False),
    Column("outbox_id", BigInteger, index=True),
    words("reason", nullable=False),
    born("asked_at"),
    moment("answered_at"),
    words("answer"),
    one_of("reason", *ASK_REASONS),
    one_of("answer", "up", "down", "words"),
    Index("ix_asks_person_asked_at", "person_id", "asked_at"),
    comment="Each question how a reply was: why it was asked, in which message, and what came of it. As long as its turn. Service.",
)

feedback = Table(
    "feedback",
    metadata,
    uuid_key(),
    link("turn_id", "turns"),
    link("person_id", "people"),
    words("kind", nullable=False),
    words("class"),
    words("scope", nullable=False, default="person"),
    words("duration", nullable=False, default="lasting"),
    words("text"),
    words("evidence"),
    Column("confidence", Float),
    words("classified_by"),
    document("consents"),
    words("language"),
    document("flags"),
    words("review_state", nullable=False, default="new"),
    words("review_reason"),
    words("reviewed_by"),
    moment("reviewed_at"),
    Column("quarantined", Boolean, nullable=False, server_default="false"),
    Column("excluded", Boolean, nullable=False, server_default="false"),
    born(),
    one_of("kind", "vote", "reason", "correction", "rewrite", "implicit"),
    one_of("class", *CLASSES),
    one_of("scope", "person", "shared"),
    one_of("duration", "once", "session", "lasting"),
    one_of("classified_by", "rule", "judge", "person", "reviewer"),
    one_of("review_state", "new", "approved", "rejected", "quarantined", "relabelled"),
    Index("ix_feedback_review", "review_state", "created_at"),
    comment="One thing a person said about a reply: class, scope, duration, evidence, confidence, the consents at that moment. "
    "Until forgotten; `excluded` rows never train. Service; human_review to be read; training by purpose.",
)

ladder_decisions = Table(
    "ladder_decisions",
    metadata,
    uuid_key(),
    link("person_id", "people"),
    link("feedback_id", "feedback", nullable=True),
    link("memory_id", "memory_lines", nullable=True),
    words("rung", nullable=False),
    words("rule", nullable=False),
    document("figures"),
    document("thresholds"),
    born("at"),
    one_of("rung", "nothing", "ask", "memory", "adapter", "evaluation"),
    comment="Each decision of the authority ladder: the rung, the rule that chose it, the figures and thresholds. As its feedback. Service.",
)

memory_lines = Table(
    "memory_lines",
    metadata,
    uuid_key(),
    link("person_id", "people"),
    link("feedback_id", "feedback", nullable=True, ondelete="SET NULL"),
    words("kind", nullable=False),
    words("text", nullable=False),
    document("checker", nullable=True),
    words("state", nullable=False, default="active"),
    Column("uses", Integer, nullable=False, server_default="0"),
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("session_ids", ARRAY(Uuid), nullable=False, server_default=text("'{}'")),
    link("checkpoint_id", "checkpoints", nullable=True, ondelete="SET NULL"),
    born(),
    moment("changed_at"),
    one_of("kind", "preference", "fact"),
    one_of("state", "active", "undone", "graduated", "replaced"),
    Index("ix_memory_lines_active", "person_id", postgresql_where=text("state = 'active'")),
    comment="A preference or personal fact that one sentence can say, its use and its failures. Until forgotten: an `undone` one is "
    "kept and not used. Memory.",
)

memory_events = Table(
    "memory_events",
    metadata,
    uuid_key(),
    link("person_id", "people"),
    link("memory_id", "memory_lines", nullable=True),
    Column("version", Integer, nullable=False),
    words("event", nullable=False),
    born("at"),
    UniqueConstraint("person_id", "version"),
    comment="The versions of a person's memory: which line came, went, returned. Until forgotten. Memory.",
)

examples = Table(
    "examples",
    metadata,
    uuid_key(),
    link("memory_id", "memory_lines"),
    link("person_id", "people"),
    link("turn_id", "turns", nullable=True),
    words("prompt", nullable=False),
    words("bad"),
    words("good", nullable=False),
    words("source", nullable=False),
    born(),
    one_of("source", "approved", "written"),
    comment="What a good reply looks like for a memory line: approved by 👍 or written by the person; (bad, good) is an anchor. "
    "With its line. Memory; personal_training to train.",
)

rewrites = Table(
    "rewrites",
    metadata,
    uuid_key(),
    link("feedback_id", "feedback"),
    link("person_id", "people"),
    words("text", nullable=False),
    words("state", nullable=False, default="offered"),
    Column("passed", Boolean),
    born(),
    one_of("state", "offered", "approved", "declined", "unfit"),
    comment="Retries sampled after a correction and what the person made of them. With their feedback. Service.",
)

scores = Table(
    "scores",
    metadata,
    uuid_key(),
    link("turn_id", "turns"),
    words("judge", nullable=False),
    words("judge_version", nullable=False),
    words("state", nullable=False, default="pending"),
    Column("value", Integer),
    Column("confidence", Float),
    document("detail"),
    born(),
    UniqueConstraint("turn_id", "judge", "judge_version"),
    one_of("state", "pending", "scored", "no_verdict"),
    comment="A judge's majority verdict on a turn (process reward model). As long as its turn. Personal or shared training.",
)

score_votes = Table(
    "score_votes",
    metadata,
    uuid_key(),
    link("score_id", "scores"),
    Column("number", Integer, nullable=False),
    Column("value", Integer),
    words("hint"),
    words("failure"),
    born(),
    UniqueConstraint("score_id", "number"),
    comment="One judge vote of m, or why there is none. As its score. Personal or shared training.",
)

evaluation_items = Table(
    "evaluation_items",
    metadata,
    uuid_key(),
    link("feedback_id", "feedback", nullable=True),
    words("prompt", nullable=False),
    document("checker"),
    words("state", nullable=False, default="candidate"),
    words("reviewed_by"),
    Column("origin_digest", LargeBinary),
    born(),
    one_of("state", "candidate", "approved", "retired"),
    comment="Facts and behaviours that several people corrected, reviewed, for gates of a global adapter. Until retired. shared_training.",
)
