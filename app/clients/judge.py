"""A judge behind any OpenAI-compatible chat endpoint: plain fields only, so that strict servers take it. Keeps no state."""

import json
from collections.abc import Sequence

import aiohttp

from app.domain.prompt import ChatMessage
from app.errors import JudgeUnavailableError

MAX_ANSWER_BYTES = 256 * 1024
OK = 200


class JudgeClient:
    """Implements the judge's door. Create it inside a running loop; close it."""

    def __init__(self, base_url: str, model: str, *, api_key: str | None, timeout_s: float) -> None:
        """Prepare the pool.

        Args:
            base_url: `https://host`, with or without `/v1`.
            model: the judge's name there.
            api_key: sent as a bearer token.
            timeout_s: longest wait for a whole verdict.
        """
        self._url = base_url.rstrip("/").removesuffix("/v1") + "/v1/chat/completions"
        self._model = model
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout_s), headers=headers)

    async def answer(self, messages: Sequence[ChatMessage], schema: dict[str, object]) -> str:
        """Return the judge's answer by `schema`, unread.

        Raises:
            JudgeUnavailableError: it is away, refuses, is too slow, or answers in another form.
        """
        body = {
            "model": self._model,
            "messages": list(messages),
            "temperature": 0,
            "max_tokens": 128,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "verdict", "schema": schema, "strict": True},
            },
        }
        try:
            async with self._session.post(self._url, json=body) as response:
                if response.status != OK:
                    raise JudgeUnavailableError(f"the judge answered {response.status}")
                answer = json.loads(await _whole(response))
            return str(answer["choices"][0]["message"]["content"])
        except (
            aiohttp.ClientError,
            TimeoutError,
            OSError,
            ValueError,
            LookupError,
            TypeError,
            RecursionError,
        ) as error:
            raise JudgeUnavailableError from error

    async def close(self) -> None:
        """Close the pool."""
        await self._session.close()


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    """Return the body, however many pieces it comes in. Raises `JudgeUnavailableError` when it is longer than any verdict."""
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > MAX_ANSWER_BYTES:
            raise JudgeUnavailableError("the judge's answer is too long")
    return bytes(body)
