"""How a person arrives, comes back, and makes room for somebody else on the same machine.

A person is a cookie plus a recovery code. The code is shown once; we keep its digest. Beyond loopback a newcomer needs an
invitation, which is spent in the same transaction that makes the person.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final
from uuid import UUID

from aiohttp import web

from app.config import Settings
from app.domain.consent import OPTIONAL, Purpose
from app.domain.messages import LANGUAGES, pick, text
from app.errors import InvalidInputError
from app.store import Tx, people, webchat
from app.store.webchat import Newcomer
from bots.web import body as form
from bots.web.context import CONTEXT, Context
from bots.web.cookie import (
    clear_cookie,
    invitation_hash,
    new_recovery_code,
    new_token,
    recovery_hash,
    set_cookie,
    token_digest,
)
from bots.web.guard import InvitationError, Limit, RecoveryError
from bots.web.receive import lanes

STARTS: Final = Limit("start", 30)
BAD_INVITATIONS: Final = Limit("invitation", 10)
BAD_CODES: Final = Limit("recover", 10)


def switches(settings: Settings) -> tuple[str, ...]:
    """Return the purposes a person is asked about; a judge outside is one only where one is configured."""
    return tuple(p.value for p in OPTIONAL if p is not Purpose.OUTSIDE_JUDGE or settings.judge_base_url)


def notice(settings: Settings, language: str) -> str:
    """Return the words that a newcomer agrees to, as the first page shows them; their digest goes into the consent log."""
    keys = ["notice.kept", "notice.choice", *(f"consent.{purpose}.more" for purpose in switches(settings))]
    return "\n".join(text(language, f"web.{key}") for key in keys)


async def start(request: web.Request) -> web.Response:
    """Make a person: 201 with a cookie and, this once, the recovery code."""
    context = request.app[CONTEXT]
    body = await form.read_json(request)
    form.closed(body, "language", "invitation", "left_off")
    language = _language(body, request)
    await STARTS.check(context.store, request.remote)
    await STARTS.note(context.store, request.remote)
    token, code = new_token(), new_recovery_code()
    digest = recovery_hash(code) or b""
    await _arrive(
        context,
        request,
        Newcomer(
            token_digest(token), digest, language, notice(context.settings, language), _left_off(body, context.settings)
        ),
        _invitation(body),
    )
    answer = web.json_response({"recovery_code": code}, status=HTTPStatus.CREATED)
    set_cookie(request, answer, token)
    return answer


async def _arrive(context: Context, request: web.Request, newcomer: Newcomer, invitation: str | None) -> None:
    bot_id = await context.bot_id()
    if not context.settings.beyond_loopback:
        async with context.store.begin() as tx:
            await webchat.arrive(tx, bot_id, newcomer)
        return
    await BAD_INVITATIONS.check(context.store, request.remote)
    try:
        async with context.store.begin() as tx:
            await _arrive_invited(tx, bot_id, newcomer, invitation)
    except InvitationError:
        await BAD_INVITATIONS.note(context.store, request.remote)
        raise


async def _arrive_invited(tx: Tx, bot_id: UUID, newcomer: Newcomer, invitation: str | None) -> None:
    person_id = await webchat.arrive(tx, bot_id, newcomer)
    if not invitation or not await webchat.spend_invitation(tx, invitation_hash(invitation), person_id):
        # Raised inside the transaction, so that the person is not made.
        raise InvitationError


async def recover(request: web.Request) -> web.Response:
    """Give the person who knows the code a cookie for this browser."""
    context = request.app[CONTEXT]
    body = await form.read_json(request)
    form.closed(body, "code")
    await BAD_CODES.check(context.store, request.remote)
    digest = recovery_hash(form.words(body, "code", most=64))
    token, bot_id = new_token(), await context.bot_id()
    async with context.store.begin() as tx:
        known = digest is not None and await webchat.recover(tx, bot_id, digest, token_digest(token))
    if not known:
        await BAD_CODES.note(context.store, request.remote)
        raise RecoveryError
    answer = web.json_response({"recovered": True})
    set_cookie(request, answer, token)
    return answer


async def leave(request: web.Request) -> web.Response:
    """Forget the person in this browser: the cookie goes, and is worthless from now on."""
    context = request.app[CONTEXT]
    form.closed(await form.read_json(request))
    visitor = await context.find_visitor(request)
    if visitor:
        stored_lanes = [f"{visitor.bot_id}:{lane}" for lane in lanes(visitor)]
        async with context.store.begin() as tx:
            await webchat.leave(tx, visitor, stored_lanes)
        context.seen.pop(visitor.account_external_id, None)
    answer = web.json_response({"left": True})
    clear_cookie(request, answer)
    return answer


async def renew_code(request: web.Request) -> web.Response:
    """Replace the recovery code and show the new one, this once."""
    context = request.app[CONTEXT]
    visitor = await context.visitor(request)
    form.closed(await form.read_json(request))
    code = new_recovery_code()
    async with context.store.begin() as tx:
        await webchat.renew_recovery(tx, visitor, recovery_hash(code) or b"")
    return web.json_response({"recovery_code": code})


async def choose_language(request: web.Request) -> web.Response:
    """Keep the language that the person chose."""
    context = request.app[CONTEXT]
    visitor = await context.visitor(request)
    body = await form.read_json(request)
    form.closed(body, "language")
    language = _language(body, request)
    async with context.store.begin() as tx:
        await people.set_language(tx, visitor.person_id, language)
    return web.json_response({"language": language})


def _language(body: Mapping[str, object], request: web.Request) -> str:
    chosen = form.optional_words(body, "language", most=16)
    if chosen is None:
        return pick(request.headers.get("Accept-Language"))
    if chosen not in LANGUAGES:
        raise InvalidInputError(f"language must be one of {', '.join(LANGUAGES)}")
    return chosen


def _left_off(body: Mapping[str, object], settings: Settings) -> tuple[Purpose, ...]:
    """Return the purposes whose switches the person saw and left off, as far as the page tells."""
    given, asked = body.get("left_off", []), switches(settings)
    if not isinstance(given, list) or not all(name in asked for name in given):
        raise InvalidInputError(f"left_off must be a list of {', '.join(asked)}")
    return tuple(Purpose(name) for name in asked if name in given)


def _invitation(body: Mapping[str, object]) -> str | None:
    return form.optional_words(body, "invitation", most=200)
