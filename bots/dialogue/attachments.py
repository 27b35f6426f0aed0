"""What came along with a message, taken in before the message is handled: pictures made fit to be seen, voice written down.

    resolved, let in, within its quota ─commit─► fetched, no transaction open ─► resolved once more, with what it brought

A try that is cut off in between fetches again; once its turn stands, that turn has the pictures and the words. What cannot
be taken in is said, by what and why, and the words of the message are answered without it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.domain.event import MessageEvent
from app.domain.media import MAX_PICTURES, MB, Attachment, Picture, is_kind, sniff
from app.domain.text import is_blank, literal
from app.errors import (
    AttachmentAwayError,
    AttachmentError,
    AttachmentGoneError,
    AttachmentTooBigError,
    AttachmentUnreadableError,
    TranscriptionError,
)
from app.store import Tx, outbox
from app.store.inbox import Claimed
from app.telemetry import Log
from bots.dialogue import media
from bots.dialogue.parts import Parts
from bots.dialogue.room import Room

log = Log(__name__)
_REASONS: dict[type[AttachmentError], str] = {AttachmentTooBigError: "too_big", AttachmentGoneError: "gone"}
QUOTED_CHARS = 400
_READ = frozenset({"photo", "voice", "audio", "document"})


@dataclass(frozen=True, slots=True)
class Taken:
    """A message with what came along, what is to be said before it is answered, and the updates that it was sent with."""

    event: MessageEvent
    notices: tuple[str, ...]
    together: tuple[int, ...]

    @property
    def empty(self) -> bool:
        """Whether nothing is left to be answered: why not was said."""
        return is_blank(self.event.text) and not self.event.pictures and not self.event.media


@dataclass(slots=True)
class _Basket:
    """What was taken in so far."""

    pictures: list[Picture]
    words: list[str]
    notices: list[str]


def wanted(parts: Parts, event: MessageEvent) -> tuple[Attachment, ...]:
    """Return what of a message can be taken in here; nothing of a command, which means what it says."""
    able = {"picture": parts.sees, "voice": parts.transcriber is not None}
    return () if event.command else tuple(one for one in event.attachments if able[one.kind])


async def take_in(parts: Parts, room: Room, event: MessageEvent, together: Sequence[int]) -> Taken:
    """Fetch what is wanted of a message; outside any transaction.

    Raises:
        AttachmentAwayError: the platform cannot be reached now; the message is tried again.
    """
    await room.channel.typing(room.chat.address)
    basket = _Basket([], [], [])
    found = wanted(parts, event)
    pictures = [one for one in found if one.kind == "picture"]
    for attachment in [*pictures[:MAX_PICTURES], *(one for one in found if one.kind == "voice")]:
        async with parts.fetching[attachment.kind]:
            await _into(basket, parts, room, event, attachment)
    if len(pictures) > MAX_PICTURES and basket.pictures:
        basket.notices.append(room.say("attachment_many", most=len(basket.pictures)))
    among = event.album is not None and media.KINDS.get(event.media or "") not in _READ
    left = len(found) < len(event.attachments) or among
    heard = replace(
        event,
        text="\n".join(words for words in (event.text, *basket.words) if not is_blank(words)),
        media=event.media if left else None,
        attachments=(),
        pictures=tuple(basket.pictures),
        spoken=bool(basket.words),
        album=None,
    )
    return Taken(heard, tuple(dict.fromkeys(basket.notices)), tuple(together))


async def _into(basket: _Basket, parts: Parts, room: Room, event: MessageEvent, attachment: Attachment) -> None:
    try:
        raw = await room.channel.fetch(attachment)
        if attachment.kind == "picture":
            basket.pictures.append(await parts.eyes.picture(raw))
            return
        words = await _words(parts, raw)
    except AttachmentAwayError:
        raise
    except AttachmentError as error:
        log.info("attachment:fetch:refused", kind=attachment.kind, reason=type(error).__name__)
        basket.notices.append(_sorry(room, event, attachment, error))
    except TranscriptionError as error:
        log.failure("attachment:voice:failed", error)
        basket.notices.append(room.say("voice_failed"))
    else:
        basket.words += [words] if words else []
        basket.notices.append(_heard(room, words) if words else room.say("voice_empty"))


def _heard(room: Room, words: str) -> str:
    shown = words if len(words) <= QUOTED_CHARS else words[:QUOTED_CHARS].rstrip() + " …"
    return room.say("voice_heard", words=literal(shown))


async def _words(parts: Parts, raw: bytes) -> str:
    kind = sniff(raw)
    if kind is None or not is_kind(kind, "voice") or parts.transcriber is None:
        raise AttachmentUnreadableError
    words = await parts.transcriber.words(raw, kind)
    return "" if is_blank(words) else words


def _sorry(room: Room, event: MessageEvent, attachment: Attachment, error: AttachmentError) -> str:
    reason = _REASONS.get(type(error), "unreadable")
    named = media.named(room, event.media or attachment.kind)
    return room.say(f"attachment_{reason}", media=named, megabytes=attachment.most // MB)


async def tell(tx: Tx, room: Room, taken: Taken, claimed: Claimed) -> None:
    """Say what is to be said before the message is answered; what a try that was cut off said is not said again."""
    for notice in taken.notices:
        await tell_once(tx, room, notice, claimed)


async def tell_once(tx: Tx, room: Room, notice: str, claimed: Claimed) -> None:
    """Say something about an update, unless a try that was cut off did."""
    if claimed.attempts == 1 or not await outbox.told_since(tx, room.chat.id, notice, claimed.id):
        await room.tell(tx, notice)
