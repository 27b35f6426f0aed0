"""The four cells: base, memory, adapter without memory, another person, on the same held-out prompts, greedy.

Prompts and routes are the product's own: what `releases` routes for a person's newest conversation, the memory lines that
their prompt must carry, `build`. The other person is asked in batches that mix their requests with the adapter's.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from app.clients.vllm import VllmClient
from app.demo.generate import Plot, Wish
from app.demo.installation import DemoError, Installation
from app.demo.report import HIGHEST_BASE_RATE, Cell
from app.domain.memory import MemoryLine, in_prompt
from app.domain.profiles import profile
from app.domain.prompt import build
from app.ports import Completion, Sampling
from app.store import memory, people, releases
from app.store.releases import Routed

SEATS = 8
REPLY_TIMEOUT_S = 900.0
_EVERYTHING = 1 << 30
Judge = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Served:
    """What the product would ask for a person's next first message: by which weights, with what in the prompt."""

    model: str
    system: str
    lines: tuple[MemoryLine, ...] = ()
    salt: str = field(default="", repr=False)


class Cells:
    """Asks the model server as the gateway does. Close it."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        chosen = profile(installation.settings.model)
        self.base = chosen.key
        # Whole replies are waited for, and eight of them at once take minutes where others use the machine too.
        self.model = VllmClient(
            installation.model_url, token_timeout_s=REPLY_TIMEOUT_S, template_arguments=chosen.chat_template_args
        )
        self._sampling = Sampling(temperature=0.0, max_tokens=installation.settings.max_reply_tokens)

    async def close(self) -> None:
        """Close the connection."""
        await self.model.close()

    async def served(self, person_id: UUID, session_id: UUID, bot_id: UUID) -> Served:
        """Return how a person is answered in a conversation."""
        async with self._installation.store.begin() as tx:
            found: Routed | None = await releases.route(tx, person_id, session_id)
            known = await memory.lines(tx, person_id, "active", "graduated")
            identity = await people.identity(tx, bot_id)
        if identity is None:
            raise DemoError("the bot has no identity")
        lines = in_prompt(known, found.checkpoint_id if found else None)
        policy = found.adapter if found else self.base
        return Served(policy, identity.prompt, lines, _salt(str(person_id), policy))

    async def system(self, bot_id: UUID) -> str:
        """Return what the model is told about a bot."""
        async with self._installation.store.begin() as tx:
            identity = await people.identity(tx, bot_id)
        if identity is None:
            raise DemoError("the bot has no identity")
        return identity.prompt

    async def with_memory(self, person_id: UUID, system: str) -> Served:
        """Return the base with everything the person asked to be remembered, learnt or not."""
        async with self._installation.store.begin() as tx:
            known = await memory.lines(tx, person_id, "active", "graduated")
        return Served(self.base, system, tuple(known), _salt(str(person_id), "memory"))

    def plain(self, system: str) -> Served:
        """Return the base alone."""
        return Served(self.base, system, (), _salt("nobody", self.base))

    async def cell(self, name: str, served: Served, prompts: Sequence[str], holds: Judge) -> Cell:
        """Measure one cell alone."""
        return _cell(name, await self._all([(served, prompt) for prompt in prompts]), holds)

    async def rates(self, served: Served, prompts: Sequence[str], judges: Mapping[str, Judge]) -> dict[str, float]:
        """Return by name how often each judge holds, on the same replies."""
        done = await self._all([(served, prompt) for prompt in prompts])
        return {name: _cell(name, done, holds).rate for name, holds in judges.items()}

    async def mixed(
        self, names: tuple[str, str], served: tuple[Served, Served], prompts: Sequence[str], holds: Judge
    ) -> tuple[Cell, Cell]:
        """Measure two cells at once, their requests side by side in every batch."""
        asked = [(who, prompt) for prompt in prompts for who in served]
        done = await self._all(asked)
        return _cell(names[0], done[::2], holds), _cell(names[1], done[1::2], holds)

    async def _all(self, asked: Sequence[tuple[Served, str]]) -> list[Completion]:
        seats = asyncio.Semaphore(SEATS)

        async def one(served: Served, prompt: str) -> Completion:
            messages = build(served.system, served.lines, (), prompt, budget_tokens=_EVERYTHING)
            async with seats:
                return await self.model.complete(served.model, messages, self._sampling, salt=served.salt)

        return list(await asyncio.gather(*(one(served, prompt) for served, prompt in asked)))


async def first_unmet(cells: Cells, system: str, drawn: Plot) -> tuple[Wish, dict[str, float]]:
    """Return the first wish that the base does not meet by itself, and how often it meets each, by family.

    Raises:
        DemoError: it meets them all.
    """
    judges = {wish.family: wish.holds for wish in drawn.wishes}
    rates = await cells.rates(cells.plain(system), drawn.calibration, judges)
    wish = next((w for w in drawn.wishes if rates[w.family] < HIGHEST_BASE_RATE), None)
    if wish is None:
        raise DemoError("the base meets every wish of this seed by itself; take another seed")
    return wish, rates


def _cell(name: str, done: Sequence[Completion], holds: Judge) -> Cell:
    return Cell(name, tuple(holds(one.text) for one in done), tuple(one.token_ids for one in done))


def _salt(whose: str, policy: str) -> str:
    return hashlib.sha256(f"{whose}:{policy}".encode()).hexdigest()
