"""Who said something, where, and what they allow: resolved once per event, before anything is done."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from app import clock
from app.domain.consent import UNSTATED, Consents, DataUse, Purpose
from app.domain.event import Event, MessageEvent
from app.domain.messages import Language, pick
from app.domain.messages import text as say
from app.domain.outgoing import Content
from app.domain.person import Account, Chat, Identity, Session
from app.domain.prompt import PastTurn
from app.domain.quota import Usage
from app.errors import ConfigError, MenteeError
from app.ports import Channel
from app.services.replies import as_shown
from app.store import Tx, admission, entering, outbox, people, sessions
from app.store.inbox import Claimed
from bots.dialogue.parts import Parts

NOBODY = Consents(frozenset())
EXPLAINED_EVERY_S = 86_400.0
"""Why the bot does not answer is said once in so long, and not at every message."""


class SenderForgottenError(MenteeError):
    """Whoever sent this update was forgotten while it was handled; what was begun is rolled back."""


@dataclass(frozen=True, slots=True)
class Room:
    """An event's surroundings. In groups nobody's consents count and nothing private is used."""

    channel: Channel
    bot_id: UUID
    chat: Chat
    account: Account
    language: Language
    consents: Consents
    identity: Identity
    first_time: bool
    usage: Usage
    admitted: bool
    data_use: DataUse = UNSTATED

    @property
    def person_id(self) -> UUID:
        """The person who did it."""
        return self.account.person_id

    def say(self, key: str, **values: object) -> str:
        """Return a sentence in this person's language."""
        return say(self.language, key, **values)

    def allows(self, purpose: Purpose) -> bool:
        """Whether the person allows `purpose` here."""
        return self.consents.allows(purpose)

    async def tell(self, tx: Tx, content: Content | str) -> None:
        """Send a notice to this chat, in the form that its channel can show."""
        whole = Content(content) if isinstance(content, str) else content
        for part in as_shown(self.channel, whole):
            await outbox.put(tx, self.chat.id, part)


async def enter(tx: Tx, parts: Parts, channel: Channel, claimed: Claimed, event: Event) -> Room:
    """Resolve person, chat, language, consents and bot identity of an event whose sender has an id.

    Raises:
        SenderForgottenError: they were forgotten since the update was claimed: forgetting takes its body in the
            transaction that drops its person.
        ConfigError: the bot has no identity.
    """
    # The person before the chat, as everybody does who holds both.
    bot_id = claimed.bot_id
    known = await people.arrived(tx, bot_id, event.sender, newcomers=channel.capabilities.newcomers)
    if known is None:
        raise SenderForgottenError
    account, person = known
    said_at = event.sent_at if isinstance(event, MessageEvent) else None
    found = await entering.enter(tx, bot_id, event.chat, account.person_id, claimed.id, said_at)
    if not found.has_body:
        raise SenderForgottenError
    if found.identity is None:
        raise ConfigError("this bot has no identity; write one in the panel under Bot identity")
    chat = found.chat
    if chat.awaiting and not chat.awaiting.lasts(clock.now(), parts.settings.session_idle_minutes):
        chat = replace(chat, awaiting=None)
    return Room(
        channel=channel,
        bot_id=bot_id,
        chat=chat,
        account=account,
        language=pick(person.language or event.sender.language or parts.settings.language),
        consents=found.consents.within(parts.data_use_of(channel.name)),
        identity=found.identity,
        first_time=chat.private and not person.asked_consent,
        usage=found.usage,
        admitted=found.invited or _open_to(parts, channel, account, event),
        data_use=parts.data_use_of(channel.name),
    )


def _open_to(parts: Parts, channel: Channel, account: Account, event: Event) -> bool:
    """Whether somebody without an invitation may talk here. The web chat asks for one itself, before they are known."""
    if not parts.settings.private_bots or not channel.capabilities.newcomers:
        return True
    names = {account.external_id, event.sender.external_id, event.sender.alias}
    known_as = {f"{channel.name}:{(name or '').removeprefix(f'{channel.name}:')}" for name in names}
    return not known_as.isdisjoint(parts.settings.allowed)


async def held(tx: Tx, room: Room) -> Room:
    """Return the room with what its person allows now, and let no answer to a consent change that until `tx` ends.

    A switch overtakes what takes long: whoever keeps something of theirs after that asks again. The first step of a
    transaction, so that it waits for none who wait for it.
    """
    await admission.hold(tx, room.person_id)
    if not room.chat.private:
        return room
    return replace(room, consents=(await people.consents(tx, room.person_id)).within(room.data_use))


async def session_of(
    tx: Tx, parts: Parts, room: Room, before: UUID | None = None
) -> tuple[Session, Sequence[PastTurn]]:
    """Return the open session of a room with what was said in it `before` a turn, or a new one that is not stored yet."""
    limits = sessions.Limits(parts.settings.session_idle_minutes, parts.settings.session_max_hours)
    return await sessions.current(tx, room.chat, room.person_id, limits, before)
