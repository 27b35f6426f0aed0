"""From a reaction to a decision: votes, reasons, corrections. Rules first, then the judge; the person's choice above both."""

from dataclasses import dataclass
from uuid import UUID

from app.config import LadderSettings
from app.domain.consent import Consents, Purpose
from app.domain.feedback import Classification, Feedback, FeedbackClass, classify_by_person, classify_by_rule
from app.domain.ladder import Decision, decide_feedback
from app.domain.turn import Turn
from app.errors import JudgeUnavailableError
from app.services.judging import Judge
from app.store import Tx, feedback, votes
from app.telemetry import Log

log = Log(__name__)
EVIDENCE_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Said:
    """What a person said about a reply, and in which circumstances."""

    turn: Turn
    person_id: UUID
    text: str
    kind: str
    evidence: str
    consents: Consents
    language: str
    forwarded: bool = False
    spoken: bool = False
    reason: str | None = None
    """What the person themself chose to be wrong, before they said it in words."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Stored feedback with its class and what the ladder decided."""

    feedback_id: UUID
    classification: Classification
    decision: Decision
    known_before: bool = False
    """Whether a try that was cut off had stored it."""


async def vote(tx: Tx, turn: Turn, person_id: UUID, value: int, source: str) -> bool:
    """Set a person's vote on their own turn; return whether it changed."""
    return await votes.cast_vote(tx, turn.id, person_id, value, source)


async def classify(said: Said, judge: Judge | None, settings: LadderSettings) -> Classification:
    """Return the class of what was said: the person's own choice, else the rules', else the judge's.

    The judge is asked only where rules are unsure and its use is allowed. One that is down or answers nonsense leaves the
    rules' answer: no verdict is never a verdict.
    """
    if said.reason:
        return classify_by_person(said.reason)
    by_rule = classify_by_rule(said.text)
    if (
        by_rule.confidence >= settings.min_confidence
        or judge is None
        or not said.consents.allows(Purpose.OUTSIDE_JUDGE)
    ):
        return by_rule
    try:
        return await judge.classify(said.turn.user_text or "", said.turn.reply_text or "", said.text)
    except JudgeUnavailableError:
        log.warning("feedback:judge:no_verdict", turn=said.turn.id)
        return by_rule


async def keep(tx: Tx, said: Said, classification: Classification, settings: LadderSettings) -> Judged:
    """Store what was said with its class, and what the ladder decides about it. A crashed try's row is used again."""
    known = await feedback.by_evidence(tx, said.person_id, said.evidence)
    feedback_id = known.id if known else await feedback.add(tx, _row(said, classification))
    decision = decide_feedback(classification, said.consents, settings)
    if known is None:
        await feedback.decide(tx, said.person_id, decision, feedback_id=feedback_id)
    return Judged(feedback_id, classification, decision, known is not None)


async def choose_reason(
    tx: Tx, person_id: UUID, feedback_id: UUID, reason: str, consents: Consents, settings: LadderSettings
) -> Judged:
    """Let a person's own choice of class stand above what rules or judge said, and decide anew."""
    classification = classify_by_person(reason)
    await feedback.classify(tx, feedback_id, classification)
    decision = decide_feedback(classification, consents, settings)
    await feedback.decide(tx, person_id, decision, feedback_id=feedback_id)
    return Judged(feedback_id, classification, decision)


async def decide_anew(tx: Tx, person_id: UUID, given: Feedback, consents: Consents, settings: LadderSettings) -> Judged:
    """Decide about stored feedback by what its person allows now."""
    kind = given.feedback_class or FeedbackClass.UNCLEAR
    classification = Classification(kind, given.confidence or 0.0, given.classified_by or "rule", "as_before")
    decision = decide_feedback(classification, consents, settings)
    await feedback.decide(tx, person_id, decision, feedback_id=given.id)
    return Judged(given.id, classification, decision)


def _row(said: Said, classification: Classification) -> feedback.NewFeedback:
    return feedback.NewFeedback(
        turn_id=said.turn.id,
        person_id=said.person_id,
        kind=said.kind,
        text=said.text or None,
        evidence=said.evidence[:EVIDENCE_LIMIT],
        consents=said.consents.document(),
        language=said.language,
        flags={"forwarded": said.forwarded, "spoken": said.spoken},
        classification=classification,
    )
