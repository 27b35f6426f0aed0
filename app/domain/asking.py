"""When a question how a reply was is worth its place: where the answer tells something, and within a person's budget.

judge_unsure     the judge gave no verdict on one of their last replies, or was not sure of it
votes_split      its votes on one of them disagreed
new_checkpoint   the first replies of a checkpoint that nobody's reaction speaks of yet
long_silence     many replies without a word about any

Knows nothing of channels, nor of whether a person may be asked at all just now (`app/store/asks.py`).
"""

from dataclasses import dataclass
from enum import StrEnum

APART = 2
"""Least replies from one question to the next: never about two in a row."""
RECENT = 3
"""How many of the last replies a judge's doubt speaks of."""
SURE = 0.6
"""A verdict with less confidence than this is doubted."""


class Reason(StrEnum):
    """Why the answer would tell something; the strongest first."""

    VOTES_SPLIT = "votes_split"
    JUDGE_UNSURE = "judge_unsure"
    NEW_CHECKPOINT = "new_checkpoint"
    LONG_SILENCE = "long_silence"


@dataclass(frozen=True, slots=True)
class Limits:
    """How often a person may be asked in a day, and from when silence and a checkpoint's newness count, in replies."""

    per_day: int
    after_silent_replies: int
    new_checkpoint_replies: int

    @property
    def lately(self) -> int:
        """How many of a person's last replies have to be looked at."""
        return max(self.after_silent_replies, self.new_checkpoint_replies + 1, RECENT)


@dataclass(frozen=True, slots=True)
class Signals:
    """What is known at the end of a reply, itself counted in; replies are those to this person.

    `by_checkpoint`: replies by its checkpoint among the last ones, None for the base; `since_feedback` and `since_asked`:
    replies since a vote or words about one, and since a question (the number looked at where there was none, None for no
    question); `asked_today`: questions within a day; `confidence` and `split`: of the newest verdict on a recent reply.
    """

    by_checkpoint: int | None
    since_feedback: int
    since_asked: int | None
    asked_today: int
    no_verdict: bool = False
    confidence: float | None = None
    split: bool = False


def reason(signals: Signals, limits: Limits) -> Reason | None:
    """Return why to ask about a reply; None where it is not worth asking, or was asked enough."""
    if signals.asked_today >= limits.per_day or not _apart(signals, APART):
        return None
    if signals.split:
        return Reason.VOTES_SPLIT
    if signals.no_verdict or (signals.confidence is not None and signals.confidence < SURE):
        return Reason.JUDGE_UNSURE
    if signals.by_checkpoint is not None and signals.by_checkpoint <= limits.new_checkpoint_replies:
        return Reason.NEW_CHECKPOINT
    silent = signals.since_feedback >= limits.after_silent_replies
    return Reason.LONG_SILENCE if silent and _apart(signals, limits.after_silent_replies) else None


def _apart(signals: Signals, replies: int) -> bool:
    return signals.since_asked is None or signals.since_asked >= replies
