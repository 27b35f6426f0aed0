"""The panel as an aiohttp application, mounted at `/admin`. Knows no service: acts go through `PanelActions`."""

import secrets
from collections.abc import Collection
from http import HTTPStatus
from pathlib import Path

import aiohttp_jinja2
import jinja2
from aiohttp import web
from aiohttp.typedefs import Handler

from app.admin import charts, cookies, hostile, words
from app.admin.assets import load_assets
from app.admin.auth import Door, Passwords
from app.admin.forms import PREFIX
from app.admin.ports import PanelActions
from app.admin.routes import ROUTES
from app.admin.visit import PANEL, Panel, guarded
from app.config import Settings
from app.errors import MenteeError
from app.store import Store
from app.telemetry import Log
from app.web.health import Parts
from app.web.middleware import REQUEST_ID

FILTERS = {
    "said": hostile.said,
    "said_diff": hostile.said_diff,
    "percent": words.percent,
    "number": words.number,
    "mebibytes": words.mebibytes,
    "short": words.short,
}
_TEMPLATES = Path(__file__).parent / "templates"
_log = Log(__name__)


def create_admin_app(
    store: Store,
    actions: PanelActions,
    parts: Parts,
    settings: Settings,
    telling_arrival: Collection[str] = (),
    passwords: Passwords | None = None,
) -> web.Application:
    """Return the application to mount with `add_subapp("/admin", ...)`.

    Args:
        store: the database.
        actions: the services behind rollback, forgetting and review.
        parts: who knows how the parts are.
        settings: `public_url` decides about secure cookies; `mentee_secret` keys the digests of login attempts.
        telling_arrival: the channels that tell how far a message came.
        passwords: other hashing parameters, for tests.
    """
    app = web.Application(middlewares=[_error_pages])
    hashing = passwords or Passwords()
    secret = settings.mentee_secret.get_secret_value().encode() if settings.mentee_secret else secrets.token_bytes(32)
    app[PANEL] = Panel(
        store, actions, parts, settings, Door(store, hashing, secret), hashing, load_assets(), telling_arrival
    )
    _set_up_templates(app)
    for route in ROUTES:
        app.router.add_route(route.method, route.path, guarded(route))
        if route.method == "GET":
            app.router.add_route("HEAD", route.path, guarded(route))
    return app


def _set_up_templates(app: web.Application) -> None:
    environment = aiohttp_jinja2.setup(
        app,
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        default_helpers=False,
    )
    environment.filters.update(FILTERS)
    environment.globals |= {"base": PREFIX, "assets": app[PANEL].assets, "interval": charts.interval}


@web.middleware
async def _error_pages(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Show an error as a page of the panel; what is not foreseen goes on to the outermost boundary."""
    try:
        return await handler(request)
    except MenteeError as error:
        if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            _log.failure("admin:request:failed", error, request=request.get(REQUEST_ID))
        return _error_page(request, error)


def _error_page(request: web.Request, error: MenteeError) -> web.Response:
    spoken = words.Words(cookies.language(request, None))
    named = f"error.{type(error).__name__}"
    sentence = spoken.sentence(named) if spoken.knows(named) else spoken.sentence(f"error.{error.status}")
    context = {
        "t": spoken.t,
        "words": spoken,
        "status": error.status,
        "sentence": sentence,
        "request_id": request.get(REQUEST_ID, "-"),
    }
    response = aiohttp_jinja2.render_template("error.html", request, context, status=error.status)
    response.headers["Cache-Control"] = "no-store"
    return response
