"""The faults and scripts of the fake model server, and its form as a process."""

import asyncio
import base64
import hashlib
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.fakes.model import (
    BrokenStream,
    Call,
    Cut,
    Garbage,
    ModelServer,
    NoLogprobs,
    NoTokenIds,
    Refuse,
    Reply,
    Slow,
    replies,
)
from tests.support.media import PICTURE

pytest_plugins = ["tests.fakes.fixtures"]
JSON = dict[str, Any]


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
        yield session


async def _ask(http: aiohttp.ClientSession, url: str, said: object = "hello", **body: object) -> tuple[int, JSON]:
    request = {"messages": [{"role": "user", "content": said}], **body}
    async with http.post(f"{url}/v1/chat/completions", json=request) as response:
        return response.status, json.loads(await response.text())


def _text(answer: JSON) -> str:
    return str(answer["choices"][0]["message"]["content"])


async def _stream(http: aiohttp.ClientSession, url: str) -> str:
    request = {"messages": [{"role": "user", "content": "one two three four"}], "stream": True}
    async with http.post(f"{url}/v1/chat/completions", json=request) as response:
        return await response.text()


async def test_the_echo_depends_on_the_last_words(model_server: ModelServer, http: aiohttp.ClientSession) -> None:
    assert _text((await _ask(http, model_server.url, "밥 먹었어? 😀"))[1]) == "You said: 밥 먹었어? 😀"
    assert _text((await _ask(http, model_server.url, "  "))[1]) == "You said nothing."
    assert model_server.calls[0].last_user == "밥 먹었어? 😀"


async def test_a_script_sees_the_request(model_server: ModelServer, http: aiohttp.ClientSession) -> None:
    def answer(call: Call) -> str:
        return f"{call.choice}:{call.body['seed']}:{call.system}"

    model_server.reply_with(answer)
    messages = [{"role": "system", "content": "Be brief"}, {"role": "user", "content": "x"}]
    _, answered = await _ask(http, model_server.url, messages=messages, n=2, seed=5)
    assert [choice["message"]["content"] for choice in answered["choices"]] == ["0:5:Be brief", "1:5:Be brief"]


@pytest.mark.parametrize(
    ("reply", "finish"),
    [
        (replies.EMPTY, "stop"),
        (replies.LENGTH_CUT, "length"),
        (replies.BROKEN_MARKDOWN, "stop"),
        (replies.THINK_WITHOUT_OPENER, "stop"),
        (replies.THINK_ONLY, "stop"),
    ],
)
async def test_named_replies(model_server: ModelServer, http: aiohttp.ClientSession, reply: Reply, finish: str) -> None:
    model_server.reply_with(reply)
    _, answer = await _ask(http, model_server.url)
    assert _text(answer) == reply.text
    assert answer["choices"][0]["finish_reason"] == finish


async def test_refusals_hit_one_request_each(model_server: ModelServer, http: aiohttp.ClientSession) -> None:
    model_server.next(Refuse(503), Refuse())
    answers = [await _ask(http, model_server.url) for _ in range(3)]
    assert [status for status, _ in answers] == [503, 500, 200]
    assert answers[0][1]["error"]["type"] == "ServiceUnavailableError"


async def test_garbage(model_server: ModelServer, http: aiohttp.ClientSession) -> None:
    model_server.next(Garbage(), Garbage())
    with pytest.raises(json.JSONDecodeError):
        await _ask(http, model_server.url)
    streamed = await _stream(http, model_server.url)
    assert "[DONE]" not in streamed
    with pytest.raises(json.JSONDecodeError):
        json.loads(streamed.rstrip().rpartition("data: ")[2])


@pytest.mark.parametrize("stream", [False, True])
async def test_cut_connections(model_server: ModelServer, http: aiohttp.ClientSession, stream: bool) -> None:
    model_server.next(Cut(2))
    with pytest.raises(aiohttp.ClientError):
        await (_stream(http, model_server.url) if stream else _ask(http, model_server.url))
    assert (await _ask(http, model_server.url))[0] == 200


async def test_an_error_inside_a_stream(model_server: ModelServer, http: aiohttp.ClientSession) -> None:
    model_server.next(BrokenStream(2))
    frames = (await _stream(http, model_server.url)).split("\n\n")
    assert json.loads(frames[3].removeprefix("data: "))["error"]["code"] == 500
    assert frames[4] == "data: [DONE]"


async def test_slow_replies(model_server: ModelServer, http: aiohttp.ClientSession) -> None:
    model_server.always(Slow(first_token_s=0.2))
    started = asyncio.get_running_loop().time()
    await _ask(http, model_server.url)
    assert asyncio.get_running_loop().time() - started >= 0.2
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await _ask(http, model_server.url)
    model_server.heal()
    assert (await _ask(http, model_server.url))[0] == 200
    assert model_server.running == 0


async def test_left_out_parts(model_server: ModelServer, http: aiohttp.ClientSession) -> None:
    model_server.next(NoLogprobs(), NoTokenIds())
    for missing in ("logprobs", "token_ids"):
        _, answer = await _ask(http, model_server.url, logprobs=True, return_token_ids=True)
        present = {"logprobs", "token_ids"} - {missing}
        assert answer["choices"][0][missing] is None
        assert all(answer["choices"][0][name] for name in present)


async def test_nested_schema_gets_a_minimal_object(model_server: ModelServer, http: aiohttp.ClientSession) -> None:
    schema = {
        "$defs": {"score": {"type": "integer", "minimum": 1, "maximum": 5}},
        "type": "object",
        "properties": {
            "scores": {"type": "array", "items": {"$ref": "#/$defs/score"}, "minItems": 2},
            "why": {"anyOf": [{"type": "string", "minLength": 3}, {"type": "null"}]},
            "kind": {"const": "vote"},
            "sure": {"type": "boolean"},
            "extra": {"type": "string"},
        },
        "required": ["scores", "why", "kind", "sure"],
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    _, answer = await _ask(http, model_server.url, response_format=wanted)
    assert json.loads(_text(answer)) == {"scores": [1, 1], "why": "xxx", "kind": "vote", "sure": False}


async def test_an_api_key_is_asked_for(http: aiohttp.ClientSession) -> None:
    async with ModelServer(api_key="key") as server:
        async with http.get(f"{server.url}/v1/models") as response:
            assert (response.status, await response.json()) == (401, {"error": "Unauthorized"})
        async with http.get(f"{server.url}/v1/models", headers={"Authorization": "Bearer key"}) as response:
            assert response.status == 200
        async with http.get(f"{server.url}/health") as response:
            assert response.status == 200


async def test_a_stopped_server_comes_back_on_its_port(http: aiohttp.ClientSession) -> None:
    async with ModelServer() as server:
        await server.stop()
        with pytest.raises(aiohttp.ClientConnectorError):
            await _ask(http, server.url)
        await server.start()
        assert (await _ask(http, server.url))[0] == 200


async def test_as_a_process(http: aiohttp.ClientSession) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.fakes.model", "--name", "tiny", "--reply", "yes", stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        _, answer = await _ask(http, line.removeprefix("listening on ").strip(), model="tiny")
        assert _text(answer) == "yes"
    finally:
        process.terminate()
        await process.wait()
    assert process.returncode == 0


async def test_pictures_are_for_a_model_that_sees(http: aiohttp.ClientSession, model_server: ModelServer) -> None:
    url = f"data:image/jpeg;base64,{base64.b64encode(PICTURE).decode()}"
    shown = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "what is it?"}]
    status, answer = await _ask(http, model_server.url, shown)
    assert (status, answer["error"]["message"]) == (400, "fake-model is not a multimodal model")
    model_server.sees = True
    _, answer = await _ask(http, model_server.url, shown)
    assert _text(answer) == f"You said: what is it? [picture {hashlib.sha256(PICTURE).hexdigest()[:8]}]"
    for broken in ("data:image/jpeg;base64,aGVsbG8=", "http://127.0.0.1:1/x.jpg", "data:image/jpeg;base64,A"):
        status, _ = await _ask(http, model_server.url, [{"type": "image_url", "image_url": {"url": broken}}])
        assert status == 400
