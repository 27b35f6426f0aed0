"""What a gate run needs to know, put together from rows: prompts as the product builds them, lessons, competitors."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from app.domain.checker import CheckerSpec
from app.domain.memory import MemoryLine
from app.domain.prompt import build, estimate_tokens, text_of
from app.errors import InvalidInputError
from app.store.lineage import Checkpoint, Figure
from learner.dataset.freeze import prompt_messages
from learner.gate.measure import GateLesson, GatePlan
from learner.gate.report import GateReport, GateResult
from learner.gate.suite import Probe
from learner.types import ChatMessage, Precision

SEATS = 4
"""Requests of the gate at one time, so that chats keep theirs."""
_EVERYTHING = 1 << 30
LEAST_REPLY_TOKENS = 72
MOST_REPLY_TOKENS = 256


@dataclass(frozen=True, slots=True)
class Subject:
    """A candidate, what it was taught, and whom it is compared with."""

    checkpoint: Checkpoint
    person_id: UUID
    lines: tuple[MemoryLine, ...] = field(repr=False)
    held_out: tuple[Probe, ...] = field(repr=False)
    system: str = field(repr=False)
    taught: frozenset[str] = field(repr=False)
    parent: Checkpoint | None
    others: tuple[str, ...]


def plan(subject: Subject, base: str, on_stage: Callable[[str], None], precision: Precision = "float32") -> GatePlan:
    """Return the plan of a gate run against the base served as `base`."""

    def with_memory(text: str) -> tuple[ChatMessage, ...]:
        built = build(subject.system, subject.lines, (), text, budget_tokens=_EVERYTHING)
        return tuple(ChatMessage(m["role"], text_of(m)) for m in built)

    parent = subject.parent
    return GatePlan(
        base=base,
        candidate=subject.checkpoint.name,
        lessons=tuple(GateLesson(str(line.id), _checker(line.checker)) for line in subject.lines),
        plain=lambda text: prompt_messages(subject.system, text),
        with_memory=with_memory,
        held_out=subject.held_out,
        taught=subject.taught,
        parent=parent.name if parent else None,
        parent_lessons=frozenset(str(i) for i in parent.memory_ids) if parent else frozenset(),
        others=subject.others,
        precision=precision,
        concurrency=SEATS,
        reply_tokens=reply_tokens(subject.lines),
        on_stage=on_stage,
    )


def reply_tokens(lines: Sequence[MemoryLine]) -> int:
    """Return how long replies may grow: to the end of half as much again as the longest example.

    A lesson about the end of a reply, or about its least length, cannot be met by a reply that is cut before. Longer
    than training lets replies grow, and no longer than chats do.
    """
    longest = max((estimate_tokens(example.good) for line in lines for example in line.examples), default=0)
    return min(MOST_REPLY_TOKENS, max(LEAST_REPLY_TOKENS, math.ceil(longest * 1.5)))


def figures(report: GateReport) -> Sequence[Figure]:
    """Return the rows of a gate table."""
    return [_figure(result) for result in report.results]


def _figure(r: GateResult) -> Figure:
    detail: Mapping[str, object] = {**r.detail, "key": r.key, "required": r.required}
    return Figure(r.gate, r.outcome, r.n, r.value, r.bound, r.threshold, detail)


def _checker(document: dict[str, object] | None) -> CheckerSpec | None:
    """Return the machine check of a lesson; one that cannot be read decides nothing."""
    if not document:
        return None
    try:
        return CheckerSpec.parse(document)
    except InvalidInputError:
        return None
