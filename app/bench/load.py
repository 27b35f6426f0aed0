"""Updates as Telegram posts them, at a rate or as fast as they are taken. `python -m app.bench.load URL` is a process of
its own, so that its work does not disturb the clock of whoever is measured.

    stdin: one JSON line a load      {"first": 1, "people": [5000000001, …], "count": 1000, "rate": 320}
    stdout: one JSON line in return  {"ms": […], "refused": 0, "seconds": 20.1}

With a `rate` (updates a second) the load is open: each update is sent at its own moment whether or not earlier ones were
answered, and its time counts from that moment, so that a stall shows in every update it delayed. Without one, `together`
chats are busy at once, and the next update of a chat goes when its last one was taken, as Telegram does it.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import aiohttp
import uvloop

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105  # a header's name
SECRET_VARIABLE = "MENTEE_BENCH_SECRET"  # noqa: S105  # a variable's name
TIMEOUT = aiohttp.ClientTimeout(total=30)
TOGETHER = 40
HEAD_START_S = 0.05
OK = 200


@dataclass(frozen=True, slots=True)
class Load:
    """`count` updates from number `first` on, of the people in turn."""

    first: int
    people: Sequence[int]
    count: int
    rate: float | None = None
    together: int = TOGETHER

    def person(self, number: int) -> int:
        """Return who sends update `number`."""
        return self.people[number % len(self.people)]


@dataclass(frozen=True, slots=True)
class Taken:
    """Milliseconds to each acknowledgement, how many were refused, and the seconds that all of it took."""

    ms: Sequence[float]
    refused: int
    seconds: float


def update(number: int, person: int) -> bytes:
    """Return update `number`: a message that says its number."""
    card = {"id": person, "is_bot": False, "first_name": "Person", "language_code": "en"}
    chat = {"id": person, "type": "private", "first_name": "Person"}
    message = {"message_id": number, "date": int(time.time()), "chat": chat, "from": card, "text": f"Hello {number}"}
    return json.dumps({"update_id": number, "message": message}).encode()


def session(secret: str) -> aiohttp.ClientSession:
    """Return an HTTP session that posts as Telegram does, without a bound on its connections."""
    headers = {SECRET_HEADER: secret, "Content-Type": "application/json"}
    return aiohttp.ClientSession(timeout=TIMEOUT, connector=aiohttp.TCPConnector(limit=0), headers=headers)


async def send(http: aiohttp.ClientSession, url: str, load: Load) -> Taken:
    """Send a load and return what was seen."""
    began = time.perf_counter()
    answers = await (_busy(http, url, load) if load.rate is None else _steady(http, url, load, load.rate))
    taken = [ms for ms, status in answers if status == OK]
    return Taken(taken, len(answers) - len(taken), time.perf_counter() - began)


async def _steady(http: aiohttp.ClientSession, url: str, load: Load, rate: float) -> list[tuple[float, int]]:
    """Return milliseconds from each update's moment, and its status."""
    began = time.perf_counter() + HEAD_START_S

    async def one(number: int) -> tuple[float, int]:
        due = began + (number - load.first) / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        return await _post(http, url, update(number, load.person(number)), due)

    return list(await asyncio.gather(*(one(number) for number in range(load.first, load.first + load.count))))


async def _busy(http: aiohttp.ClientSession, url: str, load: Load) -> list[tuple[float, int]]:
    """Return milliseconds from each update's sending, and its status."""
    answers: list[tuple[float, int]] = []
    numbers = iter(range(load.first, load.first + load.count))
    busy = {person: asyncio.Lock() for person in load.people}

    async def connection() -> None:
        for number in numbers:
            person = load.person(number)
            async with busy[person]:
                answers.append(await _post(http, url, update(number, person), time.perf_counter()))

    await asyncio.gather(*(connection() for _ in range(load.together)))
    return answers


async def _post(http: aiohttp.ClientSession, url: str, body: bytes, since: float) -> tuple[float, int]:
    try:
        async with http.post(url, data=body) as answer:
            await answer.read()
            status = answer.status
    except (aiohttp.ClientError, TimeoutError):
        status = 0
    return (time.perf_counter() - since) * 1000, status


async def _serve(url: str) -> None:
    async with session(os.environ[SECRET_VARIABLE]) as http:
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            print(json.dumps(asdict(await send(http, url, Load(**json.loads(line))))), flush=True)


if __name__ == "__main__":
    uvloop.run(_serve(sys.argv[1]))
