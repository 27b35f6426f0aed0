"""What else changed? Length, repetition, sameness, praise, refusal, language on neutral prompts. Pure.

The yardstick is the span between base and base with memory, since that is what the person has and asked for. For
what the lesson is about, memory alone is the yardstick: moving away from the base is then the point.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.domain.checker.spec import Drift
from learner.gate.features import Features
from learner.gate.report import DriftResult, GateResult, Measurements, Thresholds

Figure = Callable[[Sequence[Features], Sequence[str]], float]


@dataclass(frozen=True, slots=True)
class _Metric:
    """One figure with how far it may leave the span: by share of its value (`scaled`) or by plain difference."""

    name: Drift
    figure: Figure
    down: float | None
    up: float | None
    scaled: bool = False

    def span(self, low: float, high: float) -> tuple[float, float]:
        down = 0.0 if self.down is None else low * (1 - self.down) if self.scaled else low - self.down
        up = float("inf") if self.up is None else high * (1 + self.up) if self.scaled else high + self.up
        return down, up


def drift_gates(measured: Measurements, thresholds: Thresholds) -> list[GateResult]:
    """Return one line a metric."""
    rows = measured.drift
    if len(rows) < thresholds.min_drift_prompts:
        return [GateResult("drift", "inconclusive", len(rows), None, None, None, "gate.drift.too_few")]
    exempt = frozenset[Drift]().union(*measured.lessons.values())
    return [_line(metric, rows, exempt) for metric in _metrics(thresholds)]


def _metrics(t: Thresholds) -> tuple[_Metric, ...]:
    return (
        _Metric("length", _mean_words, t.length_shrink, t.length_growth, scaled=True),
        _Metric("repetition", _mean_repetition, None, t.repetition_rise),
        _Metric("sameness", _distinct, t.sameness_fall, None),
        _Metric("praise", lambda f, _: sum(x.praise for x in f) / len(f), None, t.praise_rise),
        _Metric("refusal", lambda f, _: sum(x.refusal for x in f) / len(f), None, t.refusal_rise),
        _Metric("language", _in_language, t.language_fall, None),
    )


def _line(metric: _Metric, rows: Sequence[DriftResult], exempt: frozenset[Drift]) -> GateResult:
    languages = [r.language for r in rows]
    base = metric.figure([r.base for r in rows], languages)
    candidate = metric.figure([r.candidate for r in rows], languages)
    kept = [r.memory for r in rows if r.memory is not None]
    memory = metric.figure(kept, languages) if len(kept) == len(rows) else None
    about_it = metric.name in exempt
    yardsticks = [memory] if about_it and memory is not None else [v for v in (base, memory) if v is not None]
    low, high = metric.span(min(yardsticks), max(yardsticks))
    detail: dict[str, float | int | str] = {"base": base, "candidate": candidate, "least": low}
    if memory is not None:
        detail["memory"] = memory
    gate = f"drift/{metric.name}"
    if about_it and memory is None:
        return GateResult(
            gate, "passed", len(rows), candidate, None, None, "gate.drift.exempt", required=False, detail=detail
        )
    inside = low <= candidate <= high
    key = "gate.drift.passed" if inside else "gate.drift.failed"
    limit = low if candidate < low else high
    finite = None if limit == float("inf") else limit
    return GateResult(gate, "passed" if inside else "failed", len(rows), candidate, None, finite, key, detail=detail)


def _mean_words(replies: Sequence[Features], _languages: Sequence[str]) -> float:
    return sum(r.words for r in replies) / len(replies)


def _mean_repetition(replies: Sequence[Features], _languages: Sequence[str]) -> float:
    return sum(r.repetition for r in replies) / len(replies)


def _distinct(replies: Sequence[Features], _languages: Sequence[str]) -> float:
    return len({r.fingerprint for r in replies}) / len(replies)


def _in_language(replies: Sequence[Features], languages: Sequence[str]) -> float:
    pairs = zip(replies, languages, strict=True)
    return sum(r.language in {None, language} for r, language in pairs) / len(replies)
