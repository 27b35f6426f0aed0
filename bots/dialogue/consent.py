"""Consent as a dialogue: the notice at first contact, one switch per purpose, withdrawal at once."""

from dataclasses import replace

from app.domain.consent import OPTIONAL, Purpose
from app.domain.outgoing import Button, Content
from app.domain.press import Press
from app.errors import InvalidInputError
from app.store import Tx, outbox, people
from bots.dialogue.parts import Parts
from bots.dialogue.room import Room

SWITCHES = "s:"
REDRAWN = 5


def asked(parts: Parts, room: Room) -> tuple[Purpose, ...]:
    """Return what is asked here: what this channel may serve, and an outside judge only where there is one."""
    usable_here = (purpose for purpose in OPTIONAL if room.data_use.serves(purpose))
    return tuple(p for p in usable_here if p is not Purpose.OUTSIDE_JUDGE or parts.judge is not None)


def switches(parts: Parts, room: Room) -> tuple[tuple[Button, ...], ...]:
    """Return one button per purpose, marked with what is allowed now; pressing it changes that."""
    return tuple((_switch(room, purpose),) for purpose in asked(parts, room))


def _switch(room: Room, purpose: Purpose) -> Button:
    on = room.allows(purpose)
    label = f"{'✅' if on else '⬜'} {room.say(f'consent_{purpose.value}')}"
    return Button(label, Press("s", purpose.value, "0" if on else "1").data())


def notice(parts: Parts, room: Room) -> Content:
    """Return the consent notice with its switches."""
    return Content(_words(parts, room), switches(parts, room))


def privacy(parts: Parts, room: Room) -> Content:
    """Return the privacy notice of this bot with what each switch means."""
    heard = [room.say("privacy_voice")] if parts.transcriber and room.channel.capabilities.attachments else []
    notice = "\n\n".join([room.identity.notice_in(room.language), *heard, *_retention(parts, room)])
    text = room.say("privacy", notice=notice, purposes=_purposes(parts, room))
    return Content(text, switches(parts, room))


def _retention(parts: Parts, room: Room) -> list[str]:
    """Return what happens to what is kept when somebody leaves or falls silent; nothing where it stays."""
    days = {"left": parts.settings.retention_left_days, "silent": parts.settings.retention_silent_days}
    said = [room.say(f"retention_{what}", days=count) for what, count in days.items() if count]
    return [" ".join(said)] if said else []


def _words(parts: Parts, room: Room) -> str:
    return room.say("consent_notice", purposes=_purposes(parts, room))


def _purposes(parts: Parts, room: Room) -> str:
    names = (f"consent_{purpose.value}" for purpose in asked(parts, room))
    return "\n".join(f"**{room.say(name)}**: {room.say(f'{name}_more')}" for name in names)


def purpose_of(name: str) -> Purpose:
    """Return the purpose that a switch names.

    Raises:
        InvalidInputError: there is none of that name that can be switched.
    """
    if name not in {p.value for p in OPTIONAL}:
        raise InvalidInputError("no such purpose")
    return Purpose(name)


async def switch(tx: Tx, parts: Parts, room: Room, purpose: Purpose, allow: str, evidence: str) -> Room:
    """Record an answer, take out of use what a withdrawal ends, and return the room as it is now.

    Raises:
        InvalidInputError: what is said on this channel may never serve the purpose.
    """
    if not room.data_use.serves(purpose):
        raise InvalidInputError("no such purpose here")
    event = "given" if allow == "1" else ("withdrawn" if room.allows(purpose) else "refused")
    await people.record_consent(
        tx,
        room.person_id,
        purpose,
        event,
        notice=room.channel.own_notice(room.language) or _words(parts, room),
        language=room.language,
        channel=room.channel.name,
        evidence=evidence,
    )
    if event == "withdrawn":
        await parts.leaving.withdraw(tx, room.person_id, purpose)
    return replace(room, consents=(await people.consents(tx, room.person_id)).within(room.data_use))


async def refresh(tx: Tx, parts: Parts, room: Room, message_id: str | None) -> bool:
    """Redraw the switches wherever this chat shows them, so that none says what is not so any more; False when the
    message they were pressed on is not known.
    """
    buttons = switches(parts, room)
    for row_id, shown in await outbox.offering(tx, room.chat.id, SWITCHES, REDRAWN):
        if shown.buttons != buttons:
            await outbox.change(tx, row_id, Content(shown.text, buttons))
    return message_id is not None and await outbox.content_of(tx, room.chat.id, message_id) is not None
