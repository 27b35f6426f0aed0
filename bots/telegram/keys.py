"""Makes raw updates of an update's bytes: the keys by which a repeat is known, and the lane in which it is handled.

Repeats come under the same update id, and also wrapped anew with the message's own ids (same chat, message and edit date),
so messages, edits and presses carry both. Lanes: a chat's topic in order; votes (most presses, reactions) and what
stops apart, because they must not wait behind a reply that is being written. Never raises: what cannot be read has the SHA-256 of its
bytes as its key and goes to the quarantine lane.
"""

import hashlib
from collections.abc import Iterator

from app.domain.event import STOPPING
from app.domain.press import overtakes
from app.errors import InvalidInputError
from bots.base import RawUpdate
from bots.telegram.content import attachments_in, command_of, words_of
from bots.telegram.people import Me, thread_of
from bots.telegram.wire import Json, int_at, maybe_int, maybe_object, maybe_str, object_at, read_object, str_at

QUARANTINE_LANE = "quarantine"
KEPT_BYTES = 4096
_MESSAGES = ("message", "edited_message")


def raw_update(body: bytes, me: Me) -> RawUpdate:
    """Return the update in `body`, received by the bot `me`, ready to be stored.

    Its name may be `""` as long as it is not known: a command behind it keeps its place in the chat then.
    """
    try:
        update = read_object(body)
        keys = tuple(f"telegram:{me.id}:{key}" for key in keys_of(update))
        return RawUpdate(body, keys, lane_of(update, me))
    except InvalidInputError:
        return RawUpdate(body, (f"telegram:{me.id}:body:{hashlib.sha256(body).hexdigest()}",), QUARANTINE_LANE)


def too_long(head: bytes, digest: str, me: Me) -> RawUpdate:
    """Return what is kept of an update that is longer than any: how it begins, which nobody can read as an update."""
    return RawUpdate(head[:KEPT_BYTES], (f"telegram:{me.id}:body:{digest}",), QUARANTINE_LANE)


def keys_of(update: Json) -> Iterator[str]:
    """Yield the keys of an update; any one of them seen before makes it a repeat.

    Raises:
        InvalidInputError: it has no update id, or ids of an impossible kind.
    """
    # Update ids begin anew at random after a week without updates; the moment tells an old one from a new one.
    yield f"update:{int_at(update, 'update_id')}:{_moment(update)}"
    for name in _MESSAGES:
        message = maybe_object(update, name)
        if message is not None:
            yield _message_key(message)
    query = maybe_object(update, "callback_query")
    if query is not None:
        yield f"press:{str_at(query, 'id')}"


def lane_of(update: Json, me: Me) -> str:
    """Return the lane of an update for the bot `me`.

    Raises:
        InvalidInputError: the chat it came from cannot be read.
    """
    for name in _MESSAGES:
        message = maybe_object(update, name)
        if message is not None:
            lane = f"{_chat(message)}:{thread_of(message)}"
            return f"stop:{lane}" if name == "message" and _is_stop(message, me) else lane
    reaction = maybe_object(update, "message_reaction")
    if reaction is not None:
        return f"votes:{_chat(reaction)}"
    query = maybe_object(update, "callback_query")
    if query is not None:
        return _press_lane(query)
    member = maybe_object(update, "my_chat_member")
    return f"{_chat(member)}:" if member else "other"


def _press_lane(query: Json) -> str:
    message = maybe_object(query, "message")
    if message is None:
        return "votes:"
    if overtakes(maybe_str(query, "data") or ""):
        return f"votes:{_chat(message)}"
    return f"{_chat(message)}:{thread_of(message)}"


def is_waiting_press(body: bytes) -> bool:
    """Whether an update is a button press that waits for its turn in the chat; what cannot be read is none."""
    try:
        query = maybe_object(read_object(body), "callback_query")
        return query is not None and not overtakes(maybe_str(query, "data") or "")
    except InvalidInputError:
        return False


def _message_key(message: Json) -> str:
    edited = maybe_int(message, "edit_date")
    key = f"message:{_chat(message)}:{int_at(message, 'message_id')}:{edited or 0}"
    if not edited:
        return key
    # Two edits within one second differ in nothing but what they say, and what came along.
    says = "\0".join([words_of(message), *(one.file for one in attachments_in(message))])
    return f"{key}:{hashlib.sha256(says.encode()).hexdigest()[:16]}"


def _chat(parent: Json) -> int:
    return int_at(object_at(parent, "chat"), "id")


def _is_stop(message: Json, me: Me) -> bool:
    # What is no command in the dialogue is a message like any other: overtaking, it would be answered beside the one before.
    command = command_of(message, me)
    return command is not None and command.name in STOPPING and not command.for_other(me)


def _moment(update: Json) -> int:
    """Return the date of what happened, 0 where it has none of its own."""
    happened = next((value for name, value in update.items() if name != "update_id" and isinstance(value, dict)), {})
    date = happened.get("edit_date") or happened.get("date")
    return date if isinstance(date, int) else 0
