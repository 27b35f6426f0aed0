"""The channel against Twilio's API: what is sent, what each refusal means, and what happens while the store is away."""

from collections.abc import AsyncIterator, Sequence

import pytest
from aiohttp import web

from app.domain.event import ChatAddress
from app.domain.outgoing import Button, Content
from app.errors import (
    DeliveryError,
    DeliveryRetryError,
    DeliveryUncertainError,
    RecipientGoneError,
    StoreUnavailableError,
    WindowClosedError,
)
from bots.base import RawUpdate
from bots.whatsapp import client
from bots.whatsapp.package import _asked as ask
from bots.whatsapp.send import Account, WhatsAppChannel
from bots.whatsapp.settings import WhatsAppSettings
from bots.whatsapp.webhook import Seal, message_handler
from tests.fakes.twilio import Hook, Person, TwilioServer

PUBLIC = "https://bot.example.org"


def account(server: TwilioServer, **changed: str) -> Account:
    known = {
        "sid": server.account_sid,
        "token": server.token,
        "sender": server.sender,
        "status_url": f"{PUBLIC}/webhooks/whatsapp/status",
        "base_url": server.url,
    }
    return Account(**known | changed)


@pytest.fixture
async def channel(twilio_server: TwilioServer) -> AsyncIterator[WhatsAppChannel]:
    twilio_server.reports = False
    opened = WhatsAppChannel(account(twilio_server))
    opened.start()
    yield opened
    await opened.close()


@pytest.fixture
def ann(twilio_server: TwilioServer) -> Person:
    return twilio_server.person()


async def test_a_reply_is_rendered_and_its_id_returned(channel: WhatsAppChannel, ann: Person) -> None:
    button = Button("👍", "v:x:u")
    sid = await channel.send(ChatAddress(ann.address), Content("**Hi** & [a+b](https://e.org/?x=1&y=2)", ((button,),)))
    assert [(m.sid, m.body) for m in ann.got] == [(sid, "*Hi* & a+b (https://e.org/?x=1&y=2)")]


async def test_what_cannot_be_seen_is_sent_as_an_ellipsis(channel: WhatsAppChannel, ann: Person) -> None:
    await channel.send(ChatAddress(ann.address), Content("\u200b"))
    assert ann.texts == ["…"]


async def test_every_part_of_a_long_text_is_taken(channel: WhatsAppChannel, ann: Person) -> None:
    for part in channel.split("👍🏽 한국어 **bold** " * 800):
        await channel.send(ChatAddress(ann.address), Content(part))
    assert "".join(ann.texts).count("한국어") == 800


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (20429, DeliveryRetryError),
        (63018, DeliveryRetryError),
        (30001, DeliveryRetryError),
        (63016, WindowClosedError),
        (63013, DeliveryError),
        (20003, DeliveryError),
        (21610, RecipientGoneError),
        (63024, RecipientGoneError),
        (20500, DeliveryUncertainError),
        (99999, DeliveryError),
    ],
)
async def test_what_a_refusal_means(
    channel: WhatsAppChannel, twilio_server: TwilioServer, ann: Person, code: int, kind: type[DeliveryError]
) -> None:
    twilio_server.fail_next(code)
    with pytest.raises(DeliveryError) as raised:
        await channel.send(ChatAddress(ann.address), Content("hi"))
    assert type(raised.value) is kind
    assert ann.address not in str(raised.value)


async def test_an_address_that_is_none_is_nobody(channel: WhatsAppChannel) -> None:
    with pytest.raises(RecipientGoneError):
        await channel.send(ChatAddress("whatsapp:+1"), Content("hi"))


async def test_an_answer_that_is_lost_or_garbled_leaves_it_open(
    channel: WhatsAppChannel, twilio_server: TwilioServer, ann: Person
) -> None:
    twilio_server.lose_response()
    twilio_server.garble_next()
    for _ in range(2):
        with pytest.raises(DeliveryUncertainError):
            await channel.send(ChatAddress(ann.address), Content("hi"))
    assert ann.texts == ["hi"]


async def test_a_server_that_says_nothing_is_not_waited_for(
    channel: WhatsAppChannel, twilio_server: TwilioServer, ann: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "CALL_S", 0.1)
    twilio_server.delay_next(0.3)
    with pytest.raises(DeliveryUncertainError):
        await channel.send(ChatAddress(ann.address), Content("hi"))


async def test_a_server_that_is_away_is_tried_later(twilio_server: TwilioServer) -> None:
    opened = WhatsAppChannel(account(twilio_server, base_url="http://127.0.0.1:1"))
    opened.start()
    with pytest.raises(DeliveryRetryError):
        await opened.send(ChatAddress("whatsapp:+1"), Content("hi"))
    await opened.close()
    with pytest.raises(DeliveryRetryError):
        await opened.send(ChatAddress("whatsapp:+1"), Content("hi"))


async def test_typing_is_shown_for_the_newest_message_and_not_too_often(
    channel: WhatsAppChannel, twilio_server: TwilioServer
) -> None:
    chat = ChatAddress("whatsapp:+15550200001")
    await channel.typing(chat)
    assert twilio_server.calls == []
    channel.parse(b"MessageSid=SM5&From=whatsapp%3A%2B15550200001&Body=hi")
    await channel.typing(chat)  # refused, because nobody ever sent this message; that does not matter
    await channel.typing(chat)
    assert [call.status for call in twilio_server.calls] == [404]


async def test_who_is_refused_by_twilio_is_told_so(twilio_server: TwilioServer, channel: WhatsAppChannel) -> None:
    await channel.check()
    opened = WhatsAppChannel(account(twilio_server, token="wrong"))
    opened.start()
    with pytest.raises(DeliveryError, match="TWILIO_AUTH_TOKEN"):
        await opened.check()
    await opened.close()
    assert "wrong" not in repr(account(twilio_server, token="wrong"))


@pytest.mark.parametrize(("token", "problem"), [(None, None), ("wrong", "HTTP 401")])
async def test_the_doctor_asks_twilio(twilio_server: TwilioServer, token: str | None, problem: str | None) -> None:
    settings = WhatsAppSettings(
        _env_file=None,
        twilio_account_sid=twilio_server.account_sid,
        twilio_auth_token=token or twilio_server.token,
        twilio_base_url=twilio_server.url,
        whatsapp_from=twilio_server.sender,
        whatsapp_business_purpose="answers questions",
    )
    assert await ask(settings) == problem


async def test_while_the_store_is_away_twilio_is_told_so(twilio_server: TwilioServer) -> None:
    stored: list[RawUpdate] = []
    away = True

    async def accept(updates: Sequence[RawUpdate]) -> None:
        if away:
            raise StoreUnavailableError
        stored.extend(updates)

    seal = Seal(f"{PUBLIC}/hook", twilio_server.account_sid, twilio_server.sender, twilio_server.token)
    app = web.Application()
    app.router.add_post("/hook", message_handler(seal, accept))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    hook = Hook(twilio_server.token, PUBLIC, f"http://127.0.0.1:{runner.addresses[0][1]}")
    form = [("MessageSid", "SM1"), ("AccountSid", seal.account_sid), ("To", seal.sender), ("From", "whatsapp:+1")]
    assert await hook.post("/hook", form) == 503
    assert stored == []
    away = False
    assert await hook.post("/hook", form) == 200
    assert [update.keys for update in stored] == [("whatsapp:message:SM1",)]
    await runner.cleanup()
