"""What a message says: its text without the address, whether the bot is meant, commands, quotes, and what is attached."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from app.domain.media import PICTURES, Attachment, Kind
from app.errors import InvalidInputError
from bots.telegram.marks import unit_offsets
from bots.telegram.people import Me
from bots.telegram.wire import (
    Json,
    flag_at,
    int_at,
    maybe_int,
    maybe_object,
    maybe_str,
    object_at,
    objects_at,
    str_at,
)  # fmt: skip

_LATEST = 1 << 37  # seconds; far beyond any date of theirs, and still one that Python knows
_COMMAND = re.compile(r"\s*/(?P<name>[A-Za-z0-9_]{1,32})(?:@(?P<bot>[A-Za-z0-9_]+))?(?=\s|$)")
_MENTIONS = frozenset({"mention", "text_mention"})
# In this order: an animation is also a document, a venue also a location.
_MEDIA = (
    "animation", "audio", "voice", "video_note", "video", "live_photo", "photo", "sticker", "document", "paid_media",
    "venue", "location", "contact", "poll", "dice", "game", "story", "checklist", "rich_message", "invoice", "giveaway",
    "giveaway_winners", "gift", "unique_gift", "web_app_data", "passport_data", "users_shared", "chat_shared",
)  # fmt: skip
_SERVICE = frozenset({
    "new_chat_members", "left_chat_member", "chat_owner_left", "chat_owner_changed", "new_chat_title", "new_chat_photo",
    "delete_chat_photo", "group_chat_created", "supergroup_chat_created", "channel_chat_created",
    "message_auto_delete_timer_changed", "pinned_message", "successful_payment", "refunded_payment", "gift_upgrade_sent",
    "connected_website", "write_access_allowed", "proximity_alert_triggered", "boost_added", "chat_background_set",
    "checklist_tasks_done", "checklist_tasks_added", "direct_message_price_changed", "forum_topic_created",
    "forum_topic_edited", "forum_topic_closed", "forum_topic_reopened", "general_forum_topic_hidden",
    "general_forum_topic_unhidden", "giveaway_created", "giveaway_completed", "managed_bot_created",
    "paid_message_price_changed", "poll_option_added", "poll_option_deleted", "suggested_post_approved",
    "suggested_post_approval_failed", "suggested_post_declined", "suggested_post_paid", "suggested_post_refunded",
    "video_chat_scheduled", "video_chat_started", "video_chat_ended", "video_chat_participants_invited",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Command:
    """A command at the beginning of a message; `bot` is whom it names, if anyone."""

    name: str
    bot: str | None
    argument: str

    def for_other(self, me: Me) -> bool:
        """Whether it is meant for another bot; nothing is while our own name is not known yet."""
        return self.bot is not None and bool(me.username) and self.bot.lower() != me.username.lower()


@dataclass(frozen=True, slots=True)
class Reply:
    """The bot's message that was replied to, and the part of it that was quoted."""

    message_id: str
    quote: str | None


def words_of(message: Json) -> str:
    """Return text or caption, `""` where there is neither."""
    return maybe_str(message, "text") or maybe_str(message, "caption") or ""


def command_in(words: str) -> Command | None:
    """Return the command that `words` begins with."""
    found = _COMMAND.match(words)
    return Command(found["name"].lower(), found["bot"], words[found.end() :].strip()) if found else None


def command_of(message: Json, me: Me) -> Command | None:
    """Return the command that a message is, the bot's name before it left aside; what is passed on is none."""
    return None if is_forwarded(message) else command_in(without_address(message, me))


def reply_in(message: Json, me: Me) -> Reply | None:
    """Return what of the bot's own is replied to; a topic's first message counts as the topic, not as a reply."""
    target = maybe_object(message, "reply_to_message")
    author = maybe_object(target, "from") if target else None
    if not target or not author or int_at(author, "id") != me.id:
        return None
    number = int_at(target, "message_id")
    if "forum_topic_created" in target or (
        flag_at(message, "is_topic_message") and number == message.get("message_thread_id")
    ):
        return None
    quote = maybe_object(message, "quote")
    return Reply(str(number), str_at(quote, "text") if quote else None)


def mentions(message: Json, me: Me) -> bool:
    """Whether the message names the bot."""
    return any(True for _ in _mentions(message, me))


def without_address(message: Json, me: Me) -> str:
    """Return the words without the mention of the bot that they begin with."""
    words = words_of(message)
    for start, end in _mentions(message, me):
        if not words[:start].strip():
            return words[end:].lstrip(" \t,:").lstrip("\n")
    return words


def _mentions(message: Json, me: Me) -> Iterator[tuple[int, int]]:
    """Yield where the bot is named, in code points."""
    name = "entities" if "text" in message else "caption_entities"
    naming = [one for one in objects_at(message, name) if str_at(one, "type") in _MENTIONS]
    if not naming:
        return
    words = words_of(message)
    at = unit_offsets(words)
    for entity in naming:
        first = int_at(entity, "offset")
        start, end = (min(bisect_left(at, n), len(words)) for n in (first, first + int_at(entity, "length")))
        user = maybe_object(entity, "user")
        named = words[start:end].lower() == f"@{me.username.lower()}"
        if named if entity["type"] == "mention" else user is not None and maybe_int(user, "id") == me.id:
            yield start, end


def media_in(message: Json) -> str | None:
    """Return what is attached, by its name in the Bot API; `"unknown"` for content that this version does not know."""
    kind = next((name for name in _MEDIA if name in message), None)
    return kind if kind or "text" in message else "unknown"


def attachments_in(message: Json) -> tuple[Attachment, ...]:
    """Return what is attached as far as it can be fetched; what has another form than we know is named, and no more."""
    try:
        return _fetchable(message, media_in(message))
    except InvalidInputError:
        return ()


def _fetchable(message: Json, kind: str | None) -> tuple[Attachment, ...]:
    if kind == "photo":
        # Of a picture's sizes the largest within the cap.
        sizes = sorted(objects_at(message, "photo"), key=lambda size: int_at(size, "width") * int_at(size, "height"))
        found = [_attachment(size, "picture") for size in sizes]
        fitting = [one for one in found if not one.too_big]
        return tuple((fitting or found)[-1:])
    if kind == "document":
        file = object_at(message, "document")
        return (_attachment(file, "picture"),) if maybe_str(file, "mime_type") in PICTURES else ()
    if kind in {"voice", "audio"}:
        return (_attachment(object_at(message, kind), "voice"),)
    return ()


def _attachment(file: Json, kind: Kind) -> Attachment:
    return Attachment(
        kind,
        str_at(file, "file_id"),
        maybe_int(file, "file_size"),
        maybe_str(file, "mime_type"),
        maybe_str(file, "file_unique_id"),
    )


def is_service(message: Json) -> bool:
    """Whether the message is Telegram's own note about the chat."""
    return not _SERVICE.isdisjoint(message)


def is_forwarded(message: Json) -> bool:
    """Whether the words are not the sender's own: forwarded, or put there through another bot."""
    return any(name in message for name in ("forward_origin", "forward_date", "forward_from", "via_bot"))


def check_date(message: Json) -> None:
    """Raise `InvalidInputError` unless the message has its date, as every real one does."""
    date_of(message)


def date_of(message: Json) -> datetime:
    """Return when a message was sent. Raises `InvalidInputError`."""
    seconds = int_at(message, "date")
    if not 0 <= seconds < _LATEST:
        raise InvalidInputError("date is out of its time")
    return datetime.fromtimestamp(seconds, UTC)
