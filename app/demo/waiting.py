"""Waits for what the product's own workers do, and reads what they wrote: training, gate, release, forgetting.

Reads rows, changes none. The product decides; this looks.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from app.demo.installation import DemoError, Installation
from app.services.learn import progress

POLL_S = 2.0
STEP_TIMEOUT_S = 2400.0
Show = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a job ended, and how long it took from its first claim."""

    state: str
    seconds: float
    error: str | None


class Watcher:
    """Looks into one installation's database. Close it."""

    def __init__(self, installation: Installation, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        self._installation = installation
        self._connection = connection

    @classmethod
    async def open(cls, installation: Installation) -> "Watcher":
        """Connect."""
        return cls(installation, await asyncpg.connect(installation.database_url, timeout=10))

    async def close(self) -> None:
        """Disconnect."""
        await self._connection.close()

    async def rows(self, query: str, *values: object) -> list[dict[str, Any]]:
        """Return the rows of a query."""
        return [dict(row) for row in await self._connection.fetch(query, *values)]

    async def value(self, query: str, *values: object) -> Any:  # noqa: ANN401  # one cell of a row
        """Return the first cell of a query."""
        return await self._connection.fetchval(query, *values)

    async def person_of(self, turn_id: UUID) -> UUID:
        """Return who was answered in a turn."""
        found = await self.value("select person_id from turns where id = $1", turn_id)
        if found is None:
            raise DemoError("a reply belongs to nobody")
        return UUID(str(found))

    async def job(self, person_id: UUID, kind: str) -> dict[str, Any] | None:
        """Return the newest job of a kind for a person."""
        query = """select id, state, progress, error, payload, extract(epoch from now() - created_at) as age
                   from jobs where person_id = $1 and kind = $2 order by created_at desc limit 1"""
        found = await self.rows(query, person_id, kind)
        return found[0] if found else None

    async def ended(self, person_id: UUID, kind: str, show: Show) -> Ended:
        """Wait for the newest job of a kind to end, showing what its person would read meanwhile.

        Raises:
            DemoError: it did not end in time, or never began.
        """
        began, shown = time.monotonic(), ""
        while time.monotonic() - began < STEP_TIMEOUT_S:
            job = await self.job(person_id, kind)
            if job is not None and job["state"] not in {"queued", "running"}:
                return Ended(job["state"], time.monotonic() - began, job["error"])
            async with self._installation.store.begin() as tx:
                line = (await progress(tx, person_id, self._installation.settings)).sentence("en")
            if line != shown:
                show(line)
                shown = line
            await asyncio.sleep(POLL_S)
        raise DemoError(f"the {kind} job did not end within {STEP_TIMEOUT_S:.0f} s")

    async def gates(self, person_id: UUID) -> tuple[str | None, list[dict[str, Any]], str | None]:
        """Return verdict, table and failure of a person's newest gate run."""
        query = """select g.id, g.verdict, g.failure from gate_runs g join checkpoints c on c.id = g.checkpoint_id
                   where c.person_id = $1 order by g.started_at desc limit 1"""
        found = await self.rows(query, person_id)
        if not found:
            return None, [], None
        table = (
            "select gate, outcome, n, value, bound, threshold from gate_results where gate_run_id = $1 order by gate"
        )
        return found[0]["verdict"], await self.rows(table, found[0]["id"]), found[0]["failure"]

    async def turn(self, turn_id: UUID) -> dict[str, Any]:
        """Return what made a reply: adapter (None: the base), how many memory lines, on which side of the gate."""
        query = """select c.name as adapter, jsonb_array_length(coalesce(t.memory_used -> 'ids', '[]')) as lines, s.split
                   from turns t join sessions s on s.id = t.session_id left join checkpoints c on c.id = t.checkpoint_id
                   where t.id = $1"""
        return (await self.rows(query, turn_id))[0]

    @staticmethod
    async def pause() -> None:
        """Wait until it is worth looking again."""
        await asyncio.sleep(POLL_S)
