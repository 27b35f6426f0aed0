"""A server of `/v1/audio/transcriptions` on loopback, as OpenAI's API describes it.

Strict where servers are: a named file with bytes in it, a model, a key where one is set.
https://platform.openai.com/docs/api-reference/audio/createTranscription
"""

import asyncio
from dataclasses import dataclass, field
from typing import Self

from aiohttp import BodyPartReader, web

ENDINGS = frozenset({"flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "wav", "webm"})
MAX_BODY = 26 << 20


@dataclass(frozen=True, slots=True)
class Recording:
    """What was sent to be written down."""

    name: str
    content_type: str
    data: bytes
    model: str


@dataclass(slots=True)
class Transcriber:
    """`async with Transcriber() as server:` hears `server.words` in everything."""

    words: str = "what is the weather"
    api_key: str | None = None
    status: int = 200
    answer: str | None = None
    delay_s: float = 0.0
    heard: list[Recording] = field(default_factory=list)
    port: int = 0
    _runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Base address, as people write it."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_post("/v1/audio/transcriptions", self._transcribe)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = int(self._runner.addresses[0][1])
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner:
            await self._runner.cleanup()

    async def _transcribe(self, request: web.Request) -> web.Response:
        if self.api_key and request.headers.get("Authorization") != f"Bearer {self.api_key}":
            return _refused(401, "Incorrect API key provided")
        form: dict[str, str] = {}
        name = kind = ""
        data = b""
        async for part in await request.multipart():
            assert isinstance(part, BodyPartReader)
            if part.name == "file":
                name, kind, data = part.filename or "", part.headers.get("Content-Type", ""), bytes(await part.read())
            else:
                form[str(part.name)] = await part.text()
        if name.rpartition(".")[2] not in ENDINGS or not data or not form.get("model"):
            return _refused(400, "Invalid file format.")
        self.heard.append(Recording(name, kind, data, form["model"]))
        await asyncio.sleep(self.delay_s)
        if self.status != web.HTTPOk.status_code:
            return _refused(self.status, "The server had an error")
        if self.answer is not None:
            return web.Response(text=self.answer, content_type="application/json")
        return web.json_response({"text": self.words})


def _refused(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message, "type": "invalid_request_error"}}, status=status)
