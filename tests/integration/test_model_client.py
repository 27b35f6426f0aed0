"""The client of the model server: an answer of another shape is a bad answer, whatever is wrong with it, and never a crash."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from app.clients import vllm
from app.clients.vllm import VllmClient
from app.domain.prompt import ChatMessage
from app.errors import ModelBadAnswerError
from app.ports import Sampling
from tests.fakes.model import Garbage, Misshapen, ModelServer
from tests.fakes.model.faults import Fault

HI = [ChatMessage(role="user", content="hi")]
HUGE = 10**400


@pytest.fixture
async def client(model_server: ModelServer) -> AsyncIterator[VllmClient]:
    opened = VllmClient(model_server.url)
    yield opened
    await opened.close()


async def streamed(client: VllmClient, model: str) -> None:
    async for _ in client.stream(model, HI, Sampling(), salt="s"):
        pass


async def completed(client: VllmClient, model: str) -> None:
    await client.complete(model, HI, Sampling(), salt="s")


BOTH = [
    Misshapen("choices", ["x"], of="answer"),
    Misshapen("choices", {}, of="answer"),
    Misshapen("choices", None, of="answer"),
    Misshapen("prompt_token_ids", 5, of="answer"),
    Misshapen("prompt_token_ids", ["a"], of="answer"),
    Misshapen("prompt_token_ids", [HUGE], of="answer"),
    Misshapen("token_ids", "abc"),
    Misshapen("token_ids", [True]),
    Misshapen("token_ids", [-1]),
    Misshapen("logprobs", [1]),
    Misshapen("logprobs", "s"),
    Misshapen("logprobs", {"content": [1]}),
    Misshapen("logprobs", {"content": {"logprob": 1}}),
    Misshapen("logprobs", {"content": [{}]}),
    Misshapen("logprobs", {"content": [{"logprob": "-1"}]}),
    Misshapen("logprobs", {"content": [{"logprob": HUGE}]}),
    Misshapen("logprobs", {"content": [{"logprob": float("nan")}]}),
    Misshapen("finish_reason", 7),
    Garbage("[]"),
    Garbage("7"),
    Garbage("[" * 100_000),
]


def name_of(fault: Fault) -> str:
    return f"{fault.field}-{fault.value}"[:40] if isinstance(fault, Misshapen) else "garbage"


@pytest.mark.parametrize("fault", [*BOTH, Misshapen("delta", "s"), Misshapen("delta", {"content": 5})], ids=name_of)
async def test_a_stream_of_another_shape_is_a_bad_answer(
    client: VllmClient, model_server: ModelServer, fault: Fault
) -> None:
    model_server.next(fault)
    with pytest.raises(ModelBadAnswerError):
        await streamed(client, model_server.name)
    await streamed(client, model_server.name)


@pytest.mark.parametrize(
    "fault",
    [
        *BOTH,
        Misshapen("choices", [], of="answer"),
        Misshapen("message", "s"),
        Misshapen("message", {"content": 5}),
        Misshapen("model", 5, of="answer"),
    ],
    ids=name_of,
)
async def test_a_whole_answer_of_another_shape_is_a_bad_answer(
    client: VllmClient, model_server: ModelServer, fault: Fault
) -> None:
    model_server.next(fault)
    with pytest.raises(ModelBadAnswerError):
        await completed(client, model_server.name)
    await completed(client, model_server.name)


@pytest.mark.parametrize("given", [5, "s", [None, 5, 5], [None, {"2": 5}, {}], [None]])
async def test_prompt_logprobs_of_another_shape_are_a_bad_answer(
    client: VllmClient, model_server: ModelServer, given: object
) -> None:
    model_server.next(Misshapen("prompt_logprobs", given))
    with pytest.raises(ModelBadAnswerError):
        await client.prompt_logprobs(model_server.name, [1, 2, 3], salt="s")
    assert len((await client.prompt_logprobs(model_server.name, [1, 2, 3], salt="s")).logprobs) == 2


@asynccontextmanager
async def closes_what_was_idle() -> AsyncIterator[str]:
    """A server that answers the first request of a connection and closes it, without a word, at the second."""
    body = b'{"data": []}'
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        await reader.read(1)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_connection_that_was_idle_for_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm, "KEEP_ALIVE_S", 0.05)
    async with closes_what_was_idle() as url:
        client = VllmClient(url)
        for _ in range(3):
            assert await client.models() == []
            await asyncio.sleep(0.2)
        await client.close()
