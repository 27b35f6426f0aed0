"""Feedback rows, the decisions of the ladder about them, and the rewrites that were offered."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Row, select, update
from sqlalchemy.dialects.postgresql import insert

from app.domain.feedback import Classification, Feedback, FeedbackClass
from app.domain.ladder import Decision
from app.errors import NotFoundError
from app.store.engine import Tx
from app.store.tables.feedback import feedback, ladder_decisions, rewrites
from app.store.tables.road import turns

EXCLUDED_BY = "excluded_by"
ASKED_ANEW = "asked_anew_by"
BY_REVIEW = {EXCLUDED_BY: "review"}


@dataclass(frozen=True, slots=True)
class NewFeedback:
    """Feedback about to be stored."""

    turn_id: UUID
    person_id: UUID
    kind: str
    text: str | None
    evidence: str
    consents: Mapping[str, bool]
    language: str | None
    flags: Mapping[str, object]
    classification: Classification | None = None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A retry that was sampled after a correction."""

    id: UUID
    feedback_id: UUID
    text: str
    state: str


async def add(tx: Tx, new: NewFeedback) -> UUID:
    """Store feedback; return its id."""
    made = insert(feedback).values(
        turn_id=new.turn_id,
        person_id=new.person_id,
        kind=new.kind,
        text=new.text,
        evidence=new.evidence,
        consents=dict(new.consents),
        language=new.language,
        flags=dict(new.flags),
        **_classified(new.classification),
    )
    return UUID(str(await tx.scalar(made.returning(feedback.c.id))))


async def classify(tx: Tx, feedback_id: UUID, classification: Classification) -> None:
    """Keep a class; the caller makes sure that a person's own choice is not overruled."""
    await tx.execute(update(feedback).where(feedback.c.id == feedback_id).values(_classified(classification)))


async def access(tx: Tx, person_id: UUID, feedback_id: UUID) -> Feedback:
    """Return feedback of this person.

    Raises:
        NotFoundError: there is none, or it is somebody else's.
    """
    query = select(feedback).where(feedback.c.id == feedback_id, feedback.c.person_id == person_id)
    row = (await tx.execute(query)).one_or_none()
    if row is None:
        raise NotFoundError
    return _feedback(row)


async def by_evidence(tx: Tx, person_id: UUID, evidence: str) -> Feedback | None:
    """Return feedback that a crashed try stored already."""
    query = select(feedback).where(feedback.c.person_id == person_id, feedback.c.evidence == evidence)
    row = (await tx.execute(query.limit(1))).one_or_none()
    return _feedback(row) if row else None


async def last_correction(tx: Tx, person_id: UUID, chat_id: UUID) -> tuple[Feedback, str] | None:
    """Return the newest correction of this person in a chat, with its evidence."""
    query = select(feedback).join(turns, turns.c.id == feedback.c.turn_id)
    query = query.where(feedback.c.person_id == person_id, feedback.c.kind == "correction", turns.c.chat_id == chat_id)
    row = (await tx.execute(query.order_by(feedback.c.created_at.desc()).limit(1))).one_or_none()
    return (_feedback(row), row.evidence) if row else None


async def open_of_turn(tx: Tx, person_id: UUID, turn_id: UUID) -> Feedback | None:
    """Return the newest feedback of this person on a turn, but for what was a question after all."""
    mine = select(feedback).where(feedback.c.turn_id == turn_id, feedback.c.person_id == person_id)
    query = mine.where(~feedback.c.flags.has_key(ASKED_ANEW))
    row = (await tx.execute(query.order_by(feedback.c.created_at.desc()).limit(1))).one_or_none()
    return _feedback(row) if row else None


async def retract(tx: Tx, feedback_id: UUID) -> None:
    """Take feedback out of everything that learns, by its person's own word; it stays as a case."""
    own = feedback.c.flags.op("-")(EXCLUDED_BY)
    await tx.execute(update(feedback).where(feedback.c.id == feedback_id).values(excluded=True, flags=own))


async def was_a_question(tx: Tx, feedback_id: UUID, inbox_id: int) -> bool:
    """Note that an update has feedback answered as the question it was; False when another update did so before."""
    noted = {ASKED_ANEW: inbox_id}
    free = ~feedback.c.flags.has_key(ASKED_ANEW) | feedback.c.flags.contains(noted)
    asked = update(feedback).where(feedback.c.id == feedback_id, free)
    return (await tx.execute(asked.values(flags=feedback.c.flags.op("||")(noted)))).rowcount == 1


async def exclude_by_review(tx: Tx, feedback_id: UUID) -> None:
    """Keep feedback out of everything that learns, because a reviewer refused it."""
    kept_in = update(feedback).where(feedback.c.id == feedback_id, feedback.c.excluded.is_(False))
    await tx.execute(kept_in.values(excluded=True, flags=feedback.c.flags.op("||")(BY_REVIEW)))


async def readmit(tx: Tx, feedback_id: UUID) -> None:
    """Take a reviewer's refusal back. What its person took back stays out: their word stands above the review."""
    refused = update(feedback).where(feedback.c.id == feedback_id, feedback.c.flags.contains(BY_REVIEW))
    await tx.execute(refused.values(excluded=False, flags=feedback.c.flags.op("-")(EXCLUDED_BY)))


async def decide(
    tx: Tx, person_id: UUID, decision: Decision, *, feedback_id: UUID | None = None, memory_id: UUID | None = None
) -> None:
    """Keep a decision of the ladder with its reason."""
    await tx.execute(
        insert(ladder_decisions).values(
            person_id=person_id,
            feedback_id=feedback_id,
            memory_id=memory_id,
            rung=decision.rung.value,
            rule=decision.rule,
            figures=decision.figures,
            thresholds=decision.thresholds,
        )
    )


async def add_rewrite(tx: Tx, feedback_id: UUID, person_id: UUID, text: str, *, passed: bool | None) -> UUID:
    """Keep a sampled retry; one that failed its checker is never offered."""
    state = "unfit" if passed is False else "offered"
    made = insert(rewrites).values(feedback_id=feedback_id, person_id=person_id, text=text, state=state, passed=passed)
    return UUID(str(await tx.scalar(made.returning(rewrites.c.id))))


async def access_rewrite(tx: Tx, person_id: UUID, rewrite_id: UUID) -> Rewrite:
    """Return a rewrite of this person.

    Raises:
        NotFoundError: there is none, or it is somebody else's.
    """
    query = select(rewrites).where(rewrites.c.id == rewrite_id, rewrites.c.person_id == person_id)
    row = (await tx.execute(query)).one_or_none()
    if row is None:
        raise NotFoundError
    return Rewrite(row.id, row.feedback_id, row.text, row.state)


async def settle_rewrite(tx: Tx, rewrite_id: UUID, state: str) -> bool:
    """Keep what the person made of an offered rewrite; False when that was settled before."""
    offered = update(rewrites).where(rewrites.c.id == rewrite_id, rewrites.c.state == "offered")
    return (await tx.execute(offered.values(state=state))).rowcount == 1


async def next_rewrite(tx: Tx, feedback_id: UUID) -> Rewrite | None:
    """Return the next offered rewrite of a correction that nobody looked at yet."""
    query = select(rewrites).where(rewrites.c.feedback_id == feedback_id, rewrites.c.state == "offered")
    row = (await tx.execute(query.order_by(rewrites.c.created_at).limit(1))).one_or_none()
    return Rewrite(row.id, row.feedback_id, row.text, row.state) if row else None


def _classified(classification: Classification | None) -> dict[str, object]:
    if classification is None:
        return {}
    return {
        "class": classification.kind.value,
        "confidence": classification.confidence,
        "classified_by": classification.by,
        "duration": "once" if classification.kind is FeedbackClass.ONE_OFF else "lasting",
        "scope": "shared" if classification.kind is FeedbackClass.WRONG_FACT else "person",
    }


def _feedback(row: Row[tuple[object, ...]]) -> Feedback:
    kind = row._mapping["class"]  # noqa: SLF001 - public by its documentation; `class` is no attribute name
    found = FeedbackClass(kind) if kind else None
    said = (row.id, row.turn_id, row.person_id, row.kind, found, row.text, row.confidence, row.language)
    return Feedback(*said, row.classified_by, bool(row.flags.get("spoken")), ASKED_ANEW in row.flags)
