"""Parrot: a platform that posts what people say, and shows what the answer to that post holds if it comes within 5 s."""

import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web
from pydantic import SecretStr

from app.config import ChannelSettings, Settings
from app.domain.consent import NEVER_SHARED
from app.domain.event import STOPPING, AnyEvent, ChatAddress, MessageEvent, Sender
from app.domain.text import storable
from app.errors import InvalidInputError, StoreUnavailableError
from app.ports import Capabilities, InResponse, PartHealth
from bots.base import AnsweringChannel, RawUpdate, command_in
from bots.package import ChannelContext, ChannelPackage, Finding, Handler, IdentityRule
from bots.posted import body_of, written

PATH = "/webhooks/parrot"
SIGNATURE = "X-Parrot-Signature"
MAX_BODY, MAX_CHARS = 64 * 1024, 1000


class ParrotSettings(ChannelSettings):
    """The secret alone switches it on."""

    parrot_secret: SecretStr | None = None

    @property
    def on(self) -> bool:
        return self.parrot_secret is not None

    @property
    def key(self) -> bytes:
        return self.parrot_secret.get_secret_value().encode() if self.parrot_secret else b""


def parse(body: bytes) -> MessageEvent:
    """Return what a post says. Raises `InvalidInputError`."""
    try:
        post = json.loads(body)
        number, user, text = (storable(str(post[name])) for name in ("id", "user", "text"))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidInputError("a post has id, user and text") from error
    if not number or not user:
        raise InvalidInputError("id and user are not empty")
    command, argument = command_in(text)
    return MessageEvent(
        ChatAddress(user), Sender(user), message_id=number, text=text, command=command, argument=argument
    )


def raw_update(body: bytes) -> RawUpdate:
    """Return what is stored: the bytes, the key by which a repeat is known, and the lane that keeps a chat in order."""
    try:
        message = parse(body)
    except InvalidInputError:
        return RawUpdate(body, (f"parrot:body:{hashlib.sha256(body).hexdigest()}",), "quarantine")
    user = message.chat.external_id
    lane = f"stop:{user}" if message.command in STOPPING else user
    return RawUpdate(body, (f"parrot:{user}:{message.message_id}",), lane)


class ParrotChannel(AnsweringChannel):
    """What the dialogue speaks through: plain text, no buttons, no edits, replies in the answer to a post."""

    name = "parrot"
    capabilities = Capabilities(
        buttons=False, edits=False, formatting=False, max_units=MAX_CHARS, reply_mode=InResponse(5.0)
    )

    def parse(self, body: bytes) -> Sequence[AnyEvent]:
        return [parse(body)]

    def split(self, text: str) -> Sequence[str]:
        return [text[start : start + MAX_CHARS] for start in range(0, max(len(text), 1), MAX_CHARS)]


class ParrotPart:
    """The bot in a running gateway: one route, nothing to connect to."""

    def __init__(self, context: ChannelContext[ParrotSettings]) -> None:
        self.channel = ParrotChannel()
        self._key = context.settings.key
        self._replies = context.replies

    @property
    def routes(self) -> Mapping[str, Handler | web.Application]:
        return {PATH: self._receive}

    async def start(self) -> None:
        """Do nothing."""

    async def run(self) -> None:
        """End at once: posts come by the route."""

    async def close(self) -> None:
        """Do nothing."""

    async def health(self) -> PartHealth:
        return PartHealth("parrot", "ok")

    async def _receive(self, request: web.Request) -> web.StreamResponse:
        body = await body_of(request, MAX_BODY)
        if body is None:
            return web.Response(status=413)
        signature = hmac.new(self._key, body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(signature.encode(), request.headers.get(SIGNATURE, "").encode(errors="replace")):
            return web.Response(status=401)
        try:
            return await self._answer(request, raw_update(body))
        except StoreUnavailableError:
            return web.Response(status=503, headers={"Retry-After": "5"})

    async def _answer(self, request: web.Request, update: RawUpdate) -> web.StreamResponse:
        ticket = await self._replies.accept(update)
        try:
            chat = parse(update.body).chat
        except InvalidInputError:
            return web.json_response({"messages": []})
        async with self._replies.to(ticket, chat, self.channel) as messages:
            answer = web.json_response({"messages": [message.text for message in messages]})
            await written(request, answer)
        return answer


async def doctor(settings: ParrotSettings, house: Settings, language: str) -> Sequence[Finding]:
    """Say where posts go: Parrot has nothing that could be asked."""
    if not settings.on:
        return [Finding("Parrot", "skip", "PARROT_SECRET을 정하면 켜져요" if language == "ko" else "set PARROT_SECRET")]
    return [Finding("Parrot", "ok", f"POST {house.address}{PATH}")]


def build(context: ChannelContext[ParrotSettings]) -> ParrotPart:
    """Return the part of a bot that is switched on."""
    return ParrotPart(context)


PACKAGE: ChannelPackage[Any] = ChannelPackage(
    name="parrot",
    settings=ParrotSettings,
    account=lambda _: "parrot",
    identity=IdentityRule(re.compile(r"[a-z]+"), "parrot:ann"),
    build=build,
    doctor=doctor,
    data_use=NEVER_SHARED,
)
