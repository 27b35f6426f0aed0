"""The client of the model server: an answer of another shape is a bad answer, whatever is wrong with it, and never a crash."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from app.clients.vllm import VllmClient
from app.domain.prompt import ChatMessage
from app.errors import ModelAwayError, ModelBadAnswerError, ModelUnavailableError
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


TOKENS = b'{"tokens": [7]}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(TOKENS), TOKENS)


async def whole_request(reader: asyncio.StreamReader) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n")[0]))


@asynccontextmanager
async def serving(requests_of_a_connection: int) -> AsyncIterator[VllmClient]:
    """A server that answers so many requests of each connection and closes it, without a word, at the next."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(requests_of_a_connection):
            await whole_request(reader)
            writer.write(ANSWER)
        await reader.read(1)
        if not requests_of_a_connection:
            server.close()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    client = VllmClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        yield client
    finally:
        await client.close()
        server.close()


async def test_a_request_on_a_connection_that_is_just_closed_is_asked_again() -> None:
    async with serving(1) as client:
        assert [await client.token_ids("m", HI) for _ in range(3)] == [(7,)] * 3


async def test_a_server_that_ends_with_a_request_is_not_waited_for() -> None:
    async with serving(0) as client:
        with pytest.raises(ModelUnavailableError) as caught:
            await client.token_ids("m", HI)
    assert not isinstance(caught.value, ModelAwayError)
