"""The loop that hands each stored update to its handler: one at a time per lane, lanes side by side, leases held.

What arrives for an empty lane while there is a seat comes claimed from the intake; the loop looks for everything else.

stored ──claim──► claimed ──handler──► done | refused | quarantined
                    │ retryable error: back to stored, later          (at most MAX_ATTEMPTS)
                    │ anything else:   back to stored, then dead
                    │ channel away:    back to stored, as often as it takes
                    │ rest to come, receipt to come: back to stored, for a moment
                    │ reply unfinished: back to stored, in the lane of that reply
                    │ disk full:       back to stored, as often as it takes
                    └ process killed:  the lease runs out and another claim takes it
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from uuid import UUID

from app.errors import (
    ChannelAwayError,
    InvalidInputError,
    MenteeError,
    NotWholeError,
    ReceiptAwaitedError,
    ReplyUnfinishedError,
    StoreFullError,
    StoreUnavailableError,
)
from app.failpoints import reach
from app.services.places import Places
from app.store import Store, Tx, inbox
from app.store.engine import constraint_of
from app.telemetry import HANDLED, Log

log = Log(__name__)
IDLE_S = 0.5
RENEW_S = inbox.LEASE_S / 3
# Seated or waiting for the model.
MOST_AT_ONCE = 256
STORE_AWAY_S = 2.0
CHANNEL_AWAY_S = 2.0
# The pictures of an album come one by one, within half a second as a rule and two and a half at most.
NOT_WHOLE_S = 1.2
# The model may have answered before there was no room for its words: not every second again.
STORE_FULL_S = 10.0


class LeaseLostError(MenteeError):
    """Another process took this update over; what this one did is rolled back."""

    retryable = True


class Work:
    """One claimed update on its way through a handler."""

    def __init__(self, claimed: inbox.Claimed, owner: str, seat_left: Callable[[], None] = lambda: None) -> None:
        """Take the claimed row, the name under which it is held, and whom to tell that its seat is free meanwhile."""
        self.claimed = claimed
        self.owner = owner
        self.finished = False
        self.followed = False
        """Whether this process stored something behind it in its lane."""
        self.last = False
        """Whether nothing waited in its lane as it was ended."""
        self.seated = True
        self._seat_left = seat_left
        self.beside = AsyncExitStack()
        """What runs beside its transactions; whoever makes a work runs its handler inside this, so that it is closed."""

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Leave the seat to others while the model is waited for: a crowd that waits must not shut out who wants to stop."""
        self.seated = False
        self._seat_left()
        try:
            yield
        finally:
            self.seated = True

    async def done(self, tx: Tx, state: str = "done", error: str | None = None) -> None:
        """End the update in the handler's own transaction, so that its effects and its end are one.

        Raises:
            LeaseLostError: the update is held by somebody else now.
        """
        if self.finished:
            return
        if not await inbox.finish(tx, self.claimed, self.owner, state, error):
            raise LeaseLostError
        self.ended(state)

    def ended(self, state: str) -> None:
        """Note that the update was ended."""
        HANDLED.labels(state).inc()
        self.finished = True


Handler = Callable[[Work], Awaitable[None]]


class LaneRunner:
    """Claims and runs updates until it is stopped; `stop` lets what runs finish."""

    def __init__(self, store: Store, handler: Handler, owner: str, concurrency: int = 32) -> None:
        """Take the handler of one update, the owner's name for leases, and how many lanes may be seated at once."""
        self.owner = owner
        self._store = store
        self._handler = handler
        self._woken = asyncio.Event()
        self._seats = concurrency
        self._short = False
        self._places = Places()
        self._running: dict[asyncio.Task[None], Work] = {}
        self._watched: dict[int, set[asyncio.Event]] = {}
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Work until `stop`."""
        renewing = asyncio.create_task(self._renew())
        try:
            while not self._stopping.is_set():
                self._woken.clear()
                await self._claim()
                await self._idle()
        finally:
            renewing.cancel()

    async def stop(self, grace_s: float = 25.0) -> None:
        """Claim nothing more; wait for what runs, then leave it to the leases."""
        self._stopping.set()
        self._woken.set()
        if self._running:
            _, left = await asyncio.wait(self._running, timeout=grace_s)
            for task in left:
                task.cancel()

    def wake(self) -> None:
        """Look at once: something is there to be claimed."""
        self._woken.set()

    def stored(self, lane: str) -> None:
        """Something waits in a lane: look at once, and again when what is before it ends."""
        for work in self._running.values():
            if work.claimed.lane == lane:
                work.followed = True
        self._woken.set()

    @contextmanager
    def seat(self) -> Iterator[bool]:
        """Keep a seat for what is being stored, where one is free that nobody waits for; `take` it inside the block.

        Where that ends with an error something may have been claimed that nobody was told of: the next look gives it back.
        """
        kept = not self._stopping.is_set() and not self._short and self._free > 0
        try:
            with self._places.keep(int(kept)):
                yield kept
        finally:
            if kept:
                self._seat_left()

    def take(self, claimed: inbox.Claimed) -> None:
        """Handle what this runner's owner has claimed."""
        reach("lane:claimed")
        work = Work(claimed, self.owner, self._seat_left)
        task = asyncio.create_task(self._work(work))
        self._running[task] = work
        task.add_done_callback(self._ended)

    def handles(self, inbox_id: int) -> bool:
        """Whether an update is being handled in this process."""
        return any(work.claimed.id == inbox_id for work in self._running.values())

    @contextmanager
    def watch(self, inbox_id: int) -> Iterator[asyncio.Event]:
        """Yield an event that is set whenever this process leaves an update, ended or put back."""
        left = asyncio.Event()
        self._watched.setdefault(inbox_id, set()).add(left)
        try:
            yield left
        finally:
            self._watched[inbox_id].discard(left)
            if not self._watched[inbox_id]:
                del self._watched[inbox_id]

    @property
    def _free(self) -> int:
        seated = sum(work.seated for work in self._running.values())
        return min(self._seats - seated, MOST_AT_ONCE - len(self._running)) - self._places.kept

    async def _claim(self) -> None:
        """Take up everything that is ready; where there is more than free seats, whoever leaves one asks for the next."""
        free = self._free
        self._short = free <= 0
        if self._short:
            return
        settling = self._places.unsettled
        try:
            with self._places.keep(free):
                async with self._store.single() as tx:
                    if settling:
                        await inbox.give_back(tx, self.owner, [work.claimed for work in self._running.values()])
                        self._places.settle()
                    found = await inbox.claim(tx, self.owner, free)
        except inbox.LaneTakenError:
            self.wake()
            return
        except StoreUnavailableError as error:
            log.warning("inbox:claim:store_away", kind=type(error).__name__)
            await asyncio.sleep(STORE_AWAY_S)
            return
        self._short = len(found) == free
        for claimed in found:
            self.take(claimed)

    def _seat_left(self) -> None:
        if self._short:
            self._woken.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        work = self._running.pop(task)
        for watching in self._watched.get(work.claimed.id, ()):
            watching.set()
        if work.followed or not work.last or self._short:
            self._woken.set()

    async def _idle(self) -> None:
        try:
            await asyncio.wait_for(self._woken.wait(), IDLE_S)
        except TimeoutError:
            return

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            if not self._running:
                continue
            try:
                async with self._store.begin() as tx:
                    await inbox.renew(tx, self.owner, [work.claimed for work in self._running.values()])
            except StoreUnavailableError:
                log.warning("inbox:renew:store_away")

    async def _work(self, work: Work) -> None:
        try:
            async with work.beside:
                await self._handler(work)
            await self._end(work, "done")
        except LeaseLostError:
            log.warning("inbox:lease:lost", inbox=work.claimed.id)
        except StoreFullError:
            log.warning("inbox:work:store_full", inbox=work.claimed.id)
            await self._wait(work, STORE_FULL_S)
        except StoreUnavailableError:
            log.warning("inbox:work:store_away", inbox=work.claimed.id)
            # Only a connection may have been lost; where nothing can be written, the lease runs out.
            await self._wait(work, STORE_AWAY_S)
        except (NotWholeError, ReceiptAwaitedError):
            await self._wait(work, NOT_WHOLE_S)
        except ReplyUnfinishedError as error:
            await self._behind(work, error.turn_id)
        except ChannelAwayError:
            log.info("inbox:channel:away", inbox=work.claimed.id)
            await self._wait(work, CHANNEL_AWAY_S)
        except InvalidInputError as error:
            log.warning("inbox:update:quarantined", inbox=work.claimed.id)
            await self._end(work, "quarantined", type(error).__name__)
        except Exception as error:  # noqa: BLE001 - the last resort of this loop: an update never takes its lane down
            # By its name the operator tells a rule of the data from a lease that ran out while the database stood still.
            broken = {"constraint": name} if (name := constraint_of(error)) else {}
            log.failure("inbox:work:failed", error, inbox=work.claimed.id, attempt=work.claimed.attempts, **broken)
            await self._again(work, error)

    async def _wait(self, work: Work, seconds: float) -> None:
        try:
            async with self._store.begin() as tx:
                await inbox.put_back(tx, work.claimed, work.owner, seconds)
        except StoreUnavailableError:
            log.warning("inbox:wait:store_away", inbox=work.claimed.id)

    async def _behind(self, work: Work, turn_id: UUID) -> None:
        try:
            async with self._store.begin() as tx:
                await inbox.wait_behind(tx, work.claimed, work.owner, turn_id)
        except StoreUnavailableError:
            log.warning("inbox:wait:store_away")

    async def _again(self, work: Work, error: Exception) -> None:
        attempts = work.claimed.attempts
        if attempts >= inbox.MAX_ATTEMPTS:
            await self._end(work, "dead", type(error).__name__)
            return
        try:
            async with self._store.begin() as tx:
                await inbox.retry(tx, work.claimed, work.owner, float(attempts**2), type(error).__name__)
        except StoreUnavailableError:
            log.warning("inbox:retry:store_away", inbox=work.claimed.id)

    async def _end(self, work: Work, state: str, error: str | None = None) -> None:
        try:
            async with self._store.begin() as tx:
                await work.done(tx, state, error)
        except (LeaseLostError, StoreUnavailableError):
            log.warning("inbox:end:lost", inbox=work.claimed.id)
