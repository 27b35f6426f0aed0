"""The health trio: `/healthz` (the process answers), `/startupz` (it has started), `/readyz` (it can do its work).

A channel that cannot take messages in is not ready, even if it could send. Callers from other machines learn the
status only; details go to this machine.
"""

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import Protocol

from aiohttp import web

from app.config import LOOPBACK
from app.ports import PartHealth

PROBE_LIMIT_S = 3.0


class Parts(Protocol):
    """Who knows how the parts are; answers within `PROBE_LIMIT_S` or is cut off."""

    async def health(self) -> Sequence[PartHealth]:
        """Return every part's state, in the order to show them."""
        ...


async def look(parts: Parts) -> Sequence[PartHealth]:
    """Return the parts' states; probes that hang are themselves a finding."""
    try:
        return await asyncio.wait_for(parts.health(), PROBE_LIMIT_S)
    except TimeoutError:
        return [PartHealth("probe", "down", required=True)]


class Started:
    """Set once, when the gateway's start is complete."""

    def __init__(self) -> None:
        self._done = False

    def complete(self) -> None:
        """Say that the start is complete."""
        self._done = True

    @property
    def done(self) -> bool:
        """Whether the start is complete."""
        return self._done


def add_health_routes(app: web.Application, parts: Parts, started: Started) -> None:
    """Add the three routes to `app`."""

    async def alive(_: web.Request) -> web.Response:
        return web.json_response({"status": "alive"})

    async def startup(_: web.Request) -> web.Response:
        return _status("started" if started.done else "starting", ok=started.done)

    async def ready(request: web.Request) -> web.Response:
        states = await look(parts) if started.done else ()
        good = started.done and all(p.state in {"ok", "degraded"} for p in states if p.required)
        details = {p.name: {"state": p.state, "detail": p.detail} for p in states} if is_local(request) else None
        return _status("ready" if good else "not ready", ok=good, parts=details)

    app.router.add_get("/healthz", alive)
    app.router.add_get("/startupz", startup)
    app.router.add_get("/readyz", ready)


def is_local(request: web.Request) -> bool:
    """Whether a request comes from this machine itself."""
    # Behind a proxy on this machine every caller looks local: a forwarding header says that it is not.
    return (
        request.remote in LOOPBACK and "X-Forwarded-For" not in request.headers and "Forwarded" not in request.headers
    )


def _status(word: str, *, ok: bool, parts: dict[str, dict[str, str | None]] | None = None) -> web.Response:
    body: dict[str, object] = {"status": word}
    if parts:
        body["parts"] = parts
    status = HTTPStatus.OK if ok else HTTPStatus.SERVICE_UNAVAILABLE
    return web.json_response(body, status=status, headers={"Cache-Control": "no-store"})
