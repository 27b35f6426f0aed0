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
GRANTING = frozenset({"given", "renewed"})
# Meta lets business data train nothing but a model for that business's own use; what people write on WhatsApp therefore
# trains their own adapter and nothing else, whatever they allow.
PERSONAL_ONLY_CHANNELS = frozenset({"whatsapp"})
_SHARING = frozenset({Purpose.SHARED_TRAINING})


def usable(channel: str, purpose: Purpose) -> bool:
    """Whether what is said on `channel` may serve `purpose` at all; where not, consent to it is neither asked nor counted."""
    return channel not in PERSONAL_ONLY_CHANNELS or purpose not in _SHARING


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

    def on(self, channel: str) -> "Consents":
        """Return what of this counts for things said on `channel`."""
        return Consents(frozenset(p for p in self.allowed if usable(channel, p)), self.answered)

    def document(self) -> dict[str, bool]:
        """Return every purpose with its state, as captured beside feedback."""
        return {p.value: p in self.allowed for p in Purpose}
