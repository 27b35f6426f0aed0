"""Twilio's forms as events: what people send, what they tap, what became of our own messages, and what is refused."""

from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.event import ChatAddress, DeliveredEvent, FailedDeliveryEvent, MessageEvent, PressEvent
from app.domain.press import Press
from app.errors import InvalidInputError
from bots.base import RawUpdate
from bots.whatsapp.keys import QUARANTINE_LANE, Arrived, raw_message, raw_status
from bots.whatsapp.parse import NOBODY, parse

ANN = "whatsapp:+15550200001"
SID = "SM" + "1" * 32


def form(**changed: str) -> bytes:
    known = {"MessageSid": SID, "AccountSid": "AC1", "From": ANN, "To": "whatsapp:+1", "Body": "hello", "NumMedia": "0"}
    return urlencode({name: value for name, value in (known | changed).items() if value != "-"}).encode()


def message(**changed: str) -> MessageEvent:
    (event,) = parse(form(**changed))
    assert isinstance(event, MessageEvent)
    return event


def test_a_message() -> None:
    event = message(ProfileName="Ann", MessageType="text")
    assert (event.text, event.message_id, event.chat.external_id) == ("hello", SID, ANN)
    assert (event.sender.external_id, event.sender.name, event.sender.alias) == (ANN, "Ann", None)
    assert event.chat.kind == "private"
    assert (event.command, event.media, event.reply_to, event.forwarded) == (None, None, None, False)


def test_who_it_is_stays_when_the_number_is_hidden() -> None:
    event = message(ExternalUserId="whatsapp:US.abc")
    assert (event.sender.external_id, event.sender.alias, event.chat.external_id) == ("whatsapp:US.abc", ANN, ANN)
    hidden = message(From="whatsapp:US.abc", ExternalUserId="whatsapp:US.abc")
    assert (hidden.sender.external_id, hidden.sender.alias) == ("whatsapp:US.abc", None)


@pytest.mark.parametrize(
    ("changed", "language"),
    [({}, None), ({"From": "whatsapp:+821000000001"}, "ko"), ({"ExternalUserId": "whatsapp:KR.abc"}, "ko")],
)
def test_the_language_is_guessed_from_the_country(changed: dict[str, str], language: str | None) -> None:
    assert message(**changed).sender.language == language


@pytest.mark.parametrize(
    ("body", "command", "argument"),
    [
        ("/help", "help", ""),
        (" /Learn  on ", "learn", "on"),
        ("/1", "1", ""),
        ("/usr/bin", None, ""),
        ("see /help", None, ""),
        ("/", None, ""),
    ],
)
def test_commands_are_text(body: str, command: str | None, argument: str) -> None:
    event = message(Body=body)
    assert (event.command, event.argument) == (command, argument)


def test_a_forwarded_command_is_only_words() -> None:
    event = message(Body="/forget", Forwarded="true")
    assert event.forwarded
    assert event.command is None


def test_a_swipe_reply_names_the_part_it_answers() -> None:
    assert message(OriginalRepliedMessageSid="SM7").reply_to == "SM7"


@pytest.mark.parametrize("kind", ["button", "interactive", "text"])
def test_a_tap_is_known_by_its_payload_alone(kind: str) -> None:
    (event,) = parse(form(Body="Gut!", MessageType=kind, ButtonPayload="v:x:u", OriginalRepliedMessageSid="MM7"))
    assert isinstance(event, PressEvent)
    assert (event.data, event.message_id, event.press_id) == ("v:x:u", "MM7", SID)


@pytest.mark.parametrize(
    ("changed", "media"),
    [
        ({"MessageType": "image", "NumMedia": "1"}, "image"),
        ({"NumMedia": "1", "MediaContentType0": "audio/ogg"}, "audio"),
        ({"NumMedia": "1"}, "file"),
        ({"Latitude": "1.5", "Longitude": "2"}, "location"),
        ({"MessageType": "something-new"}, "something-new"),
        ({"Body": "-"}, None),
    ],
)
def test_what_is_attached_is_named(changed: dict[str, str], media: str | None) -> None:
    assert message(**{"Body": ""} | changed).media == media


ONE = {"NumMedia": "1", "MediaUrl0": "https://x/1"}


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        (ONE | {"MediaContentType0": "image/jpeg", "MessageType": "image"}, [("picture", "https://x/1")]),
        (ONE | {"MediaContentType0": "audio/ogg; codecs=opus"}, [("voice", "https://x/1")]),
        (ONE | {"MediaContentType0": "IMAGE/PNG"}, [("picture", "https://x/1")]),
        (ONE | {"MediaContentType0": "image/webp", "MessageType": "sticker"}, []),
        (ONE | {"MediaContentType0": "application/pdf"}, []),
        (ONE, []),
        ({"NumMedia": "1", "MediaContentType0": "image/png"}, []),
        (ONE | {"NumMedia": "0", "MediaContentType0": "image/png"}, []),
        (
            ONE
            | {"NumMedia": "2", "MediaContentType0": "text/vcard", "MediaUrl1": "u", "MediaContentType1": "image/png"},
            [("picture", "u")],
        ),
    ],
)
def test_what_can_be_fetched_is_named_by_its_address(changed: dict[str, str], found: list[tuple[str, str]]) -> None:
    assert [(one.kind, one.ref) for one in message(**changed).attachments] == found


def test_no_number_of_media_is_too_large_to_be_read() -> None:
    many = {f"MediaUrl{n}": "u" for n in range(30)} | {f"MediaContentType{n}": "image/png" for n in range(30)}
    assert len(message(NumMedia="99999999999999999999", **many).attachments) == 10


def test_what_cannot_be_stored_is_replaced() -> None:
    assert message(Body="a\x00b").text == "a\ufffdb"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no form",
        form(MessageSid="-"),
        form(From="-"),
        form(From=""),
        form(From="+1555"),
        form(NumMedia="x"),
        form(NumMedia="9" * 5000),
    ],
)
def test_what_makes_no_sense_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidInputError):
        parse(body)


@given(st.binary(max_size=200))
def test_no_body_breaks_anything(body: bytes) -> None:
    update = raw_message(body, None)
    assert update.keys
    try:
        assert len(parse(body)) == 1
    except InvalidInputError:
        assert update.body == body


@pytest.mark.parametrize(("code", "gone"), [("63016", False), ("21610", True), ("63024", True), ("", False)])
def test_a_failed_delivery(code: str, gone: bool) -> None:
    (event,) = parse(form(MessageStatus="failed", ErrorCode=code))
    assert isinstance(event, FailedDeliveryEvent)
    assert (event.message_id, event.reason, event.gone) == (SID, f"twilio_{code or 'failed'}", gone)


# ------------------------------------------------------------------------------------------------------- keys, lanes


def test_a_repeat_is_known_by_message_and_by_request() -> None:
    update = raw_message(form(), "token-1")
    assert update.keys == (f"whatsapp:message:{SID}", "whatsapp:request:token-1")
    assert raw_message(form(), None).keys == (f"whatsapp:message:{SID}",)


def test_lanes() -> None:
    vote, reason = Press("v", "x" * 22, "u").data(), Press("r", "x" * 22, "fact").data()
    assert raw_message(form(), None).lane == ANN
    assert raw_message(form(ExternalUserId="whatsapp:US.a"), None).lane == ANN
    assert raw_message(form(Body="/STOP "), None).lane == f"stop:{ANN}"
    assert raw_message(form(Body="/cancel"), None).lane == f"stop:{ANN}"
    assert raw_message(form(Body="/stop now, please"), None).lane == f"stop:{ANN}"
    assert raw_message(form(Body="/stopwatch"), None).lane == ANN
    for beside in (
        {"Forwarded": "true"},
        {"OriginalRepliedMessageSid": SID},
        {"NumMedia": "1", "MediaUrl0": "https://a"},
    ):
        assert raw_message(form(Body="stop", **beside), None).lane == ANN
    assert raw_message(form(ButtonPayload=vote), None).lane == f"votes:{ANN}"
    assert raw_message(form(ButtonPayload=reason), None).lane == ANN
    assert raw_message(form(MessageSid="-"), None).lane == QUARANTINE_LANE


@pytest.mark.parametrize("status", ["accepted", "queued", "sending", "sent", "unheard-of"])
def test_what_our_receipt_says_already_is_not_kept(status: str) -> None:
    assert raw_status(form(MessageStatus=status)) is None


@pytest.mark.parametrize("status", ["delivered", "read"])
def test_how_far_a_message_came_is_no_update(status: str) -> None:
    body = form(MessageStatus=status, From="whatsapp:+1", To=ANN)
    update = RawUpdate(body, (f"whatsapp:status:{SID}:{status}",), f"status:{ANN}")
    assert raw_status(body) == Arrived(SID, ANN, status, update)
    assert parse(body) == [DeliveredEvent(ChatAddress(ANN), NOBODY, message_id=SID, delivery=status)]


def test_a_failure_is_kept_once() -> None:
    update = raw_status(form(MessageStatus="undelivered", From="whatsapp:+1", To=ANN))
    assert isinstance(update, RawUpdate)
    assert (update.keys, update.lane) == ((f"whatsapp:status:{SID}:undelivered",), f"status:{ANN}")
