"""A measured figure beside what is reached for, and the few statistics that figures need. Pure."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

Verdict = Literal["pass", "miss", "unmeasured"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure. `reach` bounds it from above where `at_most`, else from below; `n` is the number of pairs or calls.

    `key` names its sentence in the catalogue.
    """

    key: str
    value: float | None
    reach: float
    at_most: bool
    unit: str = ""
    n: int = 0
    detail: dict[str, object] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """Whether the figure reaches what it should; one that could not be measured never does."""
        if self.value is None or math.isnan(self.value):
            return "unmeasured"
        reached = self.value <= self.reach if self.at_most else self.value >= self.reach
        return "pass" if reached else "miss"

    def document(self) -> dict[str, object]:
        """Return the JSON form."""
        return {**asdict(self), "verdict": self.verdict}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A figure to be measured: its key, what is reached for, from which side, its unit."""

    key: str
    reach: float
    at_most: bool = True
    unit: str = ""

    def figure(self, value: float | None, n: int, detail: dict[str, object]) -> Figure:
        """Return the measured figure."""
        return Figure(self.key, value, self.reach, self.at_most, self.unit, n, detail)


def median(values: Sequence[float]) -> float:
    """Return the median; NaN without values."""
    return quantile(values, 0.5)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` of the values lie, between neighbours by straight line; NaN without values."""
    if not values:
        return math.nan
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def ratio(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the median of first ÷ second over interleaved pairs; NaN without pairs."""
    return median([first / second for first, second in pairs if second > 0])
