"""What a demonstration found: stages with their seconds, cells with their intervals, and what keeps it from being a proof.

Pure: figures and words of the program only, no text of the person.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from learner.gate.statistics import mcnemar_one_sided, wilson

STAGES = (
    "start",
    "base_rate",
    "consent",
    "talk",
    "correct",
    "graduate",
    "train",
    "gate",
    "release",
    "served",
    "cells",
    "bad_adapters",
    "go_back",
    "forget",
    "traces",
)
CELLS = ("base", "memory", "adapter", "other")
ALPHA = 0.05
LEAST_N = 16
HIGHEST_BASE_RATE = 0.2


@dataclass(slots=True)
class Stage:
    """One step of the road: how long it took, how many things it was about, what it saw."""

    name: str
    seconds: float = 0.0
    n: int = 0
    ok: bool = False
    figures: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cell:
    """Whether each held-out prompt was answered as wished, in the order of the prompts."""

    name: str
    held: tuple[bool, ...]
    tokens: tuple[tuple[int, ...], ...] = field(default=(), repr=False)

    @property
    def n(self) -> int:
        """How many prompts."""
        return len(self.held)

    @property
    def rate(self) -> float:
        """The share answered as wished; 0 without prompts."""
        return sum(self.held) / self.n if self.n else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Wilson interval of the rate."""
        return wilson(sum(self.held), self.n)

    def document(self) -> dict[str, object]:
        """Return the JSON form."""
        low, high = self.interval
        return {"n": self.n, "held": sum(self.held), "rate": self.rate, "low": low, "high": high}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two cells on the same prompts: wins and losses of the first, and the exact one-sided McNemar p."""

    first: str
    second: str
    wins: int
    losses: int
    p: float


@dataclass(slots=True)
class Report:
    """Everything a demonstration says."""

    seed: int
    wish: str = ""
    changed: dict[str, str] = field(default_factory=dict)
    """Settings of the installation that are not the defaults, by their names in `.env.example`."""
    stages: dict[str, Stage] = field(default_factory=dict)
    cells: dict[str, Cell] = field(default_factory=dict)
    gates: list[dict[str, object]] = field(default_factory=list)
    bad: dict[str, dict[str, object]] = field(default_factory=dict)
    seconds: float = 0.0
    error: str | None = None

    def document(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "seed": self.seed,
            "wish": self.wish,
            "changed": self.changed,
            "passed": not problems(self),
            "problems": problems(self),
            "error": self.error,
            "seconds": round(self.seconds, 1),
            "stages": [asdict(stage) for stage in self.stages.values()],
            "cells": {name: cell.document() for name, cell in self.cells.items()},
            "comparisons": [asdict(found) for found in comparisons(self.cells)],
            "gates": self.gates,
            "bad_adapters": self.bad,
        }


def compare(first: Cell, second: Cell) -> Comparison:
    """Return how two cells of the same prompts differ."""
    pairs = list(zip(first.held, second.held, strict=True))
    wins, losses = sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)
    return Comparison(first.name, second.name, wins, losses, mcnemar_one_sided(wins, losses))


def comparisons(cells: Mapping[str, Cell]) -> list[Comparison]:
    """Return the comparisons that matter, of the cells that were measured."""
    wanted = (("adapter", "base"), ("memory", "base"), ("memory", "adapter"))
    return [compare(cells[a], cells[b]) for a, b in wanted if a in cells and b in cells]


def problems(report: Report) -> list[str]:
    """Return what keeps the report from being a proof, by key; none when it is one."""
    found = [f"stage:{name}" for name in STAGES if not _done(report, name)]
    found += [f"cell:{name}" for name in CELLS if name not in report.cells or report.cells[name].n < LEAST_N]
    if not {"base", "adapter", "other"} <= report.cells.keys():
        return found
    base, adapter, other = (report.cells[name] for name in ("base", "adapter", "other"))
    if base.rate >= HIGHEST_BASE_RATE:
        found.append("base_rate")
    if compare(adapter, base).p > ALPHA:
        found.append("not_better")
    if not other.tokens or other.tokens != base.tokens:
        found.append("not_identical")
    return found


def _done(report: Report, name: str) -> bool:
    return name in report.stages and report.stages[name].ok


def identical(first: Sequence[tuple[int, ...]], second: Sequence[tuple[int, ...]]) -> int:
    """Return how many replies agree token by token."""
    return sum(a == b for a, b in zip(first, second, strict=True))
