"""Whatever the Bot API's specification allows goes the whole road to an end, and nobody else waits for it."""

import asyncio
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.model import ModelServer
from tests.fakes.telegram import TelegramServer
from tests.support.bot_api import specification, updates
from tests.support.scale import SCALE
from tests.support.telegram_world import World, without_pace

EXAMPLES, TOGETHER = 15, 12
FIRST_ID = 900_000_001
ENDS = {"done", "refused", "quarantined"}


@pytest.mark.timeout(120 * SCALE)
async def test_every_update_that_the_specification_allows_comes_to_an_end(
    database_url: str, model: ModelServer, telegram_server: TelegramServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = specification()
    world = World(asyncio.get_running_loop(), telegram_server, model, database_url)
    numbers = count(FIRST_ID)
    for other in ("Bo", "Cleo"):  # whose ids are drawn: what is said there may stand in the way of their own words
        telegram_server.user(other)
    ann = telegram_server.user("Ann")

    @settings(
        max_examples=EXAMPLES * SCALE,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )
    @given(st.lists(updates(spec), min_size=1, max_size=TOGETHER))
    def together(found: list[dict[str, object]]) -> None:
        asked = f"still there after {next(numbers)}?"

        def happen() -> None:
            for update in found:
                telegram_server.emit(update | {"update_id": next(numbers)})
            ann.say(asked)

        world.do(happen)
        world.run(world.settle())
        assert world.gateway
        rows = world.run(world.gateway.rows("select state, error, count(*) as n from inbox group by 1, 2"))
        assert {row["state"] for row in rows} <= ENDS, rows
        # After a long silence about replies a question for feedback may follow, so the answer is one of the last two.
        last = [message.text for message in ann.chat.from_bot[-2:]]
        assert any(text.startswith(f"You said: {asked}") for text in last), last

    with without_pace(monkeypatch):
        await world.start()
        try:
            await asyncio.to_thread(together)
        finally:
            await world.stop()
