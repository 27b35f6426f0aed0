"""Limits of attempts behind a proxy: each client has its own, and nobody gets another one by what they write."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from app.web.receipt import WRONG_CODES
from bots.web.identity import BAD_CODES
from tests.fakes.model import ModelServer
from tests.support.road import Road, road

CODE = "2345-6789-ABCD-EFGH"


@pytest.fixture
async def behind(database_url: str, model: ModelServer) -> AsyncIterator[Road]:
    """A gateway whose proxy is on this machine."""
    async with road(database_url, model.url, trusted_proxies="127.0.0.1") as gateway:
        yield gateway


async def recover(gateway: Road, forwarded: str | None) -> int:
    """Try a recovery code that nobody has; return the status."""
    headers = {"Origin": gateway.url} | ({"X-Forwarded-For": forwarded} if forwarded else {})
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{gateway.url}/chat/api/recover", json={"code": CODE}, headers=headers) as answer,
    ):
        return answer.status


async def receipt(gateway: Road, forwarded: str) -> int:
    """Look for a receipt that is none; return the status."""
    async with (
        aiohttp.ClientSession() as http,
        http.get(f"{gateway.url}/receipt?code=x", headers={"X-Forwarded-For": forwarded}) as answer,
    ):
        return answer.status


async def test_wrong_codes_lock_out_who_tried_them_and_nobody_else(behind: Road) -> None:
    tries = [await recover(behind, "203.0.113.7") for _ in range(BAD_CODES.most + 1)]
    assert tries == [404] * BAD_CODES.most + [429]
    assert await recover(behind, "203.0.113.8") == 404
    assert await recover(behind, None) == 404


async def test_a_client_that_names_another_address_stays_locked_out(behind: Road) -> None:
    tries = [await recover(behind, f"198.51.100.{n}, 203.0.113.7") for n in range(BAD_CODES.most + 1)]
    assert tries[-1] == 429
    assert await recover(behind, "127.0.0.1, 203.0.113.7") == 429


async def test_without_trusted_proxies_the_header_counts_for_nothing(running: Road) -> None:
    tries = [await recover(running, f"198.51.100.{n}") for n in range(BAD_CODES.most + 1)]
    assert tries[-1] == 429


async def test_receipts_are_limited_by_client_too(behind: Road) -> None:
    tries = [await receipt(behind, "203.0.113.7") for _ in range(WRONG_CODES + 1)]
    assert (tries[-2], tries[-1]) == (404, 429)
    assert await receipt(behind, "203.0.113.8") == 404


async def test_what_the_page_sends_still_arrives(behind: Road) -> None:
    async with behind.visitor() as visitor:
        visitor.session.headers["X-Forwarded-For"] = "203.0.113.7"
        assert "You said: hello" in (await visitor.ask("hello"))["plain"]
        async with visitor.session.get(f"{behind.url}/chat") as page:
            assert page.headers["X-Request-Id"] != "-"
            assert "trusted-types mentee" in page.headers["Content-Security-Policy"]
            assert page.headers["X-Frame-Options"] == "DENY"
