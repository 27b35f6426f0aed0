"""A person in the web chat: one cookie, and the page's own HTTP API."""

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from typing import Any

import aiohttp

from app.demo.installation import DemoError
from app.demo.talk import Heard
from app.domain.press import Press

ACCEPTED = frozenset({200, 201, 202})
UNKNOWN = 401
TIMEOUT = aiohttp.ClientTimeout(total=30)
BLOCKS = frozenset({"p", "ul", "ol", "pre", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "table"})


class WebTalker:
    """Talks over HTTP. Close it."""

    channel = "web"

    def __init__(self, url: str) -> None:
        self._url = url
        self._session = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True), timeout=TIMEOUT)

    async def close(self) -> None:
        """Close the connection."""
        await self._session.close()

    async def arrive(self) -> None:
        """Begin as somebody new."""
        await self._post("/chat/api/start", {"language": "en"})

    async def say(self, text: str) -> None:
        """Write a message."""
        await self._update({"kind": "message", "text": text})

    async def answer_to(self, message: Heard, text: str) -> None:
        """Write a correction of a reply."""
        await self._update({"kind": "correction", "text": text, "reply_to": message.message_id})

    async def command(self, name: str) -> None:
        """Give a command."""
        await self._update({"kind": "command", "command": name, "text": ""})

    async def press(self, data: str, message: Heard | None = None) -> None:
        """Press a button."""
        about = {"reply_to": message.message_id} if message and message.message_id else {}
        await self._update({"kind": "press", "data": data, **about})

    async def heard(self) -> Sequence[Heard]:
        """Return the page's present conversation; nothing once the person is forgotten."""
        async with self._session.get(f"{self._url}/chat/api/messages") as answer:
            if answer.status == UNKNOWN:
                return ()
            items = json.loads(await _checked(answer))["items"]
        return sorted((_heard(item) for item in items if item["who"] == "bot" and "id" in item), key=lambda h: h.number)

    async def known(self) -> bool:
        """Whether the gateway still knows this person."""
        async with self._session.get(f"{self._url}/chat/api/me") as answer:
            return answer.status != UNKNOWN

    async def allows(self, purpose: str) -> bool:
        """Whether the page shows a switch on."""
        return bool((await self.me())["consents"][purpose]["on"])

    async def me(self) -> Mapping[str, Any]:
        """Return what the page shows about the person: consents, memory, training, release."""
        async with self._session.get(f"{self._url}/chat/api/me") as answer:
            return dict(json.loads(await _checked(answer)))

    async def _update(self, body: Mapping[str, str]) -> None:
        await self._post("/chat/api/updates", {"id": str(uuid.uuid4()), **body})

    async def _post(self, path: str, body: Mapping[str, str]) -> None:
        async with self._session.post(f"{self._url}{path}", json=body, headers={"Origin": self._url}) as answer:
            await _checked(answer)


async def _checked(answer: aiohttp.ClientResponse) -> str:
    text = await answer.text()
    if answer.status not in ACCEPTED:
        raise DemoError(f"the web chat answered {answer.status} to {answer.url.path}")
    return text


class _Reader(HTMLParser):
    """Reads the page's HTML as a person does: paragraphs apart, list items on lines of their own with their dots."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002  # the parser's own
        if tag == "li":
            self.parts.append("\n- ")
        elif tag == "br":
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in BLOCKS:
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def plain(shown: str) -> str:
    """Return the text of a message's HTML."""
    reader = _Reader()
    reader.feed(shown)
    reader.close()
    text = "\n".join(line.strip() for line in "".join(reader.parts).splitlines())
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"\n+- ", "\n- ", text)).strip()


def _heard(item: Mapping[str, Any]) -> Heard:
    turn = item.get("turn") or {}
    reply = item.get("kind") == "reply" and bool(turn)
    buttons = [button["data"] for row in item.get("buttons") or () for button in row]
    if reply:  # the page draws these itself
        buttons += [Press("v", turn["id"], choice).data() for choice in ("u", "d")]
    done = reply and turn["state"] in {"done", "stopped", "failed"}
    return Heard(
        number=int(item["id"]),
        message_id=str(item.get("message_id") or ""),
        text=plain(str(item.get("html") or "")),
        buttons=tuple(buttons),
        turn=str(turn["id"]) if done else None,
        failed=bool(reply and turn["state"] == "failed"),
    )
