"""How updates arrive: long polling by one gateway at a time, or Telegram's own posts to a webhook.

    getUpdates ─► raw updates ─► accept (committed) ─► the next getUpdates confirms them to Telegram
    POST ─► secret ─► raw bytes ─► accept (committed) ─► 200

Nothing is parsed here beyond keys and lane: what is authentic is stored, whatever it says. Knows nothing of events.
"""

import asyncio
import json
import random
from collections.abc import Sequence
from typing import Protocol

from telegram import Bot
from telegram.error import Conflict, EndPointNotFound, InvalidToken, NetworkError, RetryAfter, TelegramError

from app.errors import StoreUnavailableError
from app.telemetry import Log
from bots.base import Accept
from bots.telegram.faults import TokenRefusedError, wait_of
from bots.telegram.keys import raw_update
from bots.telegram.people import Me

log = Log(__name__)
# Reactions must be asked for by name: https://core.telegram.org/bots/api#getupdates
ALLOWED_UPDATES = ("message", "edited_message", "callback_query", "message_reaction", "my_chat_member")
POLL_S = 30
_BATCH = 100
_FIRST_BACKOFF_S, _LAST_BACKOFF_S = 1.0, 60.0
_LEASE_RETRY_S = 5.0


class PollingLease(Protocol):
    """The right to poll, held by one gateway at a time."""

    async def hold(self) -> bool:
        """Take or renew the lease for longer than one poll; False while another gateway has it.

        Raises `StoreUnavailableError`.
        """
        ...


class TelegramPoller:
    """Fetches updates until cancelled. `bot` is initialised; `accept` returns once a batch is stored for good."""

    def __init__(self, bot: Bot, accept: Accept, lease: PollingLease, *, poll_s: int = POLL_S) -> None:
        self._bot = bot
        self._accept = accept
        self._lease = lease
        self._poll_s = poll_s
        self._offset: int | None = None
        self._failures = 0

    async def run(self) -> None:
        """Poll for ever. Raises `TokenRefusedError` when Telegram refuses the token."""
        unhooked = False
        while True:
            try:
                if not await self._lease.hold():
                    self._offset = None  # another gateway confirms updates now
                    await asyncio.sleep(_LEASE_RETRY_S)
                    continue
                if not unhooked:
                    # Telegram hands out updates by one way only; a webhook left behind would refuse every poll.
                    unhooked = await self._bot.delete_webhook()
                await self.poll_once()
                self._failures = 0
            except (TelegramError, StoreUnavailableError) as error:
                await self._recover(error)

    async def poll_once(self) -> int:
        """Fetch one batch, store it, and mark it to be confirmed by the next call; return how many there were."""
        updates = await self._fetch()
        if not updates:
            # The offset has done its work. Ids begin anew at random after a quiet week, perhaps below it.
            self._offset = None
            return 0
        bodies = [json.dumps(update).encode() for update in updates]
        me = Me(self._bot.id, self._bot.username)
        await self._accept([raw_update(body, me) for body in bodies])
        self._offset = self._next_offset(updates)
        return len(updates)

    async def _fetch(self) -> Sequence[object]:
        arguments: dict[str, object] = {
            "timeout": self._poll_s,
            "limit": _BATCH,
            "allowed_updates": list(ALLOWED_UPDATES),
        }
        if self._offset is not None:
            arguments["offset"] = self._offset
        # The raw answer, because python-telegram-bot's own parser refuses what it does not know. Method names are
        # case-insensitive; in its usual spelling the library would warn that it has a method for it.
        answer = await self._bot.do_api_request("GetUpdates", arguments, read_timeout=self._poll_s + 10.0)
        return answer if isinstance(answer, list) else []

    def _next_offset(self, updates: Sequence[object]) -> int:
        found = [u.get("update_id") for u in updates if isinstance(u, dict)]
        ids = [number for number in found if isinstance(number, int)]
        if not ids:
            raise NetworkError("a batch without update ids")
        return max(ids) + 1

    async def _recover(self, error: TelegramError | StoreUnavailableError) -> None:
        """Say what happened and wait, longer each time, never two gateways in step."""
        if isinstance(error, InvalidToken | EndPointNotFound):
            raise TokenRefusedError from error
        self._failures += 1
        wait = backoff_s(self._failures)
        if isinstance(error, RetryAfter):
            wait = wait_of(error) + random.uniform(0, 1)  # noqa: S311 - spreads load, guards nothing
        event = "telegram:poll:conflict" if isinstance(error, Conflict) else "telegram:poll:failed"
        log.warning(event, kind=type(error).__name__, failures=self._failures, wait_s=round(wait, 1))
        await asyncio.sleep(wait)


def backoff_s(failures: int) -> float:
    """Return the seconds to wait after so many failures in a row: doubling to a minute, with half of it left to chance."""
    longest = min(_LAST_BACKOFF_S, _FIRST_BACKOFF_S * float(1 << min(failures - 1, 10)))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing
