"""Who and where an update speaks of: sender, chat address with topic, and those who are nobody's person.

Topics: a message of a forum carries its thread; the General topic is `"1"` in an address, which sending must leave out and
typing must name. A thread id without `is_topic_message` is only a chain of replies.
"""

from dataclasses import dataclass

from app.domain.event import ChatAddress, ChatKind, Sender
from app.errors import InvalidInputError
from bots.telegram.wire import Json, flag_at, int_at, maybe_int, maybe_object, maybe_str, object_at, str_at

GENERAL_TOPIC = "1"
NOBODY = Sender(None)
_KINDS: dict[str, ChatKind] = {"private": "private", "group": "group", "supergroup": "group", "channel": "channel"}
# Accounts that stand for someone else: https://github.com/python-telegram-bot/python-telegram-bot/issues/695
_LINKED_CHANNEL, _ANONYMOUS_ADMIN, _SENT_AS_CHANNEL = 777000, 1087968824, 136817688


@dataclass(frozen=True, slots=True)
class Me:
    """The bot itself: its id and its user name without `@`."""

    id: int
    username: str


def chat_of(chat: Json, thread: str = "") -> ChatAddress:
    """Return the address of a `Chat`."""
    kind = _KINDS.get(str_at(chat, "type"))
    if kind is None:
        raise InvalidInputError("the chat is of an unknown type")
    return ChatAddress(str(int_at(chat, "id")), thread, kind)


def place_of(message: Json) -> ChatAddress:
    """Return where a message was written, its topic included."""
    return chat_of(object_at(message, "chat"), thread_of(message))


def thread_of(message: Json) -> str:
    """Return the topic of a message, `""` where there are none."""
    thread = maybe_int(message, "message_thread_id")
    if thread is not None and flag_at(message, "is_topic_message"):
        return str(thread)
    return GENERAL_TOPIC if flag_at(object_at(message, "chat"), "is_forum") else ""


def sender_of(user: Json) -> Sender:
    """Return the person (or bot) of a `User`."""
    names = [maybe_str(user, "first_name"), maybe_str(user, "last_name")]
    return Sender(
        external_id=str(int_at(user, "id")),
        alias=maybe_str(user, "username"),
        name=" ".join(n for n in names if n) or None,
        language=maybe_str(user, "language_code"),
        automated=flag_at(user, "is_bot"),
    )


def impostor(message: Json) -> str | None:
    """Return why nobody can be held to have written `message`; None when its `from` is a person."""
    user = maybe_object(message, "from")
    speaker = maybe_object(message, "sender_chat")
    if user is None:
        return "no_sender"
    number = int_at(user, "id")
    if number == _ANONYMOUS_ADMIN:
        return "anonymous_admin"
    if number == _LINKED_CHANNEL or flag_at(message, "is_automatic_forward"):
        return "linked_channel"
    if number == _SENT_AS_CHANNEL or speaker is not None:
        return "sent_as_chat"
    return "bot" if flag_at(user, "is_bot") else None
