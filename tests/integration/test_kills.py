"""kill -9 of the gateway where it hurts: nothing is lost, nothing is doubled."""

import asyncio
import signal
from pathlib import Path

import pytest
from sqlalchemy import text

from app.store import Store
from tests.fakes.model import ModelServer
from tests.fakes.telegram import TelegramServer
from tests.support.process import free_port, gateway_process
from tests.support.road import SECRET

pytestmark = pytest.mark.slow


@pytest.fixture
async def environment(
    database_url: str, model: ModelServer, telegram_server: TelegramServer, tmp_path: Path
) -> dict[str, str]:
    """What a gateway process needs to talk to the fakes."""
    return {
        "DATABASE_URL": database_url,
        "VLLM_BASE_URL": model.url,
        "BROKER_URL": "redis://127.0.0.1:1/0",
        "MENTEE_SECRET": SECRET,
        "MENTEE_HOME": str(tmp_path),
        "TELEGRAM_BOT_TOKEN": telegram_server.token,
        "TELEGRAM_BASE_URL": telegram_server.base_url,
    }


async def killed(process: asyncio.subprocess.Process) -> None:
    assert await asyncio.wait_for(process.wait(), 30) == -signal.SIGKILL


@pytest.mark.parametrize(
    "point", ["intake:stored", "lane:claimed", "converse:asked", "converse:streaming", "converse:stored"]
)
async def test_a_message_survives(
    point: str, environment: dict[str, str], store: Store, telegram_server: TelegramServer
) -> None:
    ann = telegram_server.user("Ann")
    async with gateway_process(free_port(), environment | {"MENTEE_KILL_AT": point}) as process:
        ann.say("hold on to this")
        await killed(process)
    async with gateway_process(free_port(), environment):
        await telegram_server.wait_for(
            lambda: any("You said: hold on to this" in m.text for m in ann.chat.from_bot), 45
        )
        ann.say("and go on")
        await telegram_server.wait_for(lambda: any("You said: and go on" in m.text for m in ann.chat.from_bot), 30)
    assert [m.text for m in ann.chat.from_bot].count("You said: hold on to this") == 1
    async with store.begin() as tx:
        turns = (await tx.execute(text("select user_text, state from turns order by number"))).all()
        assert [tuple(t) for t in turns] == [("hold on to this", "done"), ("and go on", "done")]
        assert await tx.scalar(text("select count(*) from inbox where state <> 'done'")) == 0


@pytest.mark.parametrize("point", ["attachments:taken", "converse:asked", "converse:streaming", "converse:stored"])
async def test_a_picture_survives(
    point: str, environment: dict[str, str], store: Store, telegram_server: TelegramServer
) -> None:
    """Killed before its turn stands, it is fetched again; afterwards the turn has it."""
    ann = telegram_server.user("Ann")
    async with ModelServer(name="qwen3-vl-4b", sees=True) as eyes:
        seeing = environment | {"MODEL": "qwen3-vl-4b", "VLLM_BASE_URL": eyes.url}
        async with gateway_process(free_port(), seeing | {"MENTEE_KILL_AT": point}) as process:
            ann.send_photo("hold on to this")
            await killed(process)
        async with gateway_process(free_port(), seeing):
            await telegram_server.wait_for(
                lambda: any("You said: hold on to this [picture " in m.text for m in ann.chat.from_bot), 45
            )
        assert eyes.calls[-1].pictures
    assert sum("You said: hold on to this" in m.text for m in ann.chat.from_bot) == 1
    assert len(telegram_server.downloads) == (2 if point in {"attachments:taken", "converse:asked"} else 1)
    async with store.begin() as tx:
        assert await tx.scalar(text("select count(*) from turns where state = 'done'")) == 1
        assert await tx.scalar(text("select count(*) from turn_pictures")) == 1


async def test_a_message_survives_that_nobody_had_taken_up(
    environment: dict[str, str], store: Store, telegram_server: TelegramServer
) -> None:
    """The first of a lane is claimed as it is stored; what comes behind it is only stored."""
    ann = telegram_server.user("Ann")
    async with store.begin() as tx:
        await tx.execute(text("insert into switches (name, paused) values ('intake', true)"))
    async with gateway_process(free_port(), environment | {"MENTEE_KILL_AT": "intake:stored"}) as process:
        ann.say("hold on to this")
        await killed(process)
    async with store.begin() as tx:
        assert list(await tx.scalars(text("select state from inbox"))) == ["stored"]
        await tx.execute(text("update switches set paused = false"))
    async with gateway_process(free_port(), environment):
        await telegram_server.wait_for(
            lambda: any("You said: hold on to this" in m.text for m in ann.chat.from_bot), 45
        )
    assert [m.text for m in ann.chat.from_bot].count("You said: hold on to this") == 1


async def test_a_vote_stored_before_the_kill_is_shown_after_it(
    environment: dict[str, str], store: Store, telegram_server: TelegramServer
) -> None:
    ann = telegram_server.user("Ann")
    async with gateway_process(free_port(), environment):
        ann.say("rate this")
        await telegram_server.wait_for(
            lambda: any("You said: rate this" in m.text and m.buttons for m in ann.chat.from_bot), 30
        )
    reply = next(m for m in ann.chat.from_bot if "You said" in m.text)
    async with gateway_process(free_port(), environment | {"MENTEE_KILL_AT": "press:stored"}) as process:
        ann.press(reply, "👍")
        await killed(process)
    assert next(b.text for b in reply.buttons) == "👍"
    async with gateway_process(free_port(), environment):
        await telegram_server.wait_for(lambda: reply.buttons[0].text == "👍 ✓", 45)
    async with store.begin() as tx:
        assert list(await tx.scalars(text("select value from votes"))) == [1]
        assert list(await tx.scalars(text("select value from vote_events"))) == [1]


async def test_a_part_sent_without_a_receipt_is_the_only_copy_there_can_be(
    environment: dict[str, str], telegram_server: TelegramServer
) -> None:
    ann = telegram_server.user("Ann")
    async with gateway_process(free_port(), environment | {"MENTEE_KILL_AT": "deliver:sent"}) as process:
        ann.say("/help")
        await killed(process)
    async with gateway_process(free_port(), environment):
        await telegram_server.wait_for(
            lambda: any("Just write to me. In words" in m.text for m in ann.chat.from_bot), 45
        )
        await asyncio.sleep(2)
    texts = [m.text for m in ann.chat.from_bot]
    assert all(texts.count(t) <= 2 for t in texts)
    assert sum(texts.count(t) == 2 for t in set(texts)) <= 1
