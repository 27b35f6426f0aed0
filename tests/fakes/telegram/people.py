"""What people do: write, edit, press, react, forward, block. Each act changes the chat and causes its update.

Owns the user side of the fake. It knows nothing of how the bot is told.
"""

from dataclasses import dataclass, field
from typing import Final

from tests.fakes.telegram.chats import Chat
from tests.fakes.telegram.errors import JSON, forbidden
from tests.fakes.telegram.markup import Button
from tests.fakes.telegram.messages import Message
from tests.fakes.telegram.text import MAX_TEXT, Formatted, clean, find_entities, trim, utf16
from tests.fakes.telegram.world import Press, World
from tests.support.media import PICTURE, VOICE

ANONYMOUS_ADMIN: Final[JSON] = {
    "id": 1087968824,
    "is_bot": True,
    "first_name": "Group",
    "username": "GroupAnonymousBot",
}


def typed(text: str) -> Formatted:
    """What becomes of typed text: cleaned, trimmed, links and commands found."""
    plain = trim(clean(Formatted(text)))
    return Formatted(plain.text, tuple(find_entities(plain.text)))


def emoji(*symbols: str) -> list[JSON]:
    """Reaction objects of plain emoji."""
    return [{"type": "emoji", "emoji": symbol} for symbol in symbols]


@dataclass(slots=True)
class User:
    """A person with a client; `chat` is the private chat with the bot."""

    world: World
    card: JSON
    chat: Chat
    blocked: bool = field(default=False)

    @property
    def user_id(self) -> int:
        """Telegram's number of the person."""
        return int(self.card["id"])

    def say(
        self,
        text: str,
        chat: Chat | None = None,
        *,
        reply_to: Message | None = None,
        quote: str = "",
        thread: int = 0,
        extra: JSON | None = None,
    ) -> Message:
        """Write a message; `quote` is a part of the message replied to. Raises ValueError where a client would."""
        body = typed(text)
        if not body.text or len(body.text) > MAX_TEXT:
            message = "a client sends 1 to 4096 characters; use say_long for more"
            raise ValueError(message)
        fields = dict(extra or {}) | _quoted(reply_to, quote)
        return self.send(chat, body=body, reply_to=reply_to, extra=fields, thread=thread)

    def say_long(self, text: str, chat: Chat | None = None) -> list[Message]:
        """Write as much as wanted; the client cuts it into messages of 4096 characters."""
        return [self.say(text[start : start + MAX_TEXT], chat) for start in range(0, len(text), MAX_TEXT)]

    def start(self, payload: str = "") -> Message:
        """Open the bot, perhaps by a deep link."""
        return self.say(f"/start {payload}".strip())

    def send(self, chat: Chat | None = None, thread: int = 0, **parts: object) -> Message:
        """Send a message of any kind: `body`, `caption`, and in `extra` the fields that a Message has for what it is."""
        place = chat or self.chat
        if place is self.chat:
            self._reach_out()
        extra = parts.pop("extra", None)
        fields: JSON = dict(extra) if isinstance(extra, dict) else {}
        if thread:
            fields |= {"message_thread_id": thread, "is_topic_message": True}
        sender = dict(fields.pop("from", self.card))
        message = self.world.add_message(place, sender, extra=fields, **parts)
        if self._bot_sees(place, message):
            self.world.emit_message("message", message)
        return message

    def _reach_out(self) -> None:
        """Writing to the bot lets it write back; only the end of a block is told."""
        if self.blocked:
            self.unblock()
        self.chat.refusal = None

    def _bot_sees(self, chat: Chat, message: Message) -> bool:
        """Privacy mode: commands, mentions and replies to the bot; an administrator sees all."""
        if (
            chat.kind == "private"
            or chat.bot_status == "administrator"
            or self.world.bot["can_read_all_group_messages"]
        ):
            return chat.bot_status not in ("left", "kicked")
        if chat.bot_status != "member":
            return False
        name = f"@{self.world.bot['username']}".lower()
        words = message.text.lower()
        command = words.startswith("/") and ("@" not in words.split()[0] or name in words.split()[0])
        answers = message.reply_to is not None and message.reply_to.from_bot
        return command or answers or name in words

    def send_photo(
        self,
        caption: str = "",
        chat: Chat | None = None,
        *,
        album: str = "",
        data: bytes | None = None,
        reply_to: Message | None = None,
    ) -> Message:
        """A picture, with a small preview of it; those of one `album` share its media group id."""
        small, large = (self.world.keep_file(PICTURE if data is None else data) for _ in range(2))
        sizes = [small | {"width": 90, "height": 90}, large | {"width": 800, "height": 600}]
        extra: JSON = {"photo": sizes} | ({"media_group_id": album} if album else {})
        body = typed(caption) if caption else None
        return self.send(chat, caption=body, extra=extra, reply_to=reply_to)

    def send_voice(
        self, seconds: int = 3, chat: Chat | None = None, *, data: bytes = VOICE, reply_to: Message | None = None
    ) -> Message:
        """A voice note."""
        voice = self.world.keep_file(data, "audio/ogg") | {"duration": seconds, "mime_type": "audio/ogg"}
        return self.send(chat, extra={"voice": voice}, reply_to=reply_to)

    def send_file(self, data: bytes, mime_type: str, name: str, caption: str = "") -> Message:
        """A file, of whatever type the client says."""
        file = self.world.keep_file(data, mime_type) | {"mime_type": mime_type, "file_name": name}
        return self.send(caption=typed(caption) if caption else None, extra={"document": file})

    def forward(self, text: str, origin: JSON, chat: Chat | None = None) -> Message:
        """Forward somebody's words; `origin` is a MessageOrigin without its date."""
        return self.say(text, chat, extra={"forward_origin": {"date": int(self.world.now()) - 60, **origin}})

    def edit(self, message: Message, text: str) -> None:
        """Change the words of an own message, or the caption where it has something else in it."""
        if message.body is None:
            message.caption = typed(text) if text else None
        else:
            message.body = typed(text)
        self._edited(message)

    def edit_photo(self, message: Message, data: bytes) -> None:
        """Put another picture into an own message, or one beside its words, which become the caption."""
        caption = message.body or message.caption
        message.body, message.caption = None, caption
        large = self.world.keep_file(data) | {"width": 800, "height": 600}
        message.extra["photo"] = [large]
        self._edited(message)

    def _edited(self, message: Message) -> None:
        message.edit_date = self.world.now()
        message.snapshot(message.edit_date)
        self.world.emit_message("edited_message", message)

    def delete(self, message: Message) -> None:
        """Remove a message for everybody; bots are not told."""
        message.deleted = True
        self.world.changed()

    def press(self, message: Message, button: str | Button, *, gone: bool = False) -> Press:
        """Press the button with this label or data; `gone`: the bot gets the message without its content."""
        found = next((item for item in message.buttons if button in (item, item.text, item.data)), None)
        if found is None or found.data is None:
            labels = [item.text for item in message.buttons]
            error = f"no such callback button among {labels}"
            raise ValueError(error)
        return self.press_data(message, found.data, gone=gone)

    def press_data(self, message: Message, data: str, *, gone: bool = False) -> Press:
        """Send any callback data, as a forged client can."""
        press = Press(str(self.world.number("queries", 4_000_000_001)), self.world.now(), data)
        self.world.presses[press.query_id] = press
        shown = {"message_id": message.message_id, "chat": message.chat, "date": 0} if gone else message.to_json()
        query: JSON = {"id": press.query_id, "from": self.card, "message": shown, "data": data}
        query["chat_instance"] = f"-{abs(message.chat_id)}7"
        self.world.emit("callback_query", query, f"callbacks {self.user_id}")
        return press

    def react(self, message: Message, *symbols: str) -> None:
        """Put emoji on a message, replacing earlier ones; none takes them back."""
        self.react_with(message, emoji(*symbols))

    def react_with(self, message: Message, new: list[JSON]) -> None:
        """The same with reaction objects of any type."""
        old = message.reactions.get(self.user_id, [])
        message.reactions[self.user_id] = new
        react(self.world, message, {"user": self.card}, old, new)

    def block(self) -> None:
        """Block the bot: it may not write any more, and is told."""
        self.blocked = True
        self.chat.refusal = forbidden("bot was blocked by the user")
        self._membership("member", "kicked")

    def unblock(self) -> None:
        """Let the bot write again."""
        self.blocked = False
        self.chat.refusal = None
        self._membership("kicked", "member")

    def deactivate(self) -> None:
        """Delete the account; nobody is told."""
        self.chat.refusal = forbidden("user is deactivated")

    def _membership(self, old: str, new: str) -> None:
        membership(self.world, self.chat, self.card, old, new)

    def menu(self, scope: str = "default") -> list[str]:
        """The names of the commands that this person's client offers."""
        return [item["command"] for item in self.offered(scope)]

    def offered(self, scope: str = "default") -> list[JSON]:
        """The commands that this person's client offers, with their descriptions."""
        language = str(self.card.get("language_code", ""))[:2]
        for key in ((scope, language), (scope, ""), ("default", language), ("default", "")):
            if key in self.world.commands:
                return self.world.commands[key]
        return []


def _quoted(reply_to: Message | None, quote: str) -> JSON:
    if reply_to is None or not quote:
        return {}
    position = utf16(reply_to.text[: reply_to.text.index(quote)])
    return {"quote": {"text": quote, "position": position, "is_manual": True}}


def react(world: World, message: Message, actor: JSON, old: list[JSON], new: list[JSON]) -> None:
    """Tell the bot of a changed reaction; in groups only an administrator is told."""
    chat = world.chats[message.chat_id]
    if chat.kind != "private" and chat.bot_status != "administrator":
        world.changed()
        return
    body: JSON = {"chat": message.chat, "message_id": message.message_id, "date": int(world.now()), **actor}
    world.emit("message_reaction", body | {"old_reaction": old, "new_reaction": new}, f"reactions {message.chat_id}")


def membership(world: World, chat: Chat, by: JSON, old: str, new: str) -> None:
    """Tell the bot that its own place in a chat changed."""
    body: JSON = {"chat": chat.card, "from": by, "date": int(world.now())}
    body["old_chat_member"] = member(world.bot_user, old)
    body["new_chat_member"] = member(world.bot_user, new)
    world.emit("my_chat_member", body, f"members {chat.chat_id}")


def member(user: JSON, status: str) -> JSON:
    """The ChatMember object of a status."""
    rights = ["can_be_edited", "is_anonymous", "can_manage_chat", "can_delete_messages", "can_manage_video_chats", "can_restrict_members", "can_promote_members", "can_change_info", "can_invite_users", "can_post_stories", "can_edit_stories", "can_delete_stories"]  # fmt: skip
    card: JSON = {"status": status, "user": user}
    if status == "administrator":
        card |= dict.fromkeys(rights, False)
    if status == "creator":
        card["is_anonymous"] = False
    if status == "kicked":
        card["until_date"] = 0
    return card
