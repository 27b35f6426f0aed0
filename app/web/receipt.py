"""`GET /receipt`: what became of a forgetting, for whoever has its code. Needs no cookie; the person is known no more.

A wrong code and one that never was look the same. Shows the counts that the receipt keeps; knows no person.
"""

import hashlib
from collections.abc import Mapping
from datetime import timedelta
from html import escape
from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

from aiohttp import web

from app.domain.messages import LANGUAGES, Language, pick, text
from app.errors import NotFoundError
from app.services.forget import ReceiptState, receipt
from app.store import Store, webchat

PATH: Final = "/receipt"
MAX_CODE_CHARS: Final = 64
# Codes cannot be guessed; the limit only keeps a loop from keeping the database busy.
WRONG_CODES: Final = 20
WINDOW: Final = timedelta(minutes=5)
SAID: Final = ("turns", "sessions", "feedback")
LEARNT: Final = ("memories", "examples", "snapshots", "checkpoints")
GONE: Final = {"chat": SAID, "learnt": ("feedback", *LEARNT), "all": (*SAID, *LEARNT)}


def add_receipt_route(app: web.Application, store: Store) -> None:
    """Add the page to `app`."""

    async def show(request: web.Request) -> web.Response:
        code = request.query.get("code", "").strip()
        status, found = await _look_up(store, request.remote, code) if code else (HTTPStatus.OK, None)
        language = pick(request.query.get("language") or request.headers.get("Accept-Language"))
        headers = {"Cache-Control": "no-store", "Vary": "Accept-Language", "X-Robots-Tag": "noindex"}
        if status is HTTPStatus.TOO_MANY_REQUESTS:
            headers["Retry-After"] = str(int(WINDOW.total_seconds()))
        page = _page(language, code if found else "", _told(language, status, found))
        return web.Response(status=status, text=page, content_type="text/html", headers=headers)

    app.router.add_get(PATH, show)


async def _look_up(store: Store, remote: str | None, code: str) -> tuple[HTTPStatus, ReceiptState | None]:
    subject = hashlib.sha256(f"receipt:{remote or ''}".encode()).digest()
    async with store.begin() as tx:
        if await webchat.attempts(tx, subject, WINDOW) >= WRONG_CODES:
            return HTTPStatus.TOO_MANY_REQUESTS, None
    try:
        return HTTPStatus.OK, await receipt(store, code[:MAX_CODE_CHARS])
    except NotFoundError:
        async with store.begin() as tx:
            await webchat.note_attempt(tx, subject)
        return HTTPStatus.NOT_FOUND, None


def _told(language: Language, status: HTTPStatus, found: ReceiptState | None) -> str:
    if found:
        return _found(language, found)
    keys = {HTTPStatus.NOT_FOUND: "receipt.unknown", HTTPStatus.TOO_MANY_REQUESTS: "receipt.too_many"}
    return f'<p class="error" role="alert">{_say(language, keys[status])}</p>' if status in keys else ""


def _found(language: Language, found: ReceiptState) -> str:
    scope = str(found.summary.get("scope"))
    state = "done" if found.state == "done" else "running"
    counts = [f"<li>{_count(language, kind, found.summary)}</li>" for kind in GONE.get(scope, ())]
    what = _say(language, f"receipt.scope.{scope}") if scope in GONE else ""
    return f'<p role="status"><b>{_say(language, f"receipt.{state}")}</b></p><p>{what}</p><ul>{"".join(counts)}</ul>'


def _count(language: Language, kind: str, summary: Mapping[str, object]) -> str:
    return _say(language, f"receipt.count.{kind}", count=summary.get(kind, 0))


def _page(language: Language, code: str, told: str) -> str:
    others = [_other(other, code) for other in LANGUAGES if other != language]
    title, hint = _say(language, "receipt.title"), _say(language, "receipt.hint")
    return (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f'<title>{title}</title><link rel="icon" href="/chat/static/mark.svg" type="image/svg+xml">'
        '<link rel="stylesheet" href="/chat/static/chat.css"></head><body><main class="welcome">'
        f'<form class="card" action="{PATH}" method="get"><h2>{title}</h2>{told}'
        f'<label class="field">{_say(language, "receipt.code")}<input name="code" autocomplete="off" required '
        f'maxlength="{MAX_CODE_CHARS}" spellcheck="false" value="{escape(code)}"><small>{hint}</small></label>'
        f'<input type="hidden" name="language" value="{language}">'
        f'<div class="row"><button class="primary">{_say(language, "receipt.show")}</button>{"".join(others)}</div>'
        "</form></main></body></html>"
    )


def _other(language: Language, code: str) -> str:
    query = urlencode({"language": language} | ({"code": code} if code else {}))
    return f'<a class="link" lang="{language}" href="{PATH}?{escape(query)}">{_say(language, "receipt.language")}</a>'


def _say(language: Language, key: str, **values: object) -> str:
    return escape(text(language, key, **values))
