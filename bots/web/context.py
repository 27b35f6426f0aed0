"""What the routes of the web chat share, and how a route learns who asks."""

import asyncio
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from aiohttp import web

from app.config import Settings
from app.errors import UnauthenticatedError
from app.services.stream import Streams
from app.store import StatementPool, Store, people, webchat
from app.store.webchat import BOT_EXTERNAL_ID, CHANNEL, Visitor
from bots.base import Accept
from bots.web.cookie import read_cookie, token_digest

SEEN_S = 3.0


@dataclass(slots=True)
class Context:
    """The parts behind the routes. `live` counts the open event streams of each account; `seen` holds whom such a stream has
    looked up, and when (seconds of the loop's clock).
    """

    store: Store
    pool: StatementPool
    streams: Streams
    accept: Accept
    settings: Settings
    live: dict[UUID, int] = field(default_factory=dict)
    seen: dict[str, tuple[Visitor, float]] = field(default_factory=dict)
    _bot_id: UUID | None = None

    async def bot_id(self) -> UUID:
        """Return the id of the web chat's bot row, made at its first use."""
        if self._bot_id is None:
            async with self.store.begin() as tx:
                self._bot_id = await people.ensure_bot(tx, CHANNEL, BOT_EXTERNAL_ID)
        return self._bot_id

    async def writer(self, request: web.Request) -> Visitor:
        """Return who sent something to be stored: as their page's own stream saw them just before, else as the database says.

        Somebody who was forgotten since has their update stored and left unhandled, as any that overlaps with forgetting.

        Raises:
            UnauthenticatedError: as `visitor`.
        """
        token = read_cookie(request)
        found, at = self.seen.get(token_digest(token), (None, 0.0)) if token else (None, 0.0)
        if found and asyncio.get_running_loop().time() - at < SEEN_S:
            return found
        return await self.visitor(request)

    async def visitor(self, request: web.Request) -> Visitor:
        """Return who sent the request.

        Raises:
            UnauthenticatedError: no cookie, or one that nobody has (any more).
        """
        found = await self.find_visitor(request)
        if found is None:
            raise UnauthenticatedError
        return found

    async def find_visitor(self, request: web.Request) -> Visitor | None:
        """Return who sent the request, or None for a stranger."""
        token = read_cookie(request)
        if token is None:
            return None
        bot_id = await self.bot_id()
        return await webchat.find(self.pool, bot_id, token_digest(token))


CONTEXT: Final = web.AppKey("web_chat", Context)
