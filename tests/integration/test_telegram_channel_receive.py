"""How updates arrive: each is stored before Telegram is told so, by poll and by webhook, whatever goes wrong."""

import asyncio
import contextlib
import io
import json
from collections.abc import AsyncIterator, Sequence

import aiohttp
import pytest
from aiohttp import web

from app.errors import InvalidInputError, StoreUnavailableError
from bots.base import RawUpdate
from bots.telegram import receive
from bots.telegram.faults import TokenRefusedError
from bots.telegram.keys import KEPT_BYTES, QUARANTINE_LANE
from bots.telegram.people import Me
from bots.telegram.receive import TelegramPoller, backoff_s
from bots.telegram.send import TelegramChannel, build_bot
from bots.telegram.webhook import MAX_BODY, SECRET_HEADER, register_webhook, webhook_handler
from tests.fakes.telegram import TelegramServer

SECRET = "s3cret-of-the-webhook"
ME = Me(7310001, "mentee_test_bot")


class Inbox:
    """What was accepted, repeats dropped by any key; `away` makes the store unreachable."""

    def __init__(self) -> None:
        self.rows: list[RawUpdate] = []
        self.batches = 0
        self.away = False
        self._seen: set[str] = set()

    async def accept(self, updates: Sequence[RawUpdate]) -> None:
        if self.away:
            raise StoreUnavailableError
        self.batches += 1
        for update in updates:
            if self._seen.isdisjoint(update.keys):
                self.rows.append(update)
            self._seen.update(update.keys)

    @property
    def texts(self) -> list[str]:
        messages = [json.loads(row.body).get("message") for row in self.rows]
        return [m["text"] for m in messages if isinstance(m, dict) and "text" in m]


class Lease:
    def __init__(self) -> None:
        self.mine = True

    async def hold(self) -> bool:
        return self.mine


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as running:
        yield running


@pytest.fixture
async def channel(server: TelegramServer) -> AsyncIterator[TelegramChannel]:
    opened = TelegramChannel(build_bot(server.token, server.base_url))
    await opened.start()
    yield opened
    await opened.close()


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the waits short."""
    monkeypatch.setattr(receive, "_FIRST_BACKOFF_S", 0.02)
    monkeypatch.setattr(receive, "_LEASE_RETRY_S", 0.02)


@contextlib.asynccontextmanager
async def polling(channel: TelegramChannel, inbox: Inbox, lease: Lease | None = None) -> AsyncIterator[None]:
    task = asyncio.create_task(TelegramPoller(channel._bot, inbox.accept, lease or Lease(), poll_s=1).run())
    yield
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def until(condition: object) -> None:
    assert callable(condition)
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError


async def test_everything_a_person_does_arrives(server: TelegramServer, channel: TelegramChannel, inbox: Inbox) -> None:
    ann = server.user("Ann")
    ann.say("before the bot said which updates it wants")
    async with polling(channel, inbox):
        await until(lambda: inbox.rows)
        message = ann.say("hello")
        ann.edit(message, "hello!")
        ann.react(message, "👍")
        ann.block()
        await until(lambda: len(inbox.rows) == 5)
    names = [next(name for name in json.loads(row.body) if name != "update_id") for row in inbox.rows]
    assert sorted(names) == ["edited_message", "message", "message", "message_reaction", "my_chat_member"]
    for row in inbox.rows:
        assert channel.parse(row.body)


async def test_an_update_is_confirmed_only_once_it_is_stored(
    server: TelegramServer, channel: TelegramChannel, inbox: Inbox
) -> None:
    inbox.away = True
    server.user("Ann").say("do not lose me")
    async with polling(channel, inbox):
        await until(lambda: len(server.calls_of("getUpdates")) >= 3)
        assert all("offset" not in call.values for call in server.calls_of("getUpdates"))
        inbox.away = False
        await until(lambda: inbox.rows)
    assert inbox.texts == ["do not lose me"]


async def test_a_repeat_and_a_restart_change_nothing(
    server: TelegramServer, channel: TelegramChannel, inbox: Inbox
) -> None:
    ann = server.user("Ann")
    async with polling(channel, inbox):
        ann.say("one")
        await until(lambda: inbox.rows)
        server.deliver_again(server.world.queue.sent[0])
        ann.say("two")
        await until(lambda: len(inbox.rows) == 2)
    async with polling(channel, inbox):
        ann.say("three")
        await until(lambda: len(inbox.rows) == 3)
    assert inbox.texts == ["one", "two", "three"]


# https://github.com/python-telegram-bot/python-telegram-bot/issues/1244
@pytest.mark.parametrize(
    "broken",
    [
        {"message": {"text": "no date, no chat"}},
        {"message": {"message_id": "x", "date": 1, "chat": 5}},
        {"message": []},
        {"message_reaction": {"new_reaction": [{"type": "aura"}]}},
    ],
)
async def test_a_broken_update_holds_nobody_up(
    server: TelegramServer, channel: TelegramChannel, inbox: Inbox, broken: dict[str, object]
) -> None:
    async with polling(channel, inbox):
        server.emit(broken)
        server.user("Ann").say("after it")
        await until(lambda: "after it" in inbox.texts)
    assert len(inbox.rows) == 2
    assert inbox.rows[0].lane == "quarantine"


@pytest.mark.parametrize(
    ("status", "words"), [(409, "Conflict: terminated by other getUpdates request"), (502, "Bad Gateway")]
)
async def test_conflicts_and_outages_are_waited_out(
    server: TelegramServer, channel: TelegramChannel, inbox: Inbox, status: int, words: str
) -> None:
    server.fail_next("getUpdates", status, words, times=3)
    async with polling(channel, inbox):
        server.user("Ann").say("still here")
        await until(lambda: inbox.rows)
    assert inbox.texts == ["still here"]


async def test_a_webhook_left_behind_is_removed_before_polling(
    server: TelegramServer, channel: TelegramChannel, inbox: Inbox
) -> None:
    await channel._bot.set_webhook("https://example.org/hook")
    async with polling(channel, inbox):
        server.user("Ann").say("hi")
        await until(lambda: inbox.rows)
    assert inbox.texts == ["hi"]
    assert (await channel._bot.get_webhook_info()).url == ""


async def test_without_the_lease_nothing_is_fetched(
    server: TelegramServer, channel: TelegramChannel, inbox: Inbox
) -> None:
    lease = Lease()
    lease.mine = False
    async with polling(channel, inbox, lease):
        server.user("Ann").say("hi")
        await asyncio.sleep(0.2)
        assert server.calls_of("getUpdates") == []
        lease.mine = True
        await until(lambda: inbox.rows)


async def test_a_revoked_token_ends_the_polling(server: TelegramServer, channel: TelegramChannel, inbox: Inbox) -> None:
    server.fail_next("getUpdates", 401, "Unauthorized")
    with pytest.raises(TokenRefusedError, match="TELEGRAM_BOT_TOKEN"):
        await TelegramPoller(channel._bot, inbox.accept, Lease()).run()


def test_the_wait_grows_to_a_minute_and_no_further() -> None:
    assert backoff_s(1) < backoff_s(8) <= backoff_s(1000) * 2
    assert backoff_s(1000) <= 60


# ----------------------------------------------------------------------------------------------------------- webhook


@pytest.fixture
async def hook(inbox: Inbox) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/telegram", webhook_handler(SECRET, inbox.accept, lambda: ME))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/telegram"
    await runner.cleanup()


async def post(url: str, body: bytes, secret: str | None = SECRET, **headers: str) -> int:
    given = headers if secret is None else {SECRET_HEADER: secret, **headers}
    async with aiohttp.ClientSession() as session, session.post(url, data=io.BytesIO(body), headers=given) as response:
        assert await response.read() == b""
    await asyncio.sleep(0.01)  # a connection refused in mid-body closes a moment later
    return response.status


@pytest.mark.parametrize(
    "body", [b'{"update_id": 1}', b"not json", b"", b'{"update_id":2,"message":{"text":"\\ud800"}}']
)
async def test_what_is_authentic_is_stored_as_it_came(hook: str, inbox: Inbox, body: bytes) -> None:
    assert await post(hook, body) == 200
    assert await post(hook, body, **{"Content-Type": "application/json; charset=utf-8"}) == 200
    assert [row.body for row in inbox.rows] == [body]


@pytest.mark.parametrize("secret", [None, "", "wrong", SECRET + "x", SECRET[:-1], "ÿþ"])
async def test_what_is_not_authentic_is_not_stored(hook: str, inbox: Inbox, secret: str | None) -> None:
    assert await post(hook, b'{"update_id": 1}', secret) == 401
    assert inbox.rows == []


async def test_of_a_body_longer_than_any_update_the_beginning_is_set_aside(
    hook: str, inbox: Inbox, channel: TelegramChannel
) -> None:
    text = json.dumps({"update_id": 7, "message": {"text": "x" * MAX_BODY}}).encode()
    # Telegram comes again with the same until it is taken.
    assert [await post(hook, text) for _ in range(2)] == [200, 200]
    (row,) = inbox.rows
    assert (row.body, row.lane) == (text[:KEPT_BYTES], QUARANTINE_LANE)
    with pytest.raises(InvalidInputError):
        channel.parse(row.body)
    assert await post(hook, text.replace(b'": 7', b'": 8')) == 200
    assert len(inbox.rows) == 2


async def test_the_longest_body_is_taken_whole(hook: str, inbox: Inbox) -> None:
    assert await post(hook, b"x" * MAX_BODY) == 200
    assert [len(row.body) for row in inbox.rows] == [MAX_BODY]


# https://github.com/vercel/chat/issues/799
async def test_while_the_store_is_away_telegram_is_asked_to_come_again(hook: str, inbox: Inbox) -> None:
    inbox.away = True
    assert await post(hook, b'{"update_id": 1}') == 503
    inbox.away = False
    assert [await post(hook, b'{"update_id": 1}') for _ in range(3)] == [200, 200, 200]
    assert len(inbox.rows) == 1


async def test_telegram_posts_to_the_address_it_was_given(
    server: TelegramServer, channel: TelegramChannel, hook: str, inbox: Inbox
) -> None:
    await register_webhook(channel._bot, hook, SECRET)
    ann = server.user("Ann")
    ann.react(ann.say("hello"), "👍")
    await until(lambda: len(inbox.rows) == 2)
    assert {row.lane.partition(":")[0] for row in inbox.rows} == {str(ann.user_id), "votes"}
