"""The model server over HTTP: OpenAI's API with vLLM's extensions (token ids, priorities, cache salts, runtime LoRA).

Translates every failure into the `ModelError` family once, here. Keeps no state but its connection pool. Every request
has a time-out between two bytes, so that a slow model may take its time but a hung one is noticed.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from app.clients import vllm_answer
from app.clients.vllm_answer import Json, an_object
from app.domain.prompt import ChatMessage
from app.errors import (
    AdapterUnknownError,
    ModelAwayError,
    ModelBadAnswerError,
    ModelRequestError,
    ModelUnavailableError,
)
from app.ports import Completion, Delta, PromptLogprobs, Sampling, ServedModel

CONNECT_TIMEOUT_S = 5.0
TOTAL_TIMEOUT_S = 900.0
KEEP_ALIVE_S = 60.0
MAX_LINE_BYTES = 4 * 1024 * 1024
SERVER_ERROR = 500
NOT_FOUND = 404
BAD_REQUEST = 400


class VllmClient:
    """Implements `app.ports.Model`. Create it inside a running loop; close it."""

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        token_timeout_s: float = 120.0,
        template_arguments: Mapping[str, bool] | None = None,
    ) -> None:
        """Prepare the pool.

        Args:
            base_url: `http://host:port`, with or without `/v1`.
            api_key: sent as a bearer token.
            token_timeout_s: longest silence before the server counts as hung.
            template_arguments: chat-template arguments of the base's profile.
        """
        self.base_url = base_url.rstrip("/").removesuffix("/v1")
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        timeout = aiohttp.ClientTimeout(
            total=TOTAL_TIMEOUT_S, sock_connect=CONNECT_TIMEOUT_S, sock_read=token_timeout_s
        )
        self._session = aiohttp.ClientSession(
            timeout=timeout,
            headers=headers,
            connector=aiohttp.TCPConnector(limit=256, keepalive_timeout=KEEP_ALIVE_S),
            read_bufsize=MAX_LINE_BYTES,
        )
        self._template_arguments = dict(template_arguments or {})

    async def close(self) -> None:
        """Close the pool."""
        await self._session.close()

    async def stream(
        self,
        model: str,
        messages: Sequence[ChatMessage],
        sampling: Sampling,
        *,
        salt: str,
    ) -> AsyncGenerator[Delta]:
        """Yield the reply piece by piece, the completion last."""
        body = self._chat(model, messages, sampling, salt) | {"stream": True}
        pieces = vllm_answer.Pieces(model)
        async with self._post("/v1/chat/completions", body) as response:
            async for data in _events(response):
                if text := pieces.take(data):
                    yield Delta(text=text)
        yield Delta(completion=pieces.completion())

    async def complete(
        self, model: str, messages: Sequence[ChatMessage], sampling: Sampling, *, salt: str, schema: Json | None = None
    ) -> Completion:
        """Return a whole reply, by `schema` in JSON where given."""
        body = self._chat(model, messages, sampling, salt)
        if schema is not None:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": schema, "strict": True},
            }
        return vllm_answer.whole(await self._json("/v1/chat/completions", body), model)

    async def prompt_logprobs(self, model: str, token_ids: Sequence[int], *, salt: str) -> PromptLogprobs:
        """Return the log-probability of each token of `token_ids` but the first."""
        body: Json = {
            "model": model,
            "prompt": list(token_ids),
            "max_tokens": 1,
            "temperature": 0,
            "prompt_logprobs": 0,
            "cache_salt": salt,
            "priority": 10,
        }
        choice = vllm_answer.first_choice(await self._json("/v1/completions", body))
        given = [an_object(at or {}) for at in vllm_answer.a_list(choice.get("prompt_logprobs"))]
        if len(given) != len(token_ids):
            raise ModelBadAnswerError
        chosen = [an_object(at.get(str(token))) for at, token in zip(given[1:], token_ids[1:], strict=True)]
        return PromptLogprobs(tuple(token_ids), tuple(vllm_answer.logprob(one.get("logprob")) for one in chosen))

    async def token_ids(self, model: str, messages: Sequence[ChatMessage]) -> tuple[int, ...]:
        """Return the token ids of `messages` in the server's own chat template, the generation prompt included."""
        body = {"model": model, "messages": list(messages), "add_generation_prompt": True}
        if self._template_arguments:
            body["chat_template_kwargs"] = self._template_arguments
        tokens = (await self._json("/tokenize", body)).get("tokens")
        return vllm_answer.token_ids(vllm_answer.a_list(tokens))

    async def models(self) -> Sequence[ServedModel]:
        """Return what the server answers to now."""
        return vllm_answer.served(await self._json("/v1/models", None))

    async def healthy(self) -> bool:
        """Whether the server says it is well."""
        try:
            async with self._session.get(f"{self.base_url}/health") as response:
                return response.status < BAD_REQUEST
        except (aiohttp.ClientError, TimeoutError, OSError):
            return False

    async def load_adapter(self, name: str, path: str) -> None:
        """Load the adapter directory `path` under `name`; already loaded is success."""
        if name in {m.name for m in await self.models()}:
            return
        await self._text("/v1/load_lora_adapter", {"lora_name": name, "lora_path": path})

    async def unload_adapter(self, name: str) -> None:
        """Forget the adapter `name`; not loaded is success."""
        if name not in {m.name for m in await self.models()}:
            return
        await self._text("/v1/unload_lora_adapter", {"lora_name": name})

    def _chat(self, model: str, messages: Sequence[ChatMessage], sampling: Sampling, salt: str) -> Json:
        body: Json = {
            "model": model,
            "messages": list(messages),
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": sampling.max_tokens,
            "priority": sampling.priority,
            "logprobs": sampling.logprobs,
            "return_token_ids": True,
            "cache_salt": salt,
        }
        if sampling.seed is not None:
            body["seed"] = sampling.seed
        if self._template_arguments:
            body["chat_template_kwargs"] = self._template_arguments
        return body

    @asynccontextmanager
    async def _post(self, path: str, body: Json | None) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with await self._response(path, body) as response:
                if response.status >= BAD_REQUEST:
                    raise _refusal(response.status, await response.text(errors="replace"))
                yield response
        except aiohttp.ClientConnectorError as error:
            raise ModelAwayError from error
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, TimeoutError, OSError) as error:
            raise ModelUnavailableError from error
        except (aiohttp.ClientError, HttpProcessingError, ValueError) as error:
            raise ModelBadAnswerError from error

    async def _response(self, path: str, body: Json | None) -> aiohttp.ClientResponse:
        """Ask; where the server closed an idle connection just as the request left, ask on another one.

        Raises:
            ModelUnavailableError: it takes no connections any more, so the first request may have been its end.
        """
        method, url = "GET" if body is None else "POST", self.base_url + path
        try:
            return await self._session.request(method, url, json=body)
        except aiohttp.ServerDisconnectedError:
            try:
                return await self._session.request(method, url, json=body)
            except aiohttp.ClientConnectorError as error:
                raise ModelUnavailableError from error

    async def _json(self, path: str, body: Json | None) -> Json:
        async with self._post(path, body) as response:
            return vllm_answer.read(await response.read())

    async def _text(self, path: str, body: Json) -> str:
        async with self._post(path, body) as response:
            return await response.text(errors="replace")


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[Json]:
    """Yield the JSON of each server-sent event until `[DONE]`."""
    async for line in response.content:
        if not line.startswith(b"data:"):
            continue
        payload = line[5:].strip()
        if payload == b"[DONE]":
            return
        yield vllm_answer.read(payload)


def _refusal(status: int, answer: str) -> Exception:
    """Return the error of an HTTP refusal. The answer may quote the prompt, so only its kind is kept."""
    if status == NOT_FOUND and "does not exist" in answer:
        return AdapterUnknownError()
    if status >= SERVER_ERROR or status in {408, 429}:
        return ModelUnavailableError(f"the model server answered {status}")
    return ModelRequestError(f"the model server refused the request ({status})")
