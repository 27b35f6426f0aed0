"""The same question asked twice: through the web chat (POST, then the page's event stream) and straight from vLLM.

Times are seconds by one clock of this process, from just before the request is sent. Through: the first token is there
when the page's stream carries a first text, the last when it carries the last. Straight: as the API streams them.
"""

import asyncio
import contextlib
import json
import time
import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from app.demo.installation import DemoError
from app.domain.prompt import build

TIMEOUT = aiohttp.ClientTimeout(total=600, sock_connect=5)
TEMPERATURE = 0.7
OPEN_STATES = frozenset({"waiting", "generating"})
SETTLE_S = 0.05
SETTLED_S = 1.0
UNTOLD_S = 15.0
ACCEPTED = frozenset({200, 201, 202})


@dataclass(frozen=True, slots=True)
class Timed:
    """One reply: when it was asked for, when its first and last text came, and how many tokens it has."""

    asked: float
    first: float
    last: float
    tokens: int = 0
    turn: str = ""

    @property
    def first_s(self) -> float:
        """Time to first token."""
        return self.first - self.asked


@dataclass(slots=True)
class _Seen:
    first: float = 0.0
    last: float = 0.0


@dataclass(slots=True)
class Page:
    """One open page of the web chat: its person, its event stream. Open it with `opened`."""

    url: str
    session: aiohttp.ClientSession
    _turns: defaultdict[str, _Seen] = field(default_factory=lambda: defaultdict(_Seen))
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _reading: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Arrive as somebody new and open the stream."""
        await self._post("/chat/api/start", {"language": "en"})
        self._reading = asyncio.create_task(self._read())

    async def close(self) -> None:
        """Close the page."""
        if self._reading:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self.session.close()

    async def ask_anew(self, text: str) -> Timed:
        """Ask in a fresh conversation, once what the end of the last one led to is over."""
        await self.new_conversation()
        await asyncio.sleep(SETTLED_S)
        return await self.ask(text)

    async def ask(self, text: str) -> Timed:
        """Ask; return when the reply is finished."""
        known = set(self._turns)
        asked = time.perf_counter()
        await self._update({"kind": "message", "text": text})
        turn = await self._finished(known)
        seen = self._turns[turn]
        return Timed(asked, seen.first, seen.last, turn=turn)

    async def new_conversation(self) -> None:
        """End the conversation, where there is one; the next question is the first of another."""
        conversation = (await self._messages())["current"]
        await self._update({"kind": "command", "command": "new", "text": ""})
        while True:
            page = await self._messages()
            # Without an earlier question there was nothing to end.
            if page["current"] > conversation or any(item["who"] == "bot" for item in page["items"]):
                return
            await asyncio.sleep(SETTLE_S)

    async def _finished(self, known: set[str]) -> str:
        """Wait until a turn that was not known is done; the database is asked when the stream says that something changed."""
        deadline = time.monotonic() + float(TIMEOUT.total or 0)
        while time.monotonic() < deadline:
            # The stream tells every change; a read of its own is for the case that it broke off.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), UNTOLD_S)
            self._changed.clear()
            fresh = [turn for turn in self._turns if turn not in known and self._turns[turn].first]
            if not fresh:
                continue
            states = {i["turn"]["id"]: i["turn"]["state"] for i in (await self._messages())["items"] if _of_turn(i)}
            if states.get(fresh[0], "waiting") not in OPEN_STATES:
                return fresh[0]
        raise DemoError("a reply through the web chat was never finished")

    async def _read(self) -> None:
        name = ""
        async with self.session.get(f"{self.url}/chat/api/stream") as stream:
            async for raw in stream.content:
                now = time.perf_counter()
                line = raw.decode().rstrip("\n")
                if line.startswith("event: "):
                    name = line[7:]
                elif line.startswith("data: "):
                    self._event(name, json.loads(line[6:]), now)

    def _event(self, name: str, data: dict[str, str], now: float) -> None:
        if name == "live":
            seen = self._turns[data["turn"]]
            if data["text"]:
                seen.first = seen.first or now
                seen.last = now
        elif name == "changed":
            self._changed.set()

    async def _messages(self) -> dict[str, Any]:
        async with self.session.get(f"{self.url}/chat/api/messages") as answer:
            return dict(await answer.json())

    async def _update(self, body: dict[str, str]) -> None:
        await self._post("/chat/api/updates", {"id": str(uuid.uuid4()), **body})

    async def _post(self, path: str, body: dict[str, str]) -> None:
        async with self.session.post(f"{self.url}{path}", json=body, headers={"Origin": self.url}) as answer:
            if answer.status not in ACCEPTED:
                raise DemoError(f"the web chat answered {answer.status}")
            await answer.read()


def _of_turn(item: dict[str, Any]) -> bool:
    return isinstance(item.get("turn"), dict)


async def opened(url: str) -> Page:
    """Return an open page of somebody new."""
    page = Page(url, aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True), timeout=TIMEOUT))
    await page.open()
    return page


class Straight:
    """Asks vLLM itself, as plainly as its API allows. Close it."""

    def __init__(self, url: str, model: str, system: str, max_tokens: int) -> None:
        self._url = url
        self._model = model
        self._system = system
        self._max_tokens = max_tokens
        self._session = aiohttp.ClientSession(timeout=TIMEOUT)

    async def close(self) -> None:
        """Close the connection."""
        await self._session.close()

    async def ask(self, text: str) -> Timed:
        """Ask for one streamed reply."""
        body = {
            "model": self._model,
            "messages": build(self._system, (), (), text, budget_tokens=1 << 30),
            "max_tokens": self._max_tokens,
            "temperature": TEMPERATURE,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        asked, first, last, tokens = time.perf_counter(), 0.0, 0.0, 0
        async with self._session.post(f"{self._url}/v1/chat/completions", json=body) as answer:
            async for line in answer.content:
                if not line.startswith(b"data: {"):
                    continue
                now, event = time.perf_counter(), json.loads(line[6:])
                if any(choice["delta"].get("content") for choice in event["choices"]):
                    first, last = first or now, now
                tokens = (event.get("usage") or {}).get("completion_tokens", tokens)
        if not first:
            raise DemoError("vLLM streamed no text")
        return Timed(asked, first, last, tokens)
