"""One request to the panel: who asks, in which language, with which right, and how to answer.

`guarded` is the only way a handler is reached: it loads the session, checks the right, and refuses what another site
sent. A handler gets a `Visit` and nothing it would have to check itself.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from hmac import compare_digest
from http import HTTPStatus
from typing import Literal
from urllib.parse import quote, urlsplit
from uuid import UUID

import aiohttp_jinja2
from aiohttp import web
from aiohttp.typedefs import Handler

from app.admin import auth, cookies, forms
from app.admin.access import Right, may
from app.admin.assets import Asset
from app.admin.ports import PanelActions
from app.admin.words import Words
from app.config import Settings
from app.errors import ForbiddenError, UnauthenticatedError
from app.store import Store, admins, audit
from app.store.admins import SignedIn
from app.web.health import Parts

_SAFE = frozenset({"GET", "HEAD"})


class CrossSiteError(ForbiddenError):
    """This form did not come from this panel, or its page is too old; reload it and try again."""


@dataclass(frozen=True, slots=True)
class Panel:
    """What every visit shares."""

    store: Store
    actions: PanelActions
    parts: Parts
    settings: Settings
    door: auth.Door
    passwords: auth.Passwords
    assets: Mapping[str, Asset]
    telling_arrival: Collection[str]


PANEL = web.AppKey("panel", Panel)


@dataclass(frozen=True, slots=True)
class Visit:
    """One request. `admin` is None on public pages without a session; `fields` are the form's, or else the query's."""

    request: web.Request
    panel: Panel
    route: "Route"
    words: Words
    token: str
    admin: SignedIn | None
    fields: forms.Fields

    @property
    def store(self) -> Store:
        """The store."""
        return self.panel.store

    @property
    def actor(self) -> str:
        """The login that goes into the audit log."""
        if self.admin is None:
            raise UnauthenticatedError
        return self.admin.login

    def id(self, name: str = "id") -> UUID:
        """Return an id from the path."""
        return forms.path_id(self.request, name)

    def may(self, right: str) -> bool:
        """Whether the visitor has a right; templates use it to leave out what would be refused."""
        return self.admin is not None and may(self.admin.role, Right(right))

    def page(self, template: str, /, **context: object) -> web.Response:
        """Return a page in the visitor's language; never kept by a cache."""
        return self.page_of(HTTPStatus.OK, template, **context)

    def page_of(self, http_status: int, template: str, /, **context: object) -> web.Response:
        """Return a page with another status than 200: a form with what was wrong with it."""
        shared = {
            "visit": self,
            "t": self.words.t,
            "word": self.words.word,
            "ago": self.words.ago,
            "moment": self.words.moment,
            "span": self.words.span,
            "csrf": auth.csrf_token(self.token),
        }
        response = aiohttp_jinja2.render_template(template, self.request, shared | context, status=http_status)
        response.headers["Cache-Control"] = "no-store"
        cookies.keep_form_token(response, self.panel.settings, self.token, signed_in=self.admin is not None)
        return response

    def to(self, path: str) -> web.Response:
        """Return the way on after a form; a reload does not send it again."""
        return web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": path, "Cache-Control": "no-store"})


View = Callable[[Visit], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Route:
    """One address of the panel.

    Attributes:
        method: `GET` (with HEAD) or `POST`.
        path: below the panel's prefix.
        view: what answers.
        right: what the visitor needs.
        fields: the form's or query's fields; others are refused.
        several: those of `fields` that may come more than once.
        session: `touch` keeps the session awake; `peek` is for pages that refresh themselves.
    """

    method: Literal["GET", "POST"]
    path: str
    view: View
    right: Right
    fields: tuple[str, ...] = ()
    several: tuple[str, ...] = ()
    session: Literal["touch", "peek"] = "touch"


def guarded(route: Route) -> Handler:
    """Return the aiohttp handler for a route."""

    async def handle(request: web.Request) -> web.StreamResponse:
        panel = request.app[PANEL]
        token = cookies.session_token(request, panel.settings)
        admin = await _who(panel.store, route, token)
        if refused := await _refusal(panel.store, request, route, admin):
            return refused
        form_token = token if admin and token else cookies.form_token(request, panel.settings)
        fields = await _fields(request, route, panel.settings, admin, form_token)
        words = Words(cookies.language(request, admin.language if admin else None))
        return await route.view(Visit(request, panel, route, words, form_token, admin, fields))

    return handle


async def _who(store: Store, route: Route, token: str | None) -> SignedIn | None:
    if not token or route.path.startswith("/static/"):
        return None
    look = admins.touch_session if route.session == "touch" else admins.peek_session
    async with store.begin() as tx:
        return await look(tx, auth.digest(token), auth.IDLE)


async def _refusal(store: Store, request: web.Request, route: Route, admin: SignedIn | None) -> web.Response | None:
    if route.right is Right.PUBLIC:
        return None
    if admin is None:
        return _to_login(request)
    if not may(admin.role, route.right):
        async with store.begin() as tx:
            await audit.record(tx, audit.Act(admin.login, "admin:access:denied", f"route:{route.path}"))
        raise ForbiddenError
    return None


def _to_login(request: web.Request) -> web.Response:
    if request.method not in _SAFE:
        raise UnauthenticatedError
    path = f"{forms.PREFIX}/login?next={quote(request.path_qs, safe='')}"
    if "HX-Request" in request.headers:
        return web.Response(status=HTTPStatus.UNAUTHORIZED, headers={"HX-Redirect": f"{forms.PREFIX}/login"})
    return web.Response(status=HTTPStatus.FOUND, headers={"Location": path, "Cache-Control": "no-store"})


async def _fields(
    request: web.Request, route: Route, settings: Settings, admin: SignedIn | None, token: str
) -> forms.Fields:
    if request.method in _SAFE:
        return forms.read_fields(request.query, route.fields, route.several)
    check_origin(request, settings)
    form = await request.post()
    _check_csrf(form.get(forms.CSRF_FIELD), admin, token)
    return forms.read_fields(form, (*route.fields, forms.CSRF_FIELD), route.several)


def check_origin(request: web.Request, settings: Settings) -> None:
    """Refuse a form that a browser says came from elsewhere, and one about which it says nothing.

    Raises:
        CrossSiteError: it did.
    """
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if (site is None and origin is None) or site not in {None, "same-origin"}:
        raise CrossSiteError
    if origin is not None and origin not in _own_origins(request, settings):
        raise CrossSiteError


def _own_origins(request: web.Request, settings: Settings) -> set[str]:
    own = {f"http://{request.host}", f"https://{request.host}"}
    if settings.public_url:
        parts = urlsplit(settings.public_url)
        own.add(f"{parts.scheme}://{parts.netloc}")
    return own


def _check_csrf(sent: object, admin: SignedIn | None, token: str) -> None:
    if not isinstance(sent, str) or not token:
        raise CrossSiteError
    expected = admin.csrf_hash if admin else auth.digest(auth.csrf_token(token))
    if not compare_digest(auth.digest(sent), expected):
        raise CrossSiteError
