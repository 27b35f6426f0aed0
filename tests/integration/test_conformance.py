"""Telegram, WhatsApp and the web chat pass the tests that every channel passes, each against its own platform."""

import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import aiohttp
import pytest

from app.config import Settings
from app.domain.event import ChatAddress
from app.store import StatementPool, Store
from app.store.people import ensure_bot
from bots.conformance import ChannelConformance, House, Numbering, Trouble
from bots.package import ChannelContext
from bots.telegram import pace
from bots.telegram.marks import unit_offsets
from bots.telegram.package import PACKAGE as TELEGRAM
from bots.telegram.part import PATH as TELEGRAM_PATH
from bots.telegram.part import TelegramPart
from bots.telegram.render import render as telegram_text
from bots.telegram.settings import TelegramSettings
from bots.telegram.webhook import SECRET_HEADER
from bots.web.package import PACKAGE as WEB
from bots.web.package import WebPart, WebSettings
from bots.whatsapp.package import PACKAGE as WHATSAPP
from bots.whatsapp.part import WhatsAppPart
from bots.whatsapp.render import render as whatsapp_text
from bots.whatsapp.settings import WhatsAppSettings
from bots.whatsapp.split import units
from tests.fakes.telegram import TelegramServer, User
from tests.fakes.twilio import Person, TwilioServer
from tests.support.whatsapp import PATH as WHATSAPP_PATH
from tests.support.whatsapp import PUBLIC
from tests.support.whatsapp import settings as whatsapp_settings

SECRET = "s3cret-of-the-webhook"


class TelegramRig:
    """A bot whose updates are posted by hand, so that they can be repeated; what it sends is shown by the Bot API server."""

    package = TELEGRAM
    numbers: Numbering = "bot"

    def __init__(self, server: TelegramServer) -> None:
        self.server = server
        self.house = House()
        chosen = TelegramSettings(
            _env_file=None,
            telegram_bot_token=server.token,
            telegram_base_url=server.base_url,
            telegram_mode="webhook",
            telegram_webhook_secret=SECRET,
        )
        self.part = TelegramPart(self.house.context(TELEGRAM, chosen, Settings(_env_file=None, public_url=PUBLIC)))
        self.url = ""
        self.people: dict[str, User] = {name: server.user(name.title()) for name in ("ann", "ben")}

    async def say(self, words: str, *, who: str = "ann", number: str = "1") -> int:
        return await self._post(words, who, int(number), SECRET)

    async def forge(self, words: str) -> int | None:
        return await self._post(words, "ann", 1, "a guess of the same length")

    def chat(self, who: str = "ann") -> ChatAddress:
        return ChatAddress(str(self.people[who].user_id))

    def shown(self, who: str = "ann") -> Sequence[str] | None:
        return [message.text for message in self.people[who].chat.from_bot]

    def labels(self, who: str = "ann") -> Sequence[str]:
        return [button.text for button in self.people[who].chat.from_bot[-1].buttons]

    def read(self, text: str) -> str:
        return telegram_text(text).text

    def units(self, text: str) -> int:
        return unit_offsets(telegram_text(text).text)[-1]

    def trouble(self, kind: Trouble) -> bool:
        match kind:
            case "wait":
                self.server.flood_next("sendMessage", 2)
            case "refused":
                self.server.fail_next("sendMessage", 400, "Bad Request: not today")
            case "gone":
                self.people["ann"].block()
            case "lost":
                self.server.lose_response("sendMessage")
        return True

    async def _post(self, words: str, who: str, number: int, secret: str) -> int:
        person = self.people[who]
        chat = {"id": person.user_id, "type": "private", "first_name": who}
        message = {"message_id": number + 1, "date": 1_700_000_000, "chat": chat, "from": person.card, "text": words}
        if words.startswith("/"):
            message["entities"] = [{"type": "bot_command", "offset": 0, "length": len(words.split(maxsplit=1)[0])}]
        update = {"update_id": number + 1000, "message": message}
        async with (
            aiohttp.ClientSession(headers={SECRET_HEADER: secret}) as session,
            session.post(self.url + TELEGRAM_PATH, json=update) as answer,
        ):
            return answer.status


class TestTelegram(ChannelConformance):
    """All of them."""

    @pytest.fixture
    async def rig(self, telegram_server: TelegramServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TelegramRig]:
        monkeypatch.setattr(pace, "PRIVATE_GAP_S", 0.01)
        rig = TelegramRig(telegram_server)
        async with rig.house.serving(rig.part) as rig.url:
            await rig.part.channel.start()
            yield rig


class WhatsAppRig:
    """A sender that Twilio's stand-in posts to and takes messages from."""

    package = WHATSAPP
    numbers: Numbering = "bot"

    def __init__(self, server: TwilioServer) -> None:
        server.reports = False
        self.server = server
        self.house = House()
        mine = {name: value for name, value in whatsapp_settings(server).items() if name != "public_url"}
        context = self.house.context(
            WHATSAPP, WhatsAppSettings(_env_file=None, **mine), Settings(_env_file=None, public_url=PUBLIC)
        )
        self.part = WhatsAppPart(context)
        self.people: dict[str, Person] = {name: server.person(name.title()) for name in ("ann", "ben")}

    async def say(self, words: str, *, who: str = "ann", number: str = "1") -> int:
        await self.people[who].say(words, sid=f"SM{number:0>32}")
        return self.server.hook.answers[-1][0]

    async def forge(self, words: str) -> int | None:
        body = f"MessageSid=SM1&Body={words}&From=whatsapp:%2B15550200000&To=whatsapp:%2B15550100123".encode()
        return await self.server.hook.post_as(WHATSAPP_PATH, body, {"X-Twilio-Signature": "a guess"})

    def chat(self, who: str = "ann") -> ChatAddress:
        return ChatAddress(self.people[who].address)

    def shown(self, who: str = "ann") -> Sequence[str] | None:
        return self.people[who].texts

    def labels(self, who: str = "ann") -> Sequence[str]:
        return []

    def read(self, text: str) -> str:
        return whatsapp_text(text)

    def units(self, text: str) -> int:
        return units(whatsapp_text(text))

    def trouble(self, kind: Trouble) -> bool:
        if kind == "lost":
            self.server.lose_response()
        else:
            self.server.fail_next({"wait": 20429, "refused": 63013, "gone": 21610}[kind])
        return True


class TestWhatsApp(ChannelConformance):
    """All of them."""

    @pytest.fixture
    async def rig(self, twilio_server: TwilioServer) -> AsyncIterator[WhatsAppRig]:
        rig = WhatsAppRig(twilio_server)
        async with rig.house.serving(rig.part) as url:
            twilio_server.hook.public, twilio_server.hook.local = PUBLIC, url
            yield rig


class WebRig:
    """Pages as people's browsers ask for them. What is shown is what the page reads from the database, not the channel's."""

    package = WEB
    numbers: Numbering = "chat"

    def __init__(self, context: ChannelContext[WebSettings], house: House) -> None:
        self.house = house
        self.part = WebPart(context)
        self.url = ""
        self.chats: dict[str, str] = {}
        self.browsers: dict[str, aiohttp.ClientSession] = {}

    async def arrive(self, store: Store, bot_id: uuid.UUID) -> None:
        for who in ("ann", "ben"):
            browser = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True), headers={"Origin": self.url})
            async with browser.post(f"{self.url}/chat/api/start", json={}) as answer:
                assert answer.status == 201
            self.browsers[who] = browser
            async with store.begin() as tx:
                from sqlalchemy import text

                known = list(self.chats.values())
                query = text("select external_id from chats where bot_id = :bot and external_id <> all(:known)")
                self.chats[who] = str(await tx.scalar(query, {"bot": bot_id, "known": known}))

    async def leave(self) -> None:
        for browser in self.browsers.values():
            await browser.close()

    async def say(self, words: str, *, who: str = "ann", number: str = "1") -> int:
        return await self._post(self.browsers[who], words, number)

    async def forge(self, words: str) -> int | None:
        async with aiohttp.ClientSession(headers={"Origin": self.url}) as stranger:
            return await self._post(stranger, words, "1")

    def chat(self, who: str = "ann") -> ChatAddress:
        return ChatAddress(self.chats[who])

    def shown(self, who: str = "ann") -> Sequence[str] | None:
        return None

    def labels(self, who: str = "ann") -> Sequence[str]:
        return []

    def read(self, text: str) -> str:
        return text

    def units(self, text: str) -> int:
        return len(text)

    def trouble(self, kind: Trouble) -> bool:
        return False

    async def _post(self, browser: aiohttp.ClientSession, words: str, number: str) -> int:
        update = {"id": str(uuid.UUID(int=int(number))), "kind": "message", "text": words}
        async with browser.post(f"{self.url}/chat/api/updates", json=update) as answer:
            return answer.status


class TestWeb(ChannelConformance):
    """All of them."""

    @pytest.fixture
    async def rig(self, store: Store, pool: StatementPool) -> AsyncIterator[WebRig]:
        house = House()
        async with store.begin() as tx:
            bot_id = await ensure_bot(tx, "web", "web")
        context = house.context(WEB, WebSettings(_env_file=None), Settings(_env_file=None), store)
        rig = WebRig(replace(context, pool=pool, bot_id=bot_id), house)
        async with house.serving(rig.part) as rig.url:
            await rig.arrive(store, bot_id)
            yield rig
            await rig.leave()
