"""The outermost layer: errors that say little, a request id on everything, health that tells strangers only the status."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from app.errors import InvalidInputError, PausedError
from app.ports import PartHealth
from app.web.health import Started, add_health_routes
from app.web.middleware import install

SECRET = "postgresql://u:hunter2@db/x"


class Parts:
    def __init__(self) -> None:
        self.states: list[PartHealth] = [PartHealth("database", "ok", required=True)]
        self.wait_s = 0.0

    async def health(self) -> Sequence[PartHealth]:
        await asyncio.sleep(self.wait_s)
        return self.states


async def crash(_: web.Request) -> web.Response:
    raise RuntimeError(SECRET)


async def refuse(_: web.Request) -> web.Response:
    raise InvalidInputError("the name is too long")


async def pause(_: web.Request) -> web.Response:
    raise PausedError


@pytest.fixture
def parts() -> Parts:
    return Parts()


@pytest.fixture
def started() -> Started:
    return Started()


@pytest.fixture
async def http(parts: Parts, started: Started) -> AsyncIterator[aiohttp.ClientSession]:
    app = web.Application()
    install(app)
    add_health_routes(app, parts, started)
    for path, handler in (("/crash", crash), ("/refuse", refuse), ("/pause", pause)):
        app.router.add_get(path, handler)
    async with TestServer(app, host="127.0.0.1") as server, aiohttp.ClientSession(server.make_url("/")) as session:
        yield session


async def test_a_crash_says_nothing_but_the_request_id(http: aiohttp.ClientSession) -> None:
    for accept in ("text/html", "application/json"):
        async with http.get("/crash", headers={"Accept": accept}) as response:
            body = await response.text()
            assert response.status == 500
            assert response.headers["X-Request-Id"] in body
            for leak in ("hunter2", "Traceback", "RuntimeError", ".py", "aiohttp"):
                assert leak not in body + str(response.headers)


async def test_errors_speak_the_reader_s_language(http: aiohttp.ClientSession) -> None:
    headers = {"Accept": "text/html", "Accept-Language": "ko"}
    async with http.get("/nowhere", headers=headers) as response:
        assert response.status == 404
        assert "그런 페이지가 없거나" in await response.text()


async def test_machines_get_the_sentence_of_a_refusal(http: aiohttp.ClientSession) -> None:
    async with http.get("/refuse") as response:
        assert response.status == 400
        assert (await response.json())["error"]["message"] == "the name is too long"
    async with http.get("/pause") as response:
        assert (response.status, response.headers["Retry-After"]) == (503, "5")


async def test_request_ids_are_ours(http: aiohttp.ClientSession) -> None:
    async with http.get("/healthz", headers={"X-Request-Id": "mine\tmine"}) as response:
        assert len(response.headers["X-Request-Id"]) == 16


async def test_the_health_trio(http: aiohttp.ClientSession, parts: Parts, started: Started) -> None:
    async def status(path: str) -> int:
        async with http.get(path) as response:
            return response.status

    assert [await status(p) for p in ("/healthz", "/startupz", "/readyz")] == [200, 503, 503]
    started.complete()
    assert [await status(p) for p in ("/healthz", "/startupz", "/readyz")] == [200, 200, 200]
    parts.states.append(PartHealth("trainer", "down"))
    assert await status("/readyz") == 200, "not required"
    parts.states.append(PartHealth("telegram", "down", "cannot take messages in", required=True))
    assert [await status(p) for p in ("/healthz", "/readyz")] == [200, 503]


async def test_details_stay_on_this_machine(http: aiohttp.ClientSession, parts: Parts, started: Started) -> None:
    started.complete()
    parts.states.append(PartHealth("trainer", "degraded", "restarted twice"))
    async with http.get("/readyz") as response:
        assert (await response.json())["parts"]["trainer"]["detail"] == "restarted twice"
    for header in ("X-Forwarded-For", "Forwarded"):
        async with http.get("/readyz", headers={header: "203.0.113.9"}) as response:
            assert await response.json() == {"status": "ready"}


async def test_a_probe_that_hangs_is_not_ready(http: aiohttp.ClientSession, parts: Parts, started: Started) -> None:
    started.complete()
    parts.wait_s = 30
    async with http.get("/readyz") as response:
        assert response.status == 503
