"""Checkpoints: where each came from, how it was measured, where it is served, and the way back."""

from collections.abc import Sequence
from itertools import groupby

from aiohttp import web

from app.admin import charts
from app.admin.forms import PREFIX
from app.admin.visit import Visit
from app.store.panel import lineage
from app.store.panel.lineage import Gate

PAGE = 40
SCOPES = ("person", "global")
STATES = ("candidate", "passed", "refused", "parked", "retired", "deleted")
LIVE = ("live", "shadow", "canary")
# What a family of gates is shown as: the worst of its lines that decide.
_WORST = ("failed", "inconclusive", "skipped", "passed")


async def index(visit: Visit) -> web.StreamResponse:
    """List checkpoints, the newest first."""
    scope, state = visit.fields.choice("scope", SCOPES), visit.fields.choice("state", STATES)
    page = visit.fields.whole("page", 0, 10_000)
    async with visit.store.begin() as tx:
        rows = await lineage.checkpoints(tx, scope=scope, state=state, limit=PAGE + 1, offset=page * PAGE)
    return visit.page(
        "checkpoints.html",
        rows=rows[:PAGE],
        more=len(rows) > PAGE,
        page=page,
        scope=scope,
        state=state,
        choices={"scopes": SCOPES, "states": STATES},
    )


async def show(visit: Visit) -> web.StreamResponse:
    """Show one checkpoint from the feedback it stands on to its place in routing."""
    async with visit.store.begin() as tx:
        found = await lineage.checkpoint(tx, visit.id())
        gates = await lineage.gates(tx, found.id)
        steps = await lineage.steps(tx, found.run_id) if found.run_id else []
        context = {
            "parts": await lineage.parts(tx, found.snapshot_id) if found.snapshot_id else [],
            "origins": await lineage.origins(tx, found.snapshot_id) if found.snapshot_id else [],
            "gate_runs": await lineage.gate_runs(tx, found.id),
            "releases": await lineage.releases(tx, found.id),
        }
    ordered = sorted(gates, key=lambda g: str(g.gate_run_id))
    by_run = {run_id: list(group) for run_id, group in groupby(ordered, key=lambda g: g.gate_run_id)}
    losses = [step.loss for step in steps if step.loss is not None]
    spark = charts.sparkline(losses, visit.words.t("run.loss"))
    return visit.page(
        "checkpoint.html",
        checkpoint=found,
        gates=by_run,
        families={run_id: _families(lines) for run_id, lines in by_run.items()},
        losses=losses,
        spark=spark,
        live_states=LIVE,
        **context,
    )


def _families(lines: Sequence[Gate]) -> dict[str, str]:
    """Return each family of gates with its worst outcome, in the order of `lines`."""
    found: dict[str, str] = {}
    for line in lines:
        family = line.gate.partition("/")[0]
        outcome = line.outcome if line.detail.get("required", True) else "passed"
        found[family] = min(found.get(family, "passed"), outcome, key=_WORST.index)
    return found


async def roll_back(visit: Visit) -> web.StreamResponse:
    """Take a live release out of routing."""
    reason = visit.fields.reason()
    checkpoint = visit.fields.needed("checkpoint")
    await visit.panel.actions.roll_back(visit.id(), reason=reason, actor=visit.actor)
    return visit.to(f"{PREFIX}/checkpoints/{checkpoint}" if checkpoint.isascii() else f"{PREFIX}/checkpoints")
