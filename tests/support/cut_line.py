"""The line between a gateway and its database, cut in the middle of a statement: before the server has it, or before its answer."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

SOCKET = ".s.PGSQL.5432"
ASKS_FOR_TLS = 8
# In this time a server that is not busy carries out any statement of ours.
CARRIED_OUT_S = 0.3
Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter


@dataclass
class Line:
    """A server of PostgreSQL's protocol that passes everything on; `url` leads through it."""

    url: str
    server: str
    cuts: int = 0
    _words: str = ""
    _when: Literal["before", "after"] = "before"
    _serving: set[asyncio.Task[None]] = field(default_factory=set)

    def cut_at(self, words: str, when: Literal["before", "after"]) -> None:
        """Cut the connection at the next statement with `words` in it, once: before or after it is carried out."""
        self._words, self._when = words, when

    async def serve(self, reader: Reader, writer: Writer) -> None:
        """Pass on what one client says, statement by statement."""
        task = asyncio.current_task()
        assert task
        self._serving.add(task)
        up = await asyncio.open_unix_connection(f"{self.server}/{SOCKET}")
        answers = asyncio.create_task(_passed_on(up[0], writer))
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                await self._statements(reader, up[1], answers)
        finally:
            answers.cancel()
            for end in (writer, up[1]):
                end.transport.abort()

    async def _statements(self, reader: Reader, up: Writer, answers: asyncio.Task[None]) -> None:
        while len(start := await _message(reader)) == ASKS_FOR_TLS:
            up.write(start)
        up.write(start)  # this one too has no kind
        prepared: dict[bytes, bytes] = {}
        cutting = False
        while True:
            kind = await reader.readexactly(1)
            message = await _message(reader)
            first, second = message[4:].split(b"\0", 2)[:2] if kind in {b"P", b"B"} else (b"", b"")
            if kind == b"P":
                prepared[first] = second
            if kind == b"B" and self._words and self._words in prepared.get(second, b"").decode():
                self._words, cutting = "", True
                self.cuts += 1
                answers.cancel()
                if self._when == "before":
                    return
            up.write(kind + message)
            if cutting and kind == b"S":
                await asyncio.sleep(CARRIED_OUT_S)
                return

    def close(self) -> None:
        """End what is still served."""
        for task in self._serving:
            task.cancel()


async def _message(reader: Reader) -> bytes:
    length = await reader.readexactly(4)
    return length + await reader.readexactly(int.from_bytes(length, "big") - 4)


async def _passed_on(reader: Reader, writer: Writer) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
    writer.close()  # the server said goodbye


@contextlib.asynccontextmanager
async def line_to(database_url: str) -> AsyncIterator[Line]:
    """Open a line to a server that listens on a socket of this machine."""
    address, _, folder = database_url.partition("?host=")
    with tempfile.TemporaryDirectory(prefix="line-") as own:
        line = Line(f"{address}?host={own}", folder)
        server = await asyncio.start_unix_server(line.serve, Path(own) / SOCKET)
        try:
            yield line
        finally:
            server.close()
            line.close()
