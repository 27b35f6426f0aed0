"""The feedback queue: what may be read of it at this moment, and the reviewer's decision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, RowMapping, Select, and_, func, not_, or_, select, true, update

from app.domain.consent import Purpose
from app.errors import ConflictError, NotFoundError
from app.store.engine import Tx
from app.store.panel.reading import allows_now, only_if, read_all, read_one
from app.store.tables.feedback import feedback, votes
from app.store.tables.learning import checkpoints
from app.store.tables.people import bots, chats
from app.store.tables.road import turns

SNIPPET = 90


class ChosenByPersonError(ConflictError):
    """The person chose this class themself; a reviewer does not change it."""


@dataclass(frozen=True, slots=True)
class ReviewFilter:
    """Which feedback to show; an empty field does not filter. `readable` is `yes`, `no` or empty."""

    state: str = "new"
    feedback_class: str = ""
    kind: str = ""
    language: str = ""
    channel: str = ""
    readable: str = ""


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One line of the queue. `snippet` is None where it may not be read, or says nothing."""

    id: UUID
    kind: str
    feedback_class: str | None
    language: str | None
    review_state: str
    channel: str
    vote: int | None
    readable: bool
    snippet: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """One piece of feedback with its turn. Texts are None where their author does not allow review now."""

    id: UUID
    person_id: UUID
    turn_id: UUID
    session_id: UUID
    turn_number: int
    kind: str
    feedback_class: str | None
    scope: str
    duration: str
    confidence: float | None
    classified_by: str | None
    language: str | None
    flags: Mapping[str, object]
    consents: Mapping[str, object]
    review_state: str
    review_reason: str | None
    reviewed_by: str | None
    reviewed_at: datetime | None
    quarantined: bool
    excluded: bool
    created_at: datetime
    channel: str
    chat_kind: str
    vote: int | None
    readable: bool
    text: str | None
    user_text: str | None
    reply_text: str | None
    checkpoint_id: UUID | None
    checkpoint: str | None
    base_id: str | None
    memory_version: int
    prompt_version: str | None
    finish_reason: str | None
    learnable: bool
    tokens: int | None


@dataclass(frozen=True, slots=True)
class Decision:
    """What a reviewer decided; `seen_state` is the state they were looking at."""

    state: str
    seen_state: str
    reason: str | None
    feedback_class: str | None = None


_FEEDBACK_COLUMNS = (
    "id",
    "person_id",
    "turn_id",
    "kind",
    "scope",
    "duration",
    "confidence",
    "classified_by",
    "language",
    "flags",
    "consents",
    "review_state",
    "review_reason",
    "reviewed_by",
    "reviewed_at",
    "quarantined",
    "excluded",
    "created_at",
)
_TURN_COLUMNS = (
    "session_id",
    "checkpoint_id",
    "base_id",
    "memory_version",
    "prompt_version",
    "finish_reason",
    "learnable",
)

# Words that came from elsewhere belong to somebody who was not asked.
NOT_OWN = or_(
    func.coalesce(turns.c.flags["forwarded"].as_boolean(), False),
    func.coalesce(turns.c.flags["automated"].as_boolean(), False),
)
_passed_on = func.coalesce(feedback.c.flags["forwarded"].as_boolean(), False)
# Somebody else's words are in a group's turns, so their reader would need everybody's consent: they are not shown.
_readable = and_(chats.c.kind == "private", not_(_passed_on), allows_now(feedback.c.person_id, Purpose.HUMAN_REVIEW))
_turn_readable = and_(_readable, turns.c.person_id == feedback.c.person_id)
_vote = (
    select(votes.c.value)
    .where(votes.c.turn_id == feedback.c.turn_id, votes.c.person_id == feedback.c.person_id)
    .scalar_subquery()
)


def _from(query: Select[Any]) -> Select[Any]:
    return (
        query.select_from(feedback)
        .join(turns, turns.c.id == feedback.c.turn_id)
        .join(chats, chats.c.id == turns.c.chat_id)
        .join(bots, bots.c.id == chats.c.bot_id)
    )


def _conditions(wanted: ReviewFilter) -> ColumnElement[bool]:
    exact = {
        feedback.c.review_state: wanted.state,
        feedback.c["class"]: wanted.feedback_class,
        feedback.c.kind: wanted.kind,
        feedback.c.language: wanted.language,
        bots.c.channel: wanted.channel,
    }
    chosen = [column == value for column, value in exact.items() if value]
    if wanted.readable:
        chosen.append(_readable if wanted.readable == "yes" else not_(_readable))
    return and_(true(), *chosen)


async def channels(tx: Tx) -> Sequence[str]:
    """Return the channels that there are bots on."""
    return list(await tx.scalars(select(bots.c.channel).distinct().order_by(bots.c.channel)))


async def queue(tx: Tx, wanted: ReviewFilter, *, limit: int, offset: int) -> Sequence[QueueRow]:
    """Return the oldest first among the new, else the newest decision first."""
    order = feedback.c.created_at.asc() if wanted.state == "new" else feedback.c.created_at.desc()
    said = func.left(func.coalesce(feedback.c.text, only_if(_turn_readable, turns.c.reply_text)), SNIPPET)
    query = select(
        feedback.c.id,
        feedback.c.kind,
        feedback.c["class"].label("feedback_class"),
        feedback.c.language,
        feedback.c.review_state,
        bots.c.channel,
        _vote.label("vote"),
        _readable.label("readable"),
        only_if(_readable, said).label("snippet"),
        feedback.c.created_at,
    )
    query = _from(query).where(_conditions(wanted)).order_by(order, feedback.c.id).limit(limit).offset(offset)
    return await read_all(tx, QueueRow, query)


async def count(tx: Tx, wanted: ReviewFilter) -> int:
    """Return how many pieces of feedback `wanted` matches."""
    found = await tx.scalar(_from(select(func.count())).where(_conditions(wanted)))
    return int(found or 0)


async def item(tx: Tx, feedback_id: UUID) -> ReviewItem:
    """Return one piece of feedback.

    Raises:
        NotFoundError: there is none.
    """
    query = select(
        *(feedback.c[name] for name in _FEEDBACK_COLUMNS),
        feedback.c["class"].label("feedback_class"),
        *(turns.c[name] for name in _TURN_COLUMNS),
        turns.c.number.label("turn_number"),
        bots.c.channel,
        chats.c.kind.label("chat_kind"),
        _vote.label("vote"),
        _readable.label("readable"),
        only_if(_readable, feedback.c.text).label("text"),
        only_if(and_(_turn_readable, not_(NOT_OWN)), turns.c.user_text).label("user_text"),
        only_if(_turn_readable, turns.c.reply_text).label("reply_text"),
        checkpoints.c.name.label("checkpoint"),
        func.cardinality(turns.c.response_token_ids).label("tokens"),
    )
    query = _from(query).outerjoin(checkpoints, checkpoints.c.id == turns.c.checkpoint_id)
    found = await read_one(tx, ReviewItem, query.where(feedback.c.id == feedback_id))
    if found is None:
        raise NotFoundError
    return found


async def decide(tx: Tx, feedback_id: UUID, decision: Decision, actor: str) -> Mapping[str, object]:
    """Store a reviewer's decision and return the state before it, without texts.

    Raises:
        NotFoundError: there is no such feedback.
        ConflictError: somebody decided since the reviewer looked.
        ChosenByPersonError: another class than the one that the person chose.
    """
    row = await _locked(tx, feedback_id)
    if row["review_state"] != decision.seen_state:
        raise ConflictError
    given = decision.feedback_class if decision.feedback_class != row["class"] else None
    if given and row["classified_by"] == "person":
        raise ChosenByPersonError
    values: dict[str, object] = {
        "review_state": decision.state,
        "review_reason": decision.reason,
        "reviewed_by": None if decision.state == "new" else actor,
        "reviewed_at": None if decision.state == "new" else func.now(),
        "quarantined": decision.state == "quarantined",
    }
    if given:
        values |= {"class": given, "classified_by": "reviewer", "confidence": 1.0}
    await tx.execute(update(feedback).where(feedback.c.id == feedback_id).values(values))
    return {name: row[name] for name in ("review_state", "class", "review_reason", "quarantined")}


async def _locked(tx: Tx, feedback_id: UUID) -> RowMapping:
    columns = ("review_state", "class", "classified_by", "review_reason", "quarantined")
    query = select(*(feedback.c[name] for name in columns)).where(feedback.c.id == feedback_id).with_for_update()
    row = (await tx.execute(query)).mappings().one_or_none()
    if row is None:
        raise NotFoundError
    return row
