"""A person with a phone, the same on either platform, and what is to be seen on it after each thing they did.

What a message becomes after it was first seen is noted as a change below, as somebody who watches would tell it.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.domain.messages import Language
from app.domain.messages import text as say
from tests.fakes.model import ModelServer
from tests.fakes.telegram import Chat, Message, TelegramServer, User
from tests.fakes.transcriber import Transcriber
from tests.fakes.twilio import Person, Sent
from tests.support.media import PICTURE
from tests.support.road import Road
from tests.support.whatsapp import count, settled

PATIENCE_S = 20.0
GLANCE_S = 0.02
SOME_WORDS_S = 0.6
# A kind by its name in the dialogue's catalogue -> the field that a Message has for it, and Twilio's MessageType.
_TELEGRAM = {
    "audio": "audio", "contact": "contact", "document": "document", "other": "dice", "place": "location", "poll": "poll",
    "sticker": "sticker", "video": "video_note",
}  # fmt: skip
_WHATSAPP = {
    "audio": "audio", "contact": "contacts", "document": "document", "other": "order", "place": "location", "poll": "poll",
    "sticker": "sticker", "video": "video",
}  # fmt: skip
_SIGNS = {"photo": "🖼", "voice": "🎤"} | dict.fromkeys(_TELEGRAM.values(), "📎")


@dataclass(frozen=True, slots=True)
class Bubble:
    """One thing that a phone shows. `entities` as Telegram's API gives them; `sign` stands for what is no text; `note`: what
    it answers, or what became of an earlier one.
    """

    mine: bool
    text: str
    entities: Sequence[dict[str, object]] = ()
    buttons: tuple[tuple[str, ...], ...] = ()
    note: str = ""
    sign: str = ""


@dataclass
class Phone(ABC):
    """Somebody who talks in one language; what they saw is in `bubbles`."""

    road: Road
    model: ModelServer
    language: Language
    ears: Transcriber
    bubbles: list[Bubble] = field(default_factory=list)

    platform = ""

    def words(self, key: str, **values: object) -> str:
        """Return a sentence of the bot in this person's language."""
        return say(self.language, key, **values)

    def either(self, english: str, korean: str) -> str:
        """Return the one of the two that this person would write."""
        return korean if self.language == "ko" else english

    async def say(self, english: str, korean: str, *, to_last: bool = False) -> None:
        """Write a message, perhaps as a reply to the newest reply of the bot; wait for all that follows."""
        before = await self._heard()
        await self._write(self.either(english, korean), to_last=to_last)
        await self.rest(beyond=before)

    async def begin(self, english: str, korean: str) -> None:
        """Write a message and wait only until the model is at work on it."""
        await self._write(self.either(english, korean), to_last=False)
        async with asyncio.timeout(PATIENCE_S):
            while not self.model.running:
                await asyncio.sleep(GLANCE_S)
        await asyncio.sleep(SOME_WORDS_S)
        self.look()

    async def command(self, words: str) -> None:
        """Send a command, the same in both languages; wait for all that follows."""
        await self.say(words, words)

    async def rest(self, *, beyond: int = -1) -> None:
        """Wait until nothing is to come, and note what is new."""
        async with asyncio.timeout(PATIENCE_S):
            while await self._heard() <= beyond:
                await asyncio.sleep(GLANCE_S)
        await settled(self.road, PATIENCE_S)
        self.look()

    async def _heard(self) -> int:
        """Return how much the gateway ever took in: forgetting takes rows of the inbox, never these."""
        return await count(self.road, "dedupe_keys")

    @abstractmethod
    async def press(self, key: str) -> None:
        """Choose the newest button with a label of the catalogue, in the way of the platform."""

    @abstractmethod
    async def thumb(self, sign: str) -> None:
        """Rate the newest reply, in the way of the platform."""

    @abstractmethod
    async def picture(self, caption: str = "", data: bytes = PICTURE) -> None:
        """Send a picture."""

    @abstractmethod
    async def voice(self) -> None:
        """Send a voice note."""

    @abstractmethod
    async def attachment(self, kind: str) -> None:
        """Send something else that is no text, by its name in the dialogue's catalogue."""

    @abstractmethod
    def look(self) -> None:
        """Note what is new on the phone."""

    @abstractmethod
    async def _write(self, words: str, *, to_last: bool) -> None: ...


@dataclass
class TelegramPhone(Phone):
    """Telegram's app."""

    user: User = field(kw_only=True)
    server: TelegramServer = field(kw_only=True)
    group: Chat | None = None
    platform = "Telegram"
    _seen: dict[int, Bubble] = field(default_factory=dict)

    async def press(self, key: str) -> None:
        label, before = self.words(key), await self._heard()
        offering = [m for m in self.user.chat.from_bot if any(label in b.text for b in m.buttons)]
        assert offering, f"nothing to press says {label!r} below {self.bubbles[-3:]}"
        found = offering[-1]
        await self._pressed(found, label, before)

    async def thumb(self, sign: str) -> None:
        before = await self._heard()
        await self._pressed(self._last_reply(), sign, before)

    async def picture(self, caption: str = "", data: bytes = PICTURE) -> None:
        before = await self._heard()
        self.user.send_photo(caption, data=data)
        await self.rest(beyond=before)

    async def album(self, number: int) -> None:
        """Send several pictures at once."""
        before = await self._heard()
        for _ in range(number):
            self.user.send_photo(album="7")
        await self.rest(beyond=before + number - 1)

    async def file(self, data: bytes, mime_type: str, caption: str) -> None:
        """Send a file."""
        before = await self._heard()
        self.user.send_file(data, mime_type, "file", caption)
        await self.rest(beyond=before)

    async def voice(self) -> None:
        before = await self._heard()
        self.user.send_voice()
        await self.rest(beyond=before)

    async def attachment(self, kind: str) -> None:
        before = await self._heard()
        self.user.send(extra={_TELEGRAM[kind]: {}})
        await self.rest(beyond=before)

    async def open_group(self) -> None:
        """Make a group with the bot in it."""
        before = await self._heard()
        self.group = self.server.group("Bakers", self.user).chat
        await self.rest(beyond=before)

    async def say_in_group(self, english: str, korean: str) -> None:
        """Write a message where others read along, to the bot."""
        before = await self._heard()
        name = self.user.world.bot["username"]
        self.user.say(f"@{name} {self.either(english, korean)}", self.group)
        await self.rest(beyond=before)

    async def command_in_group(self, words: str) -> None:
        """Send a command where others read along."""
        before = await self._heard()
        self.user.say(words, self.group)
        await self.rest(beyond=before)

    async def menu(self) -> None:
        """Open the menu of commands."""
        async with asyncio.timeout(PATIENCE_S):
            while not self.user.world.commands:
                await asyncio.sleep(GLANCE_S)
        offered = self.user.offered()
        lines = "\n".join(f"/{item['command']}  {item['description']}" for item in offered)
        self.bubbles.append(Bubble(mine=False, text=lines, sign="☰"))

    async def _pressed(self, message: Message, label: str, before: int) -> None:
        press = self.user.press(message, next(b for b in message.buttons if label in b.text))
        await self.rest(beyond=before)
        told = f" ({press.text})" if press.text else ""
        self.bubbles.append(Bubble(mine=False, text="", note=f"☝ {label}{told}"))

    def look(self) -> None:
        for message in [*self.user.chat.messages, *(self.group.messages if self.group else ())]:
            bubble = _of_telegram(message)
            known = self._seen.get(message.message_id)
            if known is None:
                self.bubbles.append(bubble)
            elif known != bubble:
                self.bubbles.append(_change(known, bubble))
            self._seen[message.message_id] = bubble

    async def _write(self, words: str, *, to_last: bool) -> None:
        self.user.say(words, reply_to=self._last_reply() if to_last else None)

    def _last_reply(self) -> Message:
        return next(m for m in reversed(self.user.chat.from_bot) if any(b.text[:1] == "👍" for b in m.buttons))


@dataclass
class WhatsAppPhone(Phone):
    """WhatsApp's app."""

    person: Person = field(kw_only=True)
    platform = "WhatsApp"
    _seen: int = 0

    async def press(self, key: str) -> None:
        label = self.words(key)
        lines = [line for text in self.person.texts for line in text.splitlines()]
        offers = [line for line in lines if line.startswith("/") and label in line]
        assert offers, f"no choice says {label!r} below {self.bubbles[-3:]}"
        await self.command(offers[-1].split(maxsplit=1)[0])

    async def thumb(self, sign: str) -> None:
        await self.command(sign)

    async def picture(self, caption: str = "", data: bytes = PICTURE) -> None:
        before = await self._heard()
        self.bubbles.append(Bubble(mine=True, text=caption, sign="🖼"))
        await self.person.send_picture(caption, data)
        await self.rest(beyond=before)

    async def voice(self) -> None:
        before = await self._heard()
        self.bubbles.append(Bubble(mine=True, text="", sign="🎤"))
        await self.person.send_voice()
        await self.rest(beyond=before)

    async def attachment(self, kind: str) -> None:
        before = await self._heard()
        self.bubbles.append(Bubble(mine=True, text="", sign="📎"))
        await self.person.say("", MessageType=_WHATSAPP[kind])
        await self.rest(beyond=before)

    def look(self) -> None:
        for message in self.person.got[self._seen :]:
            self.bubbles.append(Bubble(mine=False, text=message.body))
        self._seen = len(self.person.got)

    async def _write(self, words: str, *, to_last: bool) -> None:
        quoted = await self._last_reply() if to_last else None
        note = f"↩ {quoted.body[:40]}" if quoted else ""
        self.bubbles.append(Bubble(mine=True, text=words, note=note))
        await self.person.say(words, reply_to=quoted)

    async def _last_reply(self) -> Sent:
        query = "select provider_message_id as sid from outbox where kind = 'reply' order by id desc limit 1"
        (newest,) = await self.road.rows(query)
        return next(message for message in self.person.got if message.sid == newest["sid"])


def _of_telegram(message: Message) -> Bubble:
    extra = message.extra
    sign = next((sign for kind, sign in _SIGNS.items() if kind in extra), "")
    rows = message.keyboard.rows if message.keyboard else ()
    labels = tuple(tuple(str(button["text"]) for button in row) for row in rows)
    name = extra.get("document", {}).get("file_name", "")
    quoted = f"↩ {message.reply_to.text[:40]}" if message.reply_to else ""
    return Bubble(not message.from_bot, message.text, message.entities, labels, quoted, f"{sign} {name}".strip())


def _change(before: Bubble, after: Bubble) -> Bubble:
    if before.text != after.text:
        return Bubble(after.mine, after.text, after.entities, after.buttons, "✎")
    return Bubble(after.mine, after.text[:40], (), after.buttons, "✎ ☐" if after.buttons else "✎ ☐ ∅")
