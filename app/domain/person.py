"""People, chats, sessions and bot identities as the services see them."""

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from app.domain.checker.properties import language
from app.domain.event import ChatAddress
from app.domain.prompt import identity_text


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who talks."""

    id: UUID
    language: str | None
    status: str
    memory_version: int
    asked_consent: bool


@dataclass(frozen=True, slots=True)
class Account:
    """A person's identity on one channel; `left`: they opted out of it."""

    id: UUID
    person_id: UUID
    bot_id: UUID
    external_id: str
    left: bool = False


EXAMPLES = frozenset({"example", "example_again"})


@dataclass(frozen=True, slots=True)
class Awaiting:
    """What the dialogue waits for in a chat: the kind of the next message and the rows it is about.

    Kinds: `correction`, `example`, and `example_again` after an example that did not follow its own line. `reason` is what
    the person chose to be wrong before they said it in words; `since` is when it was asked.
    """

    kind: str
    turn_id: str | None = None
    memory_id: str | None = None
    feedback_id: str | None = None
    reason: str | None = None
    since: str | None = None

    def lasts(self, now: datetime, idle_minutes: int) -> bool:
        """Whether it still waits: a question is forgotten after as much silence as ends a conversation."""
        return self.since is not None and now - datetime.fromisoformat(self.since) < timedelta(minutes=idle_minutes)

    def document(self) -> dict[str, str]:
        """Return the JSON form kept in `chats.state`."""
        named = {
            "kind": self.kind,
            "turn_id": self.turn_id,
            "memory_id": self.memory_id,
            "feedback_id": self.feedback_id,
            "reason": self.reason,
            "since": self.since,
        }
        return {key: value for key, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Chat:
    """One (bot, chat, thread)."""

    id: UUID
    bot_id: UUID
    address: ChatAddress
    person_id: UUID | None
    status: str
    awaiting: Awaiting | None = None

    @property
    def paused(self) -> bool:
        """Whether its person waits for a human: the bot is silent and learns nothing here."""
        return self.status == "paused"

    @property
    def private(self) -> bool:
        """Whether one human alone reads it: only there memory and adapters are used and anything is learnt."""
        return self.address.kind == "private"


@dataclass(frozen=True, slots=True)
class Session:
    """Turns of one chat until /new, idle time or age; pinned to the release that was live when it began."""

    id: UUID
    chat_id: UUID
    person_id: UUID | None
    number: int
    split: str
    release_id: UUID | None
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Identity:
    """One version of who the bot is."""

    id: UUID
    bot_id: UUID
    version: int
    name: str
    system_prompt: str
    contact: str | None
    privacy_notice: str
    facts: dict[str, object] = field(default_factory=dict)

    @property
    def prompt(self) -> str:
        """What the model is told about the bot: its words and its facts."""
        return identity_text(self.system_prompt, self.facts)

    def notice_in(self, reader: str) -> str:
        """Return the privacy notice, the paragraphs in the reader's language first: one notice may be written in several."""
        own: list[str] = []
        others: list[str] = []
        written = None
        for paragraph in _PARAGRAPHS.split(self.privacy_notice.strip()):
            written = language(paragraph) or written  # a link or a number belongs to what stands before it
            (own if written == reader else others).append(paragraph)
        return "\n\n".join([*own, *others])


_PARAGRAPHS = re.compile(r"\n\s*\n")
HELDOUT_EVERY = 3


def split_of(session_number: int) -> str:
    """Return whether a session's prompts may train or are held out for gates; decided when it begins, for ever."""
    return "heldout" if session_number % HELDOUT_EVERY == 0 else "train"
