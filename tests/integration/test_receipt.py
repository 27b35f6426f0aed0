"""The page of a receipt: it tells what became of a forgetting to whoever has the code, and nothing to anybody else."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from app.services.forget import forget_person
from app.store import Store
from app.web.middleware import HEADERS, install
from app.web.receipt import WRONG_CODES, add_receipt_route
from tests.support.lessons import pupil
from tests.support.road import Road, Visitor


@pytest.fixture
async def url(store: Store) -> AsyncIterator[str]:
    """The address of the page alone."""
    app = web.Application()
    install(app)
    add_receipt_route(app, store)
    async with TestServer(app, host="127.0.0.1") as server:
        yield f"http://127.0.0.1:{server.port}/receipt"


async def look(url: str, code: str = "", language: str = "en") -> tuple[int, str]:
    """Open the page as a stranger."""
    async with (
        aiohttp.ClientSession() as http,
        http.get(url, params={"code": code, "language": language} if code else {"language": language}) as answer,
    ):
        assert HEADERS.items() <= dict(answer.headers).items()
        assert answer.headers["Cache-Control"] == "no-store"
        return answer.status, await answer.text()


async def test_the_code_shows_state_and_counts_in_both_languages(url: str, store: Store, tmp_path: Path) -> None:
    who = await pupil(store)
    given = await forget_person(store, tmp_path, who.person_id, "all", "person")
    status, shown = await look(url, given.code)
    assert status == 200
    assert "still being removed" in shown
    assert "Messages: 6" in shown
    assert "Memories: 1" in shown
    status, shown = await look(url, f" {given.code} ", "ko")
    assert status == 200
    assert "기억: 1" in shown
    assert '<html lang="ko">' in shown


async def test_a_chat_s_receipt_counts_no_memories(url: str, store: Store, tmp_path: Path) -> None:
    who = await pupil(store)
    given = await forget_person(store, tmp_path, who.person_id, "chat", "person")
    _, shown = await look(url, given.code)
    assert "Messages: 6" in shown
    assert "Memories" not in shown


async def test_without_a_code_there_is_only_the_form(url: str) -> None:
    status, shown = await look(url)
    assert (status, 'name="code"' in shown, 'role="' in shown) == (200, True, False)


async def test_a_wrong_code_tells_nothing(url: str, store: Store, tmp_path: Path) -> None:
    who = await pupil(store)
    given = await forget_person(store, tmp_path, who.person_id, "all", "person")
    pages = [await look(url, code) for code in (given.code[:-1], "x", "a" * 500, '"><script>alert(1)</script>')]
    assert {status for status, _ in pages} == {404}
    assert len({shown for _, shown in pages}) == 1
    assert "script" not in pages[0][1]


async def test_guessing_is_slowed_down(url: str) -> None:
    seen = [(await look(url, f"guess-{number}"))[0] for number in range(WRONG_CODES + 1)]
    assert seen == [404] * WRONG_CODES + [429]


async def test_who_forgets_everything_reads_the_code_and_where_it_works(running: Road, visitor: Visitor) -> None:
    await visitor.ask("hello")
    words = ""
    async with asyncio.timeout(15), visitor.session.get(f"{running.url}/chat/api/stream") as events:
        await visitor.press("f::all")
        async for raw in events.content:
            if b"receipt" in raw:
                words = json.loads(raw.decode().removeprefix("data: "))["text"]
    assert f"{running.settings.address}/receipt" in words
    code = re.search(r"receipt: (\S+)", words)
    assert code
    status, shown = await look(f"{running.url}/receipt", code[1])
    assert (status, "Messages: 1" in shown) == (200, True)
