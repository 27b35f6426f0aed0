"""Groups and channels, and what happens to them: topics, promotions, migration, posts, anonymous acts.

Owns the shared places of the fake; a person's acts inside them are in `people`.
"""

from dataclasses import dataclass, field

from tests.fakes.telegram.chats import Chat
from tests.fakes.telegram.errors import JSON
from tests.fakes.telegram.messages import Message
from tests.fakes.telegram.people import ANONYMOUS_ADMIN, User, emoji, membership, react, typed
from tests.fakes.telegram.world import World


@dataclass(slots=True)
class Group:
    """A basic group or supergroup with its members."""

    world: World
    chat: Chat
    members: list[User] = field(default_factory=list)

    def promote_bot(self) -> None:
        """Make the bot an administrator: it sees all messages and reactions."""
        self._bot_becomes("administrator")

    def remove_bot(self) -> None:
        """Throw the bot out."""
        self._bot_becomes("kicked")

    def _bot_becomes(self, status: str) -> None:
        old, self.chat.bot_status = self.chat.bot_status, status
        membership(self.world, self.chat, self.members[0].card, old, status)

    def topic(self, name: str) -> int:
        """Open a topic; returns its thread id."""
        message = self.world.add_message(self.chat, self.members[0].card)
        created = {"name": name, "icon_color": 7322096}
        message.extra = {"forum_topic_created": created, "message_thread_id": message.message_id}
        message.extra["is_topic_message"] = True
        self.chat.topics.add(message.message_id)
        self.world.emit_message("message", message)
        return message.message_id

    def say_anonymously(self, text: str) -> Message:
        """An administrator writes as the group itself."""
        extra: JSON = {"from": ANONYMOUS_ADMIN, "sender_chat": self.chat.card}
        return self.members[0].say(text, self.chat, extra=extra)

    def react_anonymously(self, message: Message, *symbols: str) -> None:
        """An administrator reacts as the group itself: the update names no person."""
        old = message.reactions.get(self.chat.chat_id, [])
        message.reactions[self.chat.chat_id] = emoji(*symbols)
        react(self.world, message, {"actor_chat": self.chat.card}, old, emoji(*symbols))

    def migrate(self) -> None:
        """Become a supergroup: a new chat id, two service messages, the old id refuses."""
        old = self.chat
        new_id = -1_000_000_000_000 + old.chat_id
        card = old.card | {"id": new_id, "type": "supergroup"}
        new = Chat(new_id, "supergroup", card, dict(old.members), old.bot_status)
        self.world.chats[new_id] = new
        first = self.world.add_message(old, self.members[0].card, extra={"migrate_to_chat_id": new_id})
        self.world.emit_message("message", first)
        second = self.world.add_message(new, ANONYMOUS_ADMIN, extra={"migrate_from_chat_id": old.chat_id})
        self.world.emit_message("message", second)
        old.moved_to = new_id
        self.chat = new


@dataclass(slots=True)
class Channel:
    """A channel that the bot administers."""

    world: World
    chat: Chat

    def post(self, text: str) -> Message:
        """A post: it has no person as a sender."""
        message = self.world.add_message(self.chat, None, body=typed(text), extra={"sender_chat": self.chat.card})
        self.world.emit_message("channel_post", message)
        return message
