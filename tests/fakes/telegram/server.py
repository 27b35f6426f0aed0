"""A Bot API server on loopback that an unmodified python-telegram-bot talks to, with people to play behind it.

Owns the HTTP side, the scripted faults and the record of calls; what the bot can do is in `methods`, what people can
do in `people` and `places`.
"""

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Self

from aiohttp import web

from tests.fakes.telegram import methods, params
from tests.fakes.telegram.chats import Chat
from tests.fakes.telegram.errors import JSON, ApiError
from tests.fakes.telegram.faults import Fault, Faults
from tests.fakes.telegram.flood import FloodLimits
from tests.fakes.telegram.params import Upload
from tests.fakes.telegram.people import User, membership
from tests.fakes.telegram.places import Channel, Group
from tests.fakes.telegram.updates import Update
from tests.fakes.telegram.world import World

MAX_BODY: Final = 60 << 20
GLANCE_S: Final = 0.02
_TOKEN: Final = re.compile(r"^\d+:[A-Za-z0-9_-]{20,}$")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the bot: its parameters as they came, and the status it was answered with."""

    method: str
    values: JSON
    at: float
    status: int


@dataclass(slots=True)
class TelegramServer:
    """`async with TelegramServer() as server:` serves `server.token` at `server.base_url`."""

    world: World = field(default_factory=World)
    host: str = "127.0.0.1"
    port: int = 0
    flood: FloodLimits | None = None
    calls: list[Call] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)
    downloads: list[str] = field(default_factory=list)
    download_delay_s: float = 0.0
    _runner: web.AppRunner | None = None

    @property
    def token(self) -> str:
        """The one token that is known."""
        return self.world.token

    @property
    def url(self) -> str:
        """Address of the server."""
        return f"http://{self.host}:{self.port}"

    @property
    def base_url(self) -> str:
        """For `ApplicationBuilder().base_url`: the token is appended."""
        return f"{self.url}/bot"

    @property
    def base_file_url(self) -> str:
        """For `ApplicationBuilder().base_file_url`."""
        return f"{self.url}/file/bot"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen; a port of 0 becomes the one that was free."""
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_route("*", "/bot{token}/{method}", self._call)
        app.router.add_get("/file/bot{token}/{path:.*}", self._download)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, self.host, self.port).start()
        self.port = int(self._runner.addresses[0][1])
        self.world.webhook.kick()

    async def stop(self) -> None:
        """Close everything; chats stay, and `start` listens on the same port again."""
        url = self.world.webhook.url
        await self.world.webhook.close()
        self.world.webhook.url = url
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    # ---------------------------------------------------------------------------------------- people and places

    def user(self, first_name: str = "Ann", *, language_code: str = "en", started: bool = True, **more: object) -> User:
        """A person; unless `started`, the bot may not write to them first."""
        number = self.world.number("users", 5_000_000_001)
        card: JSON = {"id": number, "is_bot": False, "first_name": first_name, "language_code": language_code, **more}
        names = {name: card[name] for name in ("first_name", "last_name", "username") if name in card}
        private: JSON = {"id": number, "type": "private"}
        chat = Chat(number, "private", private | names, {number: card})
        if not started:
            chat.refusal = ApiError(403, "Forbidden: bot can't initiate conversation with a user")
        self.world.chats[number] = chat
        return User(self.world, card, chat)

    def group(self, title: str, *members: User, kind: str = "supergroup", forum: bool = False) -> Group:
        """A group with at least one person; the bot is added and told so."""
        number = self.world.number("groups", 4_001)
        chat_id = -number if kind == "group" else -1_000_000_000_000 - number
        card: JSON = {"id": chat_id, "type": kind, "title": title} | ({"is_forum": True} if forum else {})
        chat = Chat(chat_id, kind, card, {person.user_id: person.card for person in members})
        self.world.chats[chat_id] = chat
        membership(self.world, chat, members[0].card, "left", "member")
        return Group(self.world, chat, list(members))

    def channel(self, title: str) -> Channel:
        """A channel that the bot administers."""
        chat_id = -1_000_000_000_000 - self.world.number("groups", 4_001)
        card: JSON = {"id": chat_id, "type": "channel", "title": title, "username": f"channel{-chat_id % 1000}"}
        self.world.chats[chat_id] = Chat(chat_id, "channel", card, bot_status="administrator")
        return Channel(self.world, self.world.chats[chat_id])

    def file(self, name: str, data: bytes, mime_type: str = "application/octet-stream") -> str:
        """Keep a file and return its id."""
        file_id = f"file-{self.world.number('files')}"
        self.world.files[file_id] = Upload(name, mime_type, data)
        return file_id

    def emit(self, body: JSON, queue: str = "raw") -> Update:
        """Queue any update, malformed ones included; a missing update_id is filled in unless set to None."""
        if "update_id" not in body:
            body = {"update_id": self.world.queue.next_id, **body}
            self.world.queue.next_id += 1
        update = Update({key: value for key, value in body.items() if (key, value) != ("update_id", None)}, queue)
        self.world.queue.add(update)
        return update

    def deliver_again(self, update: Update) -> None:
        """Send an update once more under its old id, whether it was confirmed or not."""
        self.world.queue.add(Update(update.body, update.queue, again=True))

    async def wait_for(self, condition: Callable[[], object], timeout_s: float = 5.0) -> None:
        """Wait until `condition()` is true; raises `TimeoutError`.

        Looks after each change here, and every `GLANCE_S` for conditions about somebody else's state.
        """
        async with asyncio.timeout(timeout_s):
            while not condition():
                await self.world.change(GLANCE_S)

    # ----------------------------------------------------------------------------------------------------- faults

    def fail_next(
        self, method: str, status: int, description: str = "", parameters: JSON | None = None, times: int = 1
    ) -> None:
        """Refuse the next calls of a method, before anything is done."""
        words = description or {429: "Too Many Requests: retry after 1", 502: "Bad Gateway"}.get(status, "Refused")
        self.faults.waiting.append(Fault(method, times, ApiError(status, words, parameters)))

    def flood_next(self, method: str, retry_after: int, times: int = 1) -> None:
        """429 with `retry_after` seconds."""
        text = f"Too Many Requests: retry after {retry_after}"
        self.fail_next(method, 429, text, {"retry_after": retry_after}, times)

    def lose_response(self, method: str, times: int = 1) -> None:
        """Do the work of the next calls, then cut the connection instead of answering."""
        self.faults.waiting.append(Fault(method, times, lose=True))

    def delay(self, method: str, seconds: float, times: int = 1) -> None:
        """Answer the next calls late; the work is done after the wait."""
        self.faults.waiting.append(Fault(method, times, delay_s=seconds))

    def garble_next(self, method: str, body: str = "<html>502 Bad Gateway</html>", times: int = 1) -> None:
        """Answer the next calls with 502 and something that is no JSON."""
        self.faults.waiting.append(Fault(method, times, garbage=body))

    def calls_of(self, method: str) -> list[Call]:
        """All calls of one method."""
        return [call for call in self.calls if call.method.lower() == method.lower()]

    # ------------------------------------------------------------------------------------------------------- HTTP

    async def _call(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["method"].lower()
        values: JSON = {}
        fault: Fault | None = None
        try:
            method = self._method(request.match_info["token"], name)
            fault = self.faults.take(name)
            given = await params.read(request)
            values = given.values
            await self._misbehave(fault)
            body: JSON = {"ok": True, "result": await self._do(method, given)}
            status = 200
        except ApiError as error:
            body, status = error.to_json(), error.code
        self.calls.append(Call(name, values, self.world.now(), status))
        self.world.changed()
        return _respond(request, body, status, fault)

    def _method(self, token: str, name: str) -> methods.Method:
        if not _TOKEN.match(token):
            raise ApiError(404, "Not Found")
        if token != self.token:
            raise ApiError(401, "Unauthorized")
        if name not in methods.BY_NAME:
            raise ApiError(404, "Not Found: method not found")
        return methods.BY_NAME[name]

    async def _misbehave(self, fault: Fault | None) -> None:
        if fault is not None:
            await asyncio.sleep(fault.delay_s)
        if fault is not None and fault.garbage is not None:
            raise ApiError(502, "Bad Gateway")
        if fault is not None and fault.refusal is not None:
            raise fault.refusal

    async def _do(self, method: methods.Method, given: params.Params) -> object:
        for name in method.required:
            if name not in given.files:
                given.need(name)
        if method.counts and self.flood is not None:
            self.flood.check(self.world.chat(given), self.world.now())
        return await method.handler(self.world, given)

    async def _download(self, request: web.Request) -> web.Response:
        file_id = request.match_info["path"].rpartition("/")[2].rpartition(".")[0]
        upload = self.world.files.get(file_id)
        self.downloads.append(file_id)
        await asyncio.sleep(self.download_delay_s)
        if upload is None or request.match_info["token"] != self.token:
            return web.json_response(ApiError(404, "Not Found").to_json(), status=404)
        return web.Response(body=upload.data, content_type="application/octet-stream")


def _respond(request: web.Request, body: JSON, status: int, fault: Fault | None) -> web.StreamResponse:
    if fault is not None and fault.garbage is not None:
        return web.Response(text=fault.garbage, status=502, content_type="text/html")
    if fault is not None and fault.lose and request.transport is not None:
        request.transport.abort()
    return web.json_response(body, status=status, dumps=json.dumps)
