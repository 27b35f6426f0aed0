"""The first page: are the parts well, is work flowing, do people like what they get."""

from aiohttp import web

from app.admin import charts
from app.admin.visit import Visit
from app.store.panel import controls, overview, people
from app.web.health import look

_RATINGS, _DAYS, _JOBS, _ASKED_DAYS = 12, 14, 8, 30


async def show(visit: Visit) -> web.StreamResponse:
    """Show the page; its live part asks for itself again every few seconds where scripts run."""
    return visit.page("overview.html", **await _figures(visit))


async def live(visit: Visit) -> web.StreamResponse:
    """Show the live part alone, without keeping the session awake."""
    return visit.page("overview_live.html", **await _figures(visit))


async def _figures(visit: Visit) -> dict[str, object]:
    parts = await look(visit.panel.parts)
    async with visit.store.begin() as tx:
        days = await overview.vote_days(tx, _DAYS)
        return {
            "parts": parts,
            "queues": await overview.queues(tx),
            "jobs": await overview.jobs(tx, _JOBS),
            "traffic": await overview.traffic(tx),
            "days": days,
            "bars": charts.vote_bars([(f"{d.day:%m-%d}", d.up, d.down) for d in days], visit.words.t("votes.chart")),
            "ratings": await overview.ratings(tx, _RATINGS),
            "asked": await overview.asked(tx, _ASKED_DAYS),
            "arrivals": await overview.arrivals(tx, visit.panel.telling_arrival),
            "servers": await overview.model_servers(tx),
            "waiting": await people.waiting(tx),
            "paused": [s for s in await controls.all_switches(tx) if s.paused],
        }
