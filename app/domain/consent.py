"""Consent: purposes, events, and what a person allows at a moment. The log is the truth; this reads it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Self

NOTICE_VERSION = "2"
"""Raised whenever the words say something else about what is read, kept or trained."""


class Purpose(StrEnum):
    """What a consent is for; each is asked and withdrawn apart."""

    SERVICE = "service"
    MEMORY = "memory"
    PERSONAL_TRAINING = "personal_training"
    SHARED_TRAINING = "shared_training"
    HUMAN_REVIEW = "human_review"
    OUTSIDE_JUDGE = "outside_judge"


OPTIONAL = tuple(p for p in Purpose if p is not Purpose.SERVICE)
TRAINING = frozenset({Purpose.PERSONAL_TRAINING, Purpose.SHARED_TRAINING})
GRANTING = frozenset({"given", "renewed"})


@dataclass(frozen=True, slots=True)
class DataUse:
    """What the things said on a channel may serve at all; consent to anything else is neither asked nor counted there."""

    purposes: frozenset[Purpose]

    def serves(self, purpose: Purpose) -> bool:
        """Whether `purpose` may be served."""
        return purpose in self.purposes


EVERY_PURPOSE = DataUse(frozenset(Purpose))
"""Nothing but consent decides."""
NEVER_SHARED = DataUse(frozenset(Purpose) - {Purpose.SHARED_TRAINING})
"""Trains nothing but the person's own adapter, whatever they allow."""
UNSTATED = DataUse(frozenset({Purpose.SERVICE, Purpose.MEMORY}))
"""Where a channel's terms were not looked up: answers and memory; nothing is trained, and nobody else reads along."""


@dataclass(frozen=True, slots=True)
class ConsentEvent:
    """One answer: `event` is given, refused, withdrawn, expired or renewed."""

    purpose: Purpose
    event: str
    at: datetime
    notice_version: str = NOTICE_VERSION


@dataclass(frozen=True, slots=True)
class Consents:
    """What a person allows now."""

    allowed: frozenset[Purpose]
    answered: frozenset[Purpose] = frozenset()

    @classmethod
    def of(cls, events: Iterable[ConsentEvent]) -> Self:
        """Return the state after `events`, the last of each purpose deciding; of two at the same instant the one that refuses."""
        latest = {e.purpose: e for e in sorted(events, key=lambda e: (e.at, e.event not in GRANTING))}
        allowed = frozenset(p for p, e in latest.items() if e.event in GRANTING)
        return cls(allowed, frozenset(latest))

    def allows(self, purpose: Purpose) -> bool:
        """Whether `purpose` is allowed."""
        return purpose in self.allowed

    def within(self, rule: DataUse) -> "Consents":
        """Return what of this counts for things said on a channel with this rule."""
        return Consents(self.allowed & rule.purposes, self.answered)

    def document(self) -> dict[str, bool]:
        """Return every purpose with its state, as captured beside feedback."""
        return {p.value: p in self.allowed for p in Purpose}
