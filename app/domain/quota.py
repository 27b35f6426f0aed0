"""How much one person may ask of the model, and when they may again."""

from dataclasses import dataclass

MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class Usage:
    """What a person asked lately: replies begun within a minute, seconds since the oldest of them, tokens today (UTC)."""

    replies: int = 0
    oldest_s: float = 0.0
    tokens: int = 0
    day_left_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Over:
    """A quota that is used up: which, and in how many seconds there is room again."""

    quota: str
    resets_in_s: float


def over(usage: Usage, *, replies_a_minute: int, tokens_a_day: int) -> Over | None:
    """Return the quota that a person has used up, the one that lasts longer first; 0 stands for no limit."""
    if tokens_a_day and usage.tokens >= tokens_a_day:
        return Over("day", usage.day_left_s)
    if replies_a_minute and usage.replies >= replies_a_minute:
        return Over("minute", max(0.0, MINUTE_S - usage.oldest_s))
    return None
