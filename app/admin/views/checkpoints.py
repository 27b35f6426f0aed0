"""Checkpoints: where each came from, how it was measured, where it is served, and the way back."""

from itertools import groupby

from aiohttp import web

from app.admin import charts
from app.admin.forms import PREFIX
from app.admin.visit import Visit
from app.store.panel import lineage

PAGE = 40
SCOPES = ("person", "global")
STATES = ("candidate", "passed", "refused", "parked", "retired", "deleted")
LIVE = ("live", "shadow", "canary")


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
        "checkpoint.html", checkpoint=found, gates=by_run, losses=losses, spark=spark, live_states=LIVE, **context
    )


async def roll_back(visit: Visit) -> web.StreamResponse:
    """Take a live release out of routing."""
    reason = visit.fields.reason()
    checkpoint = visit.fields.needed("checkpoint")
    await visit.panel.actions.roll_back(visit.id(), reason=reason, actor=visit.actor)
    return visit.to(f"{PREFIX}/checkpoints/{checkpoint}" if checkpoint.isascii() else f"{PREFIX}/checkpoints")
