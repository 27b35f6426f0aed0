"""What comes along on WhatsApp: fetched from Twilio alone, with our name there and nowhere else."""

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from socket import AddressFamily

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from app.domain.media import Attachment
from app.errors import AttachmentRefusedError
from bots.whatsapp import media
from bots.whatsapp.media import MediaClient, OutsideResolver
from bots.whatsapp.part import WhatsAppPart
from tests.fakes.model import ModelServer
from tests.fakes.transcriber import Transcriber
from tests.fakes.twilio import TwilioServer
from tests.support.media import PICTURE
from tests.support.road import Road, road
from tests.support.whatsapp import connect, count, settings, settled, until

SEES = "qwen3-vl-4b"


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    """A model that sees."""
    async with ModelServer(name=SEES, sees=True) as server:
        yield server


@pytest.fixture
async def whatsapp(
    database_url: str, model: ModelServer, twilio_server: TwilioServer, transcriber: Transcriber
) -> AsyncIterator[Road]:
    """A gateway of that model, which has voice written down, and which Twilio posts to."""
    heard = {"transcribe_base_url": transcriber.url, "transcribe_model": "whisper-1"}
    async with road(database_url, model.url, model=SEES, **heard, **settings(twilio_server)) as gateway:
        connect(twilio_server, gateway)
        yield gateway
        await twilio_server.hang_up()


def fetched(server: TwilioServer) -> list[int]:
    """Return how each request for a medium was answered, redirected ones included."""
    return [call.status for call in server.calls if "/Media/" in call.path or "/elsewhere/" in call.path]


@pytest.mark.parametrize("caption", ["stop", "1", "talk to a person", "👍"])
async def test_what_is_written_under_a_picture_is_about_it(
    whatsapp: Road, twilio_server: TwilioServer, caption: str
) -> None:
    ann = twilio_server.person()
    await ann.say("hello")
    await until(ann, "You said: hello")
    await ann.say("/forget")
    await until(ann, "/1")  # a question with choices is the newest message
    await settled(whatsapp)
    await ann.send_picture(caption)
    await until(ann, f"You said: {caption} [picture ")
    (account,) = await whatsapp.rows("select a.status, c.status as chat from accounts a, chats c")
    assert (account["status"], account["chat"]) == ("active", "active")


async def test_nobody_is_asked_in_the_breath_of_the_consent_question_under_a_picture(
    database_url: str, model: ModelServer, twilio_server: TwilioServer
) -> None:
    ann = twilio_server.person()
    eager: dict[str, object] = {"ask_after_silent_replies": 1, "ask_per_day": 9}
    async with road(database_url, model.url, model=SEES, **settings(twilio_server), **eager) as gateway:
        connect(twilio_server, gateway)
        await ann.send_picture("what is this?")
        await until(ann, "You said: what is this?")
        await settled(gateway)
        assert await gateway.rows("select 1 from asks") == []
        await ann.send_picture("and this?")
        await until(ann, "You said: and this?")
        await settled(gateway)
        assert len(await gateway.rows("select 1 from asks")) == 1
        await twilio_server.hang_up()


@pytest.mark.parametrize("redirects", [0, 1, 3])
async def test_a_picture_reaches_the_model(
    whatsapp: Road, twilio_server: TwilioServer, model: ModelServer, redirects: int
) -> None:
    """The address that Twilio points to takes no credentials: it refuses whoever brings some."""
    twilio_server.redirects = redirects
    ann = twilio_server.person()
    await ann.send_picture("what is this?")
    await until(ann, "You said: what is this? [picture ")
    (shown,) = model.calls[-1].pictures
    assert b"Secret Camera" not in shown
    assert fetched(twilio_server) == [*[307] * redirects, 200]


async def test_who_points_on_for_ever_is_not_followed(whatsapp: Road, twilio_server: TwilioServer) -> None:
    twilio_server.redirects = 9
    ann = twilio_server.person()
    await ann.send_picture()
    await until(ann, "I could not open what you sent (a picture)")
    assert fetched(twilio_server) == [307] * 4


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "I could not get what you sent (a picture) any more"),
        (b"<html>", "I could not open what you sent (a picture)"),
        (PICTURE + bytes(5_000_000), "What you sent (a picture) is too big"),
    ],
    ids=["gone", "no picture", "too big"],
)
async def test_what_cannot_be_shown_is_said(
    whatsapp: Road, twilio_server: TwilioServer, model: ModelServer, data: bytes, words: str
) -> None:
    ann = twilio_server.person()
    await ann.send_picture("look", data)
    await until(ann, words)
    assert (await until(ann, "You said: look")).body == "You said: look"
    assert model.calls[-1].pictures == []


async def test_what_is_too_slow_is_tried_again(
    whatsapp: Road, twilio_server: TwilioServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(media, "FETCH_S", 0.3)
    twilio_server.media_delay_s = 2.0
    ann = twilio_server.person()
    await ann.send_picture("look")
    async with asyncio.timeout(20):
        while not await whatsapp.rows("select 1 from inbox where state = 'stored' and attempts = 1"):
            await asyncio.sleep(0.05)
    twilio_server.media_delay_s = 0.0
    await until(ann, "You said: look [picture ")
    assert await count(whatsapp, "turns") == 1


async def test_neither_twilio_nor_the_database_waits_for_a_download(
    whatsapp: Road, twilio_server: TwilioServer
) -> None:
    ann = twilio_server.person()
    await ann.say("hello")
    await until(ann, "You said: hello")
    await settled(whatsapp)
    twilio_server.media_delay_s = 1.5
    began = time.monotonic()
    await ann.send_picture("look")
    assert time.monotonic() - began < 1
    await asyncio.sleep(0.5)
    open_ones = (
        "select count(*) as n from pg_stat_activity where datname = current_database() and state like 'idle in%'"
    )
    assert (await whatsapp.rows(open_ones))[0]["n"] == 0
    assert (await whatsapp.rows("select count(*) as n from turns"))[0]["n"] == 1
    await until(ann, "You said: look [picture ")


def forged(server: TwilioServer, other: str) -> list[str]:
    """Return addresses that are not Twilio's media of this account, however near they look."""
    path = f"/2010-04-01/Accounts/{server.account_sid}/Messages/MM1/Media/ME1"
    host = f"{server.host}:{server.port}"
    return [
        f"{other}{path}",
        f"http://{host}@{other.removeprefix('http://')}{path}",
        f"{server.url}/elsewhere/0/ME1",
        f"{server.url}/2010-04-01/Accounts/AC{'1' * 32}/Messages/MM1/Media/ME1",
        f"{server.url}/2010-04-01/Accounts/{server.account_sid}/Messages/../../../../elsewhere/0/ME1",
        f"https://{host}{path}",
        f"http://somebody:secret@{host}{path}",
        f"file://{path}",
        "http://[",
        path,
    ]


async def test_a_forged_address_gets_no_request_and_no_token(
    whatsapp: Road, twilio_server: TwilioServer, unused_tcp_port: int
) -> None:
    heard: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(1000))
        writer.close()

    ann = twilio_server.person()
    async with await asyncio.start_server(listen, "127.0.0.1", unused_tcp_port):
        for number, address in enumerate(forged(twilio_server, f"http://127.0.0.1:{unused_tcp_port}")):
            along = {"NumMedia": "1", "MediaUrl0": address, "MediaContentType0": "image/jpeg"}
            await ann.say(f"look {number}", MessageType="image", **along)
            await until(ann, f"You said: look {number}")
    assert heard == []
    assert fetched(twilio_server) == []
    assert sum("I could not open what you sent (a picture)" in text for text in ann.texts) == 10


@pytest.mark.parametrize(
    "location",
    [
        "http://media.example.org/x",
        "http://127.0.0.1:{port}/x",
        "https://127.0.0.1:{port}/x",
        "https://[::1]:{port}/x",
        "https://localhost:{port}/x",
        "https://10.0.0.1/x",
        "https://169.254.169.254/latest/meta-data/",
        "ftp://media.example.org/x",
        "//127.0.0.1:{port}/x",
        "https://2130706433:{port}/x",
        "https://127.1:{port}/x",
        "https://0x7f.0.0.1:{port}/x",
        "https://017700000001:{port}/x",
        "https://0:{port}/x",
        "https://127.0.0.1.:{port}/x",
        "https://localhost.:{port}/x",
        "https://media.localhost:{port}/x",
        "https://[::ffff:127.0.0.1]:{port}/x",
        "https://[64:ff9b::7f00:1]:{port}/x",
        "https://[64:ff9b:1::7f00:1]:{port}/x",
        "https://[2002:7f00:1::]:{port}/x",
    ],
)
async def test_twilios_own_host_points_nowhere_inside(location: str, unused_tcp_port: int) -> None:
    client = MediaClient("AC" + "1" * 32, "token", None)
    try:
        with pytest.raises(AttachmentRefusedError):
            client._elsewhere(media.TWILIO, location.format(port=unused_tcp_port))
        there = client._elsewhere(media.TWILIO, "https://name:secret@media.example.org/x")
        assert str(there) == "https://media.example.org/x"
    finally:
        await client.close()


class Names(AbstractResolver):
    """A name service in which every name stands for what its owner has entered."""

    addresses: Sequence[str] = ()

    async def resolve(
        self, host: str, port: int = 0, family: AddressFamily = AddressFamily.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address in self.addresses
        ]

    async def close(self) -> None:
        """Close nothing."""


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["8.8.8.8", "10.0.0.1"],
        ["169.254.169.254"],
        ["::ffff:10.0.0.1"],
        ["fe80::1%eth0"],
        ["64:ff9b::7f00:1"],
        ["64:ff9b:1::7f00:1"],
        ["2002:7f00:1::"],
    ],
)
async def test_a_name_that_stands_for_a_machine_inside_is_not_followed(
    monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int, addresses: list[str]
) -> None:
    monkeypatch.setattr(media.aiohttp, "DefaultResolver", Names)
    monkeypatch.setattr(Names, "addresses", addresses)

    async def redirect(_: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": f"https://media.example.org:{unused_tcp_port}/there"})

    account = "AC" + "1" * 32
    app = web.Application()
    app.router.add_get(f"/2010-04-01/Accounts/{account}/Messages/MM1/Media/ME1", redirect)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    client = MediaClient(account, "token", f"http://127.0.0.1:{unused_tcp_port}")
    try:
        with pytest.raises(AttachmentRefusedError):
            await client.fetch(Attachment("picture", client.address("MM1", "ME1")))
    finally:
        await client.close()
        await runner.cleanup()


async def test_names_on_the_internet_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Names, "addresses", ["8.8.8.8", "2001:4860:4860::8888"])
    found = await OutsideResolver(Names()).resolve("media.example.org", 443)
    assert [one["host"] for one in found] == ["8.8.8.8", "2001:4860:4860::8888"]


async def test_credentials_do_not_go_along_a_redirect_to_another_host(unused_tcp_port: int) -> None:
    """Seen from the other side: what a host that Twilio names is told of us."""
    account, seen = "AC" + "1" * 32, []

    async def redirect(request: web.Request) -> web.Response:
        seen.append(("home", request.headers.get("Authorization"), request.headers.get("Cookie")))
        headers = {"Location": f"http://localhost:{unused_tcp_port}/there", "Set-Cookie": "a=b"}
        return web.Response(status=302, headers=headers)

    async def there(request: web.Request) -> web.Response:
        seen.append(("there", request.headers.get("Authorization"), request.headers.get("Cookie")))
        return web.Response(body=b"picture")

    app = web.Application()
    app.router.add_get(f"/2010-04-01/Accounts/{account}/Messages/MM1/Media/ME1", redirect)
    app.router.add_get("/there", there)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    client = MediaClient(account, "token", f"http://127.0.0.1:{unused_tcp_port}")
    try:
        found = await client.fetch(Attachment("picture", client.address("MM1", "ME1")))
    finally:
        await client.close()
        await runner.cleanup()
    basic = base64.b64encode(f"{account}:token".encode()).decode()
    assert (found, seen) == (b"picture", [("home", f"Basic {basic}", None), ("there", None, None)])


async def test_a_voice_note_is_heard_and_answered(
    whatsapp: Road, twilio_server: TwilioServer, transcriber: Transcriber
) -> None:
    ann = twilio_server.person()
    await ann.send_voice()
    await until(ann, "You said: what is the weather")
    heard = next(number for number, text in enumerate(ann.texts) if text == "🎤 “what is the weather”")
    assert ann.texts[heard + 1] == "You said: what is the weather"
    (recording,) = transcriber.heard
    assert (recording.name, recording.content_type, recording.model) == ("voice.ogg", "audio/ogg", "whisper-1")


async def test_words_that_mean_something_mean_it_when_spoken(
    whatsapp: Road, twilio_server: TwilioServer, transcriber: Transcriber
) -> None:
    ann = twilio_server.person()
    transcriber.words = "Talk to a person."
    await ann.send_voice()
    await until(ann, "you would like to talk to a person")
    (chat,) = await whatsapp.rows("select status from chats")
    assert chat["status"] == "paused"
    # The bot is silent now: nothing is fetched for it.
    before = len(fetched(twilio_server))
    await ann.send_voice()
    await settled(whatsapp, beyond=1)
    assert len(fetched(twilio_server)) == before


@pytest.mark.parametrize("words", ["Stop.", "수신거부", "unsubscribe"])
async def test_leaving_takes_more_than_a_word_that_was_heard(
    whatsapp: Road, twilio_server: TwilioServer, transcriber: Transcriber, words: str
) -> None:
    ann = twilio_server.person()
    transcriber.words = words
    await ann.send_voice()
    await until(ann, "Do you want no more messages from me?")
    await settled(whatsapp)
    accounts = "select status from accounts"
    assert [row["status"] for row in await whatsapp.rows(accounts)] == ["active"]
    await ann.say("1")
    await until(ann, "START")
    await settled(whatsapp)
    assert [row["status"] for row in await whatsapp.rows(accounts)] == ["opted_out"]


async def test_nor_is_it_enough_where_the_bot_became_silent_while_it_was_heard(
    whatsapp: Road, twilio_server: TwilioServer, transcriber: Transcriber
) -> None:
    ann = twilio_server.person()
    await ann.say("hello")
    await until(ann, "You said: hello")
    await settled(whatsapp)
    transcriber.words, transcriber.delay_s = "Unsubscribe.", 1.0
    await ann.send_voice()
    async with asyncio.timeout(10):
        while not transcriber.heard:
            await asyncio.sleep(0.02)
    await whatsapp.rows("update chats set status = 'paused', paused_at = now() returning id")
    await settled(whatsapp)
    (account,) = await whatsapp.rows("select a.status, c.status as chat from accounts a, chats c")
    assert (account["status"], account["chat"]) == ("active", "paused")


async def test_a_stranger_does_not_make_us_fetch(
    database_url: str, model: ModelServer, twilio_server: TwilioServer
) -> None:
    async with road(database_url, model.url, model=SEES, private_bots=True, **settings(twilio_server)) as gateway:
        connect(twilio_server, gateway)
        ann = twilio_server.person()
        await ann.send_picture("let me in")
        await until(ann, "This bot is private")
        await settled(gateway)
        await twilio_server.hang_up()
    assert fetched(twilio_server) == []


async def test_who_left_or_asked_enough_does_not_either(whatsapp: Road, twilio_server: TwilioServer) -> None:
    ann = twilio_server.person()
    await ann.say("unsubscribe")
    await until(ann, "I won't write to you any more")
    await ann.send_picture("look")
    await until(ann, "You opted out")
    ben = twilio_server.person("Ben")
    await ben.say("hello")
    await until(ben, "You said: hello")
    await settled(whatsapp, beyond=2)
    await whatsapp.store_execute(
        "insert into turns (session_id, chat_id, person_id, state) select session_id, chat_id, person_id, 'done'"
        " from turns, generate_series(1, 40)"
    )
    await ben.send_picture("look")
    await until(ben, "That was a lot in one minute")
    await settled(whatsapp, beyond=3)
    assert fetched(twilio_server) == []


async def test_a_picture_that_nobody_heard_of_is_fetched_when_it_is_listed(
    whatsapp: Road, twilio_server: TwilioServer, model: ModelServer
) -> None:
    ann = twilio_server.person()
    ann.unheard = True
    await ann.send_picture("while you were away")
    part = whatsapp.gateway.channels["whatsapp"]
    assert isinstance(part, WhatsAppPart)
    found = await part.channel.missed(datetime.now(UTC) - timedelta(hours=1), datetime.now(UTC) + timedelta(hours=1))
    (event,) = part.channel.parse(found[0].body)
    (attachment,) = event.attachments  # type: ignore[union-attr]
    assert await part.channel.fetch(attachment) == PICTURE
