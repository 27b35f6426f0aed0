"""What is said and seen on both platforms, as a reader or an operator would look at it."""

import re

from bots.telegram.calls import Look
from bots.telegram.split import split as telegram_split
from bots.whatsapp.render import render as whatsapp_render
from bots.whatsapp.split import split as whatsapp_split
from tests.fakes.telegram import Chat, Message, TelegramServer, User
from tests.fakes.telegram.text import MAX_TEXT, Formatted, entities_from_json, finish
from tests.support.road import Road
from tests.support.whatsapp import count
from tests.support.whatsapp import settled as all_settled
from tests.support.whatsapp import until as got

__all__ = ["count", "got"]

FAMILY = "👨‍👩‍👧‍👦"
PATIENCE_S = 20
_NUMBER = re.compile(r"^\(\d+/\d+\)\n\n")


# --------------------------------------------------------------------------------------------------------- renderings


def on_telegram(markdown: str) -> list[Formatted]:
    """Return the messages that a reply becomes, as the Bot API's own rules leave them. Raises `ApiError` where it refuses."""
    looks = [Look.of(part) for part in telegram_split(markdown)]
    return [
        finish(Formatted(look.text, entities_from_json([e.to_dict() for e in look.formats])), MAX_TEXT)
        for look in looks
    ]


def formats(markdown: str) -> list[tuple[str, str]]:
    """Return each format of a reply that fits one message, with the words it covers."""
    (shown,) = on_telegram(markdown)
    return [(entity.kind, shown.part(entity)) for entity in shown.entities]


def seen(markdown: str) -> str:
    """Return the words of a reply that fits one message on Telegram."""
    (shown,) = on_telegram(markdown)
    return shown.text


def on_whatsapp(markdown: str) -> list[str]:
    """Return the messages that a reply becomes on WhatsApp, without their numbers."""
    return [_NUMBER.sub("", whatsapp_render(part)) for part in whatsapp_split(markdown)]


def units(text: str) -> int:
    """Return the length of `text` in UTF-16 code units."""
    return len(text.encode("utf-16-le")) // 2


def letters(text: str) -> list[str]:
    """Return what a reader would miss if it were lost: letters, digits, pictures."""
    return [c for c in text if c.isalnum() or ord(c) >= 0x1F000]


# ------------------------------------------------------------------------------------------------------------ Telegram


def texts(place: User | Chat) -> list[str]:
    """Return what the bot shows in a chat, oldest first."""
    chat = place.chat if isinstance(place, User) else place
    return [message.text for message in chat.from_bot]


async def told(server: TelegramServer, place: User | Chat, words: str, timeout_s: float = PATIENCE_S) -> Message:
    """Return the newest message of the bot with `words` in it, once it is there."""
    chat = place.chat if isinstance(place, User) else place
    await server.wait_for(lambda: any(words in m.text for m in chat.from_bot), timeout_s)
    return next(m for m in reversed(chat.from_bot) if words in m.text)


async def replied(server: TelegramServer, place: User | Chat, words: str, timeout_s: float = PATIENCE_S) -> Message:
    """Return the finished reply with `words` in it: the one that can be rated."""
    chat = place.chat if isinstance(place, User) else place
    await server.wait_for(lambda: any(words in m.text and m.buttons for m in chat.from_bot), timeout_s)
    return next(m for m in reversed(chat.from_bot) if words in m.text and m.buttons)


# ------------------------------------------------------------------------------------------------------------- storage


async def settled(gateway: Road, timeout_s: float = PATIENCE_S, *, beyond: int = 0) -> None:
    """Wait until something came in, and nothing waits to be handled or sent."""
    await all_settled(gateway, timeout_s, beyond=beyond)


async def asked(gateway: Road) -> list[str | None]:
    """Return what was answered, in order."""
    return [row["user_text"] for row in await gateway.rows("select user_text from turns order by number, created_at")]
