"""A channel that is never written to: replies are in the answer to a post, or in the answer to the next one; each once."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from app.domain.consent import UNSTATED
from app.domain.outgoing import Content
from app.gateway import keeping
from app.ports import InResponse
from app.services.housekeeping import clean
from app.services.intake import Intake
from app.store import inbox, outbox, responses
from bots.base import RawUpdate
from tests.fakes.model import ModelServer, faults
from tests.support.parrot import KEY, Parrot, install
from tests.support.road import Road, road
from tests.support.whatsapp import count, settled

LATER = "still working on the answer"
SLOW = faults.Slow(first_token_s=1.2)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The example channel, found by its entry point."""
    install(monkeypatch, tmp_path)


@pytest.fixture
def hurried(installed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A platform that waits for one second only, so that tests need not."""
    from parrot import ParrotChannel

    less = replace(ParrotChannel.capabilities, reply_mode=InResponse(1.0))
    monkeypatch.setattr(ParrotChannel, "capabilities", less)


class LastingServer(TestServer):
    """A server that goes on for who has hung up, as the gateway's own does."""

    async def _make_runner(self, **options: object) -> web.AppRunner:
        return web.AppRunner(self.app, **options | {"handler_cancellation": False})


@pytest.fixture
async def gateway(
    installed: None, database_url: str, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Road]:
    """A gateway with the example channel."""
    monkeypatch.setattr("tests.support.road.TestServer", LastingServer)
    async with road(database_url, model.url, parrot_secret=KEY) as running:
        yield running


@pytest.fixture
async def parrot(gateway: Road) -> Parrot:
    """The platform, where somebody was greeted already."""
    platform = Parrot(gateway.url)
    await platform.say("ann", "/start")
    async with asyncio.timeout(20):
        # On a busy machine the greeting may come with the next answer.
        while await count(gateway, "outbox where state in ('due', 'sending')") or not await count(gateway, "outbox"):
            await platform.say("ann", "/whoami")
    return platform


async def turns(gateway: Road) -> list[tuple[str, str]]:
    rows = await gateway.rows("select user_text, state from turns order by number")
    return [(row["user_text"], row["state"]) for row in rows]


async def test_the_reply_is_in_the_answer(gateway: Road) -> None:
    platform = Parrot(gateway.url)
    first = await platform.say("ann", "What is tea?")
    assert "You said: What is tea?" in first[-1]
    assert "after 👎, tell me in plain words" in first[0]  # nothing can be swiped here
    assert any("/1 ⬜" in text for text in first), first  # choices are numbered lines
    assert not any("**" in text for text in first)  # and marks that nobody would see as formats are gone
    assert await platform.say("ann", "And coffee?") == ["You said: And coffee?"]
    assert await turns(gateway) == [("What is tea?", "done"), ("And coffee?", "done")]
    await settled(gateway)  # the receipt is written once the answer was
    assert await count(gateway, "outbox where state <> 'sent'") == 0


async def test_numbers_choose(gateway: Road, parrot: Parrot) -> None:
    await parrot.say("ann", "/privacy")
    await parrot.say("ann", "/1")
    rows = await gateway.rows("select event from consent_events where purpose <> 'service'")
    assert [row["event"] for row in rows] == ["given"]


async def test_where_nothing_may_train_learn_turns_on_memory_alone(
    installed: None, database_url: str, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    import parrot as example

    monkeypatch.setattr("tests.support.road.TestServer", LastingServer)
    monkeypatch.setattr(example, "PACKAGE", replace(example.PACKAGE, data_use=UNSTATED))
    async with road(database_url, model.url, parrot_secret=KEY) as running:
        platform = Parrot(running.url)
        await platform.say("ann", "/learn on")
        await platform.until("ann", "Memory")
        await platform.say("ann", "/learn off")
        await platform.until("ann", "Off:")
        events = await running.rows("select purpose, event from consent_events")
        assert [(row["purpose"], row["event"]) for row in events] == [("memory", "given")]
        assert {row["state"] for row in await running.rows("select state from inbox")} == {"done"}


async def test_what_takes_longer_comes_with_the_next_answer(
    hurried: None, gateway: Road, parrot: Parrot, model: ModelServer
) -> None:
    model.next(SLOW)
    began = time.monotonic()
    (sentence,) = await parrot.say("ann", "What is tea?")
    assert LATER in sentence
    assert time.monotonic() - began < 1.0
    await asyncio.sleep(1.5)
    assert await parrot.say("ann", "And coffee?") == ["You said: What is tea?", "You said: And coffee?"]
    assert await turns(gateway) == [("What is tea?", "done"), ("And coffee?", "done")]


async def test_the_platforms_own_five_seconds_are_kept(gateway: Road, parrot: Parrot, model: ModelServer) -> None:
    model.next(faults.Slow(first_token_s=6.0))
    began = time.monotonic()
    (sentence,) = await parrot.say("ann", "What is tea?")
    assert LATER in sentence
    assert 3.0 < time.monotonic() - began < 5.0


async def test_the_sentence_is_in_the_persons_language(hurried: None, parrot: Parrot, model: ModelServer) -> None:
    await parrot.say("ann", "/language ko")
    model.next(SLOW)
    (sentence,) = await parrot.say("ann", "차가 뭐예요?")
    assert "아직 답을 쓰고 있어요" in sentence


async def test_a_repeat_is_answered_the_same_and_has_no_second_effect(gateway: Road, parrot: Parrot) -> None:
    once = await parrot.say("ann", "What is tea?", "7")
    await parrot.say("ann", "And coffee?", "8")
    assert await parrot.say("ann", "What is tea?", "7") == once == ["You said: What is tea?"]
    assert await turns(gateway) == [("What is tea?", "done"), ("And coffee?", "done")]


async def test_a_repeat_shows_nothing_of_what_is_not_kept_any_more(gateway: Road, parrot: Parrot) -> None:
    await parrot.say("ann", "What is tea?", "7")
    await settled(gateway)
    await gateway.store_execute("update sessions set ended_at = now()")
    await clean(gateway.store, gateway.settings)
    assert await parrot.say("ann", "What is tea?", "7") == []
    assert len(await turns(gateway)) == 1


async def test_the_time_that_storing_takes_counts(
    hurried: None, gateway: Road, parrot: Parrot, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept = Intake.accept_one

    async def late(self: Intake, bot_id: UUID, update: RawUpdate) -> inbox.Accepted:
        accepted = await accept(self, bot_id, update)
        await asyncio.sleep(0.4)
        return accepted

    monkeypatch.setattr(Intake, "accept_one", late)
    model.next(faults.Slow(first_token_s=3.0))
    began = time.monotonic()
    (sentence,) = await parrot.say("ann", "What is tea?")
    assert LATER in sentence
    assert time.monotonic() - began < 0.9


async def test_a_repeat_of_what_came_too_late_is_given_the_reply(
    hurried: None, gateway: Road, parrot: Parrot, model: ModelServer
) -> None:
    model.next(SLOW)
    assert LATER in (await parrot.say("ann", "What is tea?", "7"))[0]
    await asyncio.sleep(1.5)
    assert await parrot.say("ann", "What is tea?", "7") == ["You said: What is tea?"]
    assert await turns(gateway) == [("What is tea?", "done")]


async def test_repeats_at_the_same_time_are_answered_alike(parrot: Parrot, gateway: Road, model: ModelServer) -> None:
    model.next(faults.Slow(first_token_s=0.5))
    answers = await asyncio.gather(*(parrot.say("ann", "What is tea?", "7") for _ in range(3)))
    assert answers == [["You said: What is tea?"]] * 3
    assert await turns(gateway) == [("What is tea?", "done")]


async def test_an_answer_that_nobody_waited_for_comes_with_the_next(
    gateway: Road, parrot: Parrot, model: ModelServer
) -> None:
    model.next(faults.Slow(first_token_s=1.0))
    with pytest.raises(TimeoutError):
        await parrot.say("ann", "What is tea?", timeout_s=0.4)
    async with asyncio.timeout(10):
        while await count(gateway, "outbox where error = 'not_taken' and state = 'due'") != 1:
            await asyncio.sleep(0.05)
    assert await parrot.say("ann", "And coffee?") == ["You said: What is tea?", "You said: And coffee?"]
    await settled(gateway)  # the receipt is written once the answer was
    assert await count(gateway, "outbox where state <> 'sent'") == 0


async def test_what_one_person_says_at_once_is_shown_once_and_in_order(gateway: Road, parrot: Parrot) -> None:
    await asyncio.gather(*(parrot.say("ann", f"word {n}", str(n)) for n in range(5)))
    said = [text for text, _ in await turns(gateway)]
    rows = await gateway.rows("select content->>'text' as text from outbox where turn_id is not null order by id")
    assert [row["text"] for row in rows] == [f"You said: {text}" for text in said]
    shown = [text for text in parrot.shown["ann"] if text.startswith("You said")]
    assert sorted(shown) == sorted(f"You said: word {n}" for n in range(5))


async def test_stop_overtakes(gateway: Road, parrot: Parrot, model: ModelServer) -> None:
    model.next(faults.Slow(first_token_s=4.0))
    waiting = asyncio.create_task(parrot.say("ann", "Tell me everything"))
    async with asyncio.timeout(10):
        while await count(gateway, "turns where state in ('waiting', 'generating')") != 1:
            await asyncio.sleep(0.05)
    began = time.monotonic()
    await parrot.say("ann", "/stop")
    await waiting
    assert time.monotonic() - began < 2.0
    assert [state for _, state in await turns(gateway)] == ["stopped"]


async def test_news_comes_with_the_next_answer_and_to_its_own_chat(gateway: Road, parrot: Parrot) -> None:
    await parrot.say("ben", "/start")
    (chat,) = await gateway.rows("select id from chats where external_id = 'ann'")
    async with gateway.store.begin() as tx:
        await outbox.put(tx, chat["id"], Content("There is news"))
    await asyncio.sleep(1.0)
    assert "There is news" not in await parrot.say("ben", "hello")
    assert await parrot.say("ann", "hello") == ["There is news", "You said: hello"]


async def test_what_is_forged_is_refused_and_what_cannot_be_read_is_set_aside(gateway: Road, parrot: Parrot) -> None:
    before = await count(gateway, "inbox")
    await parrot.post({"id": "9", "user": "ann", "text": "hi"}, signature="0" * 64)
    assert parrot.statuses[-1] == 401
    assert await count(gateway, "inbox") == before
    assert await parrot.post(b"not a post") == []
    async with asyncio.timeout(10):
        while await count(gateway, "inbox where state = 'quarantined'") != 1:
            await asyncio.sleep(0.05)


async def test_forgetting_leaves_a_receipt_and_nothing_else(gateway: Road, parrot: Parrot) -> None:
    await parrot.say("ann", "planted words")
    await parrot.say("ann", "/forget")
    offered = next(text for text in reversed(parrot.shown["ann"]) if "/1" in text)
    choice = next(
        line.split()[0] for line in offered.splitlines() if line.startswith("/") and "everything" in line.lower()
    )
    await parrot.say("ann", choice)
    if not any("receipt" in text for text in parrot.shown["ann"]):
        await parrot.say("ann", "/1")  # it asks once more
    assert any("Your receipt" in text for text in parrot.shown["ann"]), parrot.shown["ann"]
    await settled(gateway)
    held = await gateway.rows(
        "select cast(o as text) as t from outbox o union all select cast(t as text) from turns t"
        " union all select encode(body, 'escape') from inbox where body is not null"
    )
    assert not [row for row in held if "planted" in (row["t"] or "")]


async def test_another_gateway_may_write_the_reply(
    installed: None, database_url: str, model: ModelServer, gateway: Road, parrot: Parrot
) -> None:
    async with road(database_url, model.url, parrot_secret=KEY) as second:
        await gateway.gateway.lanes.stop()  # it takes in, and handles nothing
        assert await parrot.say("ann", "What is tea?", "7") == ["You said: What is tea?"]
        assert await Parrot(second.url).say("ann", "What is tea?", "7") == ["You said: What is tea?"]
    assert await turns(gateway) == [("What is tea?", "done")]


async def test_what_a_dead_gateway_held_is_given_once_its_lease_is_over(gateway: Road, parrot: Parrot) -> None:
    (chat,) = await gateway.rows("select id, bot_id, external_id from chats")
    async with gateway.store.begin() as tx:
        await outbox.put(tx, chat["id"], Content("Held"))
    from app.domain.event import ChatAddress

    async with gateway.store.begin() as tx:
        taken = await responses.take(tx, "a gateway that dies", chat["bot_id"], ChatAddress("ann"))
    assert [row.content.text for row in taken.rows] == ["Held"]
    (sentence,) = await parrot.say("ann", "/whoami", timeout_s=10)  # nothing overtakes what is held
    assert LATER in sentence
    await gateway.store_execute("update outbox set lease_until = now() where state = 'sending'")
    shown = await parrot.say("ann", "hello")
    assert shown[0] == "Held"
    assert shown[-1] == "You said: hello"
    async with gateway.store.begin() as tx:  # who comes back from the dead records nothing
        assert not await responses.shown(tx, taken.rows, "late")


async def test_while_the_store_is_away_the_platform_is_told_so(
    gateway: Road, parrot: Parrot, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.errors import StoreUnavailableError

    async def away(*_: object) -> None:
        raise StoreUnavailableError

    monkeypatch.setattr(Intake, "accept_one", away)
    await parrot.say("ann", "hello")
    assert parrot.statuses[-1] == 503


async def test_health_names_it_and_metrics_count_it(gateway: Road, parrot: Parrot) -> None:
    async with aiohttp.ClientSession() as session, session.get(f"{gateway.url}/readyz") as answer:
        assert (await answer.json())["parts"]["parrot"]["state"] == "ok"
    async with aiohttp.ClientSession() as session, session.get(f"{gateway.url}/metrics") as answer:
        body = await answer.text()
    assert 'mentee_updates_total{channel="parrot"' in body
    assert 'mentee_parts_total{channel="parrot",result="sent"}' in body


@pytest.mark.parametrize("act", ["start", "run", "close"])
async def test_a_package_that_breaks_ends_nobody_else_and_begins_again(
    installed: None, database_url: str, model: ModelServer, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    from parrot import ParrotPart

    broken = 0

    async def breaks(_: object) -> None:
        nonlocal broken
        broken += 1
        if broken < 3:
            raise KeyError("its own business")

    monkeypatch.setattr(keeping, "AGAIN_S", 0.3)
    monkeypatch.setattr(ParrotPart, act, breaks)
    async with road(database_url, model.url, parrot_secret=KEY) as gateway:
        assert (await _part(gateway, "parrot"))["state"] == ("ok" if act == "close" else "down")
        async with gateway.visitor() as visitor:
            await visitor.ask("hello")
        async with asyncio.timeout(10):
            while (await _part(gateway, "parrot"))["state"] != "ok":
                await asyncio.sleep(0.05)
    assert broken == (1 if act == "close" else 3)


async def _part(gateway: Road, name: str) -> dict[str, str]:
    async with aiohttp.ClientSession() as session, session.get(f"{gateway.url}/readyz") as answer:
        return dict((await answer.json())["parts"][name])


async def test_a_package_that_cannot_say_how_it_is_hides_nobody_else(
    gateway: Road, monkeypatch: pytest.MonkeyPatch
) -> None:
    from parrot import ParrotPart

    async def broken(_: object) -> None:
        raise KeyError("its own business")

    monkeypatch.setattr(ParrotPart, "health", broken)
    async with aiohttp.ClientSession() as session, session.get(f"{gateway.url}/readyz") as answer:
        assert answer.status == 200
        parts = (await answer.json())["parts"]
    assert parts["parrot"] == {"state": "down", "detail": "KeyError"}
    assert parts["web"]["state"] == "ok"


@pytest.mark.usefixtures("installed")
async def test_nobody_is_asked_to_point_at_a_reply_where_they_cannot(database_url: str, model: ModelServer) -> None:
    eager: dict[str, object] = {"ask_after_silent_replies": 1, "ask_per_day": 9}
    async with road(database_url, model.url, parrot_secret=KEY, **eager) as running:
        platform = Parrot(running.url)
        said = [text for number in range(4) for text in await platform.say("ann", f"hello {number}")]
        await settled(running)
    assert any("How was that reply? Just answer 👍 or 👎." in text for text in said), said
    assert not any("swipe" in text.lower() for text in said)
