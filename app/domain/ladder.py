"""The authority ladder: which means a piece of feedback has earned. The cheapest that fixes the complaint comes first.

    nothing  -> one-off wishes, changed topics, abuse
    ask      -> not sure enough what was meant
    memory   -> a preference or personal fact that one sentence can say, at once
    adapter  -> a memory line that is stable and used, or keeps failing although it was in the prompt
    evaluation -> a fact that several people correct: to reviewers, never straight into weights

Every decision names its rule and carries the figures and thresholds it was made with.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from app.config import LadderSettings
from app.domain.consent import Consents, Purpose
from app.domain.feedback import TO_MEMORY, Classification, FeedbackClass
from app.domain.memory import MemoryLine

NEEDS_A_CHECK = "needs_a_check"


class Rung(StrEnum):
    """How far a piece of feedback got."""

    NOTHING = "nothing"
    ASK = "ask"
    MEMORY = "memory"
    ADAPTER = "adapter"
    EVALUATION = "evaluation"


@dataclass(frozen=True, slots=True)
class Decision:
    """A rung, the rule that chose it, and the figures it was chosen with."""

    rung: Rung
    rule: str
    figures: dict[str, float] = field(default_factory=dict)
    thresholds: dict[str, float] = field(default_factory=dict)


def decide_feedback(classification: Classification, consents: Consents, settings: LadderSettings) -> Decision:
    """Return the rung for one piece of feedback."""
    figures = {"confidence": classification.confidence}
    thresholds = {"min_confidence": settings.min_confidence}

    def decision(rung: Rung, rule: str) -> Decision:
        return Decision(rung, rule, figures, thresholds)

    if classification.kind in {
        FeedbackClass.ONE_OFF,
        FeedbackClass.TOPIC_CHANGE,
        FeedbackClass.ABUSE,
        FeedbackClass.PRAISE,
    }:
        return decision(Rung.NOTHING, f"class_{classification.kind}")
    if classification.confidence < settings.min_confidence:
        return decision(Rung.ASK, "confidence_below_threshold")
    if classification.kind is FeedbackClass.WRONG_FACT:
        rung = Rung.EVALUATION if consents.allows(Purpose.SHARED_TRAINING) else Rung.NOTHING
        return decision(rung, "fact_needs_several_people" if rung is Rung.EVALUATION else "no_shared_consent")
    if classification.kind in TO_MEMORY:
        allowed = consents.allows(Purpose.MEMORY)
        return decision(
            Rung.MEMORY if allowed else Rung.NOTHING, "one_sentence_says_it" if allowed else "no_memory_consent"
        )
    return decision(Rung.ASK, "class_unclear")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a memory line is on its way to the adapter: uses, sessions, examples, each against what it needs."""

    uses: int
    uses_needed: int
    sessions: int
    sessions_needed: int
    examples: int
    examples_needed: int


def progress(line: MemoryLine, settings: LadderSettings) -> Progress:
    """Return how far `line` is."""
    return Progress(
        line.uses,
        settings.graduate_after_uses,
        line.sessions,
        settings.graduate_after_sessions,
        len(line.examples),
        settings.graduate_min_examples,
    )


def decide_graduation(line: MemoryLine, consents: Consents, settings: LadderSettings) -> Decision:
    """Return `adapter` when `line` has earned it, else `memory` with the rule that holds it back."""
    figures = {
        "uses": float(line.uses),
        "sessions": float(line.sessions),
        "examples": float(len(line.examples)),
        "failures": float(line.failures),
    }
    thresholds = {
        "graduate_after_uses": float(settings.graduate_after_uses),
        "graduate_after_sessions": float(settings.graduate_after_sessions),
        "graduate_min_examples": float(settings.graduate_min_examples),
        "graduate_after_failures": float(settings.graduate_after_failures),
    }
    rung, rule = _graduation_rule(line, consents, settings)
    return Decision(rung, rule, figures, thresholds)


def _graduation_rule(line: MemoryLine, consents: Consents, settings: LadderSettings) -> tuple[Rung, str]:
    if not consents.allows(Purpose.PERSONAL_TRAINING):
        return Rung.MEMORY, "no_training_consent"
    if line.kind == "fact":
        return Rung.MEMORY, "facts_stay_in_memory"
    if len(line.examples) < settings.graduate_min_examples:
        return Rung.MEMORY, "needs_an_example"
    if not line.checker:
        # Nobody could say whether an adapter learnt it, so its gates would never end; memory does it meanwhile.
        return Rung.MEMORY, NEEDS_A_CHECK
    if line.sessions < settings.graduate_after_sessions:
        return Rung.MEMORY, "needs_more_conversations"
    if line.failures >= settings.graduate_after_failures:
        return Rung.ADAPTER, "keeps_failing"
    if line.uses >= settings.graduate_after_uses:
        return Rung.ADAPTER, "stable_and_used"
    return Rung.MEMORY, "needs_more_use"
