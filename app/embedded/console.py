"""What a person sees while the parts start: one line per part, and a bar for what takes long.

Remembers how long each job took last time, so that a bar means something. Knows nothing of processes.
"""

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TextIO

from app.embedded.messages import Texts

BAR_WIDTH = 24
REDRAW_S = 0.5
LONG_S = 5.0
STILL_S = 20.0
"""Where no bar can be drawn, a part that takes long says so this often."""
FULL = 0.98
"""A bar never claims more than this before the job is done."""
GUESSES: Mapping[str, float] = {"model": 40, "vllm": 60, "schema": 5}
"""Seconds on a small machine, until this one has its own figures."""


class Console:
    """Prints to `out`; draws bars only on a terminal, and says a line now and then elsewhere."""

    def __init__(self, texts: Texts, memory: Path, out: TextIO = sys.stdout) -> None:
        self.texts = texts
        self._memory = memory
        self._out = out
        self._drawn = False

    def say(self, key: str, **values: object) -> None:
        """Print one sentence of the catalogue on a line of its own."""
        self._clear()
        print(self.texts.say(key, **values), file=self._out, flush=True)

    @contextlib.asynccontextmanager
    async def job(self, name: str, key: str) -> AsyncIterator[None]:
        """Show that `name` is under way, and how long it took under the sentence `key` when it is done."""
        began = time.monotonic()
        expected = self._expected(name)
        show = self._draw if self._out.isatty() else self._tell
        showing = asyncio.create_task(show(name, began, expected))
        try:
            yield
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)
            self._clear()
        took = time.monotonic() - began
        self._remember(name, took)
        self.say(key, name=name, seconds=took)

    async def _tell(self, name: str, began: float, expected: float) -> None:
        if expected >= LONG_S:
            self.say("part.starting", name=name, seconds=expected)
        while True:
            await asyncio.sleep(STILL_S)
            self.say("part.still", name=name, elapsed=time.monotonic() - began)

    async def _draw(self, name: str, began: float, expected: float) -> None:
        while expected >= LONG_S:
            elapsed = time.monotonic() - began
            filled = int(BAR_WIDTH * min(elapsed / expected, FULL))
            bar = "█" * filled + "·" * (BAR_WIDTH - filled)
            self._clear()
            text = self.texts.say("part.bar", name=name, bar=bar, elapsed=elapsed, seconds=expected)
            print(text, end="", file=self._out, flush=True)
            self._drawn = True
            await asyncio.sleep(REDRAW_S)

    def _clear(self) -> None:
        if self._drawn:
            print("\r\033[K", end="", file=self._out, flush=True)
            self._drawn = False

    def _figures(self) -> dict[str, float]:
        try:
            figures: dict[str, float] = json.loads(self._memory.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return figures

    def _expected(self, name: str) -> float:
        return self._figures().get(name, GUESSES.get(name, 0.0))

    def _remember(self, name: str, seconds: float) -> None:
        figures = {**self._figures(), name: round(seconds, 1)}
        # A full disk must not stop a start that has already worked.
        with contextlib.suppress(OSError):
            self._memory.write_text(json.dumps(figures, sort_keys=True), encoding="utf-8")
