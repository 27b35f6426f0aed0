"""A person on Telegram, behind a server that speaks the real Bot API (`tests/fakes/telegram` of this checkout).

The gateway's own Telegram channel talks to that server unmodified. Nothing leaves this machine.
"""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from app.demo.installation import ROOT, DemoError
from app.demo.talk import Heard, wait_for
from app.domain.press import Press

if TYPE_CHECKING:
    from tests.fakes.telegram import Message, TelegramServer, User


@asynccontextmanager
async def platform() -> AsyncIterator["TelegramServer"]:
    """Run the platform until the block ends.

    Raises:
        DemoError: this is no checkout, so the platform's server is not there.
    """
    if not (ROOT / "tests" / "fakes" / "telegram").is_dir():
        raise DemoError("the Telegram half needs a checkout of the repository; use --channel web")
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))  # an installed `mentee` knows app, bots and learner only
    from tests.fakes.telegram import TelegramServer

    async with TelegramServer() as server:
        yield server


def settings(server: "TelegramServer") -> dict[str, str]:
    """Return the settings that lead a gateway to this platform."""
    return {"TELEGRAM_BOT_TOKEN": server.token, "TELEGRAM_BASE_URL": server.base_url}


class TelegramTalker:
    """Talks as a person with a Telegram client."""

    channel = "telegram"

    def __init__(self, server: "TelegramServer", name: str) -> None:
        self._user: User = server.user(name, language_code="en")

    async def arrive(self) -> None:
        """Open the bot and read its consent notice."""
        self._user.start()
        await wait_for(self, lambda shown: next((m for m in shown if m.button("s")), None), "the consent notice")

    async def say(self, text: str) -> None:
        """Write a message."""
        self._user.say(text)

    async def answer_to(self, message: Heard, text: str) -> None:
        """Quote a message and write."""
        self._user.say(text, reply_to=self._message(message))

    async def command(self, name: str) -> None:
        """Give a command."""
        self._user.say(f"/{name}")

    async def press(self, data: str, message: Heard | None = None) -> None:
        """Press a button; without a message, the newest one that has it."""
        shown = self._message(message) if message else self._with(data)
        self._user.press_data(shown, data)

    async def heard(self) -> Sequence[Heard]:
        """Return what the client shows of the bot."""
        return [_heard(message) for message in self._user.chat.from_bot]

    async def allows(self, purpose: str) -> bool:
        """Whether a button shows that it would switch the purpose off."""
        off = Press("s", purpose, "0").data()
        return any(button.data == off for button in self._user.chat.buttons())

    def _message(self, heard: Heard) -> "Message":
        found = self._user.chat.find(int(heard.message_id))
        if found is None:
            raise DemoError("telegram: a message is gone")
        return found

    def _with(self, data: str) -> "Message":
        for message in reversed(self._user.chat.from_bot):
            if any(button.data == data for button in message.buttons):
                return message
        raise DemoError("telegram: there is no such button")


def _heard(message: "Message") -> Heard:
    buttons = tuple(button.data for button in message.buttons if button.data)
    voted = next((data for data in buttons if data.startswith("v:")), None)
    retry = next((data for data in buttons if data.startswith("t:")), None)
    failed = voted is None and retry is not None
    turn = (retry or ":").split(":")[1] or None  # the question how a reply was has votes too, and is none itself
    return Heard(message.message_id, str(message.message_id), message.text, buttons, turn, failed)
