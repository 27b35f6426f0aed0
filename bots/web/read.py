"""What the page reads: the conversation, everything about the person, files. GET only, and only the visitor's own."""

from collections.abc import Iterable
from datetime import datetime
from urllib.parse import quote
from uuid import UUID

from aiohttp import web

from app import clock
from app.domain.consent import OPTIONAL, Consents
from app.domain.ladder import Progress
from app.domain.memory import MemoryLine
from app.domain.person import EXAMPLES, Chat
from app.domain.press import short_id
from app.errors import InvalidInputError, NotFoundError
from app.services import learn
from app.store import memory, people, webchat_read
from app.store.webchat_read import Conversation, PartView, Training, TurnView, WordsView
from bots.web.context import CONTEXT
from bots.web.render import html

OPEN_STATES = frozenset({"waiting", "generating"})
# The page draws these itself below every reply, so the same buttons inside that message would be there twice.
DRAWN_BY_PAGE = frozenset({"v", "c", "t"})
MICROSECONDS = 1_000_000
MAX_NUMBER = 2**53
Item = dict[str, object]


async def messages(request: web.Request) -> web.Response:
    """Answer one conversation as items in order; `?conversation=n` for an older one, `?after=p` for what came later."""
    context = request.app[CONTEXT]
    visitor = await context.visitor(request)
    number, after = _number(request, "conversation"), _number(request, "after") or 0
    async with context.store.single() as tx:
        shown = await webchat_read.conversation(tx, visitor, number)
        working = await webchat_read.working(tx, visitor)
        chat = await people.chat(tx, visitor.chat_id)
    items = [item for item in items_of(shown) if _position(item) > after]
    older = shown.number - 1 if shown.number > 1 else None
    return web.json_response(
        {
            "conversation": shown.number,
            "current": shown.current,
            "older": older,
            "working": working,
            "awaiting": _awaiting(chat, context.settings.session_idle_minutes),
            "items": items,
        }
    )


def _awaiting(chat: Chat | None, idle_minutes: int) -> Item | None:
    """Return which turn's reply the person was asked to write themself, and since when; None where nothing is asked."""
    waiting = chat.awaiting if chat else None
    if waiting and waiting.turn_id and waiting.kind in EXAMPLES and waiting.lasts(clock.now(), idle_minutes):
        return {"turn": short_id(UUID(waiting.turn_id)), "since": waiting.since}
    return None


def _number(request: web.Request, name: str) -> int | None:
    given = request.query.get(name)
    if given is None:
        return None
    if not (given.isascii() and given.isdigit()) or int(given[:20]) > MAX_NUMBER:
        raise InvalidInputError(f"{name} must be a number")
    return int(given)


def items_of(shown: Conversation) -> list[Item]:
    """Return what was said, oldest first: the person's words, and the bot's parts with the turn that made them."""
    by_id = {turn.id: turn for turn in shown.turns}
    # In one transaction everything has the same moment: the question comes before the reply, parts in their own order.
    keyed = [((t.at, 0, t.number), _question(t)) for t in shown.turns if t.sibling_of is None]
    keyed += [((p.at, 1, p.id), _answer(p, by_id)) for p in _visible(shown.parts, by_id)]
    keyed += [((w.at, 0, 0), _words(w)) for w in shown.words]
    shown_turns = {p.turn_id for p in shown.parts if p.message_id and p.content.text}
    coming = {p.turn_id for p in shown.parts if p.message_id is None}
    keyed += [
        ((t.at, 1, 0), _pending(t, on_its_way=t.id in coming))
        for t in shown.turns
        if t.id not in shown_turns or _open(t)
    ]
    return [item for _, item in sorted(keyed, key=lambda pair: pair[0])]


def _visible(parts: Iterable[PartView], by_id: dict[UUID, TurnView]) -> Iterable[PartView]:
    """Yield the parts with something to show; a reply that is still being written shows as pending instead."""
    for part in parts:
        turn = by_id.get(part.turn_id) if part.turn_id else None
        if turn and _open(turn) and part.kind == "reply":
            continue
        if part.message_id is None:
            continue  # not delivered yet: a button under it could not say which message it belongs to
        if part.content.text or part.content.buttons or part.content.file_name:
            yield part


def _question(turn: TurnView) -> Item:
    return _base(turn.at, "you") | {
        "text": turn.user_text,
        "client_id": turn.user_message_id,
        "turn": short_id(turn.id),
    }


def _words(words: WordsView) -> Item:
    return _base(words.at, "you") | {"text": words.text, "about": short_id(words.turn_id)}


def _open(turn: TurnView) -> bool:
    return turn.state in OPEN_STATES


def _pending(turn: TurnView, *, on_its_way: bool) -> Item:
    # Between "written" and "delivered" the person still waits; what they saw of it stays on the page.
    state = "generating" if on_its_way else turn.state
    return _base(turn.at, "bot") | {"kind": "pending", "turn": _turn(turn) | {"state": state}}


def _answer(part: PartView, by_id: dict[UUID, TurnView]) -> Item:
    turn = by_id.get(part.turn_id) if part.turn_id else None
    content = part.content
    item = _base(part.at, "bot") | {
        "id": part.id,
        "version": part.version,
        "kind": part.kind,
        "message_id": part.message_id,
        "buttons": _buttons(part),
        "turn": _turn(turn) if turn else None,
    }
    if content.file_name:
        return item | {"file": {"name": content.file_name, "href": f"/chat/api/files/{part.id}"}}
    return item | {"html": html(content.text)}


def _base(at: datetime, who: str) -> Item:
    return {"position": int(at.timestamp() * MICROSECONDS), "at": at.isoformat(), "who": who}


def _position(item: Item) -> int:
    position = item["position"]
    return position if isinstance(position, int) else 0


def _buttons(part: PartView) -> list[list[dict[str, str]]]:
    drawn = DRAWN_BY_PAGE if part.kind == "reply" else frozenset()
    rows = [
        [{"label": b.label, "data": b.data} for b in row if b.data.partition(":")[0] not in drawn]
        for row in part.content.buttons
    ]
    return [row for row in rows if row]


def _turn(turn: TurnView) -> Item:
    return {
        "id": short_id(turn.id),
        "state": turn.state,
        "vote": turn.vote,
        "again": turn.sibling_of is not None,
        "repeatable": bool(turn.user_text),
        "checkpoint": turn.checkpoint,
        "scope": turn.checkpoint_scope,
        "base": turn.base_id,
        "memory_version": turn.memory_version,
        "memory_used": turn.memory_used,
        "finish_reason": turn.finish_reason,
        "failure": turn.failure,
        "first_token_ms": turn.first_token_ms,
        "duration_ms": turn.duration_ms,
    }


async def me(request: web.Request) -> web.Response:
    """Answer who the visitor is to us: language, consents, memory with its progress, what answers, training."""
    context = request.app[CONTEXT]
    visitor = await context.visitor(request)
    async with context.store.single() as tx:
        allowed = await people.consents(tx, visitor.person_id)
        lines = await memory.lines(tx, visitor.person_id, "active", "graduated")
        promised = await learn.promised(tx, visitor.person_id, context.settings)
        release = await webchat_read.answering(tx, visitor)
        training = await webchat_read.training(tx, visitor)
        identity = await people.identity(tx, visitor.bot_id)
        has_code = await webchat_read.has_recovery_code(tx, visitor)
    settings = context.settings
    return web.json_response(
        {
            "language": visitor.language,
            "status": visitor.status,
            "bot": {
                "name": identity.name if identity else None,
                "contact": identity.contact if identity else None,
                "privacy": html(identity.notice_in(visitor.language or settings.language)) if identity else None,
            },
            "consents": _consents(allowed),
            "memory": [_line(line, promised.get(line.id)) for line in lines],
            "release": release
            and {
                "name": release.name,
                "scope": release.scope,
                "since": release.since.isoformat(),
                "kept": release.kept,
            },
            "base": settings.model,
            "training": _training(training),
            "recovery_code": has_code,
            "max_chars": settings.max_input_chars,
        }
    )


def _consents(allowed: Consents) -> Item:
    return {p.value: {"on": allowed.allows(p), "answered": p in allowed.answered} for p in OPTIONAL}


def _line(line: MemoryLine, progress: Progress | None) -> Item:
    return {
        "id": short_id(line.id),
        "text": line.text,
        "kind": line.kind,
        "in_adapter": line.state == "graduated",
        "examples": [{"prompt": e.prompt, "good": e.good} for e in line.examples],
        "road": progress
        and {
            "uses": [progress.uses, progress.uses_needed],
            "conversations": [progress.sessions, progress.sessions_needed],
            "approved": [progress.examples, progress.examples_needed],
        },
        "failures": line.failures,
    }


def _training(training: Training | None) -> Item | None:
    if training is None:
        return None
    return {
        "stage": training.stage,
        "state": training.state,
        "progress": training.progress,
        "verdict": training.verdict,
    }


async def file(request: web.Request) -> web.Response:
    """Answer a file that was sent to the visitor, to be saved, never shown."""
    context = request.app[CONTEXT]
    visitor = await context.visitor(request)
    part = request.match_info["part"]
    async with context.store.begin() as tx:
        content = await webchat_read.file_part(tx, visitor, int(part))
    if content is None or not content.file_name:
        raise NotFoundError
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(content.file_name, safe='')}"}
    return web.Response(body=content.text.encode(), content_type="application/octet-stream", headers=headers)
