"""The example channel, installed as any package is, and the platform that it is for."""

import asyncio
import hashlib
import hmac
import json
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

FOLDER = Path(__file__).parents[1] / "example_channel"
KEY = "the-secret-of-parrot"
ENTRY_POINTS = "[mentee.channels]\nparrot = parrot:PACKAGE\n"


def install(monkeypatch: pytest.MonkeyPatch, into: Path) -> None:
    """Make the example importable and its entry point known, as pip does."""
    info = into / "mentee_parrot-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mentee-parrot\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(into)
    monkeypatch.syspath_prepend(FOLDER)


@dataclass
class Parrot:
    """The platform: posts what people say to a gateway, and shows what it is answered."""

    url: str
    key: str = KEY
    shown: dict[str, list[str]] = field(default_factory=dict)
    statuses: list[int] = field(default_factory=list)

    async def say(self, user: str, text: str, number: str | None = None, *, timeout_s: float = 30.0) -> list[str]:
        """Post a message; return what the answer shows. Raises `TimeoutError` where the platform gave up."""
        return await self.post({"id": number or uuid.uuid4().hex, "user": user, "text": text}, timeout_s=timeout_s)

    async def post(self, body: object, *, timeout_s: float = 30.0, signature: str | None = None) -> list[str]:
        """Post anything."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        sealed = signature or hmac.new(self.key.encode(), raw, hashlib.sha256).hexdigest()
        limit = aiohttp.ClientTimeout(total=timeout_s)
        headers = {"X-Parrot-Signature": sealed}
        async with (
            aiohttp.ClientSession(timeout=limit) as session,
            session.post(f"{self.url}/webhooks/parrot", data=raw, headers=headers) as answer,
        ):
            self.statuses.append(answer.status)
            if answer.status != 200:
                return []
            messages = list((await answer.json())["messages"])
        if isinstance(body, dict):
            self.shown.setdefault(str(body.get("user")), []).extend(messages)
        return messages

    async def until(self, user: str, words: str, timeout_s: float = 20.0) -> None:
        """Ask until something with `words` in it was shown."""
        async with asyncio.timeout(timeout_s):
            while not any(words in text for text in self.shown.get(user, [])):
                await self.say(user, "/whoami")
                await asyncio.sleep(0.05)
