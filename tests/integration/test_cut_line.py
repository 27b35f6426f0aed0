"""The line to the database is cut as a turn ends and as a part is recorded: one reply, soon, and the chat goes on."""

import asyncio
from typing import Literal

import pytest

from tests.fakes.model import ModelServer
from tests.fakes.telegram import TelegramServer
from tests.support.cut_line import line_to
from tests.support.road import road
from tests.support.whatsapp import settled

pytestmark = pytest.mark.usefixtures("brisk")
# A lease that has to run out takes a minute.
SOON_S = 15.0


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("words", ["with ended as", "sent_version="])
async def test_a_line_cut_as_a_turn_ends_costs_neither_reply_nor_copy(
    database_url: str,
    model: ModelServer,
    telegram_server: TelegramServer,
    words: str,
    when: Literal["before", "after"],
) -> None:
    named = {"telegram_bot_token": telegram_server.token, "telegram_base_url": telegram_server.base_url}
    ann = telegram_server.user("Ann")
    async with line_to(database_url) as line, road(line.url, model.url, **named) as gateway:
        for said in ("one", "two", "three"):
            if said == "two":
                line.cut_at(words, when)
            ann.say(said)
            await telegram_server.wait_for(
                lambda said=said: any(f"You said: {said}" in m.text for m in ann.chat.from_bot), SOON_S
            )
            async with asyncio.timeout(SOON_S):
                await settled(gateway)
        assert line.cuts == 1
        turns = await gateway.rows("select user_text, state from turns order by number")
        used = await gateway.rows("select messages from usage")
    shown = [m.text for m in ann.chat.from_bot][2:]
    assert shown == ["You said: one", "You said: two", "You said: three"]
    assert [(turn["user_text"], turn["state"]) for turn in turns] == [(w, "done") for w in ("one", "two", "three")]
    assert used == [{"messages": 3}]
