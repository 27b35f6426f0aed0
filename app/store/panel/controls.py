"""Switches that pause a step of the road, and the versions of a bot's identity. No personal data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, insert, select, text
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import IntegrityError

from app.errors import ConflictError, NotFoundError
from app.store.engine import Tx
from app.store.panel.reading import read_all, read_one
from app.store.tables.admin import switches
from app.store.tables.people import bot_identities

NAMES = ("intake", "scoring", "training", "release")


@dataclass(frozen=True, slots=True)
class Switch:
    """One switch; never touched means running."""

    name: str
    paused: bool = False
    reason: str | None = None
    changed_by: str | None = None
    changed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Bot:
    """A bot account and the version of its identity now in force, None before the first."""

    id: UUID
    channel: str
    external_id: str
    version: int | None
    name: str | None


@dataclass(frozen=True, slots=True)
class Identity:
    """One version of a bot's identity."""

    id: UUID
    version: int
    name: str
    system_prompt: str
    facts: Mapping[str, object]
    contact: str | None
    privacy_notice: str
    languages: Sequence[str]
    created_by: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewIdentity:
    """What an admin wrote; becomes the version after `seen_version`."""

    seen_version: int
    name: str
    system_prompt: str
    facts: Mapping[str, str]
    contact: str | None
    privacy_notice: str
    languages: Sequence[str]


_BOTS = text("""
    select b.id, b.channel, b.external_id, latest.version, latest.name
    from bots b left join lateral (
        select version, name from bot_identities i where i.bot_id = b.id order by version desc limit 1
    ) latest on true
    order by b.channel, b.created_at
""")


async def all_switches(tx: Tx) -> Sequence[Switch]:
    """Return the four switches in the order of the road."""
    columns = (switches.c.name, switches.c.paused, switches.c.reason, switches.c.changed_by, switches.c.changed_at)
    found = {s.name: s for s in await read_all(tx, Switch, select(*columns))}
    return [found.get(name, Switch(name)) for name in NAMES]


async def turn_switch(tx: Tx, wanted: Switch) -> Switch:
    """Put a switch into the wanted position and return the one it was in."""
    before = next(s for s in await all_switches(tx) if s.name == wanted.name)
    values = {"paused": wanted.paused, "reason": wanted.reason, "changed_by": wanted.changed_by}
    query = upsert(switches).values(name=wanted.name, **values)
    await tx.execute(query.on_conflict_do_update(index_elements=["name"], set_=values | {"changed_at": func.now()}))
    return before


async def all_bots(tx: Tx) -> Sequence[Bot]:
    """Return every bot with the name it goes by."""
    return await read_all(tx, Bot, _BOTS)


async def bot(tx: Tx, bot_id: UUID) -> Bot:
    """Return one bot.

    Raises:
        NotFoundError: there is none.
    """
    found = next((b for b in await all_bots(tx) if b.id == bot_id), None)
    if found is None:
        raise NotFoundError
    return found


async def identities(tx: Tx, bot_id: UUID, *, limit: int) -> Sequence[Identity]:
    """Return the versions of a bot's identity, the one in force first."""
    columns = [c for c in bot_identities.c if c.name != "bot_id"]
    query = select(*columns).where(bot_identities.c.bot_id == bot_id).order_by(bot_identities.c.version.desc())
    return await read_all(tx, Identity, query.limit(limit))


async def add_identity(tx: Tx, bot_id: UUID, wanted: NewIdentity, actor: str) -> Identity:
    """Store the next version of a bot's identity.

    Raises:
        ConflictError: somebody stored a version since `seen_version`.
    """
    query = insert(bot_identities).values(
        bot_id=bot_id,
        version=wanted.seen_version + 1,
        name=wanted.name,
        system_prompt=wanted.system_prompt,
        facts=dict(wanted.facts),
        contact=wanted.contact,
        privacy_notice=wanted.privacy_notice,
        languages=list(wanted.languages),
        created_by=actor,
    )
    columns = [c for c in bot_identities.c if c.name != "bot_id"]
    try:
        made = await read_one(tx, Identity, query.returning(*columns))
    except IntegrityError as error:
        raise ConflictError from error
    if made is None:
        raise ConflictError
    return made
