"""A gateway's side of a channel, in memory: takes updates in once, has something to say, serves what the part is asked."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate
from uuid import uuid4

from aiohttp import web
from aiohttp.test_utils import TestServer

from app.config import Settings
from app.domain.event import AnyEvent, ChatAddress, PressEvent
from app.domain.outgoing import Content
from app.errors import DeliveryError, StoreUnavailableError
from app.ports import Channel, InResponse, ReplyMode, SingleCallback
from app.services.respond import Messages, Ticket, joined
from app.services.stream import Streams
from app.store import StatementPool, Store
from bots.base import RawUpdate
from bots.package import ChannelContext, ChannelPackage, Part, S

NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"


@dataclass
class House:
    """What was stored, repeats dropped by any key.

    `away` makes the store unreachable. `says` is what is due for whoever asks, given once; what finds no room in the uses of
    an address, or was not taken, stays due. `asked` are the tickets that replies were asked for, `given_to` those that
    something was given for. With `fails_at` nothing can be given from that message on: the connection is lost. `ended` is
    set where something was given, or an error ended the asking: `lost`.
    """

    stored: list[RawUpdate] = field(default_factory=list)
    away: bool = False
    says: list[Content] = field(default_factory=list)
    given_to: list[Ticket] = field(default_factory=list)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[Ticket] = field(default_factory=list)
    lost: BaseException | None = None
    fails_at: int | None = None
    _before: dict[str, list[Content]] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    async def accept(self, updates: Sequence[RawUpdate]) -> None:
        """Store a batch."""
        await self.catch_up(updates)

    async def catch_up(self, updates: Sequence[RawUpdate]) -> int:
        """Store a batch; return how many of it were new."""
        return sum([await self._store(update) for update in updates])

    def events(self, channel: Channel) -> list[AnyEvent]:
        """Return what the stored updates say."""
        return [event for update in self.stored for event in channel.parse(update.body)]

    def context(
        self, package: ChannelPackage[S], settings: S, house: Settings | None = None, store: Store | None = None
    ) -> ChannelContext[S]:
        """Return what a part is built from; without a `store` there is no database behind it."""
        return ChannelContext(
            settings=settings,
            house=house or Settings(),
            bot_id=uuid4(),
            born=datetime.now(UTC),
            owner=f"conformance of {package.name}",
            accept=self.accept,
            catch_up=self.catch_up,
            replies=_Replies(self),
            store=store or Store(NOWHERE),
            pool=StatementPool(NOWHERE, size=1),
            streams=Streams(),
            note=_no_note,
        )

    @asynccontextmanager
    async def serving(self, part: Part) -> AsyncIterator[str]:
        """Serve a part's routes; yield the address. The part is started and closed, its `run` is not called."""
        app = web.Application()
        for path, target in part.routes.items():
            if isinstance(target, web.Application):
                app.add_subapp(path, target)
            else:
                app.router.add_post(path, target)
        await part.start()
        async with TestServer(app, host="127.0.0.1") as server:
            yield str(server.make_url("")).rstrip("/")
        await part.close()

    @asynccontextmanager
    async def giving(self, ticket: Ticket, mode: ReplyMode, channel: Channel) -> AsyncIterator[Messages]:
        """Give what is due as `mode` takes it; whoever leaves the block without an error has it."""
        if isinstance(mode, InResponse) and (before := self._before.get(ticket.key)) and not ticket.new:
            yield _Given(before, None)
            return
        whole = [(content, 1) for content in self.says]
        if isinstance(mode, SingleCallback):
            whole = joined(self.says, channel, mode.uses)
        due, ends = [content for content, _ in whole], list(accumulate((held for _, held in whole), initial=0))
        taken = self.says[: ends[-1]]
        del self.says[: ends[-1]]
        messages = _Given(due, self.fails_at)
        try:
            yield messages
        except BaseException:
            self.says[:0] = taken[ends[messages.given] :]
            raise
        if due:
            self._before[ticket.key] = due
            self.given_to.append(ticket)
            self.ended.set()

    def lose(self, error: BaseException) -> None:
        """Note that nothing was given, and why."""
        self.lost = error
        self.ended.set()

    async def _store(self, update: RawUpdate) -> bool:
        if self.away:
            raise StoreUnavailableError
        new = self._seen.isdisjoint(update.keys)
        self._seen.update(update.keys)
        if new:
            self.stored.append(update)
        return new


async def _no_note(_event: PressEvent) -> str:
    return ""


class _Given(Messages):
    """What is given, and from which message on it cannot be."""

    def __init__(self, contents: Sequence[Content], fails_at: int | None) -> None:
        super().__init__(contents, _kept)
        self._fails_at = fails_at

    def __iter__(self) -> Iterator[Content]:
        for place, content in enumerate(self._contents):
            if place == self._fails_at:
                raise ConnectionResetError("the connection was lost between two messages")
            yield content


async def _kept(_place: int) -> None:
    """Keep nothing: the house reads the count."""


@dataclass(frozen=True, slots=True)
class _Replies:
    """`bots.package.Replies`, without waiting."""

    house: House

    async def accept(self, update: RawUpdate) -> Ticket:
        """Store an update."""
        new = await self.house.catch_up([update])
        return Ticket(update.keys[0], update.lane, len(self.house.stored) if new else None)

    @asynccontextmanager
    async def to(
        self,
        ticket: Ticket,
        chat: ChatAddress,  # noqa: ARG002 - what is due is the same for everybody
        channel: Channel,
        language: str | None = None,  # noqa: ARG002 - the same
    ) -> AsyncIterator[Messages]:
        """Give what is due, and what was given before to the request that this one repeats."""
        self.house.asked.append(ticket)
        try:
            async with self.house.giving(ticket, channel.capabilities.reply_mode, channel) as due:
                yield due
        except (ConnectionError, TimeoutError, DeliveryError) as error:
            self.house.lose(error)
        except BaseException as error:
            self.house.lose(error)
            raise
