"""`mentee bench day`: a day of many people on two channels with everything that goes wrong, in a few minutes.

Two gateways over one embedded PostgreSQL and Valkey; platforms that repeat, flood, lose answers and report out of order;
gateways and database killed, platforms and model away. Afterwards nothing may be lost, doubled, out of order or in the wrong
place. Every choice is drawn from a seed, which is printed; the times of the machine are its own.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from app.bench.figures import Figure, Wanted
from app.bench.processes import asked
from app.bench.show import Show
from app.config import Settings
from app.demo.installation import DemoError
from app.domain.profiles import profile

if TYPE_CHECKING:
    from app.bench.day_check import Evidence
    from app.bench.day_people import Somebody
    from app.bench.day_world import World

OPEN = """
    select (select count(*) from inbox where state in ('stored', 'claimed'))
         + (select count(*) from outbox where state in ('due', 'sending'))
"""
DRAIN_S = 420.0
STILL_S = 130.0
LOOK_S = 0.5
MOST_LINES = 5
BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Size:
    """How much happens: people, their updates, seconds for all of it, outages and how much of them is waited for."""

    people: int = 200
    updates: int = 5000
    seconds: float = 200.0
    outages: int = 14
    long_outages: int = 1
    scale: float = 0.08


class Day:
    """One simulated day."""

    def __init__(self, show: Show, seed: int, size: Size) -> None:
        self._show = show
        self._seed = seed
        self._size = size

    async def run(self) -> list[Figure]:
        """Live through it, then check everything; return a figure for each invariant: how often it is broken.

        Raises:
            DemoError: this is no checkout, or something did not come up.
        """
        if find_spec("tests") is None or find_spec("tests.fakes") is None:
            raise DemoError("the simulated day needs the platforms of a checkout (tests/fakes): run it from one")
        from app.bench import day_check, day_world

        self._show.line("day", seed=self._seed, **{name: getattr(self._size, name) for name in Size.__slots__})
        async with day_world.world(self._seed, day_world.Rates(), profile(Settings(_env_file=None).model).key) as world:
            people = await self._live(world)
            drained_s = await self._drain(world)
            seen = await day_check.gather(world, people)
            self._tell(world, seen, drained_s)
            return [self._checked(check.__name__, list(check(seen)), seen) for check in day_check.CHECKS]

    async def _live(self, world: "World") -> Sequence["Somebody"]:
        from app.bench import day_people, day_trouble

        size = self._size
        people = day_people.crowd(world, size.people)
        outages = day_trouble.plan(self._seed, size.outages, size.long_outages, size.seconds, size.scale)
        each = size.updates // size.people
        async with asyncio.TaskGroup() as group:
            group.create_task(day_trouble.Troublemaker(world).run(outages))
            for somebody in people:
                group.create_task(day_people.live(somebody, each, size.seconds))
        return people

    async def _drain(self, world: "World") -> float:
        """Let nothing go wrong any more and wait until nothing is left to do; return the seconds that took.

        Where nothing changes for long it is over too: the checks tell what is left.
        """
        began = moved = time.monotonic()
        await world.calm()
        known = -1
        while left := len(world.telegram.world.queue.pending) + await asked(world.databases.database_url, OPEN):
            if left != known:
                known, moved = left, time.monotonic()
            if time.monotonic() - moved > STILL_S or time.monotonic() - began > DRAIN_S:
                break
            await asyncio.sleep(LOOK_S)
        return time.monotonic() - began

    def _tell(self, world: "World", seen: "Evidence", drained_s: float) -> None:
        done = Counter({f"{row['channel']} {row['state']}": 0 for row in seen.inbox})
        done.update(f"{row['channel']} {row['state']}" for row in seen.inbox)
        turns = Counter(turn["state"] for turn in seen.turns)
        votes = sum(len(somebody.acts.votes) for somebody in seen.people)
        parts = Counter(row["state"] for row in seen.outbox)
        for what, counts in (("updates", done), ("turns", turns), ("parts", parts), ("trouble", world.trouble.counts)):
            self._show.line(f"day.{what}", counts=", ".join(f"{name} {n}" for name, n in sorted(counts.items())))
        self._show.line("day.votes", votes=votes, seconds=drained_s)

    def _checked(self, name: str, broken: list[str], seen: "Evidence") -> Figure:
        for line in broken[:MOST_LINES]:
            self._show.line("day.broken", line=line)
        figure = Wanted(f"day.{name}", 0.0).figure(float(len(broken)), len(seen.inbox), {"broken": broken[:100]})
        self._show.figure(figure)
        return figure
