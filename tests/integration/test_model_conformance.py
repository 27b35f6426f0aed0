"""One suite for the fake model server and a real vLLM: what it demands of both, the fake may be used for."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from app.clients.vllm import VllmClient
from app.domain.profiles import DEFAULT_PROFILE, profile
from app.domain.prompt import ChatMessage
from app.embedded import model
from app.embedded.parts import Home
from app.ports import Delta, Sampling
from app.services.ahead import Ahead
from learner.serve.probe import write_marked_adapter
from tests.fakes.model import ModelServer
from tests.support.vllm_server import vllm_for_many

JSON = dict[str, Any]
HOME = Home(Path(os.environ.get("MENTEE_TEST_HOME", "var")))
HI: list[JSON] = [{"role": "user", "content": "Say hi"}]
VERDICT: JSON = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": ["good", "bad"]}},
    "required": ["verdict"],
    "additionalProperties": False,
}
NULL = type(None).__name__
MESSAGE: JSON = {"role": "str", "content": "str", **dict.fromkeys(("refusal", "annotations", "audio"), NULL)}
MESSAGE |= {"function_call": NULL, "reasoning": NULL}
USAGE = {"prompt_tokens": "int", "total_tokens": "int", "completion_tokens": "int"}
FULL_USAGE = USAGE | {"prompt_tokens_details": NULL, "completion_tokens_details": NULL}
HEAD = {"id": "str", "object": "str", "created": "int", "model": "str"}
TRANSFER = {"kv_transfer_params": NULL, "ec_transfer_params": NULL, "metrics": NULL}


def shape(value: object) -> object:
    """Names of types instead of values; of a list only its first element."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value[:1]]
    return type(value).__name__


@dataclass(frozen=True, slots=True)
class Target:
    """A model server under test."""

    http: aiohttp.ClientSession
    url: str
    model: str
    adapter: str

    async def post(self, path: str, **body: object) -> tuple[int, Any]:
        """Status and decoded body; text where the answer is no JSON."""
        async with self.http.post(self.url + path, json=body) as response:
            text = await response.text()
            return response.status, json.loads(text) if response.content_type == "application/json" else text

    async def chat(self, **body: object) -> JSON:
        """A chat that must succeed."""
        status, answer = await self.post("/v1/chat/completions", **{"model": self.model, "messages": HI} | body)
        assert status == 200, answer
        return dict(answer)

    async def events(self, path: str, **body: object) -> list[JSON]:
        """The events of a stream, which must be framed as data lines and closed by [DONE]."""
        request = {"model": self.model, "stream": True} | body
        async with self.http.post(self.url + path, json=request) as response:
            assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
            raw = await response.text()
        assert raw.endswith("data: [DONE]\n\n")
        frames = raw.removesuffix("\n\n").split("\n\n")
        assert all(frame.startswith("data: ") and "\n" not in frame for frame in frames)
        return [json.loads(frame.removeprefix("data: ")) for frame in frames[:-1]]

    async def chat_events(self, **body: object) -> list[JSON]:
        return await self.events("/v1/chat/completions", **{"messages": HI} | body)


def _write_adapter(folder: Path) -> str:
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 8}))
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    (folder / "adapter_model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    return str(folder)


@dataclass(frozen=True, slots=True)
class Real:
    """A running vLLM with an adapter that fits its base."""

    url: str
    adapter: str


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    model_dir = model.ensure(HOME, profile(DEFAULT_PROFILE))
    adapter = write_marked_adapter(tmp_path_factory.mktemp("conformance") / "adapter", model_dir, seed=3)
    with vllm_for_many(model_dir) as url:
        yield Real(url, str(adapter))


# One worker for all of them, so that one server is enough.
ON_VLLM = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.xdist_group("conformance")]


@pytest.fixture(params=["fake", pytest.param("vllm", marks=ON_VLLM)])
async def target(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Target]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=100)) as http:
        if request.param == "fake":
            async with ModelServer() as server:
                yield Target(http, server.url, server.name, _write_adapter(tmp_path / "adapter"))
            return
        served: Real = request.getfixturevalue("real")
        yield Target(http, served.url, DEFAULT_PROFILE, served.adapter)


async def test_health_version_models(target: Target) -> None:
    async with target.http.get(f"{target.url}/health") as response:
        assert (response.status, await response.text()) == (200, "")
    async with target.http.get(f"{target.url}/version") as response:
        assert shape(await response.json()) == {"version": "str"}
    async with target.http.get(f"{target.url}/v1/models") as response:
        models = await response.json()
    card = models["data"][0]
    assert list(card) == ["id", "object", "created", "owned_by", "root", "parent", "max_model_len", "permission"]
    assert (models["object"], card["object"], card["owned_by"], card["parent"]) == ("list", "model", "vllm", None)
    assert card["permission"][0]["object"] == "model_permission"
    assert len(card["permission"][0]) == 12


async def test_metrics_name_what_is_watched(target: Target) -> None:
    async with target.http.get(f"{target.url}/metrics") as response:
        text = await response.text()
        assert response.content_type == "text/plain"
    for name in ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"):
        assert f"# TYPE {name} gauge" in text
        assert f"\n{name}{{" in text


async def test_plain_answer(target: Target) -> None:
    answer = await target.chat(max_tokens=2, temperature=0)
    choice: JSON = {"index": "int", "message": MESSAGE, "logprobs": NULL, "finish_reason": "str", "stop_reason": NULL}
    expected: JSON = {**HEAD, "choices": [{**choice, "token_ids": NULL, "routed_experts": NULL}], "service_tier": NULL}
    expected |= {"system_fingerprint": "str", "usage": FULL_USAGE}
    expected |= {"prompt_logprobs": NULL, "prompt_token_ids": NULL, "prompt_text": NULL, **TRANSFER}
    assert shape(answer) == expected
    assert list(answer) == list(expected)
    assert answer["object"] == "chat.completion"
    assert answer["id"].startswith("chatcmpl-")
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 2
    assert answer["usage"]["total_tokens"] == answer["usage"]["prompt_tokens"] + 2


async def test_token_ids_and_logprobs_are_aligned(target: Target) -> None:
    answer = await target.chat(max_tokens=4, temperature=0, logprobs=True, return_token_ids=True)
    choice = answer["choices"][0]
    content = choice["logprobs"]["content"]
    assert len(choice["token_ids"]) == len(content) == answer["usage"]["completion_tokens"]
    assert len(answer["prompt_token_ids"]) == answer["usage"]["prompt_tokens"]
    assert shape(content) == [{"token": "str", "logprob": "float", "bytes": ["int"], "top_logprobs": []}]
    assert all(item["logprob"] <= 0 for item in content)
    assert all(bytes(item["bytes"]).decode() == item["token"] for item in content)


async def test_top_logprobs_hold_the_chosen_token(target: Target) -> None:
    answer = await target.chat(max_tokens=1, temperature=0, logprobs=True, top_logprobs=2)
    first = answer["choices"][0]["logprobs"]["content"][0]
    assert len(first["top_logprobs"]) == 2
    assert first["top_logprobs"][0]["token"] == first["token"]
    assert shape(first["top_logprobs"][0]) == {"token": "str", "logprob": "float", "bytes": ["int"]}
    named = await target.chat(max_tokens=1, temperature=0, logprobs=True, return_tokens_as_token_ids=True)
    assert named["choices"][0]["logprobs"]["content"][0]["token"].startswith("token_id:")


async def test_the_end_token_is_counted(target: Target) -> None:
    answer = await target.chat(temperature=0, max_tokens=200, logprobs=True, return_token_ids=True)
    choice = answer["choices"][0]
    assert choice["finish_reason"] == "stop"
    assert choice["stop_reason"] is None
    assert choice["token_ids"][-1] == 2
    assert choice["logprobs"]["content"][-1]["token"] == "<|im_end|>"
    assert "<|im_end|>" not in choice["message"]["content"]
    assert answer["usage"]["completion_tokens"] == len(choice["token_ids"])


async def test_several_choices(target: Target) -> None:
    answer = await target.chat(n=3, seed=7, max_tokens=2, temperature=1)
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2]
    assert answer["usage"]["completion_tokens"] == 6


async def test_stop_string_ends_the_text_but_not_the_tokens(target: Target) -> None:
    whole = await target.chat(temperature=0, max_tokens=12, return_token_ids=True)
    text, tokens = whole["choices"][0]["message"]["content"], whole["choices"][0]["token_ids"]
    stop = text[5:8]
    cut = await target.chat(temperature=0, max_tokens=12, stop=[stop], return_token_ids=True)
    choice = cut["choices"][0]
    assert choice["message"]["content"] == text[: text.index(stop)]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)
    assert choice["token_ids"] == tokens[: len(choice["token_ids"])]
    streamed = await target.chat_events(temperature=0, max_tokens=12, stop=[stop])
    assert "".join(_deltas(streamed)) == choice["message"]["content"]
    assert streamed[-1]["choices"][0]["stop_reason"] == stop


def _deltas(events: list[JSON]) -> list[str]:
    return [event["choices"][0]["delta"]["content"] for event in events if event["choices"]]


async def test_stream_with_everything_that_is_stored(target: Target) -> None:
    body: JSON = {"max_tokens": 3, "temperature": 0, "logprobs": True, "return_token_ids": True}
    events = await target.chat_events(**body, stream_options={"include_usage": True})
    first, middle, last, usage = events[0], events[1], events[-2], events[-1]
    opening = {"index": "int", "delta": {"role": "str", "content": "str"}, "logprobs": NULL, "finish_reason": NULL}
    assert shape(first) == {**HEAD, "choices": [opening], "prompt_token_ids": ["int"], "prompt_text": NULL}
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    logprobs = {"content": [{"token": "str", "logprob": "float", "bytes": ["int"], "top_logprobs": []}]}
    token = {"index": "int", "delta": {"content": "str"}, "logprobs": logprobs, "finish_reason": NULL}
    assert shape(middle) == {**HEAD, "choices": [{**token, "token_ids": ["int"]}]}
    ended = token | {"finish_reason": "str", "stop_reason": NULL, "token_ids": ["int"]}
    assert shape(last) == {**HEAD, "choices": [ended]}
    assert shape(usage) == {**HEAD, "choices": [], "usage": USAGE, "system_fingerprint": "str"}
    assert {event["object"] for event in events} == {"chat.completion.chunk"}
    assert len({event["id"] for event in events}) == 1
    whole = await target.chat(**body)
    ids = [token for event in events[1:-1] for token in event["choices"][0]["token_ids"]]
    assert ids == whole["choices"][0]["token_ids"]
    assert first["prompt_token_ids"] == whole["prompt_token_ids"]
    assert "".join(_deltas(events)) == whole["choices"][0]["message"]["content"]
    assert usage["usage"]["completion_tokens"] == len(ids)


async def test_a_stream_is_begun_in_one_task_and_read_and_closed_in_others(target: Target) -> None:
    client = VllmClient(target.url)
    stream = client.stream(
        target.model, [ChatMessage(role="user", content="Say hi")], Sampling(max_tokens=16, logprobs=True), salt="s"
    )
    deltas: list[Delta] = []

    async def read() -> None:
        deltas.extend([delta async for delta in ahead])

    try:
        async with aclosing(Ahead(stream)) as ahead:
            await asyncio.create_task(ahead.start())
            await asyncio.create_task(read())
        completion = deltas[-1].completion
        assert completion
        assert completion.text == "".join(delta.text for delta in deltas)
        assert len(completion.token_ids) == len(completion.logprobs) > 0
        # One that nobody reads is let go of, and the client is none the worse for it.
        left = Ahead(client.stream(target.model, [ChatMessage(role="user", content="Hi")], Sampling(), salt="s"))
        await asyncio.create_task(left.start())
        await asyncio.create_task(left.aclose())
        assert await client.healthy()
    finally:
        await client.close()


async def test_stream_without_options(target: Target) -> None:
    events = await target.chat_events(max_tokens=2, temperature=0)
    assert events[0]["prompt_token_ids"] is None
    assert events[1]["choices"][0]["token_ids"] is None
    assert events[-1]["choices"][0]["finish_reason"] == "length"
    assert "system_fingerprint" in events[-1]
    assert not any("usage" in event for event in events)


async def test_stream_closes_with_an_empty_delta(target: Target) -> None:
    events = await target.chat_events(temperature=0, max_tokens=200, return_token_ids=True)
    last = events[-1]["choices"][0]
    assert last["delta"] == {"content": ""}
    assert (last["finish_reason"], last["token_ids"]) == ("stop", [2])


async def test_running_usage(target: Target) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    events = await target.chat_events(max_tokens=2, temperature=0, stream_options=options)
    assert [event["usage"]["completion_tokens"] for event in events] == [0, 1, 2, 2]
    assert "completion_tokens_details" in events[0]["usage"]


async def test_several_streamed_choices(target: Target) -> None:
    events = await target.chat_events(n=2, seed=3, max_tokens=2, temperature=1)
    assert [event["choices"][0]["index"] for event in events[:2]] == [0, 1]
    assert sorted(event["choices"][0]["index"] for event in events) == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("kind", ["response_format", "structured_outputs"])
async def test_json_schema(target: Target, kind: str) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": VERDICT}}
    extra: JSON = (
        {"response_format": wanted} if kind == "response_format" else {"structured_outputs": {"json": VERDICT}}
    )
    answer = await target.chat(temperature=0, max_tokens=60, **extra)
    assert json.loads(answer["choices"][0]["message"]["content"])["verdict"] in ("good", "bad")


async def test_extra_fields_are_accepted(target: Target) -> None:
    answer = await target.chat(
        max_tokens=1, cache_salt="s", priority=5, chat_template_kwargs={"enable_thinking": False}, not_a_field=1
    )
    assert answer["choices"][0]["finish_reason"] == "length"


async def test_repeated_request_is_answered_alike(target: Target) -> None:
    first, second = [await target.chat(temperature=0, max_tokens=6, return_token_ids=True) for _ in range(2)]
    assert first["choices"][0]["token_ids"] == second["choices"][0]["token_ids"]


async def test_completions_of_token_ids(target: Target) -> None:
    _, tokens = await target.post("/tokenize", model=target.model, prompt="Hello there")
    status, answer = await target.post(
        "/v1/completions", model=target.model, prompt=tokens["tokens"], max_tokens=1, temperature=0,
        prompt_logprobs=0, return_token_ids=True, logprobs=1,
    )  # fmt: skip
    assert status == 200
    choice = answer["choices"][0]
    logprobs = {"text_offset": ["int"], "token_logprobs": ["float"], "tokens": ["str"], "top_logprobs": [{}]}
    expected = {"index": "int", "text": "str", "logprobs": logprobs, "finish_reason": "str", "stop_reason": NULL}
    expected |= {"token_ids": ["int"], "prompt_logprobs": [NULL], "prompt_token_ids": ["int"], "routed_experts": NULL}
    seen = json.loads(json.dumps(choice))
    seen["logprobs"]["top_logprobs"] = [{}]
    assert shape(seen) == expected
    assert list(answer) == [*HEAD, "choices", "service_tier", "system_fingerprint", "usage", *TRANSFER]
    assert answer["object"] == "text_completion"
    second = choice["prompt_logprobs"][1][str(tokens["tokens"][1])]
    assert shape(second) == {"logprob": "float", "rank": "int", "decoded_token": "str"}
    assert second["decoded_token"] == " there"
    assert choice["prompt_token_ids"] == tokens["tokens"]


async def test_several_prompts_in_one_request(target: Target) -> None:
    body: JSON = {"prompt": ["hi", "yo"], "n": 2, "max_tokens": 1, "temperature": 1}
    _, answer = await target.post("/v1/completions", model=target.model, **body)
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2, 3]
    events = await target.events("/v1/completions", **body)
    assert sorted(event["choices"][0]["index"] for event in events) == [0, 1, 2, 3]


async def test_streamed_completion(target: Target) -> None:
    events = await target.events(
        "/v1/completions", prompt="Hello", max_tokens=2, temperature=0, logprobs=0, return_token_ids=True,
        stream_options={"include_usage": True},
    )  # fmt: skip
    names = ["index", "text", "logprobs", "finish_reason", "stop_reason", "prompt_token_ids", "token_ids"]
    assert [list(event["choices"][0]) for event in events[:-1]] == [names, names]
    assert isinstance(events[0]["choices"][0]["prompt_token_ids"], list)
    assert events[1]["choices"][0]["prompt_token_ids"] is None
    assert events[1]["choices"][0]["finish_reason"] == "length"
    assert shape(events[2]["usage"]) == USAGE


async def test_tokenize_and_back(target: Target) -> None:
    _, answer = await target.post("/tokenize", model=target.model, prompt="Hello there", return_token_strs=True)
    assert shape(answer) == {"count": "int", "max_model_len": "int", "tokens": ["int"], "token_strs": ["str"]}
    assert answer["count"] == len(answer["tokens"])
    _, back = await target.post("/detokenize", model=target.model, tokens=answer["tokens"])
    assert back == {"prompt": "Hello there"}
    _, chat = await target.post("/tokenize", model=target.model, messages=HI)
    reply = await target.chat(max_tokens=1, return_token_ids=True)
    assert chat["tokens"] == reply["prompt_token_ids"]
    assert chat["token_strs"] is None


REFUSED: list[tuple[str, JSON, int, str, str | None]] = [
    ("/v1/chat/completions", {"model": "nope", "messages": HI}, 404, "NotFoundError", "model"),
    ("/v1/chat/completions", {"model": "nope", "messages": HI, "stream": True}, 404, "NotFoundError", "model"),
    ("/v1/completions", {"model": "nope", "prompt": "x"}, 404, "NotFoundError", "model"),
    ("/tokenize", {"model": "nope", "prompt": "x"}, 404, "NotFoundError", "model"),
    ("/v1/chat/completions", {"messages": []}, 400, "BadRequestError", None),
    ("/v1/chat/completions", {}, 400, "Bad Request", "body.messages"),
    ("/v1/chat/completions", {"messages": "x"}, 400, "Bad Request", "body.messages"),
    ("/v1/chat/completions", {"messages": HI, "max_tokens": 0}, 400, "BadRequestError", "max_tokens"),
    ("/v1/chat/completions", {"messages": HI, "max_tokens": 10**6}, 400, "BadRequestError", "max_tokens"),
    ("/v1/chat/completions", {"messages": HI, "max_tokens": "x"}, 400, "Bad Request", "body.max_tokens"),
    ("/v1/chat/completions", {"messages": HI, "temperature": -1}, 400, "BadRequestError", "temperature"),
    ("/v1/chat/completions", {"messages": HI, "top_p": 2}, 400, "BadRequestError", "top_p"),
    ("/v1/chat/completions", {"messages": HI, "n": 0}, 400, "BadRequestError", None),
    ("/v1/chat/completions", {"messages": HI, "n": 2, "temperature": 0}, 400, "BadRequestError", None),
    ("/v1/chat/completions", {"messages": HI, "top_logprobs": 2}, 400, "BadRequestError", "top_logprobs"),
    ("/v1/chat/completions", {"messages": HI, "cache_salt": ""}, 400, "BadRequestError", "cache_salt"),
    (
        "/v1/chat/completions",
        {"messages": HI, "stream_options": {"include_usage": True}},
        400,
        "BadRequestError",
        "stream_options",
    ),
    (
        "/v1/chat/completions",
        {"messages": HI, "response_format": {"type": "json_schema"}},
        400,
        "BadRequestError",
        "response_format",
    ),
    (
        "/v1/chat/completions",
        {"messages": HI, "logprobs": True, "top_logprobs": 50},
        400,
        "BadRequestError",
        "logprobs",
    ),
    (
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": "word " * 9000}]},
        400,
        "BadRequestError",
        "input_tokens",
    ),
    (
        "/v1/chat/completions",
        {"messages": HI, "prompt_logprobs": 1, "stream": True},
        400,
        "BadRequestError",
        "prompt_logprobs",
    ),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "\ud800"}]}, 400, "BadRequestError", None),
    ("/v1/completions", {"prompt": "a \udfff"}, 400, "BadRequestError", None),
    ("/v1/completions", {}, 400, "BadRequestError", "prompt"),
    ("/v1/completions", {"prompt": ""}, 400, "BadRequestError", "prompt"),
    ("/v1/completions", {"prompt": []}, 400, "BadRequestError", None),
    ("/v1/completions", {"prompt": [99_999_999]}, 400, "BadRequestError", None),
    ("/v1/load_lora_adapter", {"lora_name": "x"}, 400, "Bad Request", "body.lora_path"),
    ("/v1/load_lora_adapter", {"lora_name": "", "lora_path": "/x"}, 400, "InvalidUserInput", None),
    ("/v1/load_lora_adapter", {"lora_name": "x", "lora_path": "/nowhere"}, 404, "NotFoundError", None),
    ("/v1/unload_lora_adapter", {"lora_name": "nobody"}, 404, "NotFoundError", None),
    ("/v1/unload_lora_adapter", {"lora_name": ""}, 400, "InvalidUserInput", None),
    ("/v1/unload_lora_adapter", {}, 400, "Bad Request", "body.lora_name"),
]


@pytest.mark.parametrize(("path", "body", "status", "kind", "param"), REFUSED)
async def test_refusals(target: Target, path: str, body: JSON, status: int, kind: str, param: str | None) -> None:
    seen, answer = await target.post(path, **body)
    assert list(answer) == ["error"]
    assert list(answer["error"]) == ["message", "type", "param", "code"]
    error = answer["error"]
    assert (seen, error["code"], error["type"], error["param"]) == (status, status, kind, param)
    assert isinstance(error["message"], str)


@pytest.mark.parametrize(
    ("data", "kind", "expected"),
    [('{"model":', "application/json", "json_invalid"), ("[]", "application/json", "model_attributes_type"),
     ("{}", "text/plain", "Unsupported Media Type")],
)  # fmt: skip
async def test_bodies_that_are_no_request(target: Target, data: str, kind: str, expected: str) -> None:
    headers = {"Content-Type": kind}
    async with target.http.post(f"{target.url}/v1/chat/completions", data=data, headers=headers) as response:
        answer = await response.json()
        assert response.status == 400
    assert expected in answer["error"]["message"]
    assert answer["error"]["type"] == "Bad Request"


async def test_unknown_routes(target: Target) -> None:
    async with target.http.get(f"{target.url}/v1/chat/completions") as response:
        assert (response.status, await response.json()) == (405, {"detail": "Method Not Allowed"})
    async with target.http.post(f"{target.url}/v1/nothing", json={}) as response:
        assert (response.status, await response.json()) == (404, {"detail": "Not Found"})


async def test_adapters_come_and_go(target: Target) -> None:
    request: JSON = {"lora_name": "conformance", "lora_path": target.adapter}
    assert await target.post("/v1/load_lora_adapter", **request) == (
        200,
        "Success: LoRA adapter 'conformance' added successfully.",
    )
    try:
        status, twice = await target.post("/v1/load_lora_adapter", **request)
        assert (status, twice["error"]["type"]) == (400, "InvalidUserInput")
        assert (await target.post("/v1/load_lora_adapter", **request, load_inplace=True))[0] == 200
        async with target.http.get(f"{target.url}/v1/models") as response:
            card = next(item for item in (await response.json())["data"] if item["id"] == "conformance")
        assert (card["parent"], card["root"], card["max_model_len"]) == (target.model, target.adapter, None)
        body: JSON = {"max_tokens": 1, "temperature": 0, "logprobs": True}
        base, adapted = await target.chat(**body), await target.chat(**body, model="conformance")
        assert adapted["model"] == "conformance"
        assert _logprob(base) != _logprob(adapted)
    finally:
        gone = await target.post("/v1/unload_lora_adapter", lora_name="conformance")
    assert gone == (200, "Success: LoRA adapter 'conformance' removed successfully.")
    status, _ = await target.post("/v1/chat/completions", model="conformance", messages=HI)
    assert status == 404


def _logprob(answer: JSON) -> float:
    return float(answer["choices"][0]["logprobs"]["content"][0]["logprob"])


@pytest.mark.parametrize("damage", ["no weights", "cut weights", "broken config", "rank"])
async def test_damaged_adapters_are_refused(target: Target, tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "damaged"
    _write_adapter(folder)
    if damage == "no weights":
        (folder / "adapter_model.safetensors").unlink()
    if damage == "cut weights":
        (folder / "adapter_model.safetensors").write_bytes(b"\x40" + bytes(7) + b"{")
    if damage == "broken config":
        (folder / "adapter_config.json").write_text("{nope")
    if damage == "rank":
        (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 512}))
    status, answer = await target.post("/v1/load_lora_adapter", lora_name="damaged", lora_path=str(folder))
    assert (status, answer["error"]["type"], answer["error"]["code"]) == (500, "InternalServerError", 500)
