"""The database's disk is full: whoever writes is told so and loses nothing, and room is all that is needed to go on.

The disk is a real one of a few megabytes, filled to its last page, where this process may mount one (it takes root).
What PostgreSQL then says, SQLSTATE 53100, and its relatives are raised by PostgreSQL itself everywhere else.
"""

import asyncio
import json
import secrets
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

import aiohttp
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.errors import StoreFullError, StoreUnavailableError
from app.services import lanes
from app.store import Store, inbox
from bots.telegram.webhook import SECRET_HEADER
from tests.fakes.model import ModelServer
from tests.fakes.telegram import TelegramServer
from tests.support.road import Visitor, replies, road
from tests.support.small_disk import SmallDisk, may_mount, small_disk

HOOK_SECRET = "hook-secret-of-the-test"


@pytest.fixture
def disk() -> Iterator[SmallDisk]:
    if not may_mount():
        pytest.skip("a disk of a few megabytes can be mounted by root only")
    with small_disk() as made:
        yield made


@dataclass
class Told:
    """What a visitor was told of each message: stored, or not."""

    stored: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    answers: list[tuple[int, str | None, str]] = field(default_factory=list)

    async def say(self, visitor: Visitor, words: str, update_id: str) -> None:
        body = {"id": update_id, "kind": "message", "text": words}
        url = f"{visitor.base}/chat/api/updates"
        async with visitor.session.post(url, json=body, headers={"Origin": visitor.base}) as answer:
            if answer.status == 202:
                self.stored.append(words)
                return
            self.refused.append((words, update_id))
            self.answers.append((answer.status, answer.headers.get("Retry-After"), await answer.text()))


def long_words(number: int) -> str:
    """Words that PostgreSQL cannot press together; a page has room for five."""
    return f"{number} {secrets.token_hex(600)}"


async def test_what_was_acknowledged_is_answered_and_the_rest_is_told_to_come_again(
    disk: SmallDisk, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "STORE_FULL_S", 1.0)
    monkeypatch.setattr(lanes, "RENEW_S", 1.0)
    monkeypatch.setattr(inbox, "LEASE_S", 3)  # where not even giving a message back has room, its lease runs out
    model.reply_with("fine")
    async with road(disk.url, model.url) as gateway, gateway.visitor() as visitor:
        await visitor.ask("before")
        await disk.fill()
        told = Told()
        for number in range(20):
            await told.say(visitor, long_words(number), str(uuid.uuid4()))
        assert told.stored  # pages with room still take rows
        assert told.refused
        assert {(status, again) for status, again, _ in told.answers} == {(503, "5")}
        error = json.loads(told.answers[0][2])["error"]
        assert (error["code"], "disk is full" in error["message"]) == ("unavailable", True)
        assert len(await gateway.rows("select 1 from inbox")) == 1 + len(told.stored)
        await asyncio.sleep(3)
        loops = set(gateway.gateway.running)
        assert [task for task in loops if task.done()] == []

        await disk.free()
        late = Told()
        for words, update_id in told.refused:
            await late.say(visitor, words, update_id)
        assert late.refused == []
        said = ["before", *told.stored, *late.stored]
        await visitor.wait(lambda items: len(replies(items)) == len(said), 60)
        turns = await gateway.rows("select user_text, state from turns order by number")
        assert [(t["user_text"], t["state"]) for t in turns] == [(words, "done") for words in said]


async def test_telegram_keeps_its_update_until_there_is_room(
    disk: SmallDisk, model: ModelServer, telegram_server: TelegramServer
) -> None:
    settings = {
        "telegram_bot_token": telegram_server.token,
        "telegram_base_url": telegram_server.base_url,
        "telegram_mode": "webhook",
        "telegram_webhook_secret": HOOK_SECRET,
    }
    async with road(disk.url, model.url, public_url="https://bot.example.org", **settings) as gateway:
        ann = telegram_server.user("Ann")
        hook = f"{gateway.url}/webhooks/telegram"

        async def post(number: int) -> int:
            message = {"message_id": number, "date": 1, "chat": {"id": ann.user_id, "type": "private"}}
            sender = {"id": ann.user_id, "is_bot": False, "first_name": "Ann"}
            update = {"update_id": number, "message": message | {"from": sender, "text": long_words(number)}}
            async with (
                aiohttp.ClientSession() as session,
                session.post(hook, json=update, headers={SECRET_HEADER: HOOK_SECRET}) as answer,
            ):
                return answer.status

        await disk.fill()
        answers = {number: await post(number) for number in range(1, 21)}
        assert set(answers.values()) <= {200, 503}
        assert answers[20] == 503
        stored = sum(status == 200 for status in answers.values())
        assert len(await gateway.rows("select 1 from inbox")) == stored
        await disk.free()
        assert [await post(number) for number in range(1, 21)] == [200] * 20
        assert len(await gateway.rows("select 1 from inbox")) == 20


@pytest.mark.parametrize(
    ("state", "error"),
    [
        ("53100", StoreFullError),  # disk full
        ("53200", StoreUnavailableError),  # out of memory
        ("53300", StoreUnavailableError),  # too many connections
        ("57P03", StoreUnavailableError),  # starting up
        ("58030", StoreUnavailableError),  # the disk cannot be read
        ("22012", DBAPIError),  # a wrong statement is a fault of ours and no outage
        ("57014", DBAPIError),  # and so is one that took too long
    ],
)
async def test_what_the_server_could_not_do_is_told_from_what_was_wrong(
    store: Store, state: str, error: type[Exception]
) -> None:
    with pytest.raises(error) as raised:
        async with store.begin() as tx:
            await tx.execute(text(f"do $$ begin raise exception using errcode = '{state}'; end $$"))
    assert type(raised.value) is error
    await store.ping()
