"""Edits on Telegram that change more than words: into a command, of a picture, of one among several."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.fakes.model import ModelServer, faults
from tests.fakes.telegram import TelegramServer
from tests.fakes.telegram.people import User
from tests.support.media import picture
from tests.support.road import Road, road
from tests.support.telegram_talk import SEES, known, seeing_model
from tests.support.whatsapp import settled

pytestmark = pytest.mark.usefixtures("brisk")
model = seeing_model
HELP = "Just write to me. In words"
RED, BLUE, GREEN = (picture(colour=colour) for colour in ((200, 0, 0), (0, 0, 200), (0, 200, 0)))


@pytest.fixture
async def telegram(database_url: str, model: ModelServer, telegram_server: TelegramServer) -> AsyncIterator[Road]:
    """A gateway of that model that polls the Bot API."""
    named = {"telegram_bot_token": telegram_server.token, "telegram_base_url": telegram_server.base_url}
    async with road(database_url, model.url, model=SEES, **named) as gateway:
        yield gateway


@pytest.fixture
async def ann(telegram: Road, telegram_server: TelegramServer) -> User:
    """Somebody who has said good morning."""
    return await known(telegram, telegram_server, "good morning")


def told(user: User, words: str) -> int:
    """Return how many messages of the bot have `words` in them."""
    return sum(words in message.text for message in user.chat.from_bot)


async def read(server: TelegramServer, user: User, words: str, times: int = 1) -> None:
    await server.wait_for(lambda: told(user, words) >= times, 20)


async def asked(telegram: Road) -> list[tuple[str, bool]]:
    """Return the words of every turn, and whether it answers a message once more."""
    rows = await telegram.rows("select user_text, sibling_of is not null as anew from turns order by number")
    return [(row["user_text"], row["anew"]) for row in rows]


async def test_what_is_edited_into_a_command_is_that_command_once(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    said = ann.say("hello")
    await read(telegram_server, ann, "You said: hello")
    await settled(telegram)
    ann.edit(said, "/help")
    await read(telegram_server, ann, HELP)
    telegram_server.deliver_again(telegram_server.world.queue.sent[-1])
    await asyncio.sleep(1.1)
    ann.edit(said, "/help")  # nothing but its date is new, as when Telegram looks at a link
    await settled(telegram, beyond=3)
    assert told(ann, HELP) == 1
    assert await asked(telegram) == [("good morning", False), ("hello", False)]
    ann.edit(said, "hello again")
    await read(telegram_server, ann, "You said: hello again")
    await asyncio.sleep(1.1)  # within a second the same words would be the same edit
    ann.edit(said, "/help")
    await read(telegram_server, ann, HELP, times=2)
    await settled(telegram)
    assert await asked(telegram) == [("good morning", False), ("hello", False), ("hello again", True)]


async def test_of_edits_into_commands_in_a_row_the_last_counts(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    model.next(faults.Slow(first_token_s=1.0))
    said = ann.say("hello")
    await telegram_server.wait_for(lambda: len(model.calls) == 2)
    for words in ("/new", "/whoami", "hm", "/new now", "/help"):
        ann.edit(said, words)
    await read(telegram_server, ann, HELP)
    await settled(telegram, beyond=6)
    assert told(ann, HELP) == 1
    assert len(await telegram.rows("select distinct session_id from turns")) == 1
    assert await asked(telegram) == [("good morning", False), ("hello", False)]


async def test_of_a_storm_of_edits_that_ends_in_a_command_no_word_is_answered(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    model.next(faults.Slow(first_token_s=1.0))
    said = ann.say("hello")
    await telegram_server.wait_for(lambda: len(model.calls) == 2)
    for number in range(40):
        ann.edit(said, f"wording {number}")
    ann.edit(said, "/help")
    await read(telegram_server, ann, HELP)
    await settled(telegram)
    assert told(ann, HELP) == 1
    assert len(await asked(telegram)) == 2


async def test_an_older_message_does_not_become_a_command(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    said = ann.say("hello")
    await read(telegram_server, ann, "You said: hello")
    ann.say("and then?")
    await read(telegram_server, ann, "You said: and then?")
    await settled(telegram)
    ann.edit(said, "/help")
    await settled(telegram, beyond=3)
    assert told(ann, HELP) == 0
    assert len(await asked(telegram)) == 3


async def test_a_stop_that_is_edited_into_words_is_answered(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    said = ann.say("/stop")
    await read(telegram_server, ann, "I'm not writing anything")
    await settled(telegram)
    ann.edit(said, "hello")
    await read(telegram_server, ann, "You said: hello")
    await settled(telegram)
    assert await asked(telegram) == [("good morning", False), ("hello", False)]


async def test_a_stop_since_keeps_no_message_from_becoming_a_command(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    said = ann.say("hello")
    await read(telegram_server, ann, "You said: hello")
    ann.say("/stop")
    await read(telegram_server, ann, "I'm not writing anything")
    await settled(telegram)
    ann.edit(said, "/help")
    await read(telegram_server, ann, HELP)
    await settled(telegram)
    assert told(ann, HELP) == 1
    assert await asked(telegram) == [("good morning", False), ("hello", False)]


async def test_what_could_not_be_handled_is_answered_once_it_is_edited(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    said = ann.send(extra={"location": {"latitude": 1.0, "longitude": 2.0}})
    await read(telegram_server, ann, "a place")
    await settled(telegram)
    await telegram.store_execute("update inbox set state = 'dead' where state = 'refused'")
    ann.edit(said, "short")
    await read(telegram_server, ann, "You said: short")
    await settled(telegram)
    assert await asked(telegram) == [("good morning", False), ("short", False)]


async def test_an_edit_into_retry_that_was_cut_off_answers_once_more_and_only_that(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    said = ann.say("hello")
    await read(telegram_server, ann, "You said: hello")
    await settled(telegram)
    model.next(faults.Slow(first_token_s=1.0))
    ann.edit(said, "/retry")
    await telegram_server.wait_for(lambda: len(model.calls) == 3)
    async with asyncio.timeout(10):
        while not await telegram.rows("select 1 from turns where sibling_of is not null"):
            await asyncio.sleep(0.02)
    await telegram.store_execute(
        "update inbox set state = 'stored', owner = null, lease_until = null where state = 'claimed'"
    )
    await settled(telegram)
    assert await asked(telegram) == [("good morning", False), ("hello", False), ("hello", True)]
    assert "/retry" not in str([call.messages for call in model.calls])


async def test_a_picture_that_another_takes_the_place_of_is_looked_at(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    said = ann.send_photo("which colour?", data=RED)
    await read(telegram_server, ann, "You said: which colour? [picture ")
    await settled(telegram)
    first = model.calls[-1].pictures
    ann.edit_photo(said, BLUE)
    await read(telegram_server, ann, "You said: which colour? [picture ", times=2)
    await settled(telegram)
    assert len(model.calls[-1].pictures) == 1
    assert model.calls[-1].pictures != first
    assert await asked(telegram) == [("good morning", False), ("which colour?", False), ("which colour?", True)]
    # From here on it is the second one that the message has.
    second = model.calls[-1].pictures
    for act, words in ((lambda: ann.say("/retry"), "which colour?"), (lambda: ann.edit(said, "and now?"), "and now?")):
        calls = len(model.calls)
        act()
        await telegram_server.wait_for(lambda: len(model.calls) == calls + 1, 20)  # noqa: B023 - waited for at once
        await settled(telegram)
        assert model.calls[-1].pictures == second
        assert (await asked(telegram))[-1] == (words, True)
    ann.say("is it bright?")
    await read(telegram_server, ann, "You said: is it bright?")
    assert model.calls[-1].pictures == second
    assert len(telegram_server.downloads) == 2


async def test_a_picture_that_is_added_is_looked_at(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    said = ann.say("which colour?")
    await read(telegram_server, ann, "You said: which colour?")
    await settled(telegram)
    ann.edit_photo(said, BLUE)
    await read(telegram_server, ann, "You said: which colour? [picture ")
    await settled(telegram)
    (turn,) = await telegram.rows("select flags, learnable, sibling_of from turns order by number desc limit 1")
    assert (turn["flags"]["media"], turn["learnable"]) == (True, False)
    assert turn["sibling_of"] is not None


async def test_words_that_are_taken_off_a_picture_leave_the_picture(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    said = ann.send_photo("which colour?", data=RED)
    await read(telegram_server, ann, "You said: which colour?")
    await settled(telegram)
    ann.edit(said, "")
    await read(telegram_server, ann, "You said nothing. [picture ")
    assert model.calls[-1].pictures == model.calls[-2].pictures
    assert len(telegram_server.downloads) == 1


async def test_of_pictures_in_a_row_the_last_is_looked_at_though_an_earlier_edit_brought_it(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    model.next(faults.Slow(first_token_s=1.0))
    said = ann.send_photo("which colour?", data=RED)
    await telegram_server.wait_for(lambda: len(model.calls) == 2, 20)
    ann.edit_photo(said, GREEN)
    ann.edit_photo(said, BLUE)
    ann.edit(said, "and now?")
    await read(telegram_server, ann, "You said: and now? [picture ")
    await settled(telegram)
    assert len(model.calls) == 3
    assert model.calls[-1].pictures != model.calls[-2].pictures
    assert len(telegram_server.downloads) == 2


async def test_a_picture_that_cannot_be_opened_is_said_and_the_reply_stays(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    said = ann.send_photo("which colour?", data=RED)
    await read(telegram_server, ann, "You said: which colour?")
    await settled(telegram)
    ann.edit_photo(said, b"MZ" + bytes(2000))
    await read(telegram_server, ann, "I could not open what you sent (a picture)")
    await settled(telegram)
    assert len(model.calls) == 2
    ann.edit_photo(said, BLUE)
    await read(telegram_server, ann, "You said: which colour? [picture ", times=2)


async def test_one_picture_of_an_album_is_replaced_among_the_others(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    ann.send_photo("which are these?", album="7", data=RED)
    last = ann.send_photo(album="7", data=GREEN)
    await read(telegram_server, ann, "You said: which are these?")
    await settled(telegram, beyond=2)
    before = model.calls[-1].pictures
    ann.edit_photo(last, BLUE)
    await telegram_server.wait_for(lambda: len(model.calls) == 3, 20)
    after = model.calls[-1].pictures
    assert len(after) == 2
    assert after[0] == before[0]
    assert after[1] != before[1]
    await settled(telegram)
    assert (await asked(telegram))[-1] == ("which are these?", True)


async def test_an_edited_picture_whose_handling_was_cut_off_is_looked_at(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    said = ann.say("which colour?")
    await read(telegram_server, ann, "You said: which colour?")
    await settled(telegram)
    model.next(faults.Slow(first_token_s=1.0))
    ann.edit_photo(said, BLUE)
    async with asyncio.timeout(10):
        while not await telegram.rows("select 1 from turn_pictures"):
            await asyncio.sleep(0.02)
    await telegram.store_execute(
        "update inbox set state = 'stored', owner = null, lease_until = null where state = 'claimed'"
    )
    await settled(telegram)
    assert [len(call.pictures) for call in model.calls[2:]] == [1] * len(model.calls[2:])
    assert await asked(telegram) == [("good morning", False), ("which colour?", False), ("which colour?", True)]
    assert len(telegram_server.downloads) == 1


async def test_a_place_that_moves_is_no_edit(telegram: Road, telegram_server: TelegramServer, ann: User) -> None:
    said = ann.send(extra={"location": {"latitude": 1.0, "longitude": 2.0, "live_period": 600}})
    await read(telegram_server, ann, "a place")
    await settled(telegram)
    said_before = len(ann.chat.from_bot)
    ann.edit(said, "")
    await settled(telegram, beyond=2)
    assert len(ann.chat.from_bot) == said_before


async def test_a_model_without_eyes_says_that_a_picture_was_added(
    database_url: str, telegram_server: TelegramServer
) -> None:
    named = {"telegram_bot_token": telegram_server.token, "telegram_base_url": telegram_server.base_url}
    async with ModelServer(name="smollm2-135m") as blind, road(database_url, blind.url, **named) as gateway:
        user = telegram_server.user("Ann")
        said = user.say("which colour?")
        await read(telegram_server, user, "You said: which colour?")
        await settled(gateway)
        user.edit_photo(said, BLUE)
        await read(telegram_server, user, "what came with them (a picture)")
        await settled(gateway)
        assert len(blind.calls) == 1
    assert telegram_server.downloads == []
