"""What a channel package brings, and what it gets: the contract behind the entry points of the group `mentee.channels`.

    entry point ─► ChannelPackage ─► settings read ─► build(context) ─► Part ─► start, routes, run, health, close

The module that an entry point names is imported at every start, whether or not the channel is on; what is large, as a
platform's library, is imported inside `build`. Knows no channel by name.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Literal, Protocol, TypeVar
from uuid import UUID

from aiohttp import web

from app.config import ChannelSettings, Settings
from app.domain.consent import UNSTATED, DataUse
from app.domain.event import ChatAddress, PressEvent
from app.ports import Channel, PartHealth
from app.services.respond import Messages, Ticket
from app.services.stream import Streams
from app.store import StatementPool, Store
from bots.base import Accept, RawUpdate

S = TypeVar("S", bound=ChannelSettings)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class IdentityRule:
    """How the people of a channel are named by an operator, in ALLOWED_PEOPLE after `<channel>:`.

    Meant is the id that stays theirs (`Sender.external_id`) or the address that they write from (`Sender.alias`), with or
    without the channel's name before it.
    """

    listed: re.Pattern[str]
    example: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found, with what to do where it is bad; `skip`: not configured, which is no fault."""

    what: str
    state: Literal["ok", "bad", "skip"]
    detail: str


class Replies(Protocol):
    """Replies for whoever can only answer: `app/services/respond.py`."""

    async def accept(self, update: RawUpdate) -> Ticket:
        """Store an update durably; a repeat has no effect. Raises `StoreUnavailableError`."""
        ...

    def to(
        self, ticket: Ticket, chat: ChatAddress, channel: Channel, language: str | None = None
    ) -> AbstractAsyncContextManager[Messages]:
        """Wait as long as the channel's reply mode allows; give the messages to be shown in `chat` then, in their order.

        Leaving the block without an error says that the platform has them. After one they come with the next request; an
        error that means a lost connection, a refusal or too much time ends here. A repeat is given what was given before.
        Where messages go one by one, `Messages.shown` after each keeps those before an error from coming again.
        """
        ...


@dataclass(frozen=True, slots=True)
class ChannelContext(Generic[S]):
    """What a package's part is built from.

    Attributes:
        settings: the package's own, checked.
        house: the house's.
        bot_id: the row of the bot.
        born: since when there is that row; a bot answers nothing that was said before it was there.
        owner: the name of this gateway process, for leases.
        accept: stores what the platform brought.
        catch_up: stores what was found by asking for what was missed; returns how many updates were new.
        replies: for channels that cannot be written to at any time (`Capabilities.reply_mode`).
        store: the database; a package of its own makes do with the functions above.
        pool: single statements, for pages.
        streams: replies while they are written, for pages.
        note: what a button press is answered with at once, `""` for nothing; for presses that the dialogue answers only
            when their turn comes (`app.domain.press.overtakes`).
    """

    settings: S
    house: Settings
    bot_id: UUID
    born: datetime
    owner: str
    accept: Accept
    catch_up: Callable[[Sequence[RawUpdate]], Awaitable[int]]
    replies: Replies
    store: Store
    pool: StatementPool
    streams: Streams
    note: Callable[[PressEvent], Awaitable[str]]


class Part(Protocol):
    """One bot account in a running gateway, never in the way of the rest."""

    @property
    def channel(self) -> Channel:
        """What the dialogue and the outbox speak through."""
        ...

    @property
    def routes(self) -> Mapping[str, Handler | web.Application]:
        """By path: the receiver of its POSTs, or an application of its own."""
        ...

    async def start(self) -> None:
        """Make what needs a running loop. Asks nobody anything: the platform may be away."""
        ...

    async def run(self) -> None:
        """Connect and receive until cancelled; it may end by itself where there is nothing to do.

        An error that it lets out is logged, and it is run again a little later.
        """
        ...

    async def close(self) -> None:
        """Close the connections; `run` has ended and nothing is on its way any more."""
        ...

    async def health(self) -> PartHealth:
        """Return how the channel is, at once."""
        ...


@dataclass(frozen=True, slots=True)
class ChannelPackage(Generic[S]):
    """One channel, to be found by an entry point of the group `mentee.channels`.

    Attributes:
        name: the channel's name, as in `Channel.name`, in rows, figures and ALLOWED_PEOPLE: small letters.
        settings: what an operator can set.
        account: returns the platform's id of the bot account that the settings name.
        identity: how people are named; None where nobody can be listed in ALLOWED_PEOPLE.
        build: returns the part of a channel that is switched on. Raises `ConfigError`.
        doctor: checks the channel from outside a gateway, in a language; also asked where it is off.
        data_use: what the things said there may serve by the platform's terms. Unstated, they train nothing.
        tells_arrival: whether the platform tells how far a message came (`app/domain/delivery.py`).
    """

    name: str
    settings: type[S]
    account: Callable[[S], str]
    identity: IdentityRule | None
    build: Callable[[ChannelContext[S]], Part]
    doctor: Callable[[S, Settings, str], Awaitable[Sequence[Finding]]]
    data_use: DataUse = UNSTATED
    tells_arrival: bool = False
