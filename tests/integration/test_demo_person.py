"""The scripted person of the demonstration, on both channels, through a whole gateway with the instant model server."""

from collections.abc import AsyncIterator

import pytest

from app.demo.generate import plot
from app.demo.person import Person
from app.demo.talk import Talker, ask, newest
from app.demo.talk_telegram import TelegramTalker
from app.demo.talk_web import WebTalker
from app.domain.press import long_id
from tests.fakes.model import ModelServer
from tests.fakes.model.replies import Call
from tests.fakes.telegram import TelegramServer
from tests.support.road import Road, road

pytestmark = pytest.mark.usefixtures("brisk")

PLOT = plot(1)
WISH = next(wish for wish in PLOT.wishes if wish.family == "ending")
KEPT = WISH.write(("A short answer",))
BROKEN = "A long answer. It goes on and on."


def obedient(call: Call) -> str:
    """A model that follows the wish once it saw an example, or when it is asked to revise."""
    shown = WISH.words in call.system and len(call.messages) > 2
    return KEPT if shown or call.last_user == WISH.words else BROKEN


def forgetful(call: Call) -> str:
    """A model that follows only when it is asked to revise, so that the same has to be said again."""
    return KEPT if call.last_user == WISH.words else BROKEN


def deaf(_call: Call) -> str:
    """A model that never follows."""
    return BROKEN


@pytest.fixture(params=["web", "telegram"])
async def place(
    request: pytest.FixtureRequest, database_url: str, model: ModelServer, telegram_server: TelegramServer
) -> AsyncIterator[tuple[Road, Talker]]:
    """A gateway, and somebody on the channel."""
    more = {"telegram_bot_token": telegram_server.token, "telegram_base_url": telegram_server.base_url}
    async with road(database_url, model.url, **more) as gateway:
        talker = WebTalker(gateway.url) if request.param == "web" else TelegramTalker(telegram_server, "Ann")
        yield gateway, talker
        if isinstance(talker, WebTalker):
            await talker.close()


async def _trains(gateway: Road) -> bool:
    return bool(await gateway.rows("select 1 from jobs where kind = 'train'"))


async def test_the_story_leads_to_two_examples_and_a_training(place: tuple[Road, Talker], model: ModelServer) -> None:
    gateway, talker = place
    model.reply_with(obedient)
    person = Person(talker, WISH, PLOT)
    await person.consent()
    await person.first_words()
    await person.second_words()
    assert person.story.examples == ["approved", "written"]
    (line,) = await gateway.rows("select text, state from memory_lines")
    assert line == {"text": WISH.words, "state": "active"}
    shown = await gateway.rows("select source, good from examples order by created_at")
    assert [row["source"] for row in shown] == ["approved", "written"]
    assert PLOT.planted in shown[1]["good"]
    await person.talk_until(lambda: _trains(gateway))
    (decision,) = await gateway.rows("select rule, figures from ladder_decisions where rung = 'adapter'")
    assert decision["rule"] == "stable_and_used"
    assert decision["figures"]["uses"] == 8
    splits = {row["split"] for row in await gateway.rows("select distinct split from sessions")}
    assert splits == {"train", "heldout"}


async def test_what_is_said_again_gives_the_same_line_another_example(
    place: tuple[Road, Talker], model: ModelServer
) -> None:
    gateway, talker = place
    model.reply_with(forgetful)
    person = Person(talker, WISH, PLOT)
    await person.consent()
    await person.first_words()
    await person.second_words()
    assert person.story.offered == 3  # a rewrite each time, and a mended one
    assert person.story.examples == ["approved", "written"]
    assert len(await gateway.rows("select 1 from memory_lines")) == 1
    assert len(await gateway.rows("select 1 from examples")) == 2


async def test_a_model_that_never_follows_is_shown_how_and_keeps_failing(
    place: tuple[Road, Talker], model: ModelServer
) -> None:
    gateway, talker = place
    model.reply_with(deaf)
    person = Person(talker, WISH, PLOT)
    await person.consent()
    await person.first_words()
    await person.second_words()
    assert person.story.examples == ["approved", "written"]  # the first is its own reply, mended
    await person.talk_until(lambda: _trains(gateway))
    (decision,) = await gateway.rows("select rule from ladder_decisions where rung = 'adapter'")
    assert decision["rule"] == "keeps_failing"
    assert person.story.held == 0


async def test_what_is_heard_names_turns_and_forgets_nothing(place: tuple[Road, Talker]) -> None:
    gateway, talker = place
    await talker.arrive()
    before = await newest(talker)
    first, second = await ask(talker, "one"), await ask(talker, "two")
    assert first.turn != second.turn
    assert second.number > first.number > before
    rows = await gateway.rows("select id from turns order by number")
    assert [row["id"] for row in rows] == [long_id(str(m.turn)) for m in (first, second)]
    await talker.command("forget")
    assert [m.button("f", "all") for m in await talker.heard() if m.button("f")] in ([], ["f::all"])
