"""How somebody talks to the bot, the same on every channel: what they can do, and what they see of it.

A talker is one person on one platform and knows only what that platform shows. Asking, judging and waiting are built on
that. Sentences are told apart by their buttons and, where there are none, by the product's own catalogue.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from app.demo.installation import DemoError

REPLY_TIMEOUT_S = 900.0
NOTICE_TIMEOUT_S = 600.0
POLL_S = 0.4


@dataclass(frozen=True, slots=True)
class Heard:
    """One message of the bot as its person sees it; `turn` is set on finished replies."""

    number: int
    message_id: str
    text: str = field(repr=False)
    buttons: tuple[str, ...] = ()
    turn: str | None = None
    failed: bool = False

    def button(self, verb: str, choice: str = "") -> str | None:
        """Return the data of the button with this verb and choice."""
        mine = [data.split(":") for data in self.buttons if data.split(":")[0] == verb]
        return next((":".join(parts) for parts in mine if not choice or parts[-1] == choice), None)


class Talker(Protocol):
    """One person on one platform."""

    channel: str

    async def arrive(self) -> None:
        """Come for the first time."""
        ...

    async def say(self, text: str) -> None:
        """Write a message."""
        ...

    async def answer_to(self, message: Heard, text: str) -> None:
        """Write about one of the bot's messages: quote it, or press "correct" and write."""
        ...

    async def command(self, name: str) -> None:
        """Give a command."""
        ...

    async def press(self, data: str, message: Heard | None = None) -> None:
        """Press a button, of a message where it has one."""
        ...

    async def heard(self) -> Sequence[Heard]:
        """Return what the bot shows at this moment, oldest first."""
        ...

    async def allows(self, purpose: str) -> bool:
        """Whether the switch of a purpose shows that it is on."""
        ...


async def wait_for(
    talker: Talker, found: Callable[[Sequence[Heard]], Heard | None], what: str, timeout_s: float = NOTICE_TIMEOUT_S
) -> Heard:
    """Return the message once it is there.

    Raises:
        DemoError: it did not come in time, or the bot said that it could not answer.
    """
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        shown = await talker.heard()
        if message := found(shown):
            if message.failed:
                raise DemoError(f"{talker.channel}: the bot could not answer ({what})")
            return message
        await asyncio.sleep(POLL_S)
    raise DemoError(f"{talker.channel}: nothing came within {timeout_s:.0f} s ({what})")


async def ask(talker: Talker, text: str) -> Heard:
    """Write something and return the finished reply."""
    known = {message.turn for message in await talker.heard() if message.turn}
    await talker.say(text)

    def reply(shown: Sequence[Heard]) -> Heard | None:
        return next((m for m in reversed(shown) if m.turn and m.turn not in known), None)

    return await wait_for(talker, reply, "a reply", REPLY_TIMEOUT_S)


async def newest(talker: Talker) -> int:
    """Return the number of the newest message, to tell what comes after it."""
    return max((message.number for message in await talker.heard()), default=0)


def after(number: int, fits: Callable[[Heard], bool]) -> Callable[[Sequence[Heard]], Heard | None]:
    """Return a condition: the first message newer than `number` that fits."""

    def found(shown: Sequence[Heard]) -> Heard | None:
        return next((m for m in shown if m.number > number and fits(m)), None)

    return found
