"""Chats, members and what the bot may do in them.

Owns chat state and the refusals that follow from it. Emits nothing by itself: acts of people are in `people`.
"""

from dataclasses import dataclass, field
from typing import Final

from tests.fakes.telegram.errors import JSON, ApiError, bad_request, forbidden, migrated
from tests.fakes.telegram.markup import Button
from tests.fakes.telegram.messages import Message

REACTIONS: Final = [
    "👍",
    "👎",
    "❤",
    "🔥",
    "🥰",
    "👏",
    "😁",
    "🤔",
    "🤯",
    "😱",
    "🤬",
    "😢",
    "🎉",
    "🤩",
    "🤮",
    "💩",
    "🙏",
    "👌",
    "🕊",
    "🤡",
    "🥱",
    "🥴",
    "😍",
    "🐳",
    "❤\u200d🔥",
    "🌚",
    "🌭",
    "💯",
    "🤣",
    "⚡",
    "🍌",
    "🏆",
    "💔",
    "🤨",
    "😐",
    "🍓",
    "🍾",
    "💋",
    "🖕",
    "😈",
    "😴",
    "😭",
    "🤓",
    "👻",
    "👨\u200d💻",
    "👀",
    "🎃",
    "🙈",
    "😇",
    "😨",
    "🤝",
    "✍",
    "🤗",
    "🫡",
    "🎅",
    "🎄",
    "☃",
    "💅",
    "🤪",
    "🗿",
    "🆒",
    "💘",
    "🙉",
    "🦄",
    "😘",
    "💊",
    "🙊",
    "😎",
    "👾",
    "🤷\u200d♂",
    "🤷",
    "🤷\u200d♀",
    "😡",
]


@dataclass(slots=True)
class Chat:
    """One chat as every client sees it."""

    chat_id: int
    kind: str
    card: JSON
    members: dict[int, JSON] = field(default_factory=dict)
    bot_status: str = "member"
    everything: list[Message] = field(default_factory=list)
    actions: list[tuple[float, str]] = field(default_factory=list)
    drafts: dict[int, str] = field(default_factory=dict)
    topics: set[int] = field(default_factory=set)
    reactions: tuple[str, ...] = tuple(REACTIONS)
    refusal: ApiError | None = None
    moved_to: int | None = None

    @property
    def messages(self) -> list[Message]:
        """What a client shows now, oldest first."""
        return [message for message in self.everything if not message.deleted]

    @property
    def last(self) -> Message:
        """The newest message."""
        return self.messages[-1]

    @property
    def from_bot(self) -> list[Message]:
        """What the bot wrote and has not deleted."""
        return [message for message in self.messages if message.from_bot]

    @property
    def is_forum(self) -> bool:
        """Whether it has topics."""
        return bool(self.card.get("is_forum"))

    def find(self, message_id: int) -> Message | None:
        """A message that is still there."""
        return next((item for item in self.everything if item.message_id == message_id and not item.deleted), None)

    def buttons(self) -> list[Button]:
        """All buttons that can be pressed."""
        return [button for message in self.messages for button in message.buttons]

    def check_writable(self) -> None:
        """Raise what the server answers a bot that may not write here."""
        if self.moved_to is not None:
            raise migrated(self.moved_to)
        if self.refusal is not None:
            raise self.refusal
        place = "group chat" if self.kind == "group" else f"{self.kind} chat"
        if self.bot_status == "kicked":
            raise forbidden(f"bot was kicked from the {place}")
        if self.bot_status == "left":
            raise forbidden(f"bot is not a member of the {place}")
        if self.kind == "channel" and self.bot_status != "administrator":
            raise forbidden("bot is not a member of the channel chat")

    def check_thread(self, thread: int) -> None:
        """Refuse a topic that is not there; the General topic has no id when messages are sent."""
        if thread and thread not in self.topics:
            raise bad_request("message thread not found")
