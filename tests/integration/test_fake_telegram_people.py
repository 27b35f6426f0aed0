"""The user side of the fake Bot API server, and its webhook: order, retries, repeated and malformed updates."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from tests.fakes.telegram import TelegramServer

pytest_plugins = ["tests.fakes.fixtures"]
JSON = dict[str, Any]


@dataclass(slots=True)
class Receiver:
    """A webhook of ours: `answer` decides the status of each update."""

    url: str = ""
    answer: Callable[[JSON], int] = lambda _: 200
    retry_after: str = "0"
    taken: list[JSON] = field(default_factory=list)
    tries: list[JSON] = field(default_factory=list)
    headers: list[JSON] = field(default_factory=list)

    async def receive(self, request: web.Request) -> web.Response:
        update = json.loads(await request.read())
        self.tries.append(update)
        self.headers.append(dict(request.headers))
        status = self.answer(update)
        if status == 200:
            self.taken.append(update)
        return web.Response(status=status, headers={"Retry-After": self.retry_after})


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    listening = Receiver()
    app = web.Application()
    app.router.add_post("/hook", listening.receive)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    listening.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    yield listening
    await runner.cleanup()


async def _hook(server: TelegramServer, receiver: Receiver) -> None:
    server.world.queue.allow(["message", "edited_message", "callback_query", "message_reaction"])
    await server.world.webhook.set(receiver.url, "s3cret_-", 40)


def _texts(updates: list[JSON]) -> list[str]:
    return [update["message"]["text"] for update in updates if "message" in update]


# ---------------------------------------------------------------------------------------------------------- webhook


async def test_updates_come_in_order_with_the_secret(telegram_server: TelegramServer, receiver: Receiver) -> None:
    ann = telegram_server.user()
    ann.say("before the webhook")
    await _hook(telegram_server, receiver)
    for number in range(5):
        ann.say(f"{number}")
    await telegram_server.wait_for(lambda: len(receiver.taken) == 6)
    assert _texts(receiver.taken) == ["before the webhook", "0", "1", "2", "3", "4"]
    assert {item["X-Telegram-Bot-Api-Secret-Token"] for item in receiver.headers} == {"s3cret_-"}
    assert {item["Content-Type"] for item in receiver.headers} == {"application/json"}
    assert telegram_server.world.queue.pending == []


async def test_a_refused_head_holds_its_chat_only(telegram_server: TelegramServer, receiver: Receiver) -> None:
    ann, ben = telegram_server.user("Ann"), telegram_server.user("Ben")
    refusals = iter([500, 503, 400])

    def answer(update: JSON) -> int:
        return next(refusals, 200) if update.get("message", {}).get("text") == "bad" else 200

    receiver.answer = answer
    await _hook(telegram_server, receiver)
    ann.say("bad")
    ann.say("after")
    ben.say("free")
    await telegram_server.wait_for(lambda: len(receiver.taken) == 3)
    assert _texts(receiver.taken) == ["free", "bad", "after"]
    assert _texts(receiver.tries).count("bad") == 4
    assert telegram_server.world.webhook.info()["last_error_message"].startswith("Wrong response from the webhook: 400")


async def test_reactions_and_presses_overtake_messages(telegram_server: TelegramServer, receiver: Receiver) -> None:
    ann = telegram_server.user()
    said = ann.say("stuck")
    receiver.answer = lambda update: 500 if "message" in update else 200
    await _hook(telegram_server, receiver)
    ann.react(said, "👍")
    ann.press_data(said, "x")
    await telegram_server.wait_for(lambda: len(receiver.taken) == 2)
    assert all(update["update_id"] > receiver.tries[0]["update_id"] for update in receiver.taken)
    receiver.answer = lambda _: 200
    await telegram_server.wait_for(lambda: len(receiver.taken) == 3)


async def test_a_webhook_that_is_down_gets_everything_later(
    telegram_server: TelegramServer, receiver: Receiver
) -> None:
    url, receiver.url = receiver.url, "http://127.0.0.1:9/hook"
    await _hook(telegram_server, receiver)
    ann = telegram_server.user()
    ann.say("waiting")
    await telegram_server.wait_for(lambda: telegram_server.world.webhook.last_error)
    await telegram_server.world.webhook.set(url, "", 40)
    await telegram_server.wait_for(lambda: receiver.taken)
    assert _texts(receiver.taken) == ["waiting"]
    assert "X-Telegram-Bot-Api-Secret-Token" not in receiver.headers[0]


async def test_retry_after_is_honoured(telegram_server: TelegramServer, receiver: Receiver) -> None:
    receiver.answer = lambda _: 503 if len(receiver.tries) == 1 else 200
    receiver.retry_after = "30"  # 0.3 s on the fake's scale
    await _hook(telegram_server, receiver)
    telegram_server.user().say("later")
    started = asyncio.get_running_loop().time()
    await telegram_server.wait_for(lambda: receiver.taken)
    assert asyncio.get_running_loop().time() - started >= 0.3


async def test_repeated_and_malformed_updates(telegram_server: TelegramServer, receiver: Receiver) -> None:
    await _hook(telegram_server, receiver)
    ann = telegram_server.user()
    ann.say("once")
    await telegram_server.wait_for(lambda: receiver.taken)
    telegram_server.deliver_again(telegram_server.world.queue.sent[0])
    await telegram_server.wait_for(lambda: len(receiver.taken) == 2)
    assert receiver.taken[0] == receiver.taken[1]
    telegram_server.emit({"message": {"message_id": 1, "chat": {"id": 1, "type": "private"}}})
    telegram_server.emit({"update_id": None, "message": {"text": "\x00 \ud800"}})
    await telegram_server.wait_for(lambda: len(receiver.taken) == 4)
    assert "date" not in receiver.taken[2]["message"]
    assert "update_id" not in receiver.taken[3]
    assert receiver.taken[3]["message"]["text"] == "\x00 \ud800"


# ----------------------------------------------------------------------------------------------------------- people


def _pending(server: TelegramServer) -> list[JSON]:
    return [update.body for update in server.world.queue.pending]


async def test_privacy_mode(telegram_server: TelegramServer) -> None:
    ann = telegram_server.user()
    group = telegram_server.group("Team", ann)
    telegram_server.world.queue.pending.clear()
    for text in ("just talk", "/help", "/help@another_bot", "/help@mentee_test_bot", "hey @Mentee_test_bot"):
        ann.say(text, group.chat)
    assert _texts(_pending(telegram_server)) == ["/help", "/help@mentee_test_bot", "hey @Mentee_test_bot"]
    group.promote_bot()
    ann.say("now it hears all", group.chat)
    assert _texts(_pending(telegram_server))[-1] == "now it hears all"
    group.remove_bot()
    ann.say("and now nothing", group.chat)
    assert _texts(_pending(telegram_server))[-1] == "now it hears all"


async def test_message_ids_are_shared_between_small_chats_only(telegram_server: TelegramServer) -> None:
    ann, ben = telegram_server.user(), telegram_server.user()
    group, huge = telegram_server.group("g", ann, kind="group"), telegram_server.group("s", ann)
    ids = [ann.say("a").message_id, ben.say("b").message_id, ann.say("c", group.chat).message_id]
    assert ids == [1, 2, 3]
    assert ann.say("d", huge.chat).message_id == 2


async def test_long_texts_arrive_as_a_client_cuts_them(telegram_server: TelegramServer) -> None:
    ann = telegram_server.user()
    pieces = ann.say_long("x" * 100_000)
    assert [len(piece.text) for piece in pieces] == [4096] * 24 + [1696]
    for text in ("", "   ", "x" * 4097):
        with pytest.raises(ValueError, match="1 to 4096"):
            ann.say(text)


async def test_quotes_forwards_and_commands(telegram_server: TelegramServer) -> None:
    ann = telegram_server.user()
    said = ann.say("😀 it is Paris")
    ann.say("no, Lyon", reply_to=said, quote="Paris")
    ann.forward("their words", {"type": "hidden_user", "sender_user_name": "Somebody"})
    ann.start("invite")
    replied, forwarded, started = (update["message"] for update in _pending(telegram_server)[1:])
    assert replied["quote"] == {"text": "Paris", "position": 9, "is_manual": True}
    assert replied["reply_to_message"]["text"] == "😀 it is Paris"
    assert forwarded["forward_origin"]["type"] == "hidden_user"
    assert started["entities"] == [{"type": "bot_command", "offset": 0, "length": 6}]
    assert started["from"]["language_code"] == "en"


async def test_reaction_states(telegram_server: TelegramServer) -> None:
    telegram_server.world.queue.allow(["message_reaction"])
    ann = telegram_server.user()
    group = telegram_server.group("Team", ann)
    said = ann.say("x")
    ann.react(said, "👍")
    ann.react(said, "👎")
    ann.react(said)
    ann.react(ann.say("y", group.chat), "👍")
    changes = [
        tuple(
            "".join(item["emoji"] for item in update["message_reaction"][name])
            for name in ("old_reaction", "new_reaction")
        )
        for update in _pending(telegram_server)
    ]
    assert changes == [("", "👍"), ("👍", "👎"), ("👎", "")]
    group.promote_bot()
    group.react_anonymously(said, "👍")
    assert "user" not in _pending(telegram_server)[-1]["message_reaction"]


async def test_block_and_return(telegram_server: TelegramServer) -> None:
    ann = telegram_server.user()
    ann.block()
    ann.say("I am back")
    statuses = [
        update["my_chat_member"]["new_chat_member"]["status"]
        for update in _pending(telegram_server)
        if "my_chat_member" in update
    ]
    assert statuses == ["kicked", "member"]


async def test_topics(telegram_server: TelegramServer) -> None:
    ann = telegram_server.user()
    group = telegram_server.group("Forum", ann, forum=True)
    topic = group.topic("Talk")
    ann.say("/hi", group.chat, thread=topic)
    assert _pending(telegram_server)[-1]["message"]["message_thread_id"] == topic
    assert _pending(telegram_server)[-1]["message"]["is_topic_message"]


async def test_waiting_gives_up(telegram_server: TelegramServer) -> None:
    with pytest.raises(TimeoutError):
        await telegram_server.wait_for(lambda: False, timeout_s=0.1)
