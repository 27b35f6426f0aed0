"""Replies on channels that cannot be written to: in the answer to a request, or once to an address that came with it.

    request ─► stored ─► handled? ──yes─► what is due in its chat: taken ─► given ─► receipt
                            │ the time is up: what is due, and a sentence that the rest is still being written
                            └ the rest, and whatever else becomes due, comes with the chat's next request

Nothing here waits in memory alone. A gateway that dies lets go of what it took once the lease is over; an update that
another gateway handles is looked for in the database. A repeat of a request has no second effect and is given the same.
A second copy is possible only where an answer was written, and the process died before the receipt, or it never arrived.
Who gives messages one by one says so of each: after a failure the next request brings the one that failed and the rest.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import overload
from uuid import UUID

from app.domain.event import ChatAddress
from app.domain.messages import text as say
from app.domain.outgoing import Content
from app.errors import DeliveryError, StoreUnavailableError
from app.failpoints import reach
from app.ports import Channel, Push, SingleCallback
from app.services.intake import Intake
from app.services.lanes import LaneRunner
from app.store import Store, inbox, outbox, responses
from app.store.engine import to_its_end
from app.telemetry import PARTS, UPDATES, Log
from bots.base import RawUpdate

log = Log(__name__)
# Who handles an update here says when it is left; elsewhere it is looked for.
LOOK_S, LOOK_HERE_S = 0.2, 1.0
# Of the time that a platform gives, so much is for the way there and back.
ANSWER_S, CALL_S = 0.5, 5.0
# Shorter than the lease: who still gives when it ends would be joined by a second.
GIVE_S = responses.LEASE_S * 0.75


@dataclass(frozen=True, slots=True)
class Ticket:
    """A stored update, by which the replies to it are asked for. `key` tells it apart for ever."""

    key: str
    lane: str
    inbox_id: int | None
    """Its row; None for a repeat."""
    since: float = field(default_factory=time.monotonic)
    """When its storing began, by the monotonic clock: the platform waits for that as well."""

    @property
    def new(self) -> bool:
        """Whether it was not seen before."""
        return self.inbox_id is not None


@dataclass(frozen=True, slots=True)
class _Message:
    """One message of an answer and the parts that it shows."""

    content: Content
    rows: tuple[outbox.Due, ...] = ()


@dataclass(frozen=True, slots=True)
class _Found:
    """What was taken, or given `before` to the request that this one repeats; `more`: not everything is there yet."""

    taken: responses.Taken
    before: Sequence[Content]
    more: bool


class Messages(Sequence[Content]):
    """What is to be shown, in order. Leaving the block of `replies.to` is the receipt of all; `shown`, of one more of them."""

    def __init__(self, contents: Sequence[Content], note: Callable[[int], Awaitable[None]]) -> None:
        """Take the messages, and what keeps the receipt of the one at a place."""
        self._contents = contents
        self._note = note
        self.given = 0

    def __len__(self) -> int:
        return len(self._contents)

    @overload
    def __getitem__(self, place: int) -> Content: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Content]: ...

    def __getitem__(self, place: int | slice) -> Content | Sequence[Content]:
        return self._contents[place]

    async def shown(self) -> None:
        """Note that the platform has one more of them, whatever becomes of the rest: it is not shown again."""
        self.given += 1
        await self._note(self.given - 1)


class Responder:
    """What all channels of this kind share. One instance per gateway."""

    def __init__(self, store: Store, intake: Intake, lanes: LaneRunner, owner: str, language: str) -> None:
        """Take the database, the door for updates, the lanes, the owner's name for leases, and the house's language."""
        self.store = store
        self.intake = intake
        self.lanes = lanes
        self.owner = owner
        self.language = language

    def of(self, bot_id: UUID, channel: str) -> "BotReplies":
        """Return the replies of one bot."""
        return BotReplies(self, bot_id, channel)


class BotReplies:
    """The replies of one bot (`bots.package.Replies`)."""

    def __init__(self, shared: Responder, bot_id: UUID, channel: str) -> None:
        """Take what is shared, and whose replies they are."""
        self._shared = shared
        self._store = shared.store
        self._bot_id = bot_id
        self._channel = channel

    async def accept(self, update: RawUpdate) -> Ticket:
        """Store an update durably; a repeat has no effect. Raises `StoreUnavailableError`."""
        since = time.monotonic()
        accepted = await self._shared.intake.accept_one(self._bot_id, update)
        UPDATES.labels(self._channel, "new" if accepted.new else "repeat").inc()
        key = self._shared.intake.digest(self._bot_id, update.keys[0]).hex()
        return Ticket(key, update.lane, accepted.id, since)

    @asynccontextmanager
    async def to(
        self, ticket: Ticket, chat: ChatAddress, channel: Channel, language: str | None = None
    ) -> AsyncIterator[Messages]:
        """Wait as long as the channel's reply mode allows; give the messages to be shown in `chat` then, in their order.

        Leaving the block without an error says that the platform has them. After one they come with the next request; an
        error that means a lost connection, a refusal or too much time ends here. A repeat is given what was given before.
        Where messages go one by one, `Messages.shown` after each keeps those before an error from coming again.

        Raises:
            StoreUnavailableError: the database is away; what was stored is kept.
        """
        whole = await self._messages(ticket, chat, channel, language)

        async def note(place: int) -> None:
            await to_its_end(self._receipt(whole[place : place + 1], ticket, before=whole[:place]))

        messages = Messages([message.content for message in whole], note)
        try:
            async with asyncio.timeout(GIVE_S):
                yield messages
            reach("respond:given")
        except (ConnectionError, TimeoutError, DeliveryError) as error:
            log.warning("respond:answer:not_taken", channel=self._channel, kind=type(error).__name__)
            await to_its_end(self._give_back(_rows(whole[messages.given :])))
        except BaseException:
            await to_its_end(self._give_back(_rows(whole[messages.given :])))
            raise
        else:
            # Whoever has read the answer may hang up at once.
            await to_its_end(self._receipt(whole[messages.given :], ticket, before=whole[: messages.given]))

    async def _messages(
        self, ticket: Ticket, chat: ChatAddress, channel: Channel, language: str | None
    ) -> Sequence[_Message]:
        found = await self._ready(ticket, chat, ticket.since + _patience(channel))
        mode = channel.capabilities.reply_mode
        if found.before and isinstance(mode, SingleCallback):
            return []  # the address that came with the request was used for that
        messages = [_Message(content) for content in found.before]
        messages += [_Message(row.content, (row,)) for row in found.taken.rows if row.provider_message_id is None]
        if found.more:
            later = say(found.taken.language or language or self._shared.language, "reply_later")
            messages.append(_Message(Content(later)))
        if isinstance(mode, SingleCallback):
            messages = _joined(messages, channel, mode.uses)
        await self._settle(found.taken.rows, messages, ticket)
        return messages

    async def _ready(self, ticket: Ticket, chat: ChatAddress, until: float) -> _Found:
        """Return what there is once an update was handled, or the time is up."""
        with self._shared.lanes.watch(ticket.inbox_id or 0) as left:
            while True:
                left.clear()
                late = time.monotonic() >= until
                found = await self._look(ticket, chat, late=late)
                if late or found.before or not found.more:
                    return found
                here = ticket.inbox_id is not None and self._shared.lanes.handles(ticket.inbox_id)
                pause = min(LOOK_HERE_S if here else LOOK_S, max(until - time.monotonic(), 0.0))
                with suppress(TimeoutError):
                    await asyncio.wait_for(left.wait(), pause)

    async def _look(self, ticket: Ticket, chat: ChatAddress, *, late: bool) -> _Found:
        open_ = await self._is_open(ticket)
        if before := await self._given(ticket, chat):
            return _Found(responses.Taken(), before, more=open_)
        taken = await self._take(chat) if late or not open_ else responses.Taken()
        if not taken.rows and (before := await self._given(ticket, chat)):
            return _Found(taken, before, more=open_)  # whoever answers the same request got there in between
        return _Found(taken, (), more=open_ or taken.held)

    async def _is_open(self, ticket: Ticket) -> bool:
        async with self._store.single() as tx:
            if ticket.inbox_id is None:
                return await inbox.is_busy(tx, self._bot_id, ticket.lane)
            return await inbox.is_open(tx, ticket.inbox_id)

    async def _take(self, chat: ChatAddress) -> responses.Taken:
        async with self._store.begin() as tx:
            taken = await responses.take(tx, self._shared.owner, self._bot_id, chat)
        reach("respond:taken")
        return taken

    async def _given(self, ticket: Ticket, chat: ChatAddress) -> Sequence[Content]:
        if ticket.new:
            return ()
        async with self._store.single() as tx:
            return await responses.given(tx, self._bot_id, chat, ticket.key)

    async def _settle(self, rows: Sequence[outbox.Due], messages: Sequence[_Message], ticket: Ticket) -> None:
        """Record what needs no message, as changed choices under one that was shown; give back what found no room."""
        used = {row.id for message in messages for row in message.rows}
        left = [row for row in rows if row.id not in used]
        changed = [row for row in left if row.provider_message_id is not None]
        without_room = [row for row in left if row.provider_message_id is None]
        if left:
            async with self._store.begin() as tx:
                await responses.shown(tx, changed, ticket.key)
                await responses.give_back(tx, without_room)

    async def _receipt(self, messages: Sequence[_Message], ticket: Ticket, before: Sequence[_Message]) -> None:
        rows = _rows(messages)
        if not rows:
            return
        try:
            async with self._store.begin() as tx:
                recorded = await responses.shown(tx, rows, ticket.key, first=len(_rows(before)))
        except StoreUnavailableError:
            # The lease runs out; what was given without a receipt is the documented second copy.
            log.warning("respond:receipt:store_away", channel=self._channel)
            return
        PARTS.labels(self._channel, "sent").inc(len(rows))
        if not recorded:
            log.warning("outbox:claim:lost", channel=self._channel)

    async def _give_back(self, rows: Sequence[outbox.Due]) -> None:
        try:
            async with self._store.begin() as tx:
                await responses.give_back(tx, rows)
        except StoreUnavailableError:
            log.warning("respond:give_back:store_away", channel=self._channel)  # the lease runs out


def _rows(messages: Sequence[_Message]) -> Sequence[outbox.Due]:
    return [row for message in messages for row in message.rows]


def _patience(channel: Channel) -> float:
    """Return for how many seconds after its arrival a request may be kept waiting."""
    match channel.capabilities.reply_mode:
        case Push():
            return 0.0
        case SingleCallback(deadline_s=given):
            return max(given - CALL_S, given / 2)
        case mode:
            return max(mode.limit_s - ANSWER_S, mode.limit_s / 2)


def joined(due: Sequence[Content], channel: Channel, most: int) -> list[tuple[Content, int]]:
    """Return as few messages as hold the most of `due`, in order, `most` at most, each with how many of it it holds.

    The rest finds no room.
    """
    whole: list[tuple[Content, int]] = []
    for content in due:
        together = _together(whole[-1][0], content) if whole else None
        if together and len(channel.split(together.text)) == 1:
            whole[-1] = (together, whole[-1][1] + 1)
        elif len(whole) < most:
            whole.append((content, 1))
        else:
            break
    return whole


def _joined(messages: Sequence[_Message], channel: Channel, most: int) -> list[_Message]:
    waiting = iter(messages)
    return [
        _Message(content, tuple(row for one in islice(waiting, count) for row in one.rows))
        for content, count in joined([message.content for message in messages], channel, most)
    ]


def _together(one: Content, other: Content) -> Content:
    return replace(one, text=f"{one.text}\n\n{other.text}", buttons=one.buttons + other.buttons)
