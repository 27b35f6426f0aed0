"""A model server that is silent for a minute: the wait is shown, its end is one sentence, and nothing is lost.

Time runs faster here: MODEL_TIMEOUT_S is 2 where it is 120 by default, so a silence of 60 seconds is one of 1.
"""

import asyncio

import pytest

from app.clients import vllm
from app.config import Settings
from app.services import live
from app.store import inbox
from tests.fakes.model import ModelServer, faults
from tests.fakes.telegram import TelegramServer
from tests.support.road import road

TIMEOUT_S = 2.0
MINUTE_S = 60 / 120 * TIMEOUT_S
FOR_EVER = faults.Slow(first_token_s=60.0)


def test_a_minute_is_within_the_default() -> None:
    patience_s = Settings(_env_file=None).model_timeout_s
    assert patience_s >= 60 * TIMEOUT_S / MINUTE_S
    assert patience_s < vllm.TOTAL_TIMEOUT_S  # it counts silence, not the length of a reply


async def test_a_minute_of_silence_is_waited_for(database_url: str, model: ModelServer) -> None:
    model.next(faults.Slow(first_token_s=MINUTE_S))
    async with road(database_url, model.url, model_timeout_s=TIMEOUT_S) as running, running.visitor() as visitor:
        assert (await visitor.ask("take your time"))["plain"] == "You said: take your time"
    assert len(model.calls) == 1


async def test_the_wait_is_shown_and_its_end_is_a_sentence_with_a_retry(database_url: str, model: ModelServer) -> None:
    model.next(FOR_EVER)
    async with road(database_url, model.url, model_timeout_s=TIMEOUT_S) as running, running.visitor() as visitor:
        await visitor.say("are you there?")
        await visitor.say("and this?")
        await visitor.wait(lambda items: [i for i in items if i.get("kind") == "pending"], TIMEOUT_S)
        told = await visitor.told("can't reach the model")
        await visitor.told("You said: and this?")
        shown = [i["plain"] for i in await visitor.messages() if "can't reach the model" in i.get("plain", "")]
        assert len(shown) == 1
        await visitor.press(f"t:{told['turn']['id']}")
        await visitor.told("You said: are you there?")
        turns = await running.rows("select user_text, state, failure from turns order by number")
    assert [(t["user_text"], t["state"], t["failure"]) for t in turns] == [
        ("are you there?", "failed", "unavailable"),
        ("and this?", "done", None),
        ("are you there?", "done", None),
    ]


async def test_telegram_shows_typing_for_as_long_as_the_wait_takes(
    database_url: str, model: ModelServer, telegram_server: TelegramServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "TYPING_S", live.TYPING_S * TIMEOUT_S / 120)
    model.next(FOR_EVER)
    telegram = {"telegram_bot_token": telegram_server.token, "telegram_base_url": telegram_server.base_url}
    async with road(database_url, model.url, model_timeout_s=TIMEOUT_S, **telegram):
        ann = telegram_server.user("Ann")
        ann.say("are you there?")
        await telegram_server.wait_for(lambda: any(m.text == "…" for m in ann.chat.from_bot), 10)
        await telegram_server.wait_for(lambda: any("can't reach the model" in m.text for m in ann.chat.from_bot), 20)
    texts = [m.text for m in ann.chat.from_bot]
    assert sum("can't reach the model" in words for words in texts) == 1
    assert "…" not in texts  # the sentence stands where the dots were
    assert len(telegram_server.calls_of("sendChatAction")) > 3


async def test_a_model_that_is_still_starting_is_waited_for(database_url: str, model: ModelServer) -> None:
    await model.stop()
    async with road(database_url, model.url, model_wait_s=60.0) as running, running.visitor() as visitor:
        await visitor.say("good morning")
        await visitor.wait(lambda items: [i for i in items if i.get("kind") == "pending"])
        await model.start()
        await visitor.told("You said: good morning")
        turns = await running.rows("select state, reply_text from turns")
    assert turns == [{"state": "done", "reply_text": "You said: good morning"}]


async def test_a_model_that_does_not_come_is_one_sentence_and_stop_ends_the_wait(
    database_url: str, model: ModelServer
) -> None:
    await model.stop()
    async with road(database_url, model.url, model_wait_s=2.5) as running, running.visitor() as visitor:
        await visitor.say("good morning")
        await visitor.told("can't reach the model")
    async with road(database_url, model.url, model_wait_s=60.0) as running, running.visitor() as visitor:
        await visitor.say("good evening")
        await visitor.wait(lambda items: [i for i in items if i.get("kind") == "pending"])
        await visitor.say("/stop")
        await visitor.told("topped")
        turns = await running.rows("select state from turns order by created_at")
    assert [turn["state"] for turn in turns] == ["failed", "stopped"]


async def test_a_reply_that_falls_silent_in_the_middle_can_be_stopped(database_url: str, model: ModelServer) -> None:
    model.next(faults.Slow(per_token_s=60.0))
    async with road(database_url, model.url) as running, running.visitor() as visitor:
        await visitor.say("a long story")
        await visitor.wait(lambda items: [i for i in items if i.get("kind") == "pending"])
        async with asyncio.timeout(10):
            while not model.calls:
                await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)  # the first token comes at once, the second never
        await visitor.say("/stop")
        for _ in range(100):
            if (turns := await running.rows("select state from turns")) != [{"state": "generating"}]:
                break
            await asyncio.sleep(0.1)
    assert turns == [{"state": "stopped"}]


async def test_a_reply_that_cannot_be_stored_as_it_is_is_shown_mended(database_url: str, model: ModelServer) -> None:
    model.reply_with(lambda _call: "a\x00b")
    async with road(database_url, model.url) as running, running.visitor() as visitor:
        await visitor.say("odd")
        await visitor.told("a\ufffdb")
        turns = await running.rows("select state, reply_text from turns")
    assert turns == [{"state": "done", "reply_text": "a\ufffdb"}]
    assert len(model.calls) == 1


async def test_a_crowd_that_waits_for_the_model_shuts_nobody_out(database_url: str, model: ModelServer) -> None:
    await model.stop()
    async with road(database_url, model.url, model_wait_s=600.0) as running, running.visitor() as one:
        running.gateway.lanes._seats = 1
        await one.say("tell me a story")
        async with running.visitor() as other:
            await other.say("me too")
            await other.command("stop")
            await other.told("Stopped.")
            await other.command("help")
            await other.told("Just write to me")
        await model.start()
        await one.told("You said: tell me a story", 20)
        turns = await running.rows("select user_text, state from turns order by number")
    assert [(t["user_text"], t["state"]) for t in turns] == [("tell me a story", "done"), ("me too", "stopped")]


async def test_what_was_stopped_while_nobody_wrote_it_is_not_written(
    database_url: str, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "LEASE_S", 2)
    model.next(FOR_EVER)
    async with road(database_url, model.url) as running, running.visitor() as visitor:
        await visitor.say("a long story")
        async with asyncio.timeout(10):
            while not (model.running and await running.rows("select 1 from turns")):
                await asyncio.sleep(0.02)
        for task in list(running.gateway.lanes._running):
            task.cancel()  # as if its process were gone: the lease stays
        await visitor.command("stop")
        async with asyncio.timeout(20):
            while (turn := (await running.rows("select state, reply_text from turns"))[0])["state"] == "generating":
                await asyncio.sleep(0.1)
        await visitor.told("Stopped.")
    assert (turn["state"], turn["reply_text"], len(model.calls)) == ("stopped", "", 1)
