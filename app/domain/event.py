"""What came in, after parsing: one frozen event per thing a person did, the same for every channel.

Knows nothing of a platform's wire format: a channel's `parse` turns raw bytes into these.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from app.domain.media import Attachment, Picture

STOPPING = frozenset({"stop", "cancel"})
"""Commands that end a reply while it is written; they overtake it."""
ChatKind = Literal["private", "group", "channel"]


@dataclass(frozen=True, slots=True)
class Sender:
    """Who did it. `external_id` is the channel's stable id; None for anonymous admins and channel posts."""

    external_id: str | None
    alias: str | None = None
    name: str | None = None
    language: str | None = None
    automated: bool = False


@dataclass(frozen=True, slots=True)
class ChatAddress:
    """Where it happened: the platform's chat id, the topic (`""` for none), and how many people may read it."""

    external_id: str
    thread: str = ""
    kind: ChatKind = "private"


@dataclass(frozen=True, slots=True)
class Event:
    """The part every event shares."""

    chat: ChatAddress
    sender: Sender


@dataclass(frozen=True, slots=True)
class MessageEvent(Event):
    """A person wrote something.

    `reply_to` and `quote` point at a bot message (provider id) and the quoted part of it; `addressed` tells in a group
    whether the bot was mentioned, replied to or commanded, `named` whether it was so by more than a command that any bot there
    may know; `media` names what else was attached, `attachments` are what of
    it can be fetched; messages that share an `album` were sent as one; `sent_at` is when, where the channel tells. Of what
    was fetched, `pictures` can be shown to the model, and `spoken` says that `text` was heard and not written.
    """

    message_id: str = ""
    text: str = ""
    reply_to: str | None = None
    quote: str | None = None
    forwarded: bool = False
    addressed: bool = True
    named: bool = True
    media: str | None = None
    attachments: tuple[Attachment, ...] = ()
    command: str | None = None
    argument: str = ""
    album: str | None = None
    sent_at: datetime | None = None
    pictures: tuple[Picture, ...] = ()
    spoken: bool = False


@dataclass(frozen=True, slots=True)
class EditEvent(Event):
    """A person changed an earlier message of theirs. `written` is the same as if they had just sent it like this."""

    message_id: str = ""
    text: str = ""
    written: MessageEvent | None = None

    @property
    def as_sent(self) -> MessageEvent:
        """The message as it reads now; nothing but words where its channel tells no more."""
        return self.written or MessageEvent(self.chat, self.sender, message_id=self.message_id, text=self.text)


@dataclass(frozen=True, slots=True)
class PressEvent(Event):
    """A person pressed a button; `data` is what we put there, forgeable by anyone who sees the message."""

    press_id: str = ""
    message_id: str | None = None
    data: str = ""


@dataclass(frozen=True, slots=True)
class ReactionEvent(Event):
    """A person's emoji on a message, as the whole new set (empty: taken back)."""

    message_id: str = ""
    emoji: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class MembershipEvent(Event):
    """The person blocked (`gone`) or came back to (`here`) the bot, or the chat moved to another id."""

    change: Literal["gone", "here", "moved"] = "here"
    new_chat_id: str | None = None


@dataclass(frozen=True, slots=True)
class IgnoredEvent(Event):
    """Authentic, understood, and by rule not answered; `reason` says which rule."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class FailedDeliveryEvent(Event):
    """The platform took a message of ours and could not deliver it after all.

    `gone`: it never will to this person; `too_late`: it will once they have written again.
    """

    message_id: str = ""
    reason: str = ""
    gone: bool = False
    too_late: bool = False


@dataclass(frozen=True, slots=True)
class DeliveredEvent(Event):
    """The platform tells how far a message of ours came, one of `delivery.ORDER`."""

    message_id: str = ""
    delivery: str = ""


AnyEvent = (
    MessageEvent
    | EditEvent
    | PressEvent
    | ReactionEvent
    | MembershipEvent
    | FailedDeliveryEvent
    | DeliveredEvent
    | IgnoredEvent
)
