"""A whole gateway in the test's own process: real database, real road, the instant model server, and someone to talk."""

import asyncio
import contextlib
import json
import re
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Any

import aiohttp
from aiohttp.test_utils import TestServer
from sqlalchemy import text

from app.config import Settings
from app.gateway.channels import Installed, find
from app.main import Gateway, build
from app.store import Store

SECRET = "s" * 40
Json = dict[str, object]
Item = dict[str, Any]


@dataclass
class Visitor:
    """A person in the web chat: one cookie, everything over HTTP."""

    base: str
    session: aiohttp.ClientSession
    me: Json = field(default_factory=dict)

    async def arrive(self, **more: object) -> None:
        """Begin as somebody new."""
        self.me = await self._post("/chat/api/start", more)

    async def say(self, words: str, *, reply_to: str | None = None, update_id: str | None = None) -> None:
        """Send a message, or a correction when it replies to one."""
        kind = {"kind": "correction", "reply_to": reply_to} if reply_to else {"kind": "message"}
        await self.send(kind | {"text": words}, update_id)

    async def command(self, name: str, argument: str = "") -> None:
        """Send a command."""
        await self.send({"kind": "command", "command": name, "text": argument})

    async def press(self, data: str, reply_to: str | None = None) -> None:
        """Press a button."""
        await self.send({"kind": "press", "data": data} | ({"reply_to": reply_to} if reply_to else {}))

    async def send(self, body: Mapping[str, object], update_id: str | None = None) -> None:
        """Post one update."""
        await self._post("/chat/api/updates", {"id": update_id or str(uuid.uuid4()), **body})

    async def messages(self) -> list[Item]:
        """Return what the page would show."""
        async with self.session.get(f"{self.base}/chat/api/messages") as answer:
            assert answer.status == 200, await answer.text()
            return [item | _plain(item) for item in (await answer.json())["items"]]

    async def wait(self, condition: Callable[[list[Item]], object], timeout_s: float = 10.0) -> list[Item]:
        """Return the messages once `condition` holds for them."""
        shown: list[Item] = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while True:
                    shown = await self.messages()
                    if condition(shown):
                        return shown
                    await asyncio.sleep(0.05)
        raise AssertionError(f"never seen: {json.dumps(shown, ensure_ascii=False, default=str)[:3000]}")

    async def allow(self, *purposes: str) -> None:
        """Allow purposes by their switches, and wait until they are."""
        for purpose in purposes:
            await self.switch(purpose, on=True)

    async def switch(self, purpose: str, *, on: bool) -> None:
        """Turn one consent switch, and wait until it is turned."""
        await self.press(f"s:{purpose}:{int(on)}")
        async with asyncio.timeout(10):
            while (await self.about_me())["consents"][purpose]["on"] is not on:
                await asyncio.sleep(0.05)

    async def about_me(self) -> Item:
        """Return what the page's panel shows."""
        async with self.session.get(f"{self.base}/chat/api/me") as answer:
            return dict(await answer.json())

    async def ask(self, words: str) -> Item:
        """Say something and return the reply."""
        known = {item["turn"]["id"] for item in replies(await self.messages())}
        await self.say(words)
        shown = await self.wait(lambda items: [i for i in replies(items) if i["turn"]["id"] not in known])
        return replies(shown)[-1]

    async def told(self, words: str, timeout_s: float = 10.0) -> Item:
        """Return the newest message of the bot with `words` in it, once it is there."""
        shown = await self.wait(lambda items: [i for i in items if words in i.get("plain", "")], timeout_s)
        return next(i for i in reversed(shown) if words in i.get("plain", ""))

    async def offered(self, words: str, label: str, timeout_s: float = 10.0) -> Item:
        """Return the newest message with `words` and a button with `label`, once it is there."""

        def fits(item: Item) -> bool:
            return words in item.get("plain", "") and any(label in b["label"] for row in item["buttons"] for b in row)

        shown = await self.wait(lambda items: [i for i in items if fits(i)], timeout_s)
        return next(i for i in reversed(shown) if fits(i))

    async def _post(self, path: str, body: Mapping[str, object]) -> Json:
        async with self.session.post(f"{self.base}{path}", json=body, headers={"Origin": self.base}) as answer:
            content = await answer.text()
            assert answer.status in {200, 201, 202}, f"{answer.status}: {content}"
            return dict(json.loads(content)) if content else {}


def _plain(item: Item) -> Item:
    """Return what a reader sees of an item's HTML."""
    return {"plain": unescape(re.sub(r"<[^>]+>", "", item["html"])).strip()} if "html" in item else {}


def replies(items: list[Item]) -> list[Item]:
    """Return the finished replies among what the page shows, oldest first."""
    return [i for i in items if i["who"] == "bot" and i.get("kind") == "reply" and i.get("plain")]


def button(item: Item, label: str) -> str:
    """Return the data of the button with `label` in it."""
    return next(b["data"] for row in item["buttons"] for b in row if label in b["label"])


@dataclass
class Road:
    """A running gateway."""

    gateway: Gateway
    server: TestServer
    store: Store
    settings: Settings

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server.port}"

    @contextlib.asynccontextmanager
    async def visitor(self) -> AsyncIterator[Visitor]:
        """Somebody new in the web chat."""
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as session:
            visitor = Visitor(self.url, session)
            await visitor.arrive()
            yield visitor

    async def rows(self, query: str, **values: object) -> list[Item]:
        """Return rows by plain SQL."""
        async with self.store.begin() as tx:
            return [dict(row) for row in (await tx.execute(text(query), values)).mappings()]

    async def store_execute(self, statement: str, **values: object) -> None:
        """Change rows by plain SQL, as time or somebody else would."""
        async with self.store.begin() as tx:
            await tx.execute(text(statement), values)


def channels(settings: Mapping[str, object]) -> list[Installed]:
    """Return every installed channel with what is set for it among `settings`."""
    chosen: list[Installed] = []
    for package in find():
        mine = {name: settings[name] for name in package.settings.model_fields if name in settings}
        chosen.append(Installed(package, package.settings(_env_file=None, **mine)))
    return chosen


@contextlib.asynccontextmanager
async def road(
    database_url: str, model_url: str, more: Sequence[Installed] = (), **settings: object
) -> AsyncIterator[Road]:
    """Run a gateway on a database and a model server until the block ends; a channel is on where its settings are given."""
    settings.setdefault("model_wait_s", 0.0)  # a test says so where a message shall wait for a model server
    configured = Settings(
        _env_file=None,
        database_url=database_url,
        vllm_base_url=model_url,
        broker_url="redis://127.0.0.1:1/0",
        mentee_secret=SECRET,
        **settings,
    )
    gateway = await build(configured, [*channels(settings), *more])
    server = TestServer(gateway.app, host="127.0.0.1", handler_cancellation=False)
    await server.start_server()
    await gateway.start()
    store = Store(database_url, pool_size=2)
    try:
        yield Road(gateway, server, store, configured)
    finally:
        await store.close()
        await server.close()
        await gateway.stop()
