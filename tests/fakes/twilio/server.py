"""Twilio's REST API on loopback, as far as WhatsApp needs it, for the unmodified twilio library.

Strict where the real one is: Basic auth, required fields, 1600 characters, error JSON. Owns the HTTP side and the scripted
faults; what a template is, is in `content`.
"""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Self
from urllib.parse import urlencode, urlsplit

from aiohttp import web

from tests.fakes.twilio.content import Content, Contents, Json
from tests.fakes.twilio.errors import ApiError
from tests.fakes.twilio.people import PATH, Inbound, Person, Sent
from tests.fakes.twilio.sids import new_sid
from tests.fakes.twilio.webhook import Hook

MAX_CHARS = 1600
GLANCE_S = 0.02
TOO_LATE = 63016
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Call:
    """One call: its path, its form, and the status that it was answered with."""

    path: str
    form: dict[str, str]
    status: int


@dataclass(frozen=True, slots=True)
class Medium:
    """Something that came with a message."""

    message_sid: str
    content_type: str
    data: bytes


@dataclass(slots=True)
class _Fault:
    times: int
    code: int | None = None
    lose: bool = False
    garbage: bool = False
    delay_s: float = 0.0
    answer_after_s: float = 0.0


@dataclass(slots=True)
class TwilioServer:
    """`async with TwilioServer() as server:` serves the API at `server.url` for one account.

    So many of the next lists of messages as `unlisted` says are answered by 500; with `media_refused` no list
    of a message's media is given out.
    """

    account_sid: str = "AC" + "0a" * 16
    token: str = "the-auth-token-of-this-account"
    sender: str = "whatsapp:+15550100123"
    host: str = "127.0.0.1"
    port: int = 0
    people: dict[str, Person] = field(default_factory=dict)
    heard: set[str] = field(default_factory=set)
    calls: list[Call] = field(default_factory=list)
    inbound: list[Inbound] = field(default_factory=list)
    media: dict[str, Medium] = field(default_factory=dict)
    redirects: int = 0
    media_delay_s: float = 0.0
    unlisted: int = 0
    media_refused: bool = False
    hook: Hook = field(init=False)
    contents: Contents = field(init=False)
    reports: bool = True
    _faults: list[_Fault] = field(default_factory=list)
    _reporting: set[asyncio.Task[None]] = field(default_factory=set)
    _runner: web.AppRunner | None = None

    def __post_init__(self) -> None:
        self.hook = Hook(self.token)
        self.contents = Contents(self.account_sid)

    @property
    def url(self) -> str:
        """Address of the server."""
        return f"http://{self.host}:{self.port}"

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/2010-04-01/Accounts/{sid}.json", self._account)
        app.router.add_post("/2010-04-01/Accounts/{sid}/Messages.json", self._message)
        app.router.add_get("/2010-04-01/Accounts/{sid}/Messages.json", self._list)
        app.router.add_get("/2010-04-01/Accounts/{sid}/Messages/{message}/Media.json", self._media_list)
        app.router.add_get("/2010-04-01/Accounts/{sid}/Messages/{message}/Media/{media}", self._media)
        app.router.add_get("/elsewhere/{left}/{media}", self._elsewhere)
        app.router.add_post("/v2/Indicators/Typing.json", self._typing)
        app.router.add_post("/v1/Content", self._content(lambda _sid, body: self.contents.create(body).document(), 201))
        app.router.add_get("/v1/Content/{content}", self._content(lambda sid, _body: self._kept(sid).document()))
        approval = "/v1/Content/{content}/ApprovalRequests"
        app.router.add_get(approval, self._content(lambda sid, _body: self._kept(sid).approval_document()))
        app.router.add_post(f"{approval}/whatsapp", self._content(self.contents.ask_approval, 201))
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, self.host, self.port).start()
        self.port = int(self._runner.addresses[0][1])
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._reporting:
            task.cancel()
        await asyncio.gather(*self._reporting, return_exceptions=True)
        if self._runner:
            await self._runner.cleanup()

    def person(self, name: str = "Ann", address: str | None = None, external_id: str | None = None) -> Person:
        """Somebody who can write and be written to."""
        where = address or f"whatsapp:+1555020{len(self.people):04}"
        self.people[where] = Person(self, where, name, external_id)
        return self.people[where]

    def fail_next(self, code: int, times: int = 1) -> None:
        """Refuse the next messages, before anything is done."""
        self._faults.append(_Fault(times, code))

    def lose_response(self, times: int = 1) -> None:
        """Send the next messages, then cut the connection instead of answering."""
        self._faults.append(_Fault(times, lose=True))

    def garble_next(self, times: int = 1) -> None:
        """Answer the next messages with 502 and something that is no JSON."""
        self._faults.append(_Fault(times, garbage=True))

    def delay_next(self, seconds: float, times: int = 1) -> None:
        """Answer the next messages late."""
        self._faults.append(_Fault(times, delay_s=seconds))

    def answer_late(self, seconds: float, times: int = 1) -> None:
        """Send and report the next messages at once, and answer late."""
        self._faults.append(_Fault(times, answer_after_s=seconds))

    async def wait_for(self, condition: Callable[[], object], timeout_s: float = 10.0) -> None:
        """Wait until `condition()` is true; raises `TimeoutError`."""
        async with asyncio.timeout(timeout_s):
            while not condition():
                await asyncio.sleep(GLANCE_S)

    async def hang_up(self) -> None:
        """Report nothing more, and wait for the reports that are on their way."""
        self.reports = False
        await asyncio.gather(*self._reporting)

    async def report(self, message: Sent, status: str, to: str, code: int | None = None) -> int:
        """Post what became of a message; return the status of the answer."""
        fields = [
            ("SmsSid", message.sid), ("SmsStatus", status), ("MessageStatus", status), ("ChannelToAddress", to),
            ("To", to), ("ChannelPrefix", "whatsapp"), ("MessageSid", message.sid), ("AccountSid", self.account_sid),
            ("From", self.sender), ("ApiVersion", "2010-04-01"), *([("ErrorCode", str(code))] if code else []),
        ]  # fmt: skip
        return await self.hook.post(f"{PATH}/status", fields)

    # ------------------------------------------------------------------------------------------------------- HTTP

    async def _account(self, request: web.Request) -> web.Response:
        try:
            self._known(request)
        except ApiError as error:
            return error.to_response()
        return web.json_response({"sid": self.account_sid, "status": "active", "type": "Full"})

    async def _message(self, request: web.Request) -> web.StreamResponse:
        form = {name: str(value) for name, value in (await request.post()).items()}
        fault = self._fault()
        await asyncio.sleep(fault.delay_s if fault else 0)
        try:
            self._known(request)
            if fault and fault.garbage:
                self.calls.append(Call(request.path, form, 502))
                return web.Response(status=502, text="<html>Bad Gateway</html>", content_type="text/html")
            sent, person = self._deliver(form, fault.code if fault else None)
        except ApiError as error:
            self.calls.append(Call(request.path, form, error.status))
            return error.to_response()
        self.calls.append(Call(request.path, form, 201))
        if fault and fault.lose and request.transport:
            request.transport.abort()
        self._report_soon(sent, person)
        await asyncio.sleep(fault.answer_after_s if fault else 0)
        body = {"sid": sent.sid, "account_sid": self.account_sid, "status": "queued", "body": sent.body}
        return web.json_response(body | {"to": form["To"], "from": form["From"]}, status=201)

    def _deliver(self, form: dict[str, str], refusal: int | None) -> tuple[Sent, Person]:
        if refusal:
            raise ApiError(refusal)
        if not form.get("To"):
            raise ApiError(21604)
        template = form.get("ContentSid")
        body, buttons = (
            self.contents.fill(template, form.get("ContentVariables")) if template else (form.get("Body", ""), {})
        )
        if not body.strip():
            raise ApiError(21602)
        if form.get("From") != self.sender:
            raise ApiError(63007)
        if len(body.encode("utf-16-le")) // 2 > MAX_CHARS:
            raise ApiError(21617)
        person = self.people.get(form["To"])
        if person is None:
            raise ApiError(21211)
        if person.refusal and not (person.refusal == TOO_LATE and template and self._kept(template).approved):
            raise ApiError(person.refusal)
        sent = Sent(new_sid("MM" if template else "SM"), body, form.get("StatusCallback"), buttons)
        if not person.later:
            person.got.append(sent)
        return sent, person

    def _report_soon(self, sent: Sent, person: Person) -> None:
        if not self.reports or not sent.status_callback:
            return
        assert sent.status_callback == f"{self.hook.public}{urlsplit(sent.status_callback).path}"
        task = asyncio.create_task(self._report(sent, person))
        self._reporting.add(task)
        task.add_done_callback(self._reporting.discard)

    async def _report(self, sent: Sent, person: Person) -> None:
        if person.later:
            await self.report(sent, "failed", person.address, person.later)
            return
        for status in ("sent", "delivered", "sent", "read"):  # out of order and repeated, as they come
            await self.report(sent, status, person.address)

    def _kept(self, sid: str) -> Content:
        return self.contents.find(sid)

    def _content(self, do: Callable[[str, object], Json], status: int = 200) -> Handler:
        """The handler of a call of the Content API, whose bodies are JSON."""

        async def handle(request: web.Request) -> web.Response:
            body = await request.json() if request.can_read_body else None
            form = {"json": json.dumps(body)} if body is not None else {}
            try:
                self._known(request)
                answer = do(request.match_info.get("content", ""), body)
            except ApiError as error:
                self.calls.append(Call(request.path, form, error.status))
                return error.to_response()
            self.calls.append(Call(request.path, form, status))
            return web.json_response(answer, status=status)

        return handle

    async def _list(self, request: web.Request) -> web.Response:
        try:
            self._known(request)
        except ApiError as error:
            return error.to_response()
        if self.unlisted:
            self.unlisted -= 1
            return ApiError(20500).to_response()
        since, to = request.query.get("DateSent>", ""), request.query.get("To")
        after = datetime.fromisoformat(since) if since else datetime.fromtimestamp(0, UTC)
        fit = [one for one in reversed(self.inbound) if one.at >= after and to in {None, self.sender}]
        size, page = int(request.query.get("PageSize", 50)), int(request.query.get("Page", 0))
        shown = [self._listed(one) for one in fit[page * size : (page + 1) * size]]
        more = len(fit) > (page + 1) * size
        query = urlencode(dict(request.query) | {"Page": str(page + 1), "PageToken": "PA1"})
        body = {"messages": shown, "page": page, "page_size": size, "uri": request.path_qs}
        return web.json_response(body | {"next_page_uri": f"{request.path}?{query}" if more else None})

    def _listed(self, one: Inbound) -> dict[str, object]:
        at = format_datetime(one.at)
        return {
            "sid": one.fields["MessageSid"], "account_sid": self.account_sid, "direction": "inbound", "status": "received",
            "from": one.fields["From"], "to": self.sender, "body": one.fields["Body"],
            "num_media": one.fields["NumMedia"], "date_sent": at, "date_created": at, "date_updated": at,
        }  # fmt: skip

    async def _typing(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        try:
            self._known(request)
            self._typed(form)
        except ApiError as error:
            self.calls.append(Call(request.path, form, error.status))
            return error.to_response()
        self.calls.append(Call(request.path, form, 200))
        return web.json_response({"success": True})

    def keep_media(self, message_sid: str, data: bytes, content_type: str) -> str:
        """Keep what came with a message; return its address. Nothing is what was deleted since."""
        media_sid = new_sid("ME")
        if data:
            self.media[media_sid] = Medium(message_sid, content_type, data)
        return f"{self.url}/2010-04-01/Accounts/{self.account_sid}/Messages/{message_sid}/Media/{media_sid}"

    async def _media_list(self, request: web.Request) -> web.Response:
        try:
            self._known(request)
        except ApiError as error:
            return error.to_response()
        if self.media_refused:
            return ApiError(20001).to_response()
        sid = request.match_info["message"]
        found = [{"sid": n, "content_type": m.content_type} for n, m in self.media.items() if m.message_sid == sid]
        return web.json_response({"media_list": found, "page": 0, "page_size": 50, "next_page_uri": None})

    async def _media(self, request: web.Request) -> web.Response:
        """Give out a medium, or say where it lies: under an address that has its own proof and takes no other."""
        await asyncio.sleep(self.media_delay_s)
        try:
            medium = self._medium(request)
        except ApiError as error:
            self.calls.append(Call(request.path, {}, error.status))
            return error.to_response()
        if self.redirects:
            self.calls.append(Call(request.path, {}, 307))
            there = f"/elsewhere/{self.redirects - 1}/{request.match_info['media']}"
            return web.Response(status=307, headers={"Location": there})
        self.calls.append(Call(request.path, {}, 200))
        return web.Response(body=medium.data, content_type=medium.content_type)

    def _medium(self, request: web.Request) -> Medium:
        self._known(request)
        medium = self.media.get(request.match_info["media"])
        if medium is None or medium.message_sid != request.match_info["message"]:
            raise ApiError(20404)
        return medium

    async def _elsewhere(self, request: web.Request) -> web.Response:
        name, left = request.match_info["media"], int(request.match_info["left"])
        status = 400 if "Authorization" in request.headers else 307 if left else 200
        self.calls.append(Call(request.path, {}, status))
        if status == 307:
            return web.Response(status=307, headers={"Location": f"/elsewhere/{left - 1}/{name}"})
        medium = self.media[name]
        return web.Response(status=status, body=medium.data if status == 200 else b"", content_type=medium.content_type)

    def _typed(self, form: dict[str, str]) -> None:
        if form.get("channel") != "whatsapp" or form.get("messageId") not in self.heard:
            raise ApiError(20404)

    def _known(self, request: web.Request) -> None:
        given = request.headers.get("Authorization", "")
        expected = base64.b64encode(f"{self.account_sid}:{self.token}".encode()).decode()
        if given != f"Basic {expected}" or request.match_info.get("sid", self.account_sid) != self.account_sid:
            raise ApiError(20003)

    def _fault(self) -> _Fault | None:
        if not self._faults:
            return None
        fault = self._faults[0]
        fault.times -= 1
        if fault.times <= 0:
            self._faults.remove(fault)
        return fault
