"""The panel's three cookies: the session, the token that guards forms before there is one, the language."""

import secrets
from http.cookies import CookieError

from aiohttp import web

from app.admin import auth
from app.config import Settings
from app.domain import messages

LANGUAGE = "mentee_language"
_YEAR_S = 365 * 24 * 3600
_LONGEST = 128


def is_secure(settings: Settings) -> bool:
    """Whether people reach the panel by https only."""
    return bool(settings.public_url and settings.public_url.startswith("https://"))


def _name(settings: Settings, name: str) -> str:
    return f"__Host-{name}" if is_secure(settings) else name


def _set(response: web.StreamResponse, settings: Settings, name: str, value: str, max_age: int | None = None) -> None:
    secure = is_secure(settings)
    response.set_cookie(
        _name(settings, name),
        value,
        max_age=max_age,
        path="/" if secure else "/admin",
        secure=secure,
        httponly=True,
        samesite="Strict",
    )


def _get(request: web.Request, settings: Settings, name: str) -> str:
    try:
        value = request.cookies.get(_name(settings, name), "")
    except CookieError:
        return ""
    return value if len(value) <= _LONGEST else ""


def session_token(request: web.Request, settings: Settings) -> str | None:
    """Return the session id that the browser holds."""
    return _get(request, settings, "mentee_admin") or None


def start_session(response: web.StreamResponse, settings: Settings, token: str) -> None:
    """Give the browser its session id."""
    _set(response, settings, "mentee_admin", token, int(auth.ABSOLUTE.total_seconds()))


def drop_session(response: web.StreamResponse, settings: Settings) -> None:
    """Take the session id from the browser."""
    _set(response, settings, "mentee_admin", "", 0)


def form_token(request: web.Request, settings: Settings) -> str:
    """Return the token that guards a form before there is a session; a new one where the browser has none."""
    if found := _get(request, settings, "mentee_form"):
        return found
    return secrets.token_urlsafe(32) if request.method in {"GET", "HEAD"} else ""


def keep_form_token(response: web.StreamResponse, settings: Settings, token: str, *, signed_in: bool) -> None:
    """Give the browser the token that a page's forms were made with; a session is its own."""
    if not signed_in:
        _set(response, settings, "mentee_form", token)


def language(request: web.Request, chosen: str | None) -> messages.Language:
    """Return the language: the admin's choice, else the browser's cookie, else what the browser asks for."""
    return messages.pick(chosen or request.cookies.get(LANGUAGE) or request.headers.get("Accept-Language"))


def keep_language(response: web.StreamResponse, settings: Settings, value: str) -> None:
    """Remember the language in this browser."""
    secure = is_secure(settings)
    response.set_cookie(
        LANGUAGE, value, max_age=_YEAR_S, path="/admin", secure=secure, httponly=True, samesite="Strict"
    )
