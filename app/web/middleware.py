"""The outermost layer of every HTTP answer: a request id, security headers, and errors that say little.

The one last-resort handler of the HTTP side lives here: whatever reaches it becomes a plain sentence with the request
id; the log gets the error's type and place. Knows no route and no table.
"""

import secrets
from collections.abc import Sequence
from html import escape
from http import HTTPStatus

from aiohttp import web
from aiohttp.typedefs import Handler

from app.config import Network
from app.domain import messages
from app.errors import MenteeError
from app.telemetry import Log
from app.web.proxies import true_remotes

REQUEST_ID = web.RequestKey("request_id", str)

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'"
)
# `same-origin`, not `no-referrer`: with the latter browsers send `Origin: null` with our own forms.
HEADERS = {
    "Content-Security-Policy": CSP,
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

_log = Log(__name__)


def install(app: web.Application, proxies: Sequence[Network] = ()) -> None:
    """Give `app` and all below it request ids, true addresses, the error boundary and security headers.

    Call it before the start. `proxies` are the networks whose word about a client's address counts.
    """
    app.middlewares.append(request_ids)
    app.middlewares.append(true_remotes(proxies))
    app.middlewares.append(errors)
    app.on_response_prepare.append(security_headers)


async def security_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Add the headers that the handler did not set itself."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers["Server"] = "mentee"
    response.headers["X-Request-Id"] = request.get(REQUEST_ID, "-")


@web.middleware
async def request_ids(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Name the request by an id of our own; one sent by the client is ignored."""
    request[REQUEST_ID] = secrets.token_hex(8)
    return await handler(request)


@web.middleware
async def errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn what a handler raised into an answer without stack, SQL, path or version."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < HTTPStatus.BAD_REQUEST:
            raise
        return answer(request, error.status, headers=_allow(error))
    except MenteeError as error:
        if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            _log.failure("http:request:failed", error, request=request[REQUEST_ID], status=error.status)
        return answer(request, error.status, detail=str(error), headers=_retry(error))
    except Exception as error:  # noqa: BLE001 - the HTTP boundary: the last resort for anything not foreseen
        _log.failure("http:request:crashed", error, request=request[REQUEST_ID])
        return answer(request, HTTPStatus.INTERNAL_SERVER_ERROR)


def _allow(error: web.HTTPException) -> dict[str, str]:
    return {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}


def _retry(error: MenteeError) -> dict[str, str]:
    return {"Retry-After": "5"} if error.retryable else {}


def answer(
    request: web.Request, status: int, *, detail: str = "", headers: dict[str, str] | None = None
) -> web.Response:
    """Return an error as a small page for browsers, else as `{"error": {"message", "code", "request_id"}}`.

    Args:
        request: whose `Accept` and `Accept-Language` decide the form and the language.
        status: the HTTP status.
        detail: a sentence that may be shown to machines; people get the catalogue's own words. Hidden from 500 on.
        headers: more headers.
    """
    language = messages.pick(request.headers.get("Accept-Language"))
    sentence = error_sentence(language, status)
    if "text/html" in request.headers.get("Accept", ""):
        page = _page(language, status, sentence, request.get(REQUEST_ID, "-"))
        return web.Response(status=status, text=page, content_type="text/html", headers=headers)
    shown = detail if detail and status < HTTPStatus.INTERNAL_SERVER_ERROR else sentence
    body = {"error": {"message": shown, "code": status, "request_id": request.get(REQUEST_ID, "-")}}
    return web.json_response(body, status=status, headers=headers)


def error_sentence(language: str, status: int) -> str:
    """Return the sentence for an HTTP error status."""
    key = f"admin.error.{status}"
    return messages.text(language, key if key in messages.catalogue("en") else "admin.error.other")


def _page(language: str, status: int, sentence: str, request_id: str) -> str:
    return (
        f'<!doctype html><html lang="{language}"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        f"<title>{status}</title><h1>{status}</h1><p>{escape(sentence)}</p><p><small>{escape(request_id)}</small></p></html>"
    )
