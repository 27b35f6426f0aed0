"""The way in and out: login, one-time link, logout, language, static files."""

from http import HTTPStatus

from aiohttp import web

from app.admin import auth, cookies
from app.admin.assets import serve
from app.admin.forms import PREFIX, own_path
from app.admin.visit import Visit
from app.domain import messages
from app.errors import MenteeError
from app.store import admins


async def root(visit: Visit) -> web.StreamResponse:
    """Send `/admin` to the first page."""
    return visit.to(f"{PREFIX}/")


async def static(visit: Visit) -> web.StreamResponse:
    """Serve one of the panel's files."""
    return serve(visit.panel.assets, visit.request)


async def login_form(visit: Visit) -> web.StreamResponse:
    """Ask for name and password; who is signed in goes on."""
    target = own_path(visit.fields.raw("next") or f"{PREFIX}/")
    if visit.admin:
        return visit.to(target)
    return await _login_page(visit, target, saved=visit.fields.choice("saved", ("yes",)) == "yes")


async def login(visit: Visit) -> web.StreamResponse:
    """Sign in and go where the visitor wanted to go."""
    target = own_path(visit.fields.raw("next") or f"{PREFIX}/")
    try:
        token = await visit.panel.door.sign_in(
            visit.fields.text("login"),
            visit.fields.raw("password"),
            address=visit.request.remote or "",
            user_agent=visit.request.headers.get("User-Agent", ""),
            old_token=cookies.session_token(visit.request, visit.panel.settings),
        )
    except (auth.LoginRefusedError, auth.TooManyAttemptsError) as error:
        return await _login_page(visit, target, error)
    response = visit.to(target)
    cookies.start_session(response, visit.panel.settings, token)
    return response


async def _login_page(
    visit: Visit, target: str, error: MenteeError | None = None, *, saved: bool = False
) -> web.Response:
    async with visit.store.begin() as tx:
        ready = await admins.any_admin(tx)
    status = error.status if error else HTTPStatus.OK
    return visit.page_of(status, "login.html", next=target, ready=ready, saved=saved, error=problem(error))


async def logout(visit: Visit) -> web.StreamResponse:
    """End the session on the server and in the browser."""
    token = cookies.session_token(visit.request, visit.panel.settings)
    if token:
        await auth.sign_out(visit.store, token, visit.actor)
    response = visit.to(f"{PREFIX}/login")
    cookies.drop_session(response, visit.panel.settings)
    return response


async def link_form(visit: Visit) -> web.StreamResponse:
    """Show the form behind a one-time link; looking at it does not spend it."""
    async with visit.store.begin() as tx:
        purpose = await admins.link_purpose(tx, auth.digest(visit.request.match_info["token"]))
    if purpose is None:
        raise auth.LinkSpentError
    return visit.page("link.html", purpose=purpose, login="", error=None)


async def link(visit: Visit) -> web.StreamResponse:
    """Spend a one-time link; then the new password is asked for once, as proof that it was kept."""
    name = visit.fields.raw("login")
    password = visit.fields.raw("password")
    try:
        await auth.use_link(visit.store, visit.panel.passwords, visit.request.match_info["token"], name, password)
    except (auth.PasswordError, auth.LoginNameError) as error:
        return visit.page_of(error.status, "link.html", purpose="reset", login=name, error=problem(error))
    return visit.to(f"{PREFIX}/login?saved=yes")


async def language(visit: Visit) -> web.StreamResponse:
    """Switch the language, for the account and for this browser."""
    wanted = visit.fields.choice("language", messages.LANGUAGES, "en")
    if visit.admin:
        async with visit.store.begin() as tx:
            await admins.set_language(tx, visit.admin.admin_id, wanted)
    response = visit.to(own_path(visit.fields.raw("next")))
    cookies.keep_language(response, visit.panel.settings, wanted)
    return response


def problem(error: MenteeError | None) -> str | None:
    """Return the catalogue key of an error: its class's name."""
    return f"error.{type(error).__name__}" if error else None
