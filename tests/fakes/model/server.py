"""The fake model server: vLLM's routes on loopback, instant and deterministic.

Owns routes, streaming and the faults; texts come from `replies`, shapes from `wire`. Every generation request is kept
in `calls`, so that a test can see what a prompt contained.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Final, Self

from aiohttp import web
from aiohttp.typedefs import Handler

from tests.fakes.model import faults, pictures
from tests.fakes.model.adapters import Adapters
from tests.fakes.model.delivery import Plan, send, stream
from tests.fakes.model.generate import generate
from tests.fakes.model.replies import Call, Reply, Script, echo
from tests.fakes.model.request import (
    ModelError,
    Sampling,
    chat_prompt,
    completion_prompts,
    encode,
    need,
    read_json,
    sampling,
    unknown_model,
)  # fmt: skip
from tests.fakes.model.tokens import JSON, Tokenizer, render_chat
from tests.fakes.model.wire import Wire

MAX_BODY: Final = 64 << 20
CHAT: Final = "/v1/chat/completions"


@dataclass(slots=True)
class ModelServer:
    """`async with ModelServer() as server:` listens on `server.url`; names one base model, `server.name`, which may see."""

    name: str = "fake-model"
    window: int = 2048
    api_key: str | None = None
    host: str = "127.0.0.1"
    port: int = 0
    pace: faults.Slow = field(default_factory=faults.Slow)
    tokenizer: Tokenizer = field(default_factory=Tokenizer)
    calls: list[Call] = field(default_factory=list)
    running: int = 0
    script: Script = echo
    sees: bool = False
    adapters: Adapters = field(init=False)
    _next: deque[faults.Fault] = field(default_factory=deque)
    _always: list[faults.Fault] = field(default_factory=list)
    _runner: web.AppRunner | None = None

    def __post_init__(self) -> None:
        self.adapters = Adapters(self.name)

    @property
    def url(self) -> str:
        """Base address without /v1."""
        return f"http://{self.host}:{self.port}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen; a port of 0 becomes the one that was free."""
        app = web.Application(client_max_size=MAX_BODY, middlewares=[self._guard])
        app.add_routes(self._routes())
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.host, self.port)
        await site.start()
        self.port = int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Close every connection and the socket; `start` again listens on the same port."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def reply_with(self, script: Script | Reply | str) -> None:
        """From now on answer with what `script` returns, or always with the same text."""
        self.script = script if callable(script) else lambda _: script

    def next(self, *upcoming: faults.Fault) -> None:
        """Each fault hits one coming generation request, in order."""
        self._next.extend(upcoming)

    def always(self, fault: faults.Fault) -> None:
        """The fault hits every generation request until `heal`."""
        self._always.append(fault)

    def heal(self) -> None:
        """No faults any more, and the default replies."""
        self._next.clear()
        self._always.clear()
        self.script = echo

    def _routes(self) -> list[web.RouteDef]:
        return [
            web.get("/health", self._empty), web.get("/ping", self._empty),
            web.get("/version", self._version), web.get("/metrics", self._metrics),
            web.get("/v1/models", self._models), web.post(CHAT, self._chat), web.post("/v1/completions", self._text),
            web.post("/v1/load_lora_adapter", self._load), web.post("/v1/unload_lora_adapter", self._unload),
            web.post("/tokenize", self._tokenize), web.post("/detokenize", self._detokenize),
        ]  # fmt: skip

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        known = not self.api_key or request.headers.get("Authorization") == f"Bearer {self.api_key}"
        if not known and request.path.startswith("/v1"):
            return web.json_response({"error": "Unauthorized"}, status=401)
        try:
            return await handler(request)
        except ModelError as error:
            return web.json_response(error.body, status=error.status)
        except (web.HTTPNotFound, web.HTTPMethodNotAllowed) as error:
            return web.json_response({"detail": error.reason}, status=error.status)

    async def _empty(self, _: web.Request) -> web.Response:
        return web.Response()

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"version": "0.32.0"})

    async def _models(self, _: web.Request) -> web.Response:
        cards = self.adapters.cards(f"/models/{self.name}", self.window)
        return web.json_response({"object": "list", "data": cards})

    async def _metrics(self, _: web.Request) -> web.Response:
        label = f'{{engine="0",model_name="{self.name}"}}'
        lines = [
            "# HELP vllm:num_requests_running Number of requests in model execution batches.",
            "# TYPE vllm:num_requests_running gauge",
            f"vllm:num_requests_running{label} {float(self.running)}",
            "# HELP vllm:num_requests_waiting Number of requests waiting to be processed.",
            "# TYPE vllm:num_requests_waiting gauge",
            f"vllm:num_requests_waiting{label} 0.0",
            "# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.",
            "# TYPE vllm:kv_cache_usage_perc gauge",
            f"vllm:kv_cache_usage_perc{label} 0.0",
        ]
        return web.Response(text="\n".join(lines) + "\n", content_type="text/plain")

    async def _load(self, request: web.Request) -> web.Response:
        return web.Response(text=self.adapters.load(await read_json(request)))

    async def _unload(self, request: web.Request) -> web.Response:
        return web.Response(text=self.adapters.unload(await read_json(request)))

    async def _tokenize(self, request: web.Request) -> web.Response:
        body = await read_json(request)
        self._model(body)
        if "messages" in body:
            tokens = chat_prompt(body, self.tokenizer)[0]
        else:
            tokens = encode(str(need(body, "prompt", str)), self.tokenizer)
        names = [self.tokenizer.word(token) for token in tokens] if body.get("return_token_strs") else None
        answer: JSON = {"count": len(tokens), "max_model_len": self.window, "tokens": tokens, "token_strs": names}
        return web.json_response(answer)

    async def _detokenize(self, request: web.Request) -> web.Response:
        body = await read_json(request)
        self._model(body)
        tokens = need(body, "tokens", list)
        words = tokens if isinstance(tokens, list) else []
        return web.json_response({"prompt": "".join(map(self.tokenizer.word, words))})

    def _model(self, body: JSON) -> str:
        name = str(body.get("model") or self.name)
        if name != self.name and name not in self.adapters.loaded:
            raise unknown_model(name, self.name)
        return name

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await read_json(request)
        need(body, "messages", list)
        model = self._model(body)
        pictures.check(body, self.name, sees=self.sees)
        asked = sampling(body, model, chat_prompt(body, self.tokenizer), self.window)
        calls = [
            Call(model, body["messages"], render_chat(body["messages"], ""), body, n) for n in range(asked.choices)
        ]
        return await self._answer(request, asked, calls)

    async def _text(self, request: web.Request) -> web.StreamResponse:
        body = await read_json(request)
        model = self._model(body)
        asked = sampling(body, model, completion_prompts(body, self.tokenizer), self.window)
        texts = [self.tokenizer.decode(ids) for ids in asked.prompts]
        calls = [Call(model, [], text, body, n) for text in texts for n in range(asked.choices)]
        return await self._answer(request, asked, calls)

    async def _answer(self, request: web.Request, asked: Sampling, calls: list[Call]) -> web.StreamResponse:
        self.calls.append(calls[0])
        plan = Plan(self.pace, [*self._always, *([self._next.popleft()] if self._next else [])])
        self.running += 1
        try:
            plan.refuse()
            wire = Wire(plan.adjust(asked), self.tokenizer)
            made = [generate(_as_reply(self.script(call)), self.tokenizer, asked.limit, asked.stops) for call in calls]
            await asyncio.sleep(plan.pace.first_token_s)
            return await (stream if asked.stream else send)(request, wire, made, plan)
        finally:
            self.running -= 1


def _as_reply(said: Reply | str) -> Reply:
    return said if isinstance(said, Reply) else Reply(said)
