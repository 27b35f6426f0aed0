"""Lineage: jobs, snapshots, rollouts, runs, checkpoints, gates, releases, model servers."""

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, LargeBinary, Table, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Text, Uuid

from app.store.tables.base import born, document, link, metadata, moment, one_of, uuid_key, words

jobs = Table(
    "jobs",
    metadata,
    uuid_key(),
    words("kind", nullable=False),
    words("queue", nullable=False),
    words("key", nullable=False),
    link("person_id", "people", nullable=True),
    document("payload"),
    words("state", nullable=False, default="queued"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("max_attempts", Integer, nullable=False, server_default="3"),
    Column("fence", BigInteger, nullable=False, server_default="0"),
    words("owner"),
    moment("due_at"),
    moment("woken_at"),
    moment("heartbeat_at"),
    moment("lease_until"),
    document("progress"),
    Column("cancel_requested", Boolean, nullable=False, server_default="false"),
    words("error"),
    born(),
    moment("finished_at"),
    one_of("queue", "score", "train", "evaluate", "release"),
    one_of("state", "queued", "running", "done", "failed", "cancelled"),
    Index("ix_jobs_live_key", "key", unique=True, postgresql_where=text("state in ('queued', 'running')")),
    Index("ix_jobs_due", "queue", "due_at", postgresql_where=text("state in ('queued', 'running')")),
    Index("ix_jobs_person", "person_id", "created_at"),
    comment="Work for the learner; a broker message carries only the id. Finished jobs 90 days. Ids only, no texts.",
)

snapshots = Table(
    "snapshots",
    metadata,
    uuid_key(),
    words("digest", nullable=False),
    words("scope", nullable=False),
    link("person_id", "people", nullable=True),
    document("manifest"),
    Column("salt", LargeBinary, nullable=False),
    born(),
    UniqueConstraint("digest"),
    one_of("scope", "person", "global"),
    comment="An immutable, content-addressed manifest of what trains: salted item digests, settings, seed; no bodies. "
    "Until its person is forgotten. Personal or shared training.",
)

snapshot_items = Table(
    "snapshot_items",
    metadata,
    uuid_key(),
    link("snapshot_id", "snapshots"),
    words("kind", nullable=False),
    Column("item_id", Uuid, nullable=False, index=True),
    Column("salted_digest", LargeBinary, nullable=False),
    words("split", nullable=False),
    UniqueConstraint("snapshot_id", "kind", "item_id"),
    one_of("kind", "prompt", "example", "memory", "feedback"),
    one_of("split", "train", "gate"),
    comment="Which rows a snapshot names, so that forgetting one finds what it made. With its snapshot. Personal or shared training.",
)

training_runs = Table(
    "training_runs",
    metadata,
    uuid_key(),
    link("snapshot_id", "snapshots"),
    link("job_id", "jobs", nullable=True, ondelete="SET NULL"),
    link("person_id", "people", nullable=True),
    words("state", nullable=False, default="running"),
    words("algorithm", nullable=False),
    document("settings"),
    Column("seed", BigInteger, nullable=False),
    words("code_revision", nullable=False),
    document("metrics"),
    words("failure"),
    born("started_at"),
    moment("ended_at"),
    one_of("state", "running", "done", "failed", "cancelled"),
    comment="One training in its own process: settings, seed, code revision, metrics. With its snapshot. Personal or shared training.",
)

rollout_artifacts = Table(
    "rollout_artifacts",
    metadata,
    uuid_key(),
    link("run_id", "training_runs"),
    words("digest", nullable=False),
    words("path"),
    Column("rows", Integer, nullable=False),
    born(),
    UniqueConstraint("run_id"),
    comment="Rollouts made for a run, as a second hashed artifact: snapshot + rollouts + settings + seed give the same adapter. "
    "With its run; the file goes when forgotten. Personal or shared training.",
)

training_steps = Table(
    "training_steps",
    metadata,
    uuid_key(),
    link("run_id", "training_runs"),
    Column("step", Integer, nullable=False),
    Column("loss", Float),
    document("metrics"),
    born("at"),
    UniqueConstraint("run_id", "step"),
    comment="Loss, KL, tokens of each update. With its run. Figures only.",
)

checkpoints = Table(
    "checkpoints",
    metadata,
    uuid_key(),
    words("name", nullable=False),
    words("digest", nullable=False),
    words("scope", nullable=False),
    link("person_id", "people", nullable=True),
    link("run_id", "training_runs", nullable=True, ondelete="SET NULL"),
    link("parent_id", "checkpoints", nullable=True, ondelete="SET NULL"),
    words("base_id", nullable=False),
    words("base_revision", nullable=False),
    words("tokenizer_digest", nullable=False),
    words("template_digest", nullable=False),
    Column("rank", Integer, nullable=False),
    Column("targets", ARRAY(Text), nullable=False),
    words("path", nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    words("state", nullable=False, default="candidate"),
    Column("memory_ids", ARRAY(Uuid), nullable=False, server_default=text("'{}'")),
    born(),
    UniqueConstraint("name"),
    one_of("scope", "person", "global"),
    one_of("state", "candidate", "passed", "refused", "parked", "retired", "deleted"),
    comment="One immutable trained adapter by content name, with base, tokenizer and template identity. The file goes when its "
    "person forgets it. Personal or shared training.",
)

gate_runs = Table(
    "gate_runs",
    metadata,
    uuid_key(),
    link("checkpoint_id", "checkpoints"),
    link("job_id", "jobs", nullable=True, ondelete="SET NULL"),
    words("verdict"),
    document("thresholds"),
    words("suite_digest"),
    words("failure"),
    born("started_at"),
    moment("ended_at"),
    one_of("verdict", "passed", "refused", "inconclusive"),
    comment="One measurement of a checkpoint against all gates, with its thresholds. With its checkpoint. Figures only.",
)

gate_results = Table(
    "gate_results",
    metadata,
    uuid_key(),
    link("gate_run_id", "gate_runs"),
    words("gate", nullable=False),
    words("outcome", nullable=False),
    Column("n", Integer, nullable=False),
    Column("value", Float),
    Column("bound", Float),
    Column("threshold", Float),
    document("detail"),
    UniqueConstraint("gate_run_id", "gate"),
    one_of("outcome", "passed", "failed", "inconclusive", "skipped"),
    comment="One gate's outcome with n, value and bound. With its gate run. Figures only.",
)

releases = Table(
    "releases",
    metadata,
    uuid_key(),
    words("scope", nullable=False),
    link("person_id", "people", nullable=True),
    link("checkpoint_id", "checkpoints"),
    link("previous_id", "releases", nullable=True, ondelete="SET NULL"),
    words("state", nullable=False, default="pending"),
    words("reason"),
    words("actor"),
    moment("announced_at"),
    moment("kept_at"),
    born(),
    moment("changed_at"),
    one_of("scope", "person", "global"),
    one_of("state", "pending", "shadow", "canary", "live", "superseded", "rolled_back", "retired"),
    Index("ix_releases_person", "person_id"),
    Index(
        "ix_releases_live_person",
        "person_id",
        unique=True,
        postgresql_where=text("state = 'live' and scope = 'person'"),
    ),
    Index(
        "ix_releases_live_global", "scope", unique=True, postgresql_where=text("state = 'live' and scope = 'global'")
    ),
    comment="A checkpoint's place in routing and how it came and went. With its checkpoint. Service.",
)

model_servers = Table(
    "model_servers",
    metadata,
    uuid_key(),
    words("url", nullable=False, default=""),
    words("base_id"),
    words("probe_state", nullable=False, default="unknown"),
    document("probe_detail"),
    moment("probed_at"),
    moment("seen_at"),
    born(),
    UniqueConstraint("url"),
    one_of("probe_state", "unknown", "passed", "failed"),
    comment="A model server and whether its isolation probe passed since its start; if not, no adapter is routed to it. No personal data.",
)

loaded_adapters = Table(
    "loaded_adapters",
    metadata,
    uuid_key(),
    link("server_id", "model_servers"),
    link("checkpoint_id", "checkpoints"),
    words("state", nullable=False, default="loading"),
    words("failure"),
    born("changed_at"),
    UniqueConstraint("server_id", "checkpoint_id"),
    one_of("state", "loading", "ready", "failed", "unloading"),
    comment="Which checkpoint is loaded, warmed and checked on which server. While loaded. Ids only.",
)
