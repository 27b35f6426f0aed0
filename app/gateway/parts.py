"""The channels of a gateway, built: each package's bot row and part."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from app.config import ChannelSettings, Settings
from app.domain.messages import LANGUAGES
from app.domain.messages import text as say
from app.gateway.channels import Installed
from app.ports import Channel
from app.services.intake import Intake
from app.services.respond import Responder
from app.services.stream import Streams
from app.store import StatementPool, Store, people
from bots.base import RawUpdate
from bots.dialogue.pressed import Notes
from bots.package import ChannelContext, Part

FIRST_NAME = "Mentee"


@dataclass(frozen=True, slots=True)
class Shared:
    """What every channel of this gateway is built from."""

    settings: Settings
    store: Store
    pool: StatementPool
    streams: Streams
    intake: Intake
    responder: Responder
    notes: Notes
    owner: str


@dataclass(frozen=True, slots=True)
class Channels:
    """The channels by bot, and every known channel's part by its name; None where it is switched off."""

    by_bot: Mapping[UUID, Channel]
    parts: Mapping[str, Part | None]


async def build_channels(installed: Sequence[Installed], shared: Shared) -> Channels:
    """Build what is switched on. Raises `ConfigError`."""
    by_bot: dict[UUID, Channel] = {}
    parts: dict[str, Part | None] = {}
    for one in installed:
        parts[one.package.name] = None
        if one.settings.on:
            bot_id, born = await _bot(shared, one)
            part = parts[one.package.name] = one.package.build(_context(shared, one, bot_id, born))
            by_bot[bot_id] = part.channel
    return Channels(by_bot, parts)


def _context(shared: Shared, one: Installed, bot_id: UUID, born: datetime) -> ChannelContext[ChannelSettings]:
    async def catch_up(found: Sequence[RawUpdate]) -> int:
        return await shared.intake.accept(bot_id, found)

    return ChannelContext(
        settings=one.settings,
        house=shared.settings,
        bot_id=bot_id,
        born=born,
        owner=shared.owner,
        accept=shared.intake.door(bot_id, one.package.name),
        catch_up=catch_up,
        replies=shared.responder.of(bot_id, one.package.name),
        store=shared.store,
        pool=shared.pool,
        streams=shared.streams,
        note=partial(shared.notes.of, bot_id),
    )


async def _bot(shared: Shared, one: Installed) -> tuple[UUID, datetime]:
    """Return a bot's row and since when there is one; a bot that has no identity yet begins with a plain one that the panel
    can change.
    """
    language = shared.settings.language
    async with shared.store.begin() as tx:
        bot_id = await people.ensure_bot(tx, one.package.name, one.package.account(one.settings))
        if await people.identity(tx, bot_id) is None:
            await people.add_identity(
                tx,
                bot_id,
                name=FIRST_NAME,
                system_prompt=say(language, "default_system_prompt"),
                privacy_notice="\n\n".join(say(each, "default_privacy_notice") for each in LANGUAGES),
                created_by="system",
            )
        return bot_id, await people.bot_born(tx, bot_id)
