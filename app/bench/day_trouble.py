"""What goes wrong on a simulated day: who is away when and for how long, drawn from the day's seed.

An outage lasts 0-140 s of the day's own time, which is the longest after which a press on a button still counts at Telegram;
`scale` says how much of it is waited for. A few are as long as they are.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from app.bench.day_world import Served, World

LONGEST_S = 140.0
LONG_S = 60.0
BREATH_S = 8.0
"""Between two outages, so that nothing is cut off again and again without a moment in which it could be done."""
KINDS = ("one_killed", "one_killed", "both_killed", "telegram_away", "model_away", "model_slow", "database_away")


@dataclass(frozen=True, slots=True)
class Outage:
    """Something that is away from a moment of the day on, for so many seconds."""

    at_s: float
    kind: str
    seconds: float


def plan(seed: int, count: int, long: int, day_s: float, scale: float) -> list[Outage]:
    """Return the outages of a day of `day_s` seconds: `count` scaled ones, `long` ones as long as they are."""
    chance = random.Random(f"outages {seed}")  # noqa: S311  # drawn from the day's seed
    lengths = [chance.uniform(0, LONGEST_S) * scale for _ in range(count)]
    lengths += [chance.uniform(LONG_S, LONGEST_S) for _ in range(long)]
    kinds = [KINDS[number % len(KINDS)] for number in range(count)] + ["both_killed"] * long
    chance.shuffle(kinds)
    moments = sorted(chance.uniform(0.05, 0.85) * day_s for _ in lengths)
    return [Outage(*one) for one in zip(moments, kinds, lengths, strict=True)]


class Troublemaker:
    """Lets the outages of a plan happen, one after the other; one that would overlap begins a while after the last one."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = random.Random(f"trouble {world.seed}")  # noqa: S311  # drawn from the day's seed
        self._kinds: dict[str, Callable[[float], Awaitable[None]]] = {
            "one_killed": self._one_killed,
            "both_killed": self._both_killed,
            "telegram_away": self._telegram_away,
            "model_away": self._model_away,
            "model_slow": self._model_slow,
            "database_away": self._database_away,
        }

    async def run(self, outages: list[Outage]) -> None:
        """Go through the day."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        for outage in outages:
            await asyncio.sleep(max(0.0, began + outage.at_s - loop.time()))
            self._world.trouble.count(outage.kind)
            since = time.time()
            await self._kinds[outage.kind](outage.seconds)
            self._world.trouble.outages.append((since, time.time()))
            await asyncio.sleep(BREATH_S)

    async def _one_killed(self, seconds: float) -> None:
        await self._killed([self._chance.choice(self._world.gateways)], seconds)

    async def _both_killed(self, seconds: float) -> None:
        await self._killed(self._world.gateways, seconds)

    async def _killed(self, gateways: list[Served], seconds: float) -> None:
        since = time.time()
        for gateway in gateways:
            await gateway.kill()
        await asyncio.sleep(seconds)
        for gateway in gateways:
            await gateway.start()
        self._world.trouble.cuts.append((since, time.time()))

    async def _telegram_away(self, seconds: float) -> None:
        since = time.time()
        await self._world.telegram.stop()
        await asyncio.sleep(seconds)
        await self._world.telegram.start()
        # What was being carried out as it went away was answered to nobody.
        self._world.trouble.cuts.append((since, since))

    async def _model_away(self, seconds: float) -> None:
        await self._world.model.stop()
        await asyncio.sleep(seconds)
        await self._world.model.start()

    async def _model_slow(self, seconds: float) -> None:
        from tests.fakes.model import faults

        self._world.model.pace = faults.Slow(first_token_s=0.5, per_token_s=0.05)
        await asyncio.sleep(seconds)
        self._world.model.pace = faults.Slow()

    async def _database_away(self, seconds: float) -> None:
        """End the database server in the middle of whatever it does: what was not committed is gone."""
        since = time.time()
        server = self._world.databases.server
        await server.crash()
        await asyncio.sleep(seconds)
        await server.start()
        self._world.trouble.cuts.append((since, time.time()))
