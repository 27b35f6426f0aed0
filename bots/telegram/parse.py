"""Raw JSON of an update → events. What cannot be used raises `InvalidInputError`; what needs no answer says by which rule.

python-telegram-bot's own parser is not used: it raises on what it does not know, and one such update would block its queue
(https://docs.python-telegram-bot.org/en/v22.8/telegram.update.html). Knows nothing of consent, turns or the store.
"""

from collections.abc import Callable, Sequence

from app.domain.event import (
    AnyEvent,
    ChatAddress,
    EditEvent,
    IgnoredEvent,
    MembershipEvent,
    MessageEvent,
    PressEvent,
    ReactionEvent,
)  # fmt: skip
from bots.telegram import content
from bots.telegram.people import NOBODY, Me, chat_of, impostor, place_of, sender_of
from bots.telegram.wire import (
    Json,
    int_at,
    maybe_int,
    maybe_object,
    maybe_str,
    object_at,
    objects_at,
    read_object,
    str_at,
)

_NOWHERE = ChatAddress("")
_OUT = frozenset({"left", "kicked"})
_BY_RULE = {
    "channel_post": "channel_post",
    "edited_channel_post": "channel_post",
    "business_connection": "business",
    "business_message": "business",
    "edited_business_message": "business",
    "deleted_business_messages": "business",
    "guest_message": "guest",
    "message_reaction_count": "reaction_count",
}


def parse(body: bytes, me: Me) -> Sequence[AnyEvent]:
    """Return what the update says, at least one event.

    Raises:
        InvalidInputError: it is not JSON, lacks what every update has, or has it in another form.
    """
    update = read_object(body)
    int_at(update, "update_id")
    for name, read in _READERS.items():
        if name in update:
            return read(object_at(update, name), me)
    reason = next((rule for name, rule in _BY_RULE.items() if name in update), "unknown_update")
    return [IgnoredEvent(_NOWHERE, NOBODY, reason)]


def _message(message: Json, me: Me) -> Sequence[AnyEvent]:
    content.check_date(message)
    chat = place_of(message)
    number = str(int_at(message, "message_id"))
    moved = _migration(message, chat)
    if moved:
        return [moved]
    reason = _unanswered(message, chat)
    if reason:
        return [IgnoredEvent(chat, NOBODY, reason)]
    return [_written(message, me, chat, number)]


def _written(message: Json, me: Me, chat: ChatAddress, number: str) -> AnyEvent:
    sender = sender_of(object_at(message, "from"))
    command = content.command_of(message, me)
    if command and command.for_other(me):
        return IgnoredEvent(chat, sender, "command_for_other_bot")
    reply = content.reply_in(message, me)
    named = bool(reply or (command and command.bot)) or content.mentions(message, me)
    return MessageEvent(
        chat,
        sender,
        message_id=number,
        text=content.without_address(message, me),
        reply_to=reply.message_id if reply else None,
        quote=reply.quote if reply else None,
        forwarded=content.is_forwarded(message),
        addressed=chat.kind == "private" or bool(command) or named,
        named=chat.kind == "private" or named,
        media=content.media_in(message),
        attachments=content.attachments_in(message),
        command=command.name if command else None,
        argument=command.argument if command else "",
        album=maybe_str(message, "media_group_id"),
        sent_at=content.date_of(message),
    )


def _unanswered(message: Json, chat: ChatAddress) -> str | None:
    """Return the rule by which a message gets no answer."""
    if chat.kind == "channel":
        return "channel_post"
    if "business_connection_id" in message:
        return "business"
    if "guest_query_id" in message:
        return "guest"
    if content.is_service(message):
        return "service"
    return impostor(message)


def _migration(message: Json, chat: ChatAddress) -> MembershipEvent | None:
    """Return the move of a group to its supergroup, told in either of the two chats."""
    to, since = maybe_int(message, "migrate_to_chat_id"), maybe_int(message, "migrate_from_chat_id")
    if to is not None:
        return MembershipEvent(chat, NOBODY, "moved", str(to))
    if since is not None:
        return MembershipEvent(ChatAddress(str(since), kind="group"), NOBODY, "moved", chat.external_id)
    return None


def _edited(message: Json, me: Me) -> Sequence[AnyEvent]:
    content.check_date(message)
    chat = place_of(message)
    says = content.words_of(message) or content.attachments_in(message)
    reason = _unanswered(message, chat) or (None if says else "edit_without_content")  # a place that moves, say
    if reason:
        return [IgnoredEvent(chat, NOBODY, reason)]
    number = str(int_at(message, "message_id"))
    written = _written(message, me, chat, number)
    if not isinstance(written, MessageEvent):
        return [written]
    return [EditEvent(chat, written.sender, number, written.text, written)]


def _pressed(query: Json, _me: Me) -> Sequence[AnyEvent]:
    sender = sender_of(object_at(query, "from"))
    press = str_at(query, "id")
    message = maybe_object(query, "message")  # may be one that is no longer accessible: chat, id, and date 0
    if message is None:
        return [IgnoredEvent(_NOWHERE, sender, "press_without_message")]
    return [
        PressEvent(place_of(message), sender, press, str(int_at(message, "message_id")), maybe_str(query, "data") or "")
    ]


def _reacted(reaction: Json, _me: Me) -> Sequence[AnyEvent]:
    chat = chat_of(object_at(reaction, "chat"))
    number = str(int_at(reaction, "message_id"))
    new = frozenset(_emoji(one) for one in objects_at(reaction, "new_reaction"))
    user = maybe_object(reaction, "user")
    if user is None:
        return [IgnoredEvent(chat, NOBODY, "anonymous_reaction")]
    sender = sender_of(user)
    if sender.automated:
        return [IgnoredEvent(chat, sender, "bot")]
    return [ReactionEvent(chat, sender, number, new)]


def _emoji(reaction: Json) -> str:
    """Return the emoji, or a word for a reaction that is none: it has no meaning for us, but takes the place of one."""
    kind = str_at(reaction, "type")
    return str_at(reaction, "emoji") if kind == "emoji" else kind


def _membership(change: Json, _me: Me) -> Sequence[AnyEvent]:
    chat = chat_of(object_at(change, "chat"))
    sender = sender_of(object_at(change, "from"))
    before, after = _is_out(object_at(change, "old_chat_member")), _is_out(object_at(change, "new_chat_member"))
    if before == after:
        return [IgnoredEvent(chat, sender, "membership_unchanged")]
    return [MembershipEvent(chat, sender, "gone" if after else "here")]


def _is_out(member: Json) -> bool:
    status = str_at(member, "status")
    return status in _OUT or (status == "restricted" and member.get("is_member") is False)


_READERS: dict[str, Callable[[Json, Me], Sequence[AnyEvent]]] = {
    "message": _message,
    "edited_message": _edited,
    "callback_query": _pressed,
    "message_reaction": _reacted,
    "my_chat_member": _membership,
}
