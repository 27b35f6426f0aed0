"""Everything the fake server knows: the bot, people, chats, files, pressed buttons, and the updates they cause.

Owns ids, the clock and the way from an event to an update. The acts themselves are in `people`, the bot's in `calls_*`.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tests.fakes.telegram.chats import Chat
from tests.fakes.telegram.errors import JSON, bad_request
from tests.fakes.telegram.messages import Message
from tests.fakes.telegram.params import Params, Upload
from tests.fakes.telegram.updates import Update, UpdateQueue
from tests.fakes.telegram.webhook import Webhook

TOKEN: Final = "7310001:fake-token-of-a-test-bot-AAAAAAAAAAA"
QUERY_LIFE_S: Final = 15.0


@dataclass(slots=True)
class Press:
    """A pressed button; the client shows a spinner until it is answered."""

    query_id: str
    at: float
    data: str
    answered: bool = False
    text: str = ""
    alert: bool = False


@dataclass(slots=True)
class World:
    """State behind the server."""

    token: str = TOKEN
    now: Callable[[], float] = time.time
    query_life_s: float = QUERY_LIFE_S
    bot: JSON = field(default_factory=dict)
    chats: dict[int, Chat] = field(default_factory=dict)
    presses: dict[str, Press] = field(default_factory=dict)
    files: dict[str, Upload] = field(default_factory=dict)
    commands: dict[tuple[str, str], list[JSON]] = field(default_factory=dict)
    queue: UpdateQueue = field(default_factory=UpdateQueue)
    webhook: Webhook = field(init=False)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _numbers: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        bot_id = int(self.token.partition(":")[0])
        names = {"first_name": "Mentee", "username": "mentee_test_bot"}
        powers = {"can_join_groups": True, "can_read_all_group_messages": False, "supports_inline_queries": False}
        self.bot = {"id": bot_id, "is_bot": True, **names, **powers}
        self.webhook = Webhook(self.queue)
        self.queue.on_put.append(self.webhook.kick)

    @property
    def bot_id(self) -> int:
        """The bot's user id."""
        return int(self.bot["id"])

    @property
    def bot_user(self) -> JSON:
        """The bot as a sender: without what only getMe tells."""
        return {name: self.bot[name] for name in ("id", "is_bot", "first_name", "username")}

    def number(self, series: str, first: int = 1) -> int:
        """The next number of a series."""
        self._numbers[series] = self._numbers.get(series, first - 1) + 1
        return self._numbers[series]

    def keep_file(self, data: bytes, mime_type: str = "image/jpeg") -> JSON:
        """Keep what somebody sent; return what a message says of it. An empty file is one that is gone."""
        number = self.number("files")
        file_id = f"file-{number}"
        if data:
            self.files[file_id] = Upload("sent", mime_type, data)
        return {"file_id": file_id, "file_unique_id": f"u{number}", "file_size": len(data)}

    def changed(self) -> None:
        """Wake everybody who waits for a state."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def change(self, timeout_s: float) -> None:
        """Wait for any change, at most `timeout_s`."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), timeout_s)

    def chat(self, params: Params) -> Chat:
        """The chat of a call; raises 400 where there is none."""
        given = params.text("chat_id")
        if not given:
            raise bad_request("chat_id is empty")
        for chat in self.chats.values():
            if given in (str(chat.chat_id), f"@{chat.card.get('username')}"):
                return chat
        raise bad_request("chat not found")

    def add_message(self, chat: Chat, sender: JSON | None, **parts: object) -> Message:
        """Put a new message into a chat. Private chats and basic groups share one series of ids, as with Telegram."""
        if chat.kind in ("supergroup", "channel"):
            number = self.number(f"messages {chat.chat_id}", first=2)  # the first is the founding of the chat
        else:
            number = self.number("messages")
        message = Message(number, chat.chat_id, chat.card, self.now(), sender, **parts)  # type: ignore[arg-type]
        message.snapshot(message.date)
        chat.everything.append(message)
        self.changed()
        return message

    def emit_message(self, kind: str, message: Message) -> Update | None:
        """A message or an edit: one order per chat."""
        return self.emit(kind, message.to_json(), f"chat {message.chat_id}")

    def emit(self, kind: str, payload: object, queue: str) -> Update | None:
        """Queue an update for the bot."""
        update = self.queue.put(kind, payload, queue)
        self.changed()
        return update
