"""`mentee bench road`: the figures of the whole road on one installation, loopback only.

Each measurement stands alone: where one fails, the others are still made and that one says that it was not measured.
"""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import asyncpg
import psutil

from app.bench.figures import Figure, Wanted, median, quantile, ratio
from app.bench.show import Show
from app.bench.streaming import Page, Straight, Timed, opened
from app.bench.training import training
from app.bench.tried import tried
from app.bench.webhook import measure
from app.demo.cells import Cells, first_unmet
from app.demo.generate import Plot
from app.demo.installation import Installation
from app.demo.person import Person, allow
from app.demo.talk_web import WebTalker
from app.domain.consent import Purpose
from app.domain.messages import text as say
from app.domain.press import long_id
from app.domain.profiles import profile
from app.embedded.parts import Home

REPLY_TOKENS = 64
PAIRS = 20
ROUNDS = 5
CROWD = 8
TRAINING_PAIRS = 10
MEMORY_PROMPTS = 16
SETTLE_S = 1.5
MEGABYTE = 1 << 20


TTFT_ONE = Wanted("first_token_1", 1.15)
TTFT_MANY = Wanted("first_token_8", 1.15)
SPEED = Wanted("tokens_per_s_8", 0.95, at_most=False)
TRAINING = Wanted("training", 1.5)
MEMORY = Wanted("memory", 0.8, at_most=False)
RESIDENT = Wanted("resident", 250.0, unit="MB")
TORCH = Wanted("torch", 0.0)
ACK_HALF = Wanted("ack_p50", 15.0, unit="ms")
ACK_WORST = Wanted("ack_p99", 150.0, unit="ms")
FIGURES = (TTFT_ONE, TTFT_MANY, SPEED, TRAINING, MEMORY, RESIDENT, TORCH, ACK_HALF, ACK_WORST)


class RoadBench:
    """The measurements."""

    def __init__(self, place: Installation, plot: Plot, show: Show) -> None:
        self._place = place
        self._plot = plot
        self._show = show
        self._questions = iter([*plot.talk, *plot.held_out, *plot.calibration] * 8)

    async def run(self) -> list[Figure]:
        """Measure everything, one after the other."""
        straight = Straight(
            self._place.model_url,
            profile(self._place.settings.model).key,
            say("en", "default_system_prompt"),
            REPLY_TOKENS,
        )
        pages = [await opened(self._place.url) for _ in range(CROWD)]
        try:
            found = await tried(self._show, (TTFT_ONE,), lambda: self._one_at_a_time(pages[0], straight))
            found += await tried(self._show, (TTFT_MANY, SPEED), lambda: self._crowd(pages, straight))
            found += await tried(self._show, (TRAINING,), lambda: self._while_training(pages[0]))
        finally:
            await asyncio.gather(straight.close(), *(page.close() for page in pages))
        found += await tried(self._show, (MEMORY,), self._memory)
        found += await tried(self._show, (RESIDENT, TORCH), self._gateway)
        found += await tried(self._show, (ACK_HALF, ACK_WORST), self._webhook)
        return found

    async def _one_at_a_time(self, page: Page, straight: Straight) -> list[Figure]:
        await page.ask_anew(next(self._questions))
        await straight.ask(next(self._questions))
        pairs = []
        for number in range(PAIRS):
            question = next(self._questions)
            # Who comes first changes, so that neither always finds the other's prefix.
            if number % 2:
                direct, through = await straight.ask(question), await page.ask_anew(question)
            else:
                through, direct = await page.ask_anew(question), await straight.ask(question)
            pairs.append((through.first_s, direct.first_s))
        return [TTFT_ONE.figure(ratio(pairs), len(pairs), _both(pairs))]

    async def _crowd(self, pages: Sequence[Page], straight: Straight) -> list[Figure]:
        first, speed = [], []
        for number in range(ROUNDS):
            questions = [next(self._questions) for _ in pages]

            async def through(asked: Sequence[str] = questions) -> list[Timed]:
                await asyncio.gather(*(page.new_conversation() for page in pages))
                await asyncio.sleep(SETTLE_S)
                return await self._counted(
                    list(await asyncio.gather(*(page.ask(q) for page, q in zip(pages, asked, strict=True))))
                )

            async def direct(asked: Sequence[str] = questions) -> list[Timed]:
                return list(await asyncio.gather(*(straight.ask(q) for q in asked)))

            if number % 2:
                plain, mine = await direct(), await through()
            else:
                mine, plain = await through(), await direct()
            first.append((median([t.first_s for t in mine]), median([t.first_s for t in plain])))
            speed.append((_tokens_per_s(mine), _tokens_per_s(plain)))
        return [
            TTFT_MANY.figure(ratio(first), ROUNDS, _both(first)),
            SPEED.figure(ratio(speed), ROUNDS, _both(speed)),
        ]

    async def _counted(self, replies: Sequence[Timed]) -> list[Timed]:
        """Return the replies with the number of tokens that were stored of each."""
        connection = await asyncpg.connect(self._place.database_url, timeout=10)
        try:
            query = "select cardinality(response_token_ids) from turns where id = $1"
            counts = [int(await connection.fetchval(query, long_id(r.turn)) or 0) for r in replies]
        finally:
            await connection.close()
        return [Timed(r.asked, r.first, r.last, n, r.turn) for r, n in zip(replies, counts, strict=True)]

    async def _while_training(self, page: Page) -> list[Figure]:
        pairs = []
        folder = self._place.home / "runs"
        folder.mkdir(parents=True, exist_ok=True)
        async with training(self._place.model_dir, folder, self._plot) as held:
            for number in range(TRAINING_PAIRS):
                seconds = {}
                for busy in (True, False) if number % 2 else (False, True):
                    held.let_go() if busy else held.hold()
                    await asyncio.sleep(SETTLE_S)
                    seconds[busy] = (await page.ask_anew(next(self._questions))).first_s
                pairs.append((seconds[True], seconds[False]))
        return [TRAINING.figure(ratio(pairs), len(pairs), _both(pairs))]

    async def _memory(self) -> list[Figure]:
        """Correct once, write the example, and ask other things: how many replies are as wished?

        The wish is the first that the base does not meet by itself: one that it meets would measure nothing.
        """
        talker, cells = WebTalker(self._place.url), Cells(self._place)
        try:
            wish, rates = await first_unmet(cells, await cells.system(await self._web_bot()), self._plot)
            rate = rates[wish.family]
            self._show.line("wish", wish=wish.words, rate=rate)
            person = Person(talker, wish, self._plot)
            await talker.arrive()
            await allow(talker, Purpose.MEMORY)
            await person.teach_by_writing()
            held = 0
            for question in self._plot.held_out[:MEMORY_PROMPTS]:
                await person.new_conversation()
                held += wish.holds((await person.ask(question)).text)
        finally:
            await asyncio.gather(talker.close(), cells.close())
        shown: dict[str, object] = {"wish": wish.words, "base_rate": rate, "base_rates": rates, "held": held}
        return [MEMORY.figure(held / MEMORY_PROMPTS, MEMORY_PROMPTS, shown)]

    async def _web_bot(self) -> UUID:
        connection = await asyncpg.connect(self._place.database_url, timeout=10)
        try:
            return UUID(str(await connection.fetchval("select id from bots where channel = 'web'")))
        finally:
            await connection.close()

    async def _gateway(self) -> list[Figure]:
        process = psutil.Process(_pid(self._place.home))
        resident = process.memory_info().rss / MEGABYTE
        maps = Path(f"/proc/{process.pid}/maps").read_text("utf-8")
        torch = {line.split()[-1] for line in maps.splitlines() if "torch" in line}
        return [RESIDENT.figure(resident, 1, {}), TORCH.figure(float(len(torch)), 1, {})]

    async def _webhook(self) -> list[Figure]:
        seen = await measure(self._place)
        shown: dict[str, object] = {"refused": seen.refused, "turns": seen.handled, "worst": max(seen.ms, default=None)}
        half, worst = (quantile(seen.ms, share) if not seen.refused else None for share in (0.5, 0.99))
        return [ACK_HALF.figure(half, len(seen.ms), shown), ACK_WORST.figure(worst, len(seen.ms), shown)]


def _pid(home: Path) -> int:
    return int(json.loads((Home(home).run / "gateway.pid").read_text("utf-8"))["pid"])


def _tokens_per_s(replies: Sequence[Timed]) -> float:
    wall = max(t.last for t in replies) - min(t.asked for t in replies)
    return sum(t.tokens for t in replies) / wall


def _both(pairs: Sequence[tuple[float, float]]) -> dict[str, object]:
    return {"first": median([p[0] for p in pairs]), "second": median([p[1] for p in pairs]), "pairs": list(pairs)}
