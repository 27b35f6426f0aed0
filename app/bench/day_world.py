"""The world of a simulated day: platforms and model server in this process, two gateways and their databases as others.

Owns what is started, killed and started again, and the trouble that the platforms make by themselves. Only in a checkout:
the platforms are those that the tests use.
"""

import asyncio
import random
import secrets
import signal
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from app.bench.processes import Databases, Process, databases, end, module, ready, start
from app.embedded import workers
from app.embedded.parts import LOOPBACK, free_port
from tests.fakes.model import ModelServer
from tests.fakes.telegram import TelegramServer
from tests.fakes.telegram.errors import ApiError
from tests.fakes.telegram.faults import Fault, Faults
from tests.fakes.twilio import Hook, Person, Sent, TwilioServer

GATEWAYS = 2
SAID = frozenset({"sendmessage", "editmessagetext"})
PUBLIC = "https://bench.invalid"
AGAIN_S = (0.2, 1.0)


@dataclass(frozen=True, slots=True)
class Rates:
    """How often a platform misbehaves, as a share of its calls; how often it delivers something twice."""

    flood: float = 0.01
    lost: float = 0.004
    refused: float = 0.005
    slow: float = 0.01
    repeated: float = 0.08
    reported: float = 0.25


@dataclass
class Trouble:
    """What went wrong and when, by the clock of the platforms (Unix seconds)."""

    lost: list[float] = field(default_factory=list)
    """When a platform carried something out whose answer was lost."""
    cuts: list[tuple[float, float]] = field(default_factory=list)
    """From when to when something was away that receipts need: a gateway that was killed, the database."""
    outages: list[tuple[float, float]] = field(default_factory=list)
    """From when to when anything was away."""
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, what: str) -> None:
        """Note that something happened once more."""
        self.counts[what] = self.counts.get(what, 0) + 1


class RandomFaults(Faults):
    """Faults of the Bot API server drawn from a seed while the day goes on."""

    def __init__(self, chance: random.Random, rates: Rates, trouble: Trouble) -> None:
        super().__init__()
        self._chance, self._rates, self._trouble = chance, rates, trouble
        self.on = True

    def take(self, method: str) -> Fault | None:
        """Return the fault that hits this call."""
        if not self.on or method not in SAID:
            return None
        drawn, rates = self._chance.random(), self._rates
        for name, share in (
            ("flood", rates.flood),
            ("lost", rates.lost),
            ("refused", rates.refused),
            ("slow", rates.slow),
        ):
            if drawn < share:
                self._trouble.count(f"telegram_{name}")
                return self._fault(name, method)
            drawn -= share
        return None

    def _fault(self, name: str, method: str) -> Fault:
        if name == "flood":
            wait = self._chance.randint(1, 3)
            refusal = ApiError(429, f"Too Many Requests: retry after {wait}", {"retry_after": wait})
            return Fault(method, 1, refusal)
        if name == "lost":
            self._trouble.lost.append(time.time())
            return Fault(method, 1, lose=True)
        if name == "refused":
            return Fault(method, 1, ApiError(502, "Bad Gateway"))
        return Fault(method, 1, delay_s=self._chance.uniform(0.2, 1.5))


class Balanced(Hook):
    """Posts to whichever gateway answers, again until one does, as a load balancer and Twilio's retries do together."""

    gateways: Sequence["Served"] = ()
    patient = True

    async def post_as(self, path: str, body: bytes, headers: Any) -> int:  # noqa: ANN401  # as the fake has it
        """Return the status of the answer that took it; 0 once nobody waits any more."""
        turn = secrets.randbelow(len(self.gateways))
        while self.patient:
            turn += 1
            self.local = self.gateways[turn % len(self.gateways)].url
            try:
                status = await super().post_as(path, body, headers)
            except (aiohttp.ClientError, TimeoutError):
                status = 0
            if 200 <= status < 300:  # noqa: PLR2004
                return status
            await asyncio.sleep(AGAIN_S[0] + secrets.randbelow(100) / 100 * AGAIN_S[1])
        return 0


class Losing(TelegramServer):
    """The Bot API server, noting every answer that nobody waited for any more."""

    trouble = Trouble()

    async def _call(self, request: web.Request) -> web.StreamResponse:
        try:
            return await super()._call(request)
        except asyncio.CancelledError:
            self.trouble.lost.append(time.time())
            raise


class Reporting(TwilioServer):
    """Twilio, reporting what became of a share of the messages, each out of order and repeated.

    `sent_at` tells when each message was taken, by its sid.
    """

    trouble = Trouble()
    chance = random.Random(0)  # noqa: S311  # drawn from the day's seed
    reported = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.sent_at: dict[str, float] = {}

    async def _message(self, request: web.Request) -> web.StreamResponse:
        answer = await super()._message(request)
        if request.transport is None or request.transport.is_closing():
            self.trouble.lost.append(time.time())
        return answer

    def _deliver(self, form: dict[str, str], refusal: int | None) -> tuple[Sent, Person]:
        sent, person = super()._deliver(form, refusal)
        self.sent_at[sent.sid] = time.time()
        return sent, person

    def _report_soon(self, sent: Sent, person: Person) -> None:
        if self.chance.random() < self.reported:
            super()._report_soon(sent, person)


class Served:
    """One gateway, which can be killed and started again; its messages go to one file."""

    def __init__(self, number: int, env: dict[str, str], home: Path) -> None:
        self.port = free_port()
        self.log = home / f"gateway-{number}.log"
        self._env = env | {"MENTEE_PORT": str(self.port)}
        self._process: Process | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://{LOOPBACK}:{self.port}"

    async def start(self) -> None:
        """Start it and wait until it takes messages."""
        self._process = await start(*module("app.main"), env=self._env, log=self.log)
        await ready(f"{self.url}/startupz")

    async def kill(self) -> None:
        """End it at once, in the middle of whatever it does."""
        if self._process and self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)
            await self._process.wait()

    async def stop(self) -> None:
        """End it in order."""
        if self._process:
            await end(self._process)


@dataclass
class World:
    """Everything that a day needs, running."""

    seed: int
    rates: Rates
    trouble: Trouble
    telegram: TelegramServer
    twilio: Reporting
    model: ModelServer
    databases: Databases
    gateways: list[Served]

    @property
    def faults(self) -> RandomFaults:
        """The faults of the Bot API server."""
        assert isinstance(self.telegram.faults, RandomFaults)  # noqa: S101  # made so below
        return self.telegram.faults

    async def calm(self) -> None:
        """Let nothing go wrong any more."""
        self.faults.on = False
        self.model.heal()


@asynccontextmanager
async def world(seed: int, rates: Rates, model_name: str) -> AsyncIterator[World]:
    """Run the world of a day until the block ends.

    Raises:
        DemoError, PartError: something did not come up.
    """
    trouble = Trouble()
    async with AsyncExitStack() as stack:
        faults = RandomFaults(random.Random(f"faults {seed}"), rates, trouble)  # noqa: S311  # drawn from the day's seed
        telegram = await stack.enter_async_context(Losing(faults=faults))
        telegram.trouble = trouble
        twilio = await stack.enter_async_context(Reporting())
        twilio.trouble = trouble
        twilio.chance, twilio.reported = random.Random(f"reports {seed}"), rates.reported  # noqa: S311  # the same
        model = await stack.enter_async_context(ModelServer(name=model_name))
        given = await stack.enter_async_context(databases())
        env = _environment(telegram, twilio, model, given)
        await asyncio.to_thread(workers.migrate, env)
        gateways = [Served(number, env, given.home) for number in range(GATEWAYS)]
        for gateway in gateways:
            stack.push_async_callback(gateway.stop)
            await gateway.start()
        hook = Balanced(twilio.token, PUBLIC)
        hook.gateways = gateways
        twilio.hook = hook
        yield World(seed, rates, trouble, telegram, twilio, model, given, gateways)
        hook.patient = False
        await twilio.hang_up()


def _environment(
    telegram: TelegramServer, twilio: TwilioServer, model: ModelServer, given: Databases
) -> dict[str, str]:
    return {
        "DATABASE_URL": given.database_url,
        "BROKER_URL": given.broker_url,
        "VLLM_BASE_URL": model.url,
        "MODEL_WAIT_S": "5",
        "MENTEE_HOME": str(given.home),
        "MENTEE_SECRET": secrets.token_urlsafe(48),
        "TELEGRAM_BOT_TOKEN": telegram.token,
        "TELEGRAM_BASE_URL": telegram.base_url,
        "TWILIO_ACCOUNT_SID": twilio.account_sid,
        "TWILIO_AUTH_TOKEN": twilio.token,
        "TWILIO_BASE_URL": twilio.url,
        "WHATSAPP_FROM": twilio.sender,
        "WHATSAPP_BUSINESS_PURPOSE": "answers questions about a bakery",
        "PUBLIC_URL": PUBLIC,
        "QUOTA_REPLIES_PER_MINUTE": "0",
        "LOG_LEVEL": "INFO",
        "OMP_NUM_THREADS": "1",
    }
