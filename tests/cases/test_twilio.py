"""Twilio: what is signed and what is not, taps and pictures, windows and words that stop, all through our own webhook."""

import asyncio
import hashlib
import time
from collections.abc import Sequence
from urllib.parse import urlencode

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from multidict import MultiDict

from app.domain.event import MessageEvent, PressEvent
from bots.whatsapp.parse import parse
from bots.whatsapp.webhook import Seal, message_handler
from tests.cases.conftest import PUBLIC
from tests.cases.talk import asked, count, got, settled
from tests.fakes.model import ModelServer, faults
from tests.fakes.twilio import Person, TwilioServer, signature
from tests.support.road import Road

PATH = "/webhooks/whatsapp"
TOKEN = "another-token"
ACCOUNT = "AC" + "1" * 32
SENDER = "whatsapp:+15550100999"
ANN = "whatsapp:+15550200001"
Fields = list[tuple[str, str]]


def form(*more: tuple[str, str], **changed: str) -> Fields:
    """Return the fields of a message."""
    known = {
        "MessageSid": "SM" + "2" * 32,
        "AccountSid": ACCOUNT,
        "From": ANN,
        "To": SENDER,
        "Body": "hello",
        "NumMedia": "0",
    }
    return [*(known | changed).items(), *more]


def sealed(
    fields: Sequence[tuple[str, str]], signed_url: str, url: str = PUBLIC + PATH, query: str = "", token: str = TOKEN
) -> bool:
    """Whether fields that Twilio signed for one address are taken at another."""
    seal = Seal(url, ACCOUNT, SENDER, TOKEN)
    return seal.fits(MultiDict(fields), signature(token, signed_url, fields), query, "To")


REPEATED = {
    "twice": [("Extra", "1"), ("Extra", "2")],
    "in another order": [("Extra", "2"), ("Extra", "1")],
    "the same twice": [("Extra", "1"), ("Extra", "1")],
    "blank": [("Extra", ""), ("Button", "")],
    "spaces": [("Extra", " kept ")],
    "Korean": [("ProfileName", "민지"), ("Extra", "둘"), ("Extra", "하나")],
    "emoji": [("Extra", "👨‍👩‍👧‍👦"), ("Extra", "&=+%")],
    "three": [("Extra", "c"), ("Extra", "a"), ("Extra", "b")],
}


@pytest.mark.parametrize("more", REPEATED.values(), ids=list(REPEATED))
async def test_g55_repeated_and_blank_fields_are_signed_too(
    whatsapp: Road, twilio_server: TwilioServer, more: Fields
) -> None:
    """G55 · https://github.com/twilio/twilio-python/issues/613: a form in which a field comes twice, or blank, bears a true
    signature and is taken.
    """
    fields = form(*more, AccountSid=twilio_server.account_sid, To=twilio_server.sender)
    assert await twilio_server.hook.post(PATH, fields) == 200
    assert await count(whatsapp, "inbox") == 1
    changed = urlencode([*fields[:-1], ("Extra", "changed")]).encode()
    seal = {"X-Twilio-Signature": signature(twilio_server.token, PUBLIC + PATH, fields)}
    assert await twilio_server.hook.post_as(PATH, changed, seal) == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Forwarded-Proto": "http", "X-Forwarded-Host": "10.0.0.3:8080"},
        {"Host": "internal:8080"},
        {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "elsewhere.example"},
        {"X-Original-URL": "http://internal/webhooks/whatsapp"},
    ],
)
async def test_g56_behind_a_proxy_the_public_address_is_what_was_signed(
    whatsapp: Road, twilio_server: TwilioServer, headers: dict[str, str]
) -> None:
    """G56 · https://github.com/twilio/twilio-python/issues/751 https://github.com/twilio/twilio-python/issues/715
    https://github.com/botpress/botpress/issues/5008: TLS ends before us, so we are called by http under another name; what
    counts is the address that Twilio was given, whatever a proxy or a stranger says.
    """
    fields = form(AccountSid=twilio_server.account_sid, To=twilio_server.sender)
    assert await twilio_server.hook.post(PATH, fields, headers) == 200
    body = urlencode(fields).encode()
    for wrong in (whatsapp.url + PATH, f"http://bot.example.org{PATH}", f"https://elsewhere.example{PATH}"):
        seal = {"X-Twilio-Signature": signature(twilio_server.token, wrong, fields)}
        assert await twilio_server.hook.post_as(PATH, body, seal | headers) == 403


JSON = b'{"Body": "hello", "From": "whatsapp:+15550200001"}'


@pytest.mark.parametrize("body", [JSON, b"", b"[]", b"null", "안녕 😀".encode(), b"\xff\xfe", b"=&=;&", b"{" * 9000])
async def test_g58_a_body_that_is_no_form_is_refused(body: bytes) -> None:
    """G58 · https://github.com/twilio/twilio-python/issues/885: JSON, or anything else that is no form, with any signature or
    none: 403 and nothing kept, never an error of ours.
    """
    kept: list[object] = []

    async def accept(updates: Sequence[object]) -> None:
        kept.extend(updates)

    app = web.Application()
    app.router.add_post(PATH, message_handler(Seal(PUBLIC + PATH, ACCOUNT, SENDER, TOKEN), accept))
    digest = hashlib.sha256(body).hexdigest()
    async with TestClient(TestServer(app)) as twilio:
        for query in ("", "?bodySHA256=", "?bodySHA256=0000", "?bodySHA256=a&bodySHA256=b", f"?bodySHA256={digest}"):
            for seal in (None, "", "x", signature(TOKEN, PUBLIC + PATH + query, [])):
                headers = {"Content-Type": "application/json"} | ({} if seal is None else {"X-Twilio-Signature": seal})
                async with twilio.post(PATH + query, data=body, headers=headers) as answer:
                    assert answer.status == 403, (query, seal)
    assert kept == []


BASES = ["https://bot.example.org", "https://bot.example.org:443"]


@pytest.mark.parametrize("ours", BASES)
@pytest.mark.parametrize("theirs", BASES)
@pytest.mark.parametrize("query", ["", "tenant=a%20b", "x=1&x=2"])
def test_g60_the_port_of_https_may_be_named_or_not(ours: str, theirs: str, query: str) -> None:
    """G60 · https://github.com/twilio/twilio-python/issues/392: whether `:443` is written where we were set up or where Twilio
    signs, the signature holds; another port or scheme is another address.
    """
    tail = PATH + (f"?{query}" if query else "")
    assert sealed(form(), theirs + tail, ours + PATH, query)
    for other in ("https://bot.example.org:8443", "http://bot.example.org", "https://bot.example.org.evil.example"):
        assert not sealed(form(), other + tail, ours + PATH, query)
    assert not sealed(form(), theirs + tail, ours + PATH, query, token="not ours")


async def test_g61_a_slow_model_does_not_keep_twilio_waiting(
    whatsapp: Road, twilio_server: TwilioServer, model: ModelServer
) -> None:
    """G61 · https://github.com/generalbots/generalbots/issues/718: the post is answered long before the model is, and its
    repeats meanwhile are no further messages.
    """
    model.pace = faults.Slow(first_token_s=3.0)
    ann = twilio_server.person()
    started = time.monotonic()
    for _ in range(3):
        await ann.say("take your time", sid="SM" + "5" * 32)
    assert time.monotonic() - started < 2.0
    assert [status for status, _ in twilio_server.hook.answers] == [200] * 3
    assert "You said" not in "".join(ann.texts)
    await got(ann, "You said: take your time")
    await settled(whatsapp)
    assert ann.texts.count("You said: take your time") == 1
    assert await asked(whatsapp) == ["take your time"]


@pytest.mark.parametrize("kind", ["button", "interactive", "text", "something_new"])
@pytest.mark.parametrize("label", ["Yes", "네", "👍", "نعم", "/stop", ""])
def test_g62_a_tap_is_its_payload(kind: str, label: str) -> None:
    """G62 · https://github.com/chatwoot/chatwoot/issues/12030 https://github.com/botpress/botpress/issues/12855: what a quick
    reply means is in its payload; the label, in any language, is not taken for words.
    """
    fields = form(
        Body=label, ButtonText=label, ButtonPayload="v:x:u", MessageType=kind, OriginalRepliedMessageSid="MM1"
    )
    (event,) = parse(urlencode(fields).encode())
    assert isinstance(event, PressEvent)
    assert (event.data, event.message_id) == ("v:x:u", "MM1")


@pytest.mark.parametrize(("place", "label", "value"), [(0, "Good!", 1), (0, "좋아요", 1), (1, "No 👎", -1)])
async def test_g62_a_tap_is_a_vote_and_no_message(
    whatsapp: Road, twilio_server: TwilioServer, place: int, label: str, value: int
) -> None:
    """G62 · https://github.com/chatwoot/chatwoot/issues/12030 https://github.com/botpress/botpress/issues/12855: tapped under a
    reply, it is stored as the vote that it is, and the model is not asked about the label.
    """
    ann = twilio_server.person()
    await ann.say("rate this")
    reply = await got(ann, "You said: rate this")
    await settled(whatsapp)
    (row,) = await whatsapp.rows("select content from outbox where turn_id is not null")
    await ann.tap(row["content"]["buttons"][0][place]["data"], label, reply)
    await settled(whatsapp)
    assert [vote["value"] for vote in await whatsapp.rows("select value from votes")] == [value]
    assert await asked(whatsapp) == ["rate this"]


THUMBS = [("👍", 1), ("👍🏽", 1), (" 👍 ", 1), ("👍\ufe0f", 1), ("👎", -1), ("👎🏿", -1)]


@pytest.mark.parametrize(("thumb", "value"), THUMBS)
async def test_g63_a_bare_thumb_is_a_vote(whatsapp: Road, twilio_server: TwilioServer, thumb: str, value: int) -> None:
    """G63 · https://github.com/chatwoot/chatwoot/issues/10411 https://github.com/chatwoot/chatwoot/issues/8656: reactions do not
    come through Twilio; the first message says so and a thumb as a message counts.
    """
    ann = twilio_server.person()
    await ann.say("rate this")
    await got(ann, "You said: rate this")
    assert "Answer a reply with 👍 or 👎" in ann.texts[0]
    await ann.say(thumb)
    await settled(whatsapp)
    assert [vote["value"] for vote in await whatsapp.rows("select value from votes")] == [value]
    assert await asked(whatsapp) == ["rate this"]


@pytest.mark.parametrize("silence", [None, "🙏", "👌", "👍👎", "ok 👍", "❤", "다른 이야기", "thanks"])
async def test_g63_silence_and_other_signs_are_no_approval(
    whatsapp: Road, twilio_server: TwilioServer, silence: str | None
) -> None:
    """G63 · https://github.com/chatwoot/chatwoot/issues/10411 https://github.com/chatwoot/chatwoot/issues/8656: nothing said, or
    anything but a thumb, is no vote.
    """
    ann = twilio_server.person()
    await ann.say("rate this")
    await got(ann, "You said: rate this")
    if silence:
        await ann.say(silence)
        await got(ann, f"You said: {silence}")
    await settled(whatsapp)
    assert await count(whatsapp, "votes") == 0
    assert await count(whatsapp, "feedback") == 0


async def test_g63_a_thumb_at_nothing_is_told_so(whatsapp: Road, twilio_server: TwilioServer) -> None:
    """G63 · https://github.com/chatwoot/chatwoot/issues/10411 https://github.com/chatwoot/chatwoot/issues/8656: a thumb that has
    no reply to rate is not lost in silence.
    """
    ann = twilio_server.person()
    await ann.say("👍")
    await settled(whatsapp)
    assert len(ann.texts) > 2  # beyond the greeting and the question of consent
    assert await count(whatsapp, "votes") == 0


@pytest.mark.parametrize("caption", ["", "what is this?", "이게 뭐예요?"])
async def test_g65_a_picture_is_fetched_with_our_name(
    seeing_whatsapp: Road, twilio_server: TwilioServer, caption: str
) -> None:
    """G65 · https://github.com/twilio/twilio-python/issues/840 https://github.com/bmlt-enabled/yap/issues/1573: Twilio gives a
    picture out only to who signs in.
    """
    ann = twilio_server.person()
    await ann.send_picture(caption)
    await settled(seeing_whatsapp)
    assert [call.status for call in twilio_server.calls if "/Media/" in call.path] == [200]


async def test_g65_a_picture_elsewhere_is_never_fetched(
    seeing_whatsapp: Road, twilio_server: TwilioServer, unused_tcp_port: int
) -> None:
    """G65 · https://github.com/twilio/twilio-python/issues/840 https://github.com/bmlt-enabled/yap/issues/1573: our token goes to
    no address that a message names; whoever listens there hears nothing.
    """
    heard: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(1000))
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", unused_tcp_port)
    ann = twilio_server.person()
    media = {"MediaUrl0": f"http://127.0.0.1:{unused_tcp_port}/2010-04-01/x", "MediaContentType0": "image/png"}
    await ann.say("look", MessageType="image", NumMedia="1", **media)
    await settled(seeing_whatsapp)
    server.close()
    await server.wait_closed()
    assert heard == []


@pytest.mark.parametrize("status", ["failed", "undelivered"])
async def test_g67_a_closed_window_is_known_to_the_operator(
    whatsapp: Road, twilio_server: TwilioServer, status: str, caplog: pytest.LogCaptureFixture
) -> None:
    """G67 · https://github.com/chatwoot/chatwoot/issues/1009: a reply that came too late is kept, with Twilio's reason, in the
    store and in the log; it is not sent again by itself, and waits for the person's next word.
    """
    twilio_server.reports = False
    ann = twilio_server.person()
    await ann.say("/help")
    reply = await got(ann, "Just write to me. In words")
    await settled(whatsapp)
    sends = len([c for c in twilio_server.calls if c.path.endswith("Messages.json")])
    assert await twilio_server.report(reply, status, ann.address, 63016) == 200
    await settled(whatsapp, beyond=1)
    query = "select state, error from outbox where provider_message_id = :sid"
    assert await whatsapp.rows(query, sid=reply.sid) == [{"state": "held", "error": "twilio_63016"}]
    lost = [record for record in caplog.records if record.message == "outbox:part:undelivered"]
    assert [record.fields["reason"] for record in lost] == ["twilio_63016"]  # type: ignore[attr-defined]
    assert len([c for c in twilio_server.calls if c.path.endswith("Messages.json")]) == sends


async def test_g67_a_window_closed_at_once_is_known_by_its_code(whatsapp: Road, twilio_server: TwilioServer) -> None:
    """G67 · https://github.com/chatwoot/chatwoot/issues/1009: the same where Twilio refuses it while it is sent."""
    ann = twilio_server.person()
    ann.refusal = 63016
    await ann.say("/help")
    await settled(whatsapp)
    rows = await whatsapp.rows("select state, error from outbox")
    assert {row["state"] for row in rows} == {"held"}
    assert all("63016" in row["error"] for row in rows)


async def test_g67_a_late_reply_waits_for_the_next_word(whatsapp: Road, twilio_server: TwilioServer) -> None:
    """G67 · https://github.com/chatwoot/chatwoot/issues/1009: what could not be sent outside the 24 hours comes once the person
    has written again.
    """
    ann = twilio_server.person()
    ann.refusal = 63016
    await ann.say("the late question")
    await settled(whatsapp)
    ann.refusal = None
    await ann.say("I am back")
    await got(ann, "You said: I am back")
    await settled(whatsapp)
    assert any("You said: the late question" in text for text in ann.texts)


STOPS = ["stop", "STOP", " Stop ", "unsubscribe", "END", "optout", "수신거부"]


@pytest.mark.parametrize("word", STOPS)
async def test_g68_who_says_stop_is_left_alone(whatsapp: Road, twilio_server: TwilioServer, word: str) -> None:
    """G68 · https://github.com/orgs/chatwoot/discussions/15196: such a word alone opts out: the model is not asked, and after one
    confirmation nothing more is sent.
    """
    ann = twilio_server.person()
    await ann.say("/learn on")
    await settled(whatsapp)
    await ann.say(word)
    await settled(whatsapp)
    assert await asked(whatsapp) == []


@pytest.mark.parametrize("words", ["please stop the music", "how do I quit smoking?", "stop it", "그만두고 싶은 회사"])
async def test_g68_a_sentence_about_stopping_is_a_message(
    whatsapp: Road, twilio_server: TwilioServer, words: str
) -> None:
    """G68 · https://github.com/orgs/chatwoot/discussions/15196: within a sentence the word means nothing of the kind."""
    ann = twilio_server.person()
    await ann.say(words)
    await got(ann, f"You said: {words}")
    assert await asked(whatsapp) == [words]


@pytest.mark.parametrize("code", [21610, 63024, 21211, 63015])
async def test_g68_who_opted_out_at_twilio_is_marked(whatsapp: Road, twilio_server: TwilioServer, code: int) -> None:
    """G68 · https://github.com/orgs/chatwoot/discussions/15196: whom Twilio will not reach any more is marked, and nothing that
    waits is tried.
    """
    ann = twilio_server.person()
    ann.refusal = code
    await ann.say("/help")
    await settled(whatsapp)
    assert [row["status"] for row in await whatsapp.rows("select status from chats")] == ["gone"]
    assert len([c for c in twilio_server.calls if c.path.endswith("Messages.json")]) == 1


@pytest.mark.parametrize("words", ["hello", "안녕", "/help", "/privacy", "👍", ""])
async def test_g69_the_answer_to_a_post_says_nothing(whatsapp: Road, twilio_server: TwilioServer, words: str) -> None:
    """G69 · https://github.com/GoogleCloudPlatform/dialogflow-integrations/issues/144: several messages for one: none is in the
    answer to the post, each is sent by itself, in order.
    """
    ann = twilio_server.person()
    await ann.say(words)
    await settled(whatsapp)
    assert twilio_server.hook.answers[0] == (200, '<?xml version="1.0" encoding="UTF-8"?><Response/>')
    sent = [c.form["Body"] for c in twilio_server.calls if c.path.endswith("Messages.json")]
    assert sent == ann.texts
    assert len(sent) >= 2
    assert "Answer a reply with" in sent[0] or "👍" in sent[0]


# ------------------------------------------------------------------------------------------------------------ captions

CAPTIONS = ["@Mentee", "@15550100123", "@멘티 보세요", "👀", "look at @Mentee please", "*"]


@pytest.mark.parametrize("caption", CAPTIONS)
async def test_g76_a_caption_is_kept_and_answered(whatsapp: Road, twilio_server: TwilioServer, caption: str) -> None:
    """G76 · https://github.com/openclaw/openclaw/issues/1694: a picture whose words are only a mention is no empty message: the
    words are stored and answered.
    """
    ann = twilio_server.person()
    await ann.send_picture(caption)
    await got(ann, "You said: ")
    await settled(whatsapp)
    assert await asked(whatsapp) == [caption]


@pytest.mark.parametrize("caption", CAPTIONS)
def test_g76_picture_and_words_are_both_read(caption: str) -> None:
    """G76 · https://github.com/openclaw/openclaw/issues/1694: neither hides the other when the form is read."""
    fields = form(Body=caption, NumMedia="1", MediaContentType0="image/jpeg", MediaUrl0="https://api.twilio.com/x")
    (event,) = parse(urlencode(fields).encode())
    assert isinstance(event, MessageEvent)
    assert (event.text, event.media) == (caption, "image")


async def test_g76_a_picture_alone_is_answered(whatsapp: Road, twilio_server: TwilioServer) -> None:
    """G76 · https://github.com/openclaw/openclaw/issues/1694: without any words the person reads that it could not be looked at."""
    ann = twilio_server.person()
    await ann.send_picture()
    await got(ann, "could not look at what you sent (a picture)")
    assert await asked(whatsapp) == []


async def test_g76_the_model_sees_the_picture(
    seeing_whatsapp: Road, twilio_server: TwilioServer, eyes: ModelServer
) -> None:
    """G76 · https://github.com/openclaw/openclaw/issues/1694: the picture reaches the model with its words."""
    ann: Person = twilio_server.person()
    await ann.send_picture("@Mentee")
    await got(ann, "You said: ")
    assert "image_url" in str(eyes.calls[-1].body)
