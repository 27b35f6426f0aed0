"""`mentee bench gateway`: what durability costs. Turns per second of a gateway beside bots that store nothing, in one run.

Gateway and bots are processes of their own and are posted to in turns; what takes their replies, the model server and the
load are others. The database is the embedded PostgreSQL with its own settings: every commit is on disk before it counts.
A turn is finished when its reply is at the platform. The pace that Telegram asks of a bot is left out (`unpaced.py`).
"""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass

import aiohttp
import psutil

from app.bench import history
from app.bench.figures import Figure, Wanted, median, quantile, ratio
from app.bench.load import SECRET_VARIABLE, Load, Taken
from app.bench.processes import Databases, Process, asked, databases, first_line, module, process
from app.bench.show import Show
from app.bench.tried import tried
from app.bench.webhook import PATH, Gateway, Place, Platform, gateway, instant_model
from app.config import Settings
from app.demo.installation import DemoError
from app.domain.profiles import profile

ROUNDS = 3
TURNS = 1000
PEOPLE = 250
WARM = 200
OPEN_RATE = 320
OPEN_S = 20
OPEN_PEOPLE = 640
FEW, MANY = 100, 10_000
GROWTH_ROUNDS = 4
GROWTH_TURNS = 400
LOOK_S = 0.1
STILL_S = 20.0
IDLE_S = 60.0
OPEN_UPDATES = "select count(*) from inbox where state in ('stored', 'claimed')"
STORED = "select count(*) from inbox where body is not null"
PROGRAM = "app.bench.unpaced"

TURNS_A_SECOND = {
    "ptb": Wanted("turns_ptb", 1.5, at_most=False),
    "ptb-many": Wanted("turns_ptb_many", 1.5, at_most=False),
}
ACK_OPEN = Wanted("ack_open_p99", 150.0, unit="ms")
OVERTAKEN = Wanted("overtaken", 0.0)
TWICE = Wanted("twice", 0.0)
GROWTH = Wanted("growth", 1.2)
FIGURES = (*TURNS_A_SECOND.values(), ACK_OPEN, OVERTAKEN, TWICE, GROWTH)


@dataclass(frozen=True, slots=True)
class Finished:
    """A load that was taken and answered: updates acknowledged and turns finished a second, what went wrong."""

    acknowledged: float
    finished: float
    overtaken: int
    twice: int


class Target:
    """Somebody who can be posted to, with the process that makes the load."""

    def __init__(self, loader: Process, sink: "SinkView") -> None:
        self._loader = loader
        self._sink = sink
        self._next = 1

    async def take(self, people: Sequence[int], count: int, rate: float | None = None) -> Taken:
        """Post `count` updates. Raises `DemoError` where the process that makes them is gone."""
        load = Load(self._next, people, count, rate)
        self._next += count
        if self._loader.stdin is None or self._loader.stdout is None:
            raise DemoError("the load cannot be asked for")
        self._loader.stdin.write(json.dumps(asdict(load)).encode() + b"\n")
        await self._loader.stdin.drain()
        line = await self._loader.stdout.readline()
        if not line:
            raise DemoError("the load ended")
        return Taken(**json.loads(line))

    async def finish(self, people: Sequence[int], count: int) -> Finished:
        """Post `count` updates and wait until each was answered. Raises `DemoError` where some never are."""
        await self._sink.begin()
        began = time.monotonic()
        taken = await self.take(people, count)
        if taken.refused:
            raise DemoError(f"{taken.refused} of {count} updates were refused")
        seen = await self._sink.until(count)
        return Finished(
            count / taken.seconds, count / (seen["last_at"] - began), int(seen["overtaken"]), int(seen["twice"])
        )


class SinkView:
    """What the platform was given."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http = http
        self.url = url

    async def begin(self) -> None:
        """Let it forget what it was given."""
        async with self._http.post(f"{self.url}/begin") as answer:
            await answer.read()

    async def seen(self) -> dict[str, float]:
        """Return its notes."""
        async with self._http.get(f"{self.url}/seen") as answer:
            return dict(await answer.json())

    async def until(self, replies: int) -> dict[str, float]:
        """Return its notes once there are so many replies. Raises `DemoError` where no more come for long."""
        known, since = -1.0, time.monotonic()
        while (seen := await self.seen())["replies"] < replies:
            if seen["replies"] > known:
                known, since = seen["replies"], time.monotonic()
            if time.monotonic() - since > STILL_S:
                raise DemoError(f"{replies - known:.0f} of {replies} turns were never finished")
            await asyncio.sleep(LOOK_S)
        return seen


class GatewayBench:
    """The measurements."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._token = f"7310001:{secrets.token_urlsafe(24)}"

    async def run(self) -> list[Figure]:
        """Measure everything, one after the other."""
        name = profile(Settings(_env_file=None).model).key
        async with (
            databases() as self._databases,
            instant_model(name) as self._model_url,
            self._platform() as self._sink,
        ):
            found = await tried(self._show, (*TURNS_A_SECOND.values(), OVERTAKEN, TWICE), self._turns)
            found += await tried(self._show, (ACK_OPEN,), self._open)
            found += await tried(self._show, (GROWTH,), self._growth)
        return found

    async def _turns(self) -> list[Figure]:
        """Let gateway and bots take the same load in turns."""
        async with AsyncExitStack() as stack:
            running = await stack.enter_async_context(self._gateway())
            people = await history.write(running.database_url, "telegram", PEOPLE)
            targets = {
                "mentee": await stack.enter_async_context(self._target(running.url, running.secret)),
                "ptb": await stack.enter_async_context(self._bare("ptb")),
                "ptb-many": await stack.enter_async_context(self._bare("ptb-many")),
                "aiohttp": await stack.enter_async_context(self._bare("aiohttp")),
            }
            for target in targets.values():
                await target.finish(people, WARM)
            rounds: dict[str, list[Finished]] = {name: [] for name in targets}
            for number in range(ROUNDS):
                # Who comes first changes.
                for name in list(targets)[number:] + list(targets)[:number]:
                    rounds[name].append(await targets[name].finish(people, TURNS))
        for name, seen in rounds.items():
            acknowledged, finished = median([s.acknowledged for s in seen]), median([s.finished for s in seen])
            self._show.line("rate", name=name, acknowledged=acknowledged, finished=finished)
        pairs = {
            name: [
                (mine.finished, theirs.finished) for mine, theirs in zip(rounds["mentee"], rounds[name], strict=True)
            ]
            for name in TURNS_A_SECOND
        }
        out_of_order = sum(s.overtaken for s in rounds["mentee"])
        shown: dict[str, object] = {name: [asdict(s) for s in seen] for name, seen in rounds.items()}
        return [
            *(wanted.figure(ratio(pairs[name]), ROUNDS, shown) for name, wanted in TURNS_A_SECOND.items()),
            OVERTAKEN.figure(float(out_of_order), ROUNDS * TURNS, {}),
            TWICE.figure(float(sum(s.twice for s in rounds["mentee"])), ROUNDS * TURNS, {}),
        ]

    async def _open(self) -> list[Figure]:
        """Post at a steady rate, whatever is still being answered; see that all of it is stored, and answered once in order."""
        async with self._gateway() as running, self._target(running.url, running.secret) as target:
            people = await history.write(running.database_url, "telegram", OPEN_PEOPLE)
            await self._sink.begin()
            await target.take(people, WARM, OPEN_RATE / 4)
            await self._sink.until(WARM)  # else some of their replies would count among those that are waited for
            await self._idle(running)
            await self._sink.begin()
            taken = await target.take(people, OPEN_RATE * OPEN_S, OPEN_RATE)
            stored = await asked(
                running.database_url,
                "select count(*) from inbox where received_at > now() - interval '1 hour' and body is not null",
            )
            seen = await self._sink.until(len(taken.ms))
        lost = WARM + len(taken.ms) - int(stored)
        detail: dict[str, object] = {
            "refused": taken.refused,
            "lost": lost,
            "p50": quantile(taken.ms, 0.5),
            "worst": max(taken.ms, default=None),
            "overtaken": seen["overtaken"],
            "twice": seen["twice"],
        }
        whole = not (taken.refused or lost or seen["overtaken"] or seen["twice"])
        return [ACK_OPEN.figure(quantile(taken.ms, 0.99) if whole else None, len(taken.ms), detail)]

    async def _idle(self, running: Gateway) -> None:
        """Wait until everything that came in is handled."""
        async with asyncio.timeout(IDLE_S):
            while await asked(running.database_url, OPEN_UPDATES):  # noqa: ASYNC110  # another process empties it
                await asyncio.sleep(LOOK_S)

    async def _growth(self) -> list[Figure]:
        """Compare what a turn costs beside few chats and beside many: seconds of the processors, database included."""
        async with AsyncExitStack() as stack:
            costs: list[tuple[float, float]] = []
            targets = {}
            for chats in (FEW, MANY):
                running = await stack.enter_async_context(self._gateway())
                people = await history.write(running.database_url, "telegram", chats)
                target = await stack.enter_async_context(self._target(running.url, running.secret))
                # The same number of them talks in both, spread over all: what differs is who else is there.
                targets[chats] = running, target, people[:: chats // FEW]
                await target.finish(targets[chats][2], FEW)
            for number in range(GROWTH_ROUNDS):
                spent = {}
                for chats in (FEW, MANY) if number % 2 else (MANY, FEW):
                    running, target, talking = targets[chats]
                    before = self._cpu(running)
                    await target.finish(talking, GROWTH_TURNS)
                    spent[chats] = (self._cpu(running) - before) / GROWTH_TURNS
                costs.append((spent[MANY], spent[FEW]))
        shown: dict[str, object] = {"many_s": [many for many, _ in costs], "few_s": [few for _, few in costs]}
        return [GROWTH.figure(ratio(costs), GROWTH_ROUNDS, shown)]

    def _cpu(self, running: Gateway) -> float:
        """Return the seconds of processors that a gateway and the database server have used."""
        server = psutil.Process(self._databases.server.pid)
        ended = server.cpu_times()
        backends = [server, *server.children()]
        own = psutil.Process(running.process.pid).cpu_times()
        ended_s = ended.children_user + ended.children_system
        return float(own.user + own.system + ended_s + sum(_seconds(backend) for backend in backends))

    def _gateway(self) -> AbstractAsyncContextManager[Gateway]:
        given: Databases = self._databases
        place = Place(given.database_url, given.broker_url, self._model_url, given.home)
        return gateway(place, Platform(f"{self._sink.url}/bot", self._token), PROGRAM)

    @asynccontextmanager
    async def _platform(self) -> AsyncIterator[SinkView]:
        async with process(*module("app.bench.sink", self._token)) as sink, aiohttp.ClientSession() as http:
            yield SinkView(http, json.loads(await first_line(sink))["url"])

    @asynccontextmanager
    async def _bare(self, kind: str) -> AsyncIterator[Target]:
        async with process(*module("app.bench.bare", kind, self._sink.url, self._token)) as bot:
            url = json.loads(await first_line(bot))["url"]
            async with self._target(f"{url}{PATH}", "none") as target:
                yield target

    @asynccontextmanager
    async def _target(self, url: str, secret: str) -> AsyncIterator[Target]:
        environment: Mapping[str, str] = {SECRET_VARIABLE: secret}
        async with process(*module("app.bench.load", url), env=environment) as loader:
            yield Target(loader, self._sink)


def _seconds(one: psutil.Process) -> float:
    try:
        times = one.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)
