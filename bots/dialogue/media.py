"""What was sent instead of words, named in the language of who sent it."""

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
