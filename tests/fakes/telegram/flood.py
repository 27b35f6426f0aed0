"""Flood limits as Telegram publishes them: per chat, per group and minute, over all chats. Off unless a test asks.

Owns counting only; seconds come from the caller's clock.
"""

import math
from collections import deque
from dataclasses import dataclass, field

from tests.fakes.telegram.chats import Chat
from tests.fakes.telegram.errors import too_many_requests


@dataclass(slots=True)
class FloodLimits:
    """Messages allowed: `burst` then one a second in a chat, `group_per_minute` in a group, `overall` a second."""

    burst: int = 3
    group_per_minute: int = 20
    overall: int = 30
    _sent: dict[str, deque[float]] = field(default_factory=dict)

    def check(self, chat: Chat, now: float) -> None:
        """Count a message; raises `ApiError` 429 with the seconds to wait."""
        windows = [(f"chat {chat.chat_id}", self.burst, float(self.burst)), ("all", self.overall, 1.0)]
        if chat.kind != "private":
            windows.append((f"group {chat.chat_id}", self.group_per_minute, 60.0))
        for name, most, seconds in windows:
            times = self._sent.setdefault(name, deque())
            while times and times[0] <= now - seconds:
                times.popleft()
            if len(times) >= most:
                raise too_many_requests(max(1, math.ceil(times[0] + seconds - now)))
        for name, _, _ in windows:
            self._sent[name].append(now)
