"""What a press of a button is answered with at once, before any work: a short word, or that nothing comes of it.

Only the client of who pressed shows it, also where others read along.
"""

import asyncio
from uuid import UUID

from app.domain.event import PressEvent
from app.domain.messages import pick
from app.domain.messages import text as say
from app.domain.press import Press, parse
from app.errors import InvalidInputError, StoreUnavailableError
from app.store import Store, presses
from app.telemetry import Log

log = Log(__name__)
# What may be pressed where others read along; the rest is one person's own affair.
IN_GROUPS = frozenset({"v", "t", "x"})
# Only votes have a word: their effect is not seen at once.
WORDS = {"u": "vote_up", "d": "vote_down", "0": "vote_cleared"}
# Whoever presses waits for the answer, and after some seconds reads an error.
LOOK_S = 1.0


class Notes:
    """The answers to presses; `language` is theirs of whom none is known."""

    def __init__(self, store: Store, language: str) -> None:
        self._store = store
        self._language = language

    async def of(self, bot_id: UUID, event: PressEvent) -> str:
        """Return what a press is answered with, `""` for nothing: also where the database cannot be asked soon."""
        try:
            async with asyncio.timeout(LOOK_S):
                return await self._of(bot_id, event)
        except (StoreUnavailableError, TimeoutError):
            log.warning("press:note:store_away")
            return ""

    async def _of(self, bot_id: UUID, event: PressEvent) -> str:
        press = _read(event.data)
        private = event.chat.kind == "private"
        if press and press.verb not in IN_GROUPS and not private:
            return ""  # that it belongs into the private chat is said in the chat
        async with self._store.single() as tx:
            who = await presses.presser(tx, bot_id, str(event.sender.external_id), press)
        word = WORDS.get(press.choice) if press and press.verb == "v" and private else None
        key = word if who.stands else "button_gone"
        return say(pick(who.language or event.sender.language or self._language), key) if key else ""


def _read(data: str) -> Press | None:
    """Return what a button says whose row, where it has one, can be looked for."""
    try:
        press = parse(data)
        if press.verb in presses.ROWS:
            _ = press.row
    except InvalidInputError:
        return None
    return press
