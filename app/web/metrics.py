"""`GET /metrics`: figures for Prometheus, counts by channel and never by person.

For this machine, and for whoever knows METRICS_TOKEN. Counters are this gateway's own since its start; what waits in the
database is the same on every gateway.
"""

import hmac
from http import HTTPStatus

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, Gauge, generate_latest

from app.config import Settings
from app.errors import StoreUnavailableError
from app.store import Store
from app.store.panel import overview
from app.telemetry import REGISTRY
from app.web.health import is_local

_WAITING = Gauge("mentee_waiting", "What waits in the database.", ["for_what"], registry=REGISTRY)
_OLDEST = Gauge("mentee_oldest_update_seconds", "Age of the oldest update that waits.", registry=REGISTRY)
_DATABASE = Gauge("mentee_database_up", "Whether the database answered.", registry=REGISTRY)


def add_metrics_route(app: web.Application, store: Store, settings: Settings) -> None:
    """Add the route to `app`."""
    token = settings.metrics_token.get_secret_value() if settings.metrics_token else None

    async def metrics(request: web.Request) -> web.Response:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        known = token is not None and hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())
        if not (known or is_local(request)):
            raise web.HTTPNotFound
        await _look(store)
        body = generate_latest(REGISTRY)
        return web.Response(status=HTTPStatus.OK, body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    app.router.add_get("/metrics", metrics)


async def _look(store: Store) -> None:
    try:
        async with store.single() as tx:
            found, queues = await overview.traffic(tx), await overview.queues(tx)
    except StoreUnavailableError:
        _DATABASE.set(0)
        return
    _DATABASE.set(1)
    _WAITING.labels("inbox").set(found.inbox_waiting)
    _WAITING.labels("outbox").set(found.outbox_due)
    _WAITING.labels("held").set(found.held)
    _WAITING.labels("set_aside").set(found.set_aside)
    for queue in queues:
        _WAITING.labels(queue.name).set(queue.queued)
    _OLDEST.set(found.inbox_oldest_s or 0)
