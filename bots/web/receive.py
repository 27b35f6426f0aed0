"""`POST /chat/api/updates`: one thing a person did, checked for form, wrapped with who they are, and accepted.

What is stored is the wrapped body: account and chat come from the cookie, never from the client. What it means is read
later, by `parse`; too long or empty texts are for the dialogue to answer.
"""

import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from uuid import UUID

from aiohttp import web

from app.domain.event import STOPPING
from app.domain.messages import pick
from app.domain.press import overtakes
from app.errors import InvalidInputError
from app.store.webchat import Visitor
from bots.base import RawUpdate
from bots.web import body as form
from bots.web.context import CONTEXT

FIELDS: Mapping[str, tuple[str, ...]] = {
    "message": ("text",),
    "command": ("command", "text"),
    "press": ("data", "reply_to"),
    "correction": ("text", "reply_to"),
}
_COMMAND = re.compile(r"[a-z_]{1,32}")
_STOP_WORDS = re.compile(rf"\s*/({'|'.join(sorted(STOPPING))})\s*", re.IGNORECASE)
MESSAGE_ID_CHARS = 64
PRESS_CHARS = 64


async def updates(request: web.Request) -> web.Response:
    """Accept one update; 202 once it is stored. A repeat of an `id` is answered the same and has no second effect."""
    context = request.app[CONTEXT]
    visitor = await context.writer(request)
    update = checked(await form.read_json(request))
    language = pick(visitor.language or request.headers.get("Accept-Language"))
    await context.accept([raw_update(visitor, update, language)])
    return web.json_response({"accepted": update["id"]}, status=HTTPStatus.ACCEPTED)


def checked(body: Mapping[str, object]) -> dict[str, str]:
    """Return the update's own fields.

    Raises:
        InvalidInputError: the message names the field.
    """
    kind = form.words(body, "kind", most=16)
    if kind not in FIELDS:
        raise InvalidInputError(f"kind must be one of {', '.join(FIELDS)}")
    form.closed(body, "id", "kind", *FIELDS[kind])
    update = {"id": _client_id(body), "kind": kind}
    return update | {"press": _press, "command": _command, "correction": _correction, "message": _message}[kind](body)


def _client_id(body: Mapping[str, object]) -> str:
    try:
        return str(UUID(form.words(body, "id", most=40)))
    except ValueError as error:
        raise InvalidInputError("id must be a UUID") from error


def _message(body: Mapping[str, object]) -> dict[str, str]:
    return {"text": form.words(body, "text")}


def _correction(body: Mapping[str, object]) -> dict[str, str]:
    return _message(body) | {"reply_to": form.words(body, "reply_to", most=MESSAGE_ID_CHARS)}


def _command(body: Mapping[str, object]) -> dict[str, str]:
    name = form.words(body, "command", most=32)
    if not _COMMAND.fullmatch(name):
        raise InvalidInputError("command must be small letters")
    return {"command": name, "text": form.words(body, "text") if body.get("text") is not None else ""}


def _press(body: Mapping[str, object]) -> dict[str, str]:
    data = form.words(body, "data", most=PRESS_CHARS)
    if not data or not data.isascii():
        raise InvalidInputError("data must be 1 to 64 plain characters")
    message_id = form.optional_words(body, "reply_to", most=MESSAGE_ID_CHARS)
    return {"data": data} | ({"reply_to": message_id} if message_id is not None else {})


def raw_update(visitor: Visitor, update: Mapping[str, str], language: str) -> RawUpdate:
    """Return what is stored of an update of this visitor."""
    wrapped = {
        "account": visitor.account_external_id,
        "chat": visitor.chat_external_id,
        "language": language,
        "update": update,
    }
    # ASCII, so that lone surrogates survive as escapes until the parser replaces them.
    stored = json.dumps(wrapped, ensure_ascii=True, separators=(",", ":")).encode()
    return RawUpdate(stored, (f"web:{visitor.account_id}:{update['id']}",), lane_of(visitor, update))


def lanes(visitor: Visitor) -> tuple[str, str]:
    """Return the visitor's two lanes: what keeps its place in the chat, and what overtakes."""
    return f"web:{visitor.chat_external_id}", f"web:{visitor.chat_external_id}:now"


def lane_of(visitor: Visitor, update: Mapping[str, str]) -> str:
    """Return the lane of an update: what stops and most buttons overtake a reply that is still being written."""
    in_order, now = lanes(visitor)
    if update["kind"] == "press":
        return now if overtakes(update["data"]) else in_order
    stops = update.get("command") in STOPPING or _STOP_WORDS.fullmatch(update.get("text", ""))
    return now if stops else in_order
