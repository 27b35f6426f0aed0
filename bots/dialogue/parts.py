"""What the dialogue needs from the rest of the house, gathered once at start."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from app.config import Settings
from app.domain.consent import UNSTATED, DataUse, Purpose
from app.domain.media import Kind
from app.ports import Transcriber
from app.services.converse import Converse
from app.services.forget import HandOver
from app.services.judging import Judge
from app.services.remember import Rewriter
from app.services.sight import Eyes
from app.store import Store, Tx


class Leaving(Protocol):
    """Withdrawal, rollback, forgetting and export, as `app.services` offers them."""

    async def withdraw(self, tx: Tx, person_id: UUID, purpose: Purpose) -> None:
        """Take out of use what a consent allowed."""
        ...

    async def go_back(self, tx: Tx, person_id: UUID, release_id: UUID) -> bool:
        """Take a person's release back by their own wish; False when it is not live any more."""
        ...

    async def keep(self, tx: Tx, person_id: UUID, release_id: UUID) -> None:
        """Note that a person keeps a release."""
        ...

    async def preview(self, tx: Tx, person_id: UUID) -> dict[str, int]:
        """Return how many turns, memories, feedback and checkpoints are held."""
        ...

    async def forget(self, person_id: UUID, scope: str, hand_over: HandOver) -> None:
        """Forget `chat`, `learnt` or `all`; the receipt is handed over in the same transaction."""
        ...

    def export(self, tx: Tx, person_id: UUID) -> AsyncIterator[tuple[str, str]]:
        """Yield the files that hold everything about a person, each with its name."""
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """The services the dialogue stands on."""

    store: Store
    settings: Settings
    converse: Converse
    rewriter: Rewriter
    judge: Judge | None
    leaving: Leaving
    live_release: Callable[[Tx, UUID], Awaitable[UUID | None]]
    due: asyncio.Event
    small_model: bool
    sees: bool
    """Whether the model takes pictures."""
    eyes: Eyes
    transcriber: Transcriber | None
    fetching: Mapping[Kind, asyncio.Semaphore]
    """How many attachments of a kind are held in memory at once; more wait."""
    data_use: Mapping[str, DataUse] = field(default_factory=dict)

    def data_use_of(self, channel: str) -> DataUse:
        """Return what the things said on a channel may serve; a channel that states nothing may train nothing."""
        return self.data_use.get(channel, UNSTATED)
