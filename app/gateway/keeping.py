"""Keeps channels out of each other's way: one that breaks is run again, is said to be down meanwhile, and ends nobody else.

The boundary between a gateway and whatever package was installed beside it; the house's own channels stand behind it too.
"""

import asyncio
from collections.abc import Coroutine, Mapping

from app.telemetry import Log
from bots.package import Part

log = Log(__name__)
AGAIN_S = 1.0
LONGEST_S = 60.0


class Keeper:
    """The channels of a gateway that are switched on, by name. `troubles` has those that are broken, by the error's kind."""

    def __init__(self, parts: Mapping[str, Part]) -> None:
        """Take the parts; none is touched yet."""
        self._parts = parts
        self._running: list[asyncio.Task[None]] = []
        self.troubles: dict[str, str] = {}

    async def start(self) -> None:
        """Start every part, and let it run."""
        for name, part in self._parts.items():
            begun = await self._tried(name, part.start())
            self._running.append(asyncio.create_task(self._keep(name, part, begun=begun)))

    async def stop_receiving(self) -> None:
        """End what receives; what was received can still be answered."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def close(self) -> None:
        """Close every part, whatever another one's closing comes to."""
        for name, part in self._parts.items():
            try:
                await part.close()
            except Exception as error:  # noqa: BLE001 - somebody else's package, which must not keep the others open
                log.failure("channel:close:failed", error, channel=name)

    async def _keep(self, name: str, part: Part, *, begun: bool) -> None:
        wait = AGAIN_S
        while not (begun and await self._tried(name, part.run())):
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_S)
            begun = begun or await self._tried(name, part.start())
            if begun:
                self.troubles.pop(name, None)

    async def _tried(self, name: str, act: Coroutine[object, object, None]) -> bool:
        """Whether something that a part does came to its end; else the part is in trouble."""
        try:
            await act
        except Exception as error:  # noqa: BLE001 - somebody else's package, which must not end the others
            log.failure("channel:part:broken", error, channel=name)
            self.troubles[name] = type(error).__name__
            return False
        return True
