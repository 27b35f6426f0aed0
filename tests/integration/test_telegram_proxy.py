"""Calls to Telegram go through the proxy that the environment names, as its operator's network asks."""

from base64 import b64encode
from collections.abc import AsyncIterator, Iterator

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer

from bots.telegram import http
from bots.telegram.http import AiohttpRequest


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Let the environment be read as at a start."""
    http._proxy.cache_clear()
    yield
    http._proxy.cache_clear()


@pytest.fixture
async def request_() -> AsyncIterator[AiohttpRequest]:
    """What python-telegram-bot calls through."""
    made = AiohttpRequest(2)
    await made.initialize()
    yield made
    await made.shutdown()


async def test_the_environment_s_proxy_is_asked_with_its_password(
    request_: AiohttpRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str | None]] = []

    async def forward(request: web.BaseRequest) -> web.StreamResponse:
        asked.append((request.raw_path, request.headers.get("Proxy-Authorization")))
        return web.Response(text="through the proxy")

    async with RawTestServer(forward, host="127.0.0.1") as proxy:
        monkeypatch.setenv("http_proxy", f"http://house:secret@127.0.0.1:{proxy.port}")
        monkeypatch.setenv("no_proxy", "")
        status, body = await request_.do_request("http://api.telegram.test/bot1:x/getMe", "POST")
    assert (status, body) == (200, b"through the proxy")
    assert asked == [("http://api.telegram.test/bot1:x/getMe", "Basic " + b64encode(b"house:secret").decode())]


async def test_a_host_that_is_excepted_is_asked_directly(
    request_: AiohttpRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text="direct")

    async with RawTestServer(answer, host="127.0.0.1") as server:
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert await request_.do_request(str(server.make_url("/bot1:x/getMe")), "POST") == (200, b"direct")
