"""When the next request to a chat may go: a good second apart in private chats, three in groups, under thirty a second in all.

    send, edit ─► flood wait of this chat? ─yes─► DeliveryRetryError, at once
                        │ no
                        ▼
                  slot of this chat, slot of the bot ─► wait for the later (a few seconds at most) ─► go

Each chat waits for itself alone; a chat that Telegram told to wait is refused here until its time, without asking again.
Figures: https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from app.domain.event import ChatAddress
from app.errors import DeliveryRetryError
from bots.telegram.faults import Action

# A little more than Telegram's own second and three: what is late on its way must not be followed too closely.
PRIVATE_GAP_S = 1.05
GROUP_GAP_S = 3.05
BURST = 3
ALL_PER_S = 28
LONGEST_WAIT_S = 4.0
_REMEMBERED = 10_000


@dataclass(slots=True)
class _Chat:
    """A chat's past, in seconds of the loop's clock: the last request, the allowance used up until, the flood wait."""

    last: float = float("-inf")
    spent: float = float("-inf")
    flood: float = float("-inf")


class Pacer:
    """Gives requests their time. `clock` returns seconds that never go back; by default the running loop's."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or _loop_time
        self._chats: dict[str, _Chat] = {}
        self._all_spent = float("-inf")

    async def turn(self, address: ChatAddress, action: Action) -> None:
        """Wait until a request may go. Raises `DeliveryRetryError` when that is more than a few seconds away."""
        await asyncio.sleep(self.reserve(address, action))

    def reserve(self, address: ChatAddress, action: Action) -> float:
        """Take the next slot and return how many seconds away it is. Raises `DeliveryRetryError` instead of a long wait."""
        now = self._clock()
        chat = self._chat(address.external_id, now)
        if chat.flood > now:
            raise DeliveryRetryError("Telegram asked this chat to wait", chat.flood - now)
        gap = PRIVATE_GAP_S if address.kind == "private" else GROUP_GAP_S
        own = chat.last + gap if action == "edit" else chat.spent - (BURST - 1) * gap
        slot = max(now, own, self._all_spent - 1.0)
        if slot - now > LONGEST_WAIT_S:
            raise DeliveryRetryError("this chat has too much waiting", slot - now)
        chat.last, chat.spent = slot, max(chat.spent, slot) + gap
        self._all_spent = max(self._all_spent, slot) + 1 / ALL_PER_S
        return slot - now

    def flooded(self, address: ChatAddress, seconds: float) -> None:
        """Remember that Telegram wants this chat left alone for `seconds`."""
        now = self._clock()
        chat = self._chat(address.external_id, now)
        chat.flood = max(chat.flood, now + seconds)

    def _chat(self, external_id: str, now: float) -> _Chat:
        if len(self._chats) > _REMEMBERED:
            busy = {key: chat for key, chat in self._chats.items() if max(chat.spent, chat.flood) > now}
            self._chats = busy
        return self._chats.setdefault(external_id, _Chat())


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
