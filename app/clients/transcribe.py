"""Speech to text behind any OpenAI-compatible `/v1/audio/transcriptions`. Keeps no state and no recording."""

import json

import aiohttp

from app.domain.media import VOICES
from app.domain.text import storable
from app.errors import TranscriptionError

MAX_ANSWER_BYTES = 1024 * 1024
OK = 200


class TranscribeClient:
    """Implements `app.ports.Transcriber`. Create it inside a running loop; close it."""

    def __init__(self, base_url: str, model: str, *, api_key: str | None, timeout_s: float) -> None:
        """Prepare the pool.

        Args:
            base_url: `https://host`, with or without `/v1`.
            model: the transcriber's name there.
            api_key: sent as a bearer token.
            timeout_s: longest wait for the words of a whole recording.
        """
        self._url = base_url.rstrip("/").removesuffix("/v1") + "/v1/audio/transcriptions"
        self._model = model
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout_s), headers=headers)

    async def words(self, recording: bytes, content_type: str) -> str:
        """Return the words of a recording, storable.

        Raises:
            TranscriptionError: it is away, refuses, is too slow, or answers in another form.
        """
        form = aiohttp.FormData()
        # Servers tell the kind of a recording by the ending of its name.
        name = f"voice.{VOICES.get(content_type, 'bin')}"
        form.add_field("file", recording, filename=name, content_type=content_type)
        form.add_field("model", self._model)
        form.add_field("response_format", "json")
        try:
            async with self._session.post(self._url, data=form, allow_redirects=False) as response:
                if response.status != OK:
                    raise TranscriptionError(f"the transcriber answered {response.status}")
                answer = json.loads(await _whole(response))
            words = answer["text"]
        except (
            aiohttp.ClientError,
            TimeoutError,
            OSError,
            ValueError,
            LookupError,
            TypeError,
            RecursionError,
        ) as error:
            raise TranscriptionError from error
        if not isinstance(words, str):
            raise TranscriptionError("the transcriber's words are no text")
        return storable(words).strip()

    async def close(self) -> None:
        """Close the pool."""
        await self._session.close()


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    """Return the body, however many pieces it comes in. Raises `TranscriptionError` when it is longer than any words."""
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > MAX_ANSWER_BYTES:
            raise TranscriptionError("the transcriber's answer is too long")
    return bytes(body)
