"""Has the lesson been learnt? Per lesson: better than the base without memory, no worse than what it replaces. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from learner.gate.report import GateResult, Measurements, Outcome, TargetResult, Thresholds
from learner.gate.statistics import loss_upper_bound, mcnemar_one_sided, supported_margin

BASE_DOES_IT = "gate.target.base_does_it"


def target_gates(measured: Measurements, thresholds: Thresholds) -> list[GateResult]:
    """Return two lines a lesson: `target/<id>` against the base, `kept/<id>` against memory or the present adapter."""
    if not measured.lessons:
        return [GateResult("target", "inconclusive", 0, None, None, None, "gate.target.unmeasured")]
    lines: list[GateResult] = []
    for lesson_id in sorted(measured.lessons):
        rows = [r for r in measured.target if r.lesson_id == lesson_id and r.candidate is not None]
        better, kept = _better_than_base(lesson_id, rows, thresholds), _no_worse(lesson_id, rows, thresholds)
        if better.key == BASE_DOES_IT and kept.outcome == "passed":
            # There is nothing to gain and nothing was lost: what the candidate did learn decides.
            better = replace(better, required=False)
        lines += [better, kept]
    return lines


def _better_than_base(lesson_id: str, rows: Sequence[TargetResult], thresholds: Thresholds) -> GateResult:
    pairs = [(bool(r.candidate), r.base) for r in rows if r.base is not None]
    gate, n = f"target/{lesson_id}", len(pairs)
    if n < thresholds.min_target_prompts:
        return GateResult(gate, "inconclusive", n, None, None, thresholds.alpha, "gate.target.too_few")
    wins, losses = _discordant(pairs)
    done = sum(bool(b) for _, b in pairs)
    base, candidate = done / n, sum(c for c, _ in pairs) / n
    p = mcnemar_one_sided(wins, losses)
    outcome: Outcome = "passed" if p <= thresholds.alpha else "failed"
    key = f"gate.target.{outcome}"
    if losses == 0 and mcnemar_one_sided(n - done, 0) > thresholds.alpha:
        # Not even all that is left to win would prove anything.
        outcome, key = "inconclusive", BASE_DOES_IT
    detail = {"base": base, "candidate": candidate, "wins": wins, "losses": losses}
    return GateResult(gate, outcome, n, candidate - base, p, thresholds.alpha, key, detail=detail)


def _no_worse(lesson_id: str, rows: Sequence[TargetResult], thresholds: Thresholds) -> GateResult:
    """Compare with the present adapter where it already holds the lesson, else with memory."""
    parent = [(bool(r.candidate), r.parent) for r in rows if r.parent is not None]
    pairs = parent or [(bool(r.candidate), r.memory) for r in rows if r.memory is not None]
    gate, n = f"kept/{lesson_id}", len(pairs)
    if n < thresholds.min_target_prompts:
        return GateResult(gate, "inconclusive", n, None, None, None, "gate.kept.too_few")
    wins, losses = _discordant(pairs)
    margin = max(thresholds.memory_margin, supported_margin(n))
    bound = loss_upper_bound(wins, losses, n)
    outcome: Outcome = "passed" if bound <= margin else "failed"
    before, candidate = sum(bool(b) for _, b in pairs) / n, sum(c for c, _ in pairs) / n
    detail: dict[str, float | int | str] = {"before": before, "candidate": candidate, "wins": wins, "losses": losses}
    detail["against"] = "parent" if parent else "memory"
    return GateResult(gate, outcome, n, candidate - before, bound, margin, f"gate.kept.{outcome}", detail=detail)


def _discordant(pairs: Sequence[tuple[bool, bool | None]]) -> tuple[int, int]:
    return sum(c and not b for c, b in pairs), sum(bool(b) and not c for c, b in pairs)
