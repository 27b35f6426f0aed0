"""What the writer of a channel gives to its tests: a built part, and a platform on which people can be made to act."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from app.domain.event import ChatAddress
from bots.conformance.house import House
from bots.package import ChannelPackage, Part

Trouble = Literal["wait", "refused", "gone", "lost"]
"""The platform asks to try later; refuses this message; says that nobody is there; takes it and its answer is lost."""
Numbering = Literal["chat", "bot"]
"""Within what no two messages have the same id on the platform: one person's chat, or all that a bot is sent."""


class Rig(Protocol):
    """One bot account on its platform, or on what stands for it. People are known by what the tests call them."""

    package: ChannelPackage[Any]
    part: Part
    house: House
    numbers: Numbering

    async def say(self, words: str, *, who: str = "ann", number: str = "1") -> int:
        """Let somebody write in private; a second time with the same `number` is the platform's repeat of the same message.

        Returns the HTTP status that the platform was answered with, once it was.
        """
        ...

    async def forge(self, words: str) -> int | None:
        """Post like `say` but without what proves who sent it; None where nothing is posted to this channel."""
        ...

    def chat(self, who: str = "ann") -> ChatAddress:
        """Return somebody's private chat, where the bot may write to them."""
        ...

    def shown(self, who: str = "ann") -> Sequence[str] | None:
        """Return what the bot's messages in somebody's chat show now, the oldest first; None where nobody can tell."""
        ...

    def labels(self, who: str = "ann") -> Sequence[str]:
        """Return what the buttons under the newest message say."""
        ...

    def read(self, text: str) -> str:
        """Return what a person reads of one part of Markdown text."""
        ...

    def units(self, text: str) -> int:
        """Return how long one part of Markdown text is on the platform, in the unit of `Capabilities.max_units`."""
        ...

    def trouble(self, kind: Trouble) -> bool:
        """Let the next message that the bot sends to Ann meet trouble; False where the platform knows no such."""
        ...
