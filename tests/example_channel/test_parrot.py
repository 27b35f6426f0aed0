"""Parrot passes the tests that every channel passes."""

import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Sequence

import aiohttp
import pytest
from parrot import PACKAGE, PATH, SIGNATURE, ParrotPart, ParrotSettings

from app.domain.event import ChatAddress
from bots.conformance import ChannelConformance, House, Numbering, Trouble

SECRET = "the-secret-of-parrot"


class ParrotRig:
    """The platform: posts what people say, shows what it is answered."""

    package = PACKAGE
    numbers: Numbering = "chat"

    def __init__(self) -> None:
        self.house = House()
        self.part = ParrotPart(self.house.context(PACKAGE, ParrotSettings(parrot_secret=SECRET)))
        self.url = ""
        self._shown: list[str] = []

    async def say(self, words: str, *, who: str = "ann", number: str = "1") -> int:
        return await self._post({"id": number, "user": who, "text": words}, SECRET)

    async def forge(self, words: str) -> int | None:
        return await self._post({"id": "1", "user": "ann", "text": words}, "a guess")

    def chat(self, who: str = "ann") -> ChatAddress:
        return ChatAddress(who)

    def shown(self, who: str = "ann") -> Sequence[str] | None:
        return self._shown

    def labels(self, who: str = "ann") -> Sequence[str]:
        return []

    def read(self, text: str) -> str:
        return text

    def units(self, text: str) -> int:
        return len(text)

    def trouble(self, kind: Trouble) -> bool:
        return False

    async def _post(self, post: dict[str, str], key: str) -> int:
        body = json.dumps(post).encode()
        signature = hmac.new(key.encode(), body, hashlib.sha256).hexdigest()
        async with (
            aiohttp.ClientSession() as session,
            session.post(self.url + PATH, data=body, headers={SIGNATURE: signature}) as answer,
        ):
            if answer.ok:
                self._shown += (await answer.json())["messages"]
            return answer.status


class TestParrot(ChannelConformance):
    """All of them."""

    @pytest.fixture
    async def rig(self) -> AsyncIterator[ParrotRig]:
        rig = ParrotRig()
        async with rig.house.serving(rig.part) as rig.url:
            yield rig
