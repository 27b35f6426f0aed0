"""What was sent instead of words or with them, named in the language of who sent it, and what is said of it."""

from bots.dialogue.parts import Parts
from bots.dialogue.room import Room

# A channel's own name of a kind -> ours.
KINDS = {
    "animation": "video",
    "audio": "audio",
    "contact": "contact",
    "contacts": "contact",
    "document": "document",
    "application": "document",
    "image": "photo",
    "live_photo": "photo",
    "location": "place",
    "photo": "photo",
    "picture": "photo",
    "poll": "poll",
    "sticker": "sticker",
    "venue": "place",
    "video": "video",
    "video_note": "video",
    "voice": "voice",
}


def named(room: Room, kind: str) -> str:
    """Return the name of a kind of attachment; `something that is not text` for one that this version does not know."""
    return room.say(f"media_{KINDS.get(kind, 'other')}")


def unread(parts: Parts, room: Room, kind: str) -> str:
    """Return what is said of something that was sent without words and cannot be taken in."""
    return room.say(f"cannot_read_{_what(parts)}", media=named(room, kind))


def left_out(parts: Parts, room: Room, kind: str) -> str:
    """Return what is said of something that cannot be taken in, when the words that it came with are answered."""
    return room.say(f"words_without_{_what(parts)}", media=named(room, kind))


def _what(parts: Parts) -> str:
    """Whether it is `media` that cannot be taken in here, all of them, or `this`."""
    return "this" if parts.sees or parts.transcriber else "media"
