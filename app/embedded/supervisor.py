"""Starts parts in order, watches them, restarts what dies, stops all in reverse order.

    start ──► wait until it answers ──► watch ──► died ──► wait 1, 2, 4 … 60 s ──► start
                     │                    │
                     └─ three failures ─► PartError          stop(): last started first

Knows nothing of which parts there are.
"""

import asyncio
import time

from app.embedded.console import Console
from app.embedded.messages import SentenceError, sentence
from app.embedded.parts import Home, Part
from app.embedded.process import Child, last_line, log_path, rotate_log
from app.errors import PartError

POLL_S = 0.25
SLOWEST_POLL_S = 1.0
FIRST_BACKOFF_S = 1.0
LONGEST_BACKOFF_S = 60.0
HEALTHY_AFTER_S = 60.0
ATTEMPTS = 3


class Supervisor:
    """Owns every child process of one home."""

    def __init__(self, home: Home, console: Console) -> None:
        self._home = home
        self._console = console
        self._children: dict[str, Child] = {}
        self._watchers: dict[str, asyncio.Task[None]] = {}

    async def start(self, part: Part) -> None:
        """Start a part and return when it answers.

        Raises:
            PartError: it did not, several times in a row.
        """
        rotate_log(self._home, part.name)
        async with self._console.job(part.name, "part.ready"):
            await self._prepare(part)
            child = await self._bring_up(part)
        self._watchers[part.name] = asyncio.create_task(self._watch(child), name=f"watch {part.name}")

    async def stop(self) -> None:
        """Stop everything, what was started last first."""
        for watcher in self._watchers.values():
            watcher.cancel()
        await asyncio.gather(*self._watchers.values(), return_exceptions=True)
        for name, child in reversed(list(self._children.items())):
            self._console.say("part.stopping", name=name)
            await child.stop()
        self._children.clear()

    async def watched(self) -> None:
        """Wait for as long as the watching goes on; raise what ended it."""
        await asyncio.gather(*self._watchers.values())

    async def _bring_up(self, part: Part) -> Child:
        reason = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(FIRST_BACKOFF_S * 2**attempt)
            child = await self._spawn(part)
            if await self._answers(child):
                return child
            reason = self._reason(await child.wait())
        log = log_path(self._home, part.name)
        last = last_line(self._home, part.name)
        raise PartError(self._console.texts.say("part.failed", name=part.name, reason=reason, last=last, log=log))

    async def _prepare(self, part: Part) -> None:
        try:
            await asyncio.to_thread(part.prepare)
        except OSError as error:
            raise _cannot_run(part, error) from error

    async def _spawn(self, part: Part) -> Child:
        try:
            child = await Child.start(part, self._home)
        except OSError as error:
            raise _cannot_run(part, error) from error
        # Known before it answers, so that a Ctrl-C during the start finds it; a restarted part keeps its place.
        self._children[part.name] = child
        return child

    async def _answers(self, child: Child) -> bool:
        """Poll until the part answers; False when it ended before.

        Raises:
            PartError: it runs but does not answer in its time.
        """
        part = child.part
        deadline = time.monotonic() + part.start_timeout_s
        pause = POLL_S
        while child.returncode is None:
            if await self._asked(part):
                return True
            if time.monotonic() > deadline:
                log = log_path(self._home, part.name)
                text = self._console.texts.say("part.timeout", name=part.name, seconds=part.start_timeout_s, log=log)
                raise PartError(text)
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, SLOWEST_POLL_S)
        return False

    async def _asked(self, part: Part) -> bool:
        try:
            return await part.ready()
        except OSError as error:  # the question takes a process or a socket, and the machine may have none left
            raise _cannot_run(part, error) from error

    async def _watch(self, child: Child) -> None:
        backoff = FIRST_BACKOFF_S
        while True:
            began = time.monotonic()
            code = await child.wait()
            if time.monotonic() - began > HEALTHY_AFTER_S:
                backoff = FIRST_BACKOFF_S
            self._console.say("part.died", name=child.part.name, reason=self._reason(code), seconds=backoff)
            await asyncio.sleep(backoff)
            backoff = min(backoff * 2, LONGEST_BACKOFF_S)
            child = await self._again(child)

    async def _again(self, child: Child) -> Child:
        """Start a part that died; return the new child, or the same dead one when that failed."""
        part, began = child.part, time.monotonic()
        try:
            await self._prepare(part)
            fresh = await self._spawn(part)
            if await self._answers(fresh):
                self._console.say("part.again", name=part.name, seconds=time.monotonic() - began)
        except PartError as error:
            # The supervisor's own boundary: one part that cannot start must not take the others along.
            self._console.say("doctor.bad", what=part.name, detail=sentence(error, self._console.texts))
            hung = self._children[part.name]
            await hung.stop()
            return hung
        return fresh

    def _reason(self, code: int) -> str:
        if code < 0:
            return self._console.texts.say("reason.signal", number=-code)
        return self._console.texts.say("reason.code", number=code)


def _cannot_run(part: Part, error: OSError) -> PartError:
    return SentenceError("part.cannot_run", name=part.name, reason=error.strerror or error)
