"""`mentee whatsapp setup`: templates are made once, approval is asked for once, and the terminal says what is to be done."""

import asyncio
import io
from collections.abc import Sequence

import pytest
from sqlalchemy import text

from app import cli, config
from app.config import Settings
from app.domain.messages import LANGUAGES, catalogue
from app.embedded.lines import Lines
from app.embedded.messages import Texts
from app.embedded.whatsapp_setup import SANDBOX, set_up
from app.errors import ConfigError
from app.store import Store, people, templates
from app.store.templates import Made
from bots.whatsapp.client import open_client
from bots.whatsapp.settings import WhatsAppSettings
from bots.whatsapp.setup import check_approvals
from tests.fakes.twilio import TwilioServer
from tests.support.whatsapp import PUBLIC
from tests.support.whatsapp import settings as whatsapp_settings

Both = tuple[Settings, WhatsAppSettings]


def given(database_url: str, server: TwilioServer, **changed: object) -> Both:
    """Return settings of the house and of WhatsApp, which is on."""
    values = whatsapp_settings(server) | changed
    return (
        Settings(_env_file=None, database_url=database_url, **values),
        WhatsAppSettings(_env_file=None, **values),
    )


async def run(settings: Both, language: str = "en") -> tuple[int, str]:
    """Run the command; return its exit code and what it printed."""
    out = io.StringIO()
    code = await asyncio.to_thread(set_up, *settings, Lines(Texts(language), out))
    return code, out.getvalue()


async def made(store: Store, sender: str) -> Sequence[Made]:
    """Return the templates of a sender that the store knows."""
    async with store.begin() as tx:
        return await templates.made(tx, await people.ensure_bot(tx, "whatsapp", sender.partition("+")[2]))


async def learn_approvals(store: Store, server: TwilioServer) -> None:
    """Ask what Meta decided, as a gateway does from time to time."""
    client = open_client(server.account_sid, server.token, server.url)
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "whatsapp", server.sender.partition("+")[2])
    try:
        await check_approvals(client, store, bot)
    finally:
        await client.http_client.close()


def posts(server: TwilioServer, end: str) -> int:
    """Return how often Twilio was asked to make or to approve something."""
    return len([call for call in server.calls if call.path.endswith(end) and call.status == 201])


async def test_everything_is_made_once(database_url: str, store: Store, twilio_server: TwilioServer) -> None:
    settings = given(database_url, twilio_server)
    code, said = await run(settings)
    assert code == 0
    first = await made(store, twilio_server.sender)
    assert [(one.name, one.language) for one in first] == [(n, x) for n in ("ask", "news") for x in ("en", "ko")]
    assert {one.name: one.approval for one in first} == {"ask": "unsubmitted", "news": "received"}
    assert {one.content_sid for one in first} == set(twilio_server.contents.known)
    assert f"{PUBLIC}/webhooks/whatsapp\n" in said
    assert f"{PUBLIC}/webhooks/whatsapp/status" in said
    assert "join <two words>" in said
    assert "24 hours" in said
    for one in first:
        assert one.content_sid in said
    code, said = await run(settings)
    assert code == 0
    assert said.count("stands already") == 4
    assert await made(store, twilio_server.sender) == first
    assert (posts(twilio_server, "/Content"), posts(twilio_server, "ApprovalRequests/whatsapp")) == (4, 2)


async def test_no_secret_is_printed(database_url: str, store: Store, twilio_server: TwilioServer) -> None:
    for language in ("en", "ko"):
        _, said = await run(given(database_url, twilio_server), language)
        assert twilio_server.token not in said
        assert twilio_server.account_sid not in said


async def test_another_text_is_another_template(
    database_url: str, store: Store, twilio_server: TwilioServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = given(database_url, twilio_server)
    await run(settings)
    before = {(one.name, one.language): one for one in await made(store, twilio_server.sender)}
    twilio_server.contents.decide("approved")
    monkeypatch.setitem(catalogue("ko"), "template.news.body", "다른 말로 전해 드려요.")
    await run(settings)
    after = {(one.name, one.language): one for one in await made(store, twilio_server.sender)}
    changed = {key for key, one in after.items() if one.content_sid != before[key].content_sid}
    assert changed == {("news", "ko")}
    assert after["news", "ko"].approval == "received"
    assert after["news", "en"].approval == "approved"
    names = [one.approval["name"] for one in twilio_server.contents.known.values() if one.approval]
    assert len(set(names)) == 3


async def test_what_was_made_before_a_failure_stays(
    database_url: str, store: Store, twilio_server: TwilioServer
) -> None:
    settings = given(database_url, twilio_server)
    twilio_server.contents.known.clear()
    token, twilio_server.token = twilio_server.token, "changed"
    code, said = await run(settings)
    assert code == 1
    assert "TWILIO_AUTH_TOKEN" in said
    assert await made(store, twilio_server.sender) == []
    twilio_server.token = token
    assert (await run(settings))[0] == 0
    assert len(twilio_server.contents.known) == 4


async def test_an_approval_whose_answer_was_lost_is_not_asked_for_again(
    database_url: str, store: Store, twilio_server: TwilioServer
) -> None:
    settings = given(database_url, twilio_server)
    await run(settings)
    twilio_server.contents.decide("pending")
    async with store.begin() as tx:  # as if the process had died while it waited for the answer
        await tx.execute(text("update content_templates set approval = 'unsubmitted', checked_at = null"))
    code, said = await run(settings)
    assert code == 0, said
    assert {one.approval for one in await made(store, twilio_server.sender) if one.name == "news"} == {"pending"}
    assert posts(twilio_server, "ApprovalRequests/whatsapp") == 2


async def test_whoever_runs_it_twice_at_once_makes_everything_once(
    database_url: str, store: Store, twilio_server: TwilioServer
) -> None:
    settings = given(database_url, twilio_server)
    outcomes = await asyncio.gather(run(settings), run(settings), run(settings))
    assert [code for code, _ in outcomes] == [0, 0, 0], outcomes
    assert {one.content_sid for one in await made(store, twilio_server.sender)} == set(twilio_server.contents.known)
    assert (posts(twilio_server, "/Content"), posts(twilio_server, "ApprovalRequests/whatsapp")) == (4, 2)


async def test_what_was_deleted_at_twilio_is_made_again(
    database_url: str, store: Store, twilio_server: TwilioServer
) -> None:
    settings = given(database_url, twilio_server)
    await run(settings)
    before = {(one.name, one.language): one.content_sid for one in await made(store, twilio_server.sender)}
    gone = {key: before[key] for key in (("ask", "ko"), ("news", "en"))}
    for content_sid in gone.values():
        twilio_server.contents.delete(content_sid)
    code, said = await run(settings)
    assert code == 0, said
    after = {(one.name, one.language): one for one in await made(store, twilio_server.sender)}
    assert {key for key, one in after.items() if one.content_sid != before[key]} == set(gone)
    assert {one.content_sid for one in after.values()} == set(twilio_server.contents.known)
    assert after["news", "en"].approval == "received"


async def test_nothing_waits_for_the_approval_of_what_was_deleted(
    database_url: str, store: Store, twilio_server: TwilioServer
) -> None:
    await run(given(database_url, twilio_server))
    (first, *_) = [one for one in await made(store, twilio_server.sender) if one.name == "news"]
    twilio_server.contents.delete(first.content_sid)
    twilio_server.contents.decide("approved")
    await learn_approvals(store, twilio_server)
    known = {one.content_sid: one.approval for one in await made(store, twilio_server.sender) if one.name == "news"}
    assert known.pop(first.content_sid) == "deleted"
    assert set(known.values()) == {"approved"}


@pytest.mark.parametrize("status", ["approved", "rejected", "paused", "a word of tomorrow"])
async def test_what_meta_decides_is_learnt(
    database_url: str, store: Store, twilio_server: TwilioServer, status: str
) -> None:
    await run(given(database_url, twilio_server))
    twilio_server.contents.decide(status)
    await learn_approvals(store, twilio_server)
    known = {one.approval for one in await made(store, twilio_server.sender) if one.name == "news"}
    assert known == {status if status in templates.APPROVALS else "pending"}


async def test_in_the_sandbox_nothing_is_handed_to_meta(
    database_url: str, store: Store, twilio_server: TwilioServer
) -> None:
    code, said = await run(given(database_url, twilio_server, whatsapp_from=SANDBOX))
    assert code == 0
    assert [one.name for one in await made(store, SANDBOX)] == ["ask"] * len(LANGUAGES)
    assert posts(twilio_server, "ApprovalRequests/whatsapp") == 0
    assert "This is Twilio's sandbox" in said


async def test_who_has_not_switched_it_on_is_told_what_to_set() -> None:
    code, said = await run((Settings(_env_file=None), WhatsAppSettings(_env_file=None)))
    assert code == 1
    for name in ("TWILIO_ACCOUNT_SID", "TWILIO_AUTH_TOKEN", "WHATSAPP_FROM", "WHATSAPP_BUSINESS_PURPOSE", "PUBLIC_URL"):
        assert name in said
    assert "sandbox" in said


async def test_without_a_public_address_nothing_is_made(database_url: str, twilio_server: TwilioServer) -> None:
    with pytest.raises(ConfigError, match="PUBLIC_URL"):
        await run(given(database_url, twilio_server, public_url=None))
    assert twilio_server.calls == []


def test_half_of_the_settings_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config.load.cache_clear()
    monkeypatch.setenv("WHATSAPP_FROM", "whatsapp:+15550100123")
    assert cli.main(["whatsapp", "setup"]) == 1
    assert "WhatsApp also needs TWILIO_ACCOUNT_SID" in capsys.readouterr().err
    config.load.cache_clear()
