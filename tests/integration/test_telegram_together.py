"""What is sent together is one message; what waited too long is answered only where it is the newest of its chat."""

import asyncio
import time

import pytest

from tests.fakes.telegram import TelegramServer
from tests.fakes.telegram.people import User
from tests.integration.test_telegram_road import shown, telegram, until
from tests.support.road import Road
from tests.support.whatsapp import settled

pytestmark = pytest.mark.usefixtures("brisk")
__all__ = ["telegram"]  # the fixture
HOURS = 3600


@pytest.fixture
async def ann(telegram: Road, telegram_server: TelegramServer) -> User:
    """Somebody who has talked before."""
    user = telegram_server.user("Ann")
    user.say("hello")
    await until(telegram_server, user, "You said: hello")
    await settled(telegram)
    return user


async def handled(telegram: Road, updates: int) -> None:
    """Wait until so many updates more than the first greeting came in and all of them are done with."""
    async with asyncio.timeout(20):
        while len(await telegram.rows("select 1 from inbox")) < updates + 1:
            await asyncio.sleep(0.05)
    await settled(telegram)


async def test_an_album_is_one_turn_with_its_caption(telegram: Road, ann: User) -> None:
    before = len(shown(ann))
    ann.send_photo(album="7")
    ann.send_photo("what do you think of these?", album="7")
    ann.send_photo(album="7")
    await handled(telegram, 3)
    unseen, reply = shown(ann)[before:]
    assert "without having looked at what came with them (a picture)" in unseen
    assert reply == "You said: what do you think of these?"
    assert [row["state"] for row in await telegram.rows("select state from inbox order by id")] == ["done"] * 4


async def test_an_album_without_words_is_answered_with_one_sentence(telegram: Road, ann: User) -> None:
    before = len(shown(ann))
    for _ in range(4):
        ann.send_photo(album="7")
    await handled(telegram, 4)
    assert len(shown(ann)) == before + 1


async def test_two_albums_and_what_is_said_between_them_keep_apart(telegram: Road, ann: User) -> None:
    before = len(shown(ann))
    ann.send_photo("first", album="7")
    ann.send_photo(album="7")
    ann.say("between")
    ann.send_photo("second", album="8")
    ann.send_photo(album="8")
    await handled(telegram, 5)
    said = [text for text in shown(ann)[before:] if text.startswith("You said")]
    assert said == [f"You said: {word}" for word in ("first", "between", "second")]


async def test_the_words_of_several_pictures_are_kept(telegram: Road, ann: User) -> None:
    ann.send_photo("one", album="7")
    ann.send_photo("two", album="7")
    await handled(telegram, 2)
    (turn,) = await telegram.rows("select user_text from turns order by number desc limit 1")
    assert turn["user_text"] == "one\ntwo"


async def test_a_late_picture_is_a_message_of_its_own(telegram: Road, ann: User) -> None:
    ann.send_photo("look", album="7")
    await handled(telegram, 1)
    before = len(shown(ann))
    ann.send_photo(album="7")
    await handled(telegram, 2)
    assert len(shown(ann)) == before + 1


async def test_of_old_messages_only_the_newest_is_answered(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    await telegram.store_execute("insert into switches (name, paused) values ('intake', true)")
    long_ago = {"date": int(time.time()) - 5 * HOURS}
    for text in ("are you there?", "hello?", "never mind"):
        ann.say(text, extra=long_ago)
    async with asyncio.timeout(20):
        while len(await telegram.rows("select 1 from inbox where state = 'stored'")) < 3:
            await asyncio.sleep(0.05)
    await telegram.store_execute("update switches set paused = false")
    await until(telegram_server, ann, "You said: never mind")
    await settled(telegram)
    said = [text for text in shown(ann) if text.startswith("You said")]
    assert said == ["You said: hello", "You said: never mind"]
    states = await telegram.rows("select state, error from inbox order by id desc limit 3")
    assert [(row["state"], row["error"]) for row in states] == [("done", None), *[("refused", "outlived")] * 2]


async def test_an_old_message_alone_and_young_ones_are_answered(telegram: Road, ann: User) -> None:
    ann.say("from yesterday", extra={"date": int(time.time()) - 30 * HOURS})
    await handled(telegram, 1)
    for text in ("one", "two"):
        ann.say(text)
    await handled(telegram, 3)
    assert [text for text in shown(ann) if text.startswith("You said")][1:] == [
        f"You said: {text}" for text in ("from yesterday", "one", "two")
    ]
