"""Around one piece of feedback: its conversation, the rewrites, who decided what, and what was trained with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import and_, not_, select

from app.domain.consent import Purpose
from app.store.engine import Tx
from app.store.panel.reading import allows_now, only_if, read_all
from app.store.panel.review import NOT_OWN, ReviewItem
from app.store.tables.feedback import ladder_decisions, memory_lines, rewrites, scores
from app.store.tables.learning import checkpoints, snapshot_items, snapshots, training_runs
from app.store.tables.road import turns


@dataclass(frozen=True, slots=True)
class ContextTurn:
    """An earlier or later exchange of the same session by the same person."""

    number: int
    user_text: str | None
    reply_text: str | None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A reply sampled after the correction, what the person made of it, whether the checker passed it."""

    text: str | None
    state: str
    passed: bool | None


@dataclass(frozen=True, slots=True)
class Rung:
    """A decision of the authority ladder about this feedback or the memory that came of it."""

    rung: str
    rule: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's verdict on the turn."""

    judge: str
    state: str
    value: int | None
    confidence: float | None


@dataclass(frozen=True, slots=True)
class Use:
    """A snapshot that names this feedback or its memory line, and the checkpoint that came of it."""

    digest: str
    checkpoint_id: UUID | None
    checkpoint: str | None
    state: str | None


async def context(tx: Tx, shown: ReviewItem, *, before: int, after: int) -> Sequence[ContextTurn]:
    """Return the turns around the rated one, none where they may not be read."""
    if not shown.readable:
        return []
    readable = and_(
        turns.c.session_id == shown.session_id,
        turns.c.person_id == shown.person_id,
        turns.c.number != shown.turn_number,
        allows_now(turns.c.person_id, Purpose.HUMAN_REVIEW),
    )
    columns = (turns.c.number, only_if(not_(NOT_OWN), turns.c.user_text).label("user_text"), turns.c.reply_text)
    earlier = select(*columns).where(readable, turns.c.number < shown.turn_number)
    later = select(*columns).where(readable, turns.c.number > shown.turn_number)
    found = [
        *await read_all(tx, ContextTurn, earlier.order_by(turns.c.number.desc()).limit(before)),
        *await read_all(tx, ContextTurn, later.order_by(turns.c.number).limit(after)),
    ]
    return sorted(found, key=lambda turn: turn.number)


async def rewrites_of(tx: Tx, shown: ReviewItem) -> Sequence[Rewrite]:
    """Return the replies sampled after the correction, approved ones first."""
    allowed = allows_now(rewrites.c.person_id, Purpose.HUMAN_REVIEW)
    query = (
        select(only_if(allowed, rewrites.c.text).label("text"), rewrites.c.state, rewrites.c.passed)
        .where(rewrites.c.feedback_id == shown.id)
        .order_by(rewrites.c.state != "approved", rewrites.c.created_at)
    )
    return await read_all(tx, Rewrite, query) if shown.readable else []


async def rungs(tx: Tx, feedback_id: UUID) -> Sequence[Rung]:
    """Return the ladder's decisions, oldest first."""
    lines = select(memory_lines.c.id).where(memory_lines.c.feedback_id == feedback_id)
    query = (
        select(ladder_decisions.c.rung, ladder_decisions.c.rule, ladder_decisions.c.at)
        .where((ladder_decisions.c.feedback_id == feedback_id) | ladder_decisions.c.memory_id.in_(lines))
        .order_by(ladder_decisions.c.at)
    )
    return await read_all(tx, Rung, query)


async def verdicts(tx: Tx, turn_id: UUID) -> Sequence[Verdict]:
    """Return what judges said about the turn."""
    query = select(scores.c.judge, scores.c.state, scores.c.value, scores.c.confidence)
    return await read_all(tx, Verdict, query.where(scores.c.turn_id == turn_id).order_by(scores.c.created_at))


async def uses(tx: Tx, feedback_id: UUID) -> Sequence[Use]:
    """Return the snapshots and checkpoints that this feedback, or the memory line it made, is part of."""
    lines = select(memory_lines.c.id).where(memory_lines.c.feedback_id == feedback_id)
    query = (
        select(
            snapshots.c.digest,
            checkpoints.c.id.label("checkpoint_id"),
            checkpoints.c.name.label("checkpoint"),
            checkpoints.c.state,
        )
        .select_from(snapshots)
        .join(snapshot_items, snapshot_items.c.snapshot_id == snapshots.c.id)
        .outerjoin(training_runs, training_runs.c.snapshot_id == snapshots.c.id)
        .outerjoin(checkpoints, checkpoints.c.run_id == training_runs.c.id)
        .where((snapshot_items.c.item_id == feedback_id) | snapshot_items.c.item_id.in_(lines))
        .distinct()
    )
    return await read_all(tx, Use, query)
