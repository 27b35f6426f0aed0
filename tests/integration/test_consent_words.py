"""The words that consent is given to: what a person saw is what the log keeps, and it says all that is read."""

import hashlib

import pytest

from app.domain.consent import NOTICE_VERSION
from bots.web.identity import notice
from tests.fakes.model import ModelServer
from tests.fakes.telegram import TelegramServer
from tests.integration.test_telegram_road import label, until
from tests.support.road import Road, Visitor, road

GIVEN = """
    select purpose, event, notice_version, notice_digest from consent_events where purpose <> 'service' order by at
"""


def labels(rows: list[list[dict[str, str]]]) -> str:
    return " ".join(b["label"] for row in rows for b in row)


async def test_the_log_holds_the_pages_words_for_a_switch_on_the_page(running: Road, visitor: Visitor) -> None:
    await visitor.allow("memory")
    (given,) = await running.rows(GIVEN)
    shown = notice(running.settings, "en")
    assert given["notice_digest"] == hashlib.sha256(shown.encode()).digest()
    assert (given["event"], given["notice_version"]) == ("given", NOTICE_VERSION)


async def test_the_log_holds_the_bots_words_where_the_bot_said_them(
    database_url: str, model: ModelServer, telegram_server: TelegramServer
) -> None:
    token, address = telegram_server.token, telegram_server.base_url
    async with road(database_url, model.url, telegram_bot_token=token, telegram_base_url=address) as telegram:
        ann = telegram_server.user("Ann")
        ann.start()
        asked = await until(telegram_server, ann, "your choice counts")
        assert not [b for b in asked.buttons if "Outside judge" in b.text]  # type: ignore[attr-defined]
        assert "Outside judge" not in asked.text  # type: ignore[attr-defined]
        ann.press(asked, label(asked, "Memory"))
        await telegram_server.wait_for(lambda: "✅" in label(asked, "Memory"), 10)
        (given,) = await telegram.rows(GIVEN)
        (sent,) = await telegram.rows(
            "select content->>'text' as text from outbox where content->>'text' like '%your choice counts%'"
        )
    assert given["notice_digest"] == hashlib.sha256(sent["text"].encode()).digest()


@pytest.mark.parametrize("judged", [False, True])
async def test_an_outside_judge_is_asked_about_only_where_there_is_one(
    database_url: str, model: ModelServer, judged: bool
) -> None:
    judge = {"judge_base_url": "http://127.0.0.1:1", "judge_model": "judge"} if judged else {}
    async with road(database_url, model.url, **judge) as running, running.visitor() as visitor:
        await visitor.command("privacy")
        told = await visitor.told("Your choices now")
    assert ("Outside judge" in labels(told["buttons"])) is judged
    assert ("Outside judge" in told["plain"]) is judged
    assert "everything I keep in memory about you" in told["plain"]


@pytest.mark.parametrize("reviewed", [False, True])
async def test_reviewers_are_promised_only_where_they_may_read(running: Road, visitor: Visitor, reviewed: bool) -> None:
    await visitor.allow("shared_training", *(["human_review"] if reviewed else []))
    reply = await visitor.ask("What is the capital of Australia?")
    await visitor.say("That is wrong, it is Canberra", reply_to=reply["message_id"])
    told = await visitor.told("I can't check facts myself")
    assert ("reviewers will see it" in told["plain"]) is reviewed
    assert [d["rung"] for d in await running.rows("select rung from ladder_decisions")] == ["evaluation"]
