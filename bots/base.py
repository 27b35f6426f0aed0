"""What a channel and the dialogue agree on beyond `app.ports`: raw updates, how commands are written, and what all channels
do alike that are never written to.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from app.domain.event import ChatAddress
from app.domain.media import Attachment
from app.domain.outgoing import Content
from app.errors import AttachmentGoneError, DeliveryError

_COMMAND = re.compile(r"/([A-Za-z0-9_]{1,32})(?=\s|$)")


@dataclass(frozen=True, slots=True)
class RawUpdate:
    """One authentic update before parsing: its bytes, the keys that make it a repeat, and its lane.

    `keys` are the platform's own identifiers (update id; chat, message and edit date); any key seen before makes the
    update a repeat. A body whose keys cannot be read uses its SHA-256. Updates of one `lane` are handled one at a time
    in the order of acceptance.
    """

    body: bytes
    keys: tuple[str, ...]
    lane: str


Accept = Callable[[Sequence[RawUpdate]], Awaitable[None]]
"""Stores a batch durably, repeats dropped, before it returns. Raises `StoreUnavailableError` when it cannot store all of it:
the same batch again does no harm.
"""


def command_in(text: str) -> tuple[str | None, str]:
    """Return the command that a message begins with, in small letters, and what follows it; None for no command."""
    words = text.strip()
    found = _COMMAND.match(words)
    return (found[1].lower(), words[found.end() :].strip()) if found else (None, "")


class AnsweringChannel:
    """A channel that is never written to, since what it shows is given to it when it asks; to be derived from.

    `parse` and `split` are left to do. Nothing shown can be changed, and nobody waits for an answer to a press.
    """

    async def send(self, chat: ChatAddress, content: Content) -> str:  # noqa: ARG002 - there is no way to any chat
        """Raise `DeliveryError`."""
        raise DeliveryError("this channel shows only what it asks for", "not_written_to")

    async def edit(self, chat: ChatAddress, message_id: str, content: Content) -> None:
        """Change nothing."""

    def private_link(self) -> str:
        """Return no address."""
        return ""

    def own_notice(self, language: str) -> str | None:  # noqa: ARG002 - the dialogue's words are shown
        """Return None: the dialogue's words are shown."""
        return None

    async def typing(self, chat: ChatAddress) -> None:
        """Show nothing."""

    async def fetch(self, attachment: Attachment) -> bytes:  # noqa: ARG002 - nothing comes along with words
        """Raise `AttachmentGoneError`."""
        raise AttachmentGoneError

    async def answer_press(self, press_id: str, note: str) -> None:
        """Do nothing."""
