"""What the chat page shows: conversations, memory, consents, the release that answers, training on its way.

Reads only, each for one visitor. A conversation is a session; a notice without a turn belongs to the conversation that was
open when it was written, and to the coming one when none was.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import cast
from uuid import UUID

from sqlalchemy import CompoundSelect, DateTime, RowMapping, Select, Uuid, bindparam, case, func, or_, select, text

from app.domain.outgoing import Content, ContentDocument
from app.store.engine import Tx
from app.store.tables.feedback import examples, feedback, votes
from app.store.tables.learning import checkpoints, gate_runs, jobs, releases
from app.store.tables.people import chats, people, sessions
from app.store.tables.road import outbox, turns
from app.store.webchat import CHANNEL, Visitor

# How many of the newest rows the poll looks at one by one; of older parts it sees that one has another version.
WATCHED_ROWS = 40
SHORT_S = 1.0


@dataclass(frozen=True, slots=True)
class TurnView:
    """A turn as its person may see it."""

    id: UUID
    number: int
    state: str
    at: datetime
    user_text: str | None
    user_message_id: str | None
    sibling_of: UUID | None
    vote: int
    checkpoint: str | None
    checkpoint_scope: str | None
    base_id: str | None
    memory_version: int
    memory_used: int
    finish_reason: str | None
    failure: str | None
    first_token_ms: float | None
    duration_ms: float | None


@dataclass(frozen=True, slots=True)
class PartView:
    """One message part of the bot; `turn_id` is None for a notice of its own."""

    id: int
    turn_id: UUID | None
    kind: str
    content: Content
    version: int
    message_id: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class WordsView:
    """What a person said about a reply in words, or the reply they wrote themself as the example."""

    turn_id: UUID
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation, `number` counting from 1; `current` is the number of the newest."""

    number: int
    current: int
    turns: Sequence[TurnView] = ()
    parts: Sequence[PartView] = ()
    words: Sequence[WordsView] = ()


@dataclass(frozen=True, slots=True)
class Answering:
    """The adapter that answers this person now (their own, else everybody's), since when, and whether they kept it."""

    release_id: UUID
    name: str
    scope: str
    since: datetime
    kept: bool


@dataclass(frozen=True, slots=True)
class Training:
    """Learning on its way or just over: the stage, its state, its own progress, and a gate's verdict where there is one."""

    stage: str
    state: str
    progress: dict[str, object] = field(default_factory=dict)
    verdict: str | None = None


async def conversation(tx: Tx, visitor: Visitor, number: int | None = None) -> Conversation:
    """Return the conversation `number` (the newest by default); empty when there is none of that number."""
    known = (await tx.execute(_SESSIONS, {"chat": visitor.chat_id})).all()
    current = 1 + sum(1 for s in known if s.ended_at is not None)
    number = current if number is None else number
    if not 1 <= number <= current:
        return Conversation(number, current)
    session_id = known[number - 1].id if number <= len(known) else None
    shown = {
        "chat": visitor.chat_id,
        "person": visitor.person_id,
        "session": session_id,
        "opened": known[number - 2].ended_at if number > 1 else None,
        "closed": known[number - 1].ended_at if session_id else None,
    }
    return Conversation(
        number,
        current,
        [_turn(row) for row in (await tx.execute(_TURNS, shown)).mappings()] if session_id else (),
        [_part(row) for row in (await tx.execute(_PARTS, shown)).mappings()],
        [WordsView(r.turn_id, r.text, r.created_at) for r in await tx.execute(_WORDS, shown)] if session_id else (),
    )


def _turn(row: RowMapping) -> TurnView:
    values = dict(row)
    used = cast("dict[str, list[str]]", values.pop("memory_used"))
    return TurnView(memory_used=len(used.get("ids", ())), **values)  # none yet where nothing was generated


def _part(row: RowMapping) -> PartView:
    content = Content.of(cast("ContentDocument", row["content"] or {}))
    return PartView(
        row["id"], row["turn_id"], row["kind"], content, row["version"], row["provider_message_id"], row["created_at"]
    )


# An open page reads all this at every change: put together once.
_CHAT, _PERSON, _SESSION = (bindparam(name, type_=Uuid) for name in ("chat", "person", "session"))
_SESSIONS = select(sessions.c.id, sessions.c.ended_at).where(sessions.c.chat_id == _CHAT).order_by(sessions.c.number)
_TURNS = (
    select(
        turns.c.id,
        turns.c.number,
        turns.c.state,
        turns.c.created_at.label("at"),
        turns.c.user_text,
        turns.c.user_message_id,
        turns.c.sibling_of,
        func.coalesce(votes.c.value, 0).label("vote"),
        checkpoints.c.name.label("checkpoint"),
        checkpoints.c.scope.label("checkpoint_scope"),
        turns.c.base_id,
        turns.c.memory_version,
        turns.c.memory_used,
        turns.c.finish_reason,
        turns.c.failure,
        turns.c.first_token_ms,
        turns.c.duration_ms,
    )
    .outerjoin_from(turns, checkpoints, turns.c.checkpoint_id == checkpoints.c.id)
    .outerjoin(votes, (votes.c.turn_id == turns.c.id) & (votes.c.person_id == _PERSON))
    .where(turns.c.chat_id == _CHAT, turns.c.session_id == _SESSION)
    .order_by(turns.c.number)
)


def _parts() -> Select[tuple[object, ...]]:
    opened, closed = (
        bindparam("opened", type_=DateTime(timezone=True)),
        bindparam("closed", type_=DateTime(timezone=True)),
    )
    # Notices without a turn between two ends of sessions.
    loose = outbox.c.turn_id.is_(None) & (opened.is_(None) | (outbox.c.created_at >= opened))
    loose &= closed.is_(None) | (outbox.c.created_at < closed)
    # Of a file, which may be long, a page shows the name.
    content = case((outbox.c.kind == "file", outbox.c.content.delete_path(["text"])), else_=outbox.c.content)
    columns = ("id", "turn_id", "kind", "version", "provider_message_id", "created_at")
    return (
        select(*(outbox.c[name] for name in columns), content.label("content"))
        .outerjoin_from(outbox, turns, outbox.c.turn_id == turns.c.id)
        .where(outbox.c.chat_id == _CHAT, outbox.c.state != "withdrawn", (turns.c.session_id == _SESSION) | loose)
        .order_by(outbox.c.id)
    )


def _words() -> CompoundSelect[tuple[UUID, str, datetime]]:
    said = (
        select(feedback.c.turn_id, feedback.c.text, feedback.c.created_at)
        .join_from(feedback, turns, feedback.c.turn_id == turns.c.id)
        .where(turns.c.chat_id == _CHAT, feedback.c.person_id == _PERSON, turns.c.session_id == _SESSION)
        .where(feedback.c.text.is_not(None), feedback.c.kind.in_(("correction", "rewrite", "reason")))
    )
    written = (
        select(examples.c.turn_id, examples.c.good, examples.c.created_at)
        .join_from(examples, turns, examples.c.turn_id == turns.c.id)
        .where(turns.c.chat_id == _CHAT, examples.c.person_id == _PERSON, turns.c.session_id == _SESSION)
        .where(examples.c.source == "written")
    )
    return said.union_all(written).order_by("created_at")


_PARTS, _WORDS = _parts(), _words()


async def file_part(tx: Tx, visitor: Visitor, part_id: int) -> Content | None:
    """Return a file that was sent to the visitor, with its body as text; None when it is not theirs or no file."""
    query = select(outbox.c.content).where(
        outbox.c.id == part_id, outbox.c.chat_id == visitor.chat_id, outbox.c.state != "withdrawn"
    )
    document = (await tx.execute(query)).scalar_one_or_none()
    content = Content.of(document) if document else None
    return content if content and content.file_name else None


def _lane(visitor: Visitor) -> str:
    return f"{visitor.bot_id}:{CHANNEL}:{visitor.chat_external_id}"


# Only what keeps its place in the chat can take long, and what is done in a moment needs no sign.
_WORKING = """exists (
    select 1 from inbox where lane = :lane and state = 'claimed' and received_at < now() - make_interval(secs => :short)
)"""


async def working(tx: Tx, visitor: Visitor) -> bool:
    """Whether something the visitor sent is being handled at this moment."""
    return bool(await tx.scalar(_IS_WORKING, {"lane": _lane(visitor), "short": SHORT_S}))


_IS_WORKING = text(f"select {_WORKING}")


async def fingerprint(tx: Tx, visitor: Visitor) -> str:
    """Return a value that changes when something the page shows of its newest conversation or of its person changes."""
    seen = {
        "chat": visitor.chat_id,
        "person": visitor.person_id,
        "lane": _lane(visitor),
        "rows": WATCHED_ROWS,
        "short": SHORT_S,
    }
    return str(await tx.scalar(_FINGERPRINT, seen))


# Every open page asks again and again: one statement, put together once.
_FINGERPRINT = text(f"""
    select encode(sha256(convert_to(concat_ws('|',
        (select string_agg(t.id || t.state, ',' order by t.number) from
            (select id, state, number from turns where chat_id = :chat order by number desc limit :rows) t),
        (select string_agg(concat_ws('/', o.id, o.version, coalesce(o.provider_message_id, '-'), o.state = 'withdrawn'), ','
                           order by o.id) from
            (select id, version, provider_message_id, state from outbox where chat_id = :chat order by id desc limit :rows) o),
        (select sum(version) from outbox where chat_id = :chat and version > 1),
        (select count(*) from sessions where chat_id = :chat and ended_at is not null),
        (select concat_ws('/', memory_version, language, status) from people where id = :person),
        (select max(at) from consent_events where person_id = :person),
        (select string_agg(concat_ws('/', id, state, kept_at), ',' order by id) from releases where person_id = :person),
        (select concat_ws('/', id, state, progress) from jobs
         where person_id = :person and queue in ('train', 'evaluate', 'release') order by created_at desc limit 1),
        {_WORKING}
    ), 'UTF8')), 'hex')
""")  # noqa: S608 - a constant of ours; values are bound


async def last_words(tx: Tx, visitor: Visitor) -> str:
    """Return what was told to a visitor who is forgotten: the chat made anew for it has no person. Empty when nothing."""
    query = (
        select(outbox.c.content)
        .join_from(outbox, chats, chats.c.id == outbox.c.chat_id)
        .where(chats.c.bot_id == visitor.bot_id, chats.c.external_id == visitor.chat_external_id)
        .where(chats.c.kind == "private", chats.c.person_id.is_(None))
        .order_by(outbox.c.id.desc())
    )
    document = await tx.scalar(query.limit(1))
    return Content.of(cast("ContentDocument", document)).text if document else ""


async def answering(tx: Tx, visitor: Visitor) -> Answering | None:
    """Return the live release that answers the visitor: their own before the one for everybody; None: the base alone."""
    row = (await tx.execute(_ANSWERING, {"person": visitor.person_id})).first()
    return Answering(row.id, row.name, row.scope, row.since, row.kept) if row else None


_ANSWERING = (
    select(
        releases.c.id,
        checkpoints.c.name,
        releases.c.scope,
        func.coalesce(releases.c.changed_at, releases.c.created_at).label("since"),
        releases.c.kept_at.is_not(None).label("kept"),
    )
    .join_from(releases, checkpoints, releases.c.checkpoint_id == checkpoints.c.id)
    .where(releases.c.state == "live")
    .where(or_(releases.c.person_id == _PERSON, releases.c.scope == "global"))
    .order_by((releases.c.scope == "global").asc())
    .limit(1)
)


async def training(tx: Tx, visitor: Visitor) -> Training | None:
    """Return the visitor's newest training job, and the gate's verdict when one was reached."""
    person = {"person": visitor.person_id}
    job = (await tx.execute(_NEWEST_JOB, person)).first()
    if job is None:
        return None
    return Training(job.queue, job.state, job.progress or {}, await tx.scalar(_NEWEST_VERDICT, person))


_NEWEST_JOB = (
    select(jobs.c.queue, jobs.c.state, jobs.c.progress)
    .where(jobs.c.person_id == _PERSON, jobs.c.queue.in_(("train", "evaluate", "release")))
    .order_by(jobs.c.created_at.desc())
    .limit(1)
)
_NEWEST_VERDICT = (
    select(gate_runs.c.verdict)
    .join_from(gate_runs, checkpoints, gate_runs.c.checkpoint_id == checkpoints.c.id)
    .where(checkpoints.c.person_id == _PERSON)
    .order_by(gate_runs.c.started_at.desc())
    .limit(1)
)


async def has_recovery_code(tx: Tx, visitor: Visitor) -> bool:
    """Whether a recovery code of the visitor is in force."""
    return bool(await tx.scalar(_HAS_CODE, {"person": visitor.person_id}))


_HAS_CODE = select(people.c.recovery_hash.is_not(None)).where(people.c.id == _PERSON)
