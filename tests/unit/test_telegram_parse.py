"""Updates of every kind → events; what is malformed is refused in one way only."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.event import (
    AnyEvent,
    ChatAddress,
    EditEvent,
    IgnoredEvent,
    MembershipEvent,
    MessageEvent,
    PressEvent,
    ReactionEvent,
)
from app.errors import InvalidInputError
from bots.telegram.keys import raw_update
from bots.telegram.parse import parse
from bots.telegram.people import Me

JSON = dict[str, object]
ME = Me(9001, "mentee_bot")
ANN: JSON = {
    "id": 71,
    "is_bot": False,
    "first_name": "Ann",
    "last_name": "Lee",
    "username": "annlee",
    "language_code": "ko",
}
BOT: JSON = {"id": 9001, "is_bot": True, "first_name": "Mentee", "username": "mentee_bot"}
PRIVATE: JSON = {"id": 71, "type": "private", "first_name": "Ann"}
GROUP: JSON = {"id": -1005, "type": "supergroup", "title": "Tea"}
FORUM: JSON = {"id": -1006, "type": "supergroup", "title": "Topics", "is_forum": True}
DATE = 1_790_000_000


def update(**content: object) -> bytes:
    return json.dumps({"update_id": 500, **content}).encode()


def message(kind: str = "message", chat: JSON = PRIVATE, **fields: object) -> bytes:
    return update(**{kind: {"message_id": 12, "date": DATE, "chat": chat, "from": ANN, **fields}})


def one(body: bytes) -> AnyEvent:
    (event,) = parse(body, ME)
    return event


def said(body: bytes) -> MessageEvent:
    event = one(body)
    assert isinstance(event, MessageEvent)
    return event


def ignored(body: bytes) -> str:
    event = one(body)
    assert isinstance(event, IgnoredEvent)
    return event.reason


def mention(text: str) -> list[JSON]:
    """The entity for @mentee_bot in a text of letters inside the BMP."""
    return [{"type": "mention", "offset": text.index("@"), "length": 11}]


# ------------------------------------------------------------------------------------------------------- messages


def test_a_private_message() -> None:
    event = said(message(text="안녕 😀"))
    assert event.chat == ChatAddress("71", "", "private")
    assert (event.sender.external_id, event.sender.alias, event.sender.name) == ("71", "annlee", "Ann Lee")
    assert (event.sender.language, event.sender.automated) == ("ko", False)
    assert (event.message_id, event.text, event.addressed, event.media) == ("12", "안녕 😀", True, None)


@pytest.mark.parametrize(
    ("text", "command", "argument"),
    [
        ("/start abc", "start", "abc"),
        ("/Start@Mentee_Bot  deep ", "start", "deep"),
        ("/learn on", "learn", "on"),
        ("/new\nsecond line", "new", "second line"),
        ("/usr/bin/python is broken", None, ""),
        ("say /new", None, ""),
        ("/", None, ""),
        ("/" + "x" * 33, None, ""),
    ],
)
def test_commands(text: str, command: str | None, argument: str) -> None:
    event = said(message(text=text))
    assert (event.command, event.argument, event.text) == (command, argument, text)


def test_a_command_for_another_bot_is_none_of_ours() -> None:
    assert ignored(message(text="/new@other_bot", chat=GROUP)) == "command_for_other_bot"
    assert ignored(message(caption="/new@other_bot x", photo=[{}])) == "command_for_other_bot"


def test_a_caption_carries_commands_and_mentions() -> None:
    event = said(message(caption="/correct this one", photo=[{"file_id": "p"}]))
    assert (event.command, event.argument, event.media) == ("correct", "this one", "photo")
    # https://github.com/openclaw/openclaw/issues/1694
    picture = said(message(chat=GROUP, caption="@mentee_bot", caption_entities=mention("@mentee_bot"), photo=[{}]))
    assert (picture.addressed, picture.media, picture.text) == (True, "photo", "")


@pytest.mark.parametrize(
    "kind",
    [
        "photo",
        "voice",
        "audio",
        "video",
        "video_note",
        "document",
        "sticker",
        "location",
        "contact",
        "poll",
        "dice",
        "story",
    ],
)
def test_media_are_named(kind: str) -> None:
    assert said(message(**{kind: {}})).media == kind


def test_the_more_telling_of_two_media_names_wins() -> None:
    assert said(message(animation={}, document={})).media == "animation"
    assert said(message(venue={}, location={})).media == "venue"
    assert said(message(rich_message={"blocks": []})).media == "rich_message"
    assert said(message(hologram={"v": 1})).media == "unknown"


SIZES = [
    {"file_id": "small", "width": 90, "height": 60, "file_size": 1000},
    {"file_id": "huge", "width": 9000, "height": 6000, "file_size": 9_000_000},
    {"file_id": "large", "width": 1280, "height": 853, "file_size": 200_000},
]


@pytest.mark.parametrize(
    ("attached", "found"),
    [
        ({"photo": SIZES}, [("picture", "large", 200_000)]),
        ({"photo": SIZES[1:2]}, [("picture", "huge", 9_000_000)]),  # it is said that it is too big
        ({"photo": [{"file_id": "p", "width": 1, "height": 1}]}, [("picture", "p", None)]),
        ({"document": {"file_id": "d", "mime_type": "image/png", "file_size": 5}}, [("picture", "d", 5)]),
        ({"document": {"file_id": "d", "mime_type": "application/pdf"}}, []),
        ({"document": {"file_id": "d"}}, []),
        ({"voice": {"file_id": "v", "mime_type": "audio/ogg", "file_size": 7}}, [("voice", "v", 7)]),
        ({"audio": {"file_id": "a"}}, [("voice", "a", None)]),
        ({"animation": {"file_id": "g"}, "document": {"file_id": "g", "mime_type": "image/gif"}}, []),
        ({"sticker": {"file_id": "s"}}, []),
        ({"video": {"file_id": "s"}}, []),
        ({"photo": []}, []),
        ({"photo": [{"file_id": 7, "width": 1, "height": 1}]}, []),
        ({"voice": {"file_id": "v", "file_size": "7"}}, []),
        ({"text": "hello"}, []),
    ],
)
def test_what_can_be_fetched_is_named_by_its_id(attached: JSON, found: list[tuple[str, str, int | None]]) -> None:
    assert [(a.kind, a.ref, a.size) for a in said(message(**attached)).attachments] == found


# https://github.com/openclaw/openclaw/issues/115325
def test_an_album_is_known_by_its_group() -> None:
    assert said(message(photo=[{}], media_group_id="g1")).album == "g1"


def test_a_forward_is_marked_and_commands_nothing() -> None:
    origin = {"type": "hidden_user", "date": DATE, "sender_user_name": "X"}
    event = said(message(text="/forget everything", forward_origin=origin))
    assert (event.forwarded, event.command) == (True, None)
    assert said(message(text="from elsewhere", via_bot=BOT)).forwarded


def test_a_reply_to_the_bot_and_a_quote_of_it() -> None:
    old = {"message_id": 8, "date": DATE, "chat": PRIVATE, "from": BOT, "text": "one two three"}
    event = said(message(text="no", reply_to_message=old, quote={"text": "two", "position": 4, "is_manual": True}))
    assert (event.reply_to, event.quote) == ("8", "two")
    to_ann = said(message(text="no", reply_to_message={**old, "from": ANN}, quote={"text": "two", "position": 4}))
    assert (to_ann.reply_to, to_ann.quote) == (None, None)


# https://github.com/HKUDS/nanobot/issues/1380
def test_in_groups_only_who_names_the_bot_addresses_it() -> None:
    assert not said(message(chat=GROUP, text="lunch?")).addressed
    assert said(message(chat=GROUP, text="/help")).addressed
    old = {"message_id": 8, "date": DATE, "chat": GROUP, "from": BOT, "text": "x"}
    assert said(message(chat=GROUP, text="and then?", reply_to_message=old)).addressed
    text = "ask @Mentee_Bot please"
    assert said(message(chat=GROUP, text=text, entities=mention(text))).addressed
    assert not said(message(chat=GROUP, text="a@mentee_bot.org", entities=[])).addressed
    nameless = [{"type": "text_mention", "offset": 0, "length": 2, "user": BOT}]
    assert said(message(chat=GROUP, text="hi you", entities=nameless)).addressed


# https://github.com/father-bot/chatgpt_telegram_bot/blob/main/CHANGELOG.md
def test_media_in_a_group_without_a_mention_address_nobody() -> None:
    assert not said(message(chat=GROUP, video={})).addressed


def test_the_address_is_not_part_of_the_words() -> None:
    text = "@mentee_bot, what is tea?"
    assert said(message(chat=GROUP, text=text, entities=mention(text))).text == "what is tea?"
    wide = "😀 @mentee_bot hi"
    event = said(message(chat=GROUP, text=wide, entities=[{"type": "mention", "offset": 3, "length": 11}]))
    assert (event.addressed, event.text) == (True, wide)


# https://github.com/NousResearch/hermes-agent/issues/13607 https://github.com/HKUDS/nanobot/issues/2793
def test_topics() -> None:
    assert said(message(chat=FORUM, text="x", message_thread_id=40, is_topic_message=True)).chat.thread == "40"
    assert said(message(chat=FORUM, text="x")).chat.thread == "1"
    assert said(message(chat=GROUP, text="x", message_thread_id=7)).chat.thread == ""
    assert said(message(text="x", message_thread_id=9, is_topic_message=True)).chat == ChatAddress("71", "9", "private")


def test_writing_in_a_topic_that_the_bot_opened_is_no_reply_to_it() -> None:
    root = {"message_id": 40, "date": DATE, "chat": FORUM, "from": BOT, "forum_topic_created": {"name": "n"}}
    event = said(message(chat=FORUM, text="x", message_thread_id=40, is_topic_message=True, reply_to_message=root))
    assert (event.reply_to, event.addressed) == (None, False)


# ----------------------------------------------------------------------------------------------- nobody's messages


# https://github.com/python-telegram-bot/python-telegram-bot/issues/695
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            update(channel_post={"message_id": 1, "date": DATE, "chat": {"id": -9, "type": "channel"}, "text": "x"}),
            "channel_post",
        ),
        (update(edited_channel_post={"message_id": 1}), "channel_post"),
        (
            message(chat=GROUP, text="x", **{"from": {"id": 1087968824, "is_bot": True, "first_name": "G"}}),
            "anonymous_admin",
        ),
        (
            message(chat=GROUP, text="x", **{"from": {"id": 777000, "is_bot": False, "first_name": "T"}}),
            "linked_channel",
        ),
        (message(chat=GROUP, text="x", sender_chat={"id": -9, "type": "channel"}), "sent_as_chat"),
        (message(chat=GROUP, text="x", **{"from": {"id": 5, "is_bot": True, "first_name": "B"}}), "bot"),
        (message(chat=GROUP, text="x", **{"from": None}), "no_sender"),
        (message(text="x", business_connection_id="b"), "business"),
        (update(business_message={"message_id": 1}), "business"),
        (update(guest_message={"message_id": 1}), "guest"),
        (message(chat=GROUP, new_chat_members=[ANN]), "service"),
        (message(chat=GROUP, pinned_message={}), "service"),
        (update(poll={"id": "1"}), "unknown_update"),
        (update(telepathy={"thought": 1}), "unknown_update"),
        (update(), "unknown_update"),
    ],
)
def test_what_is_not_answered_says_why(body: bytes, reason: str) -> None:
    assert ignored(body) == reason


# ------------------------------------------------------------------------------------ edits, presses, reactions, places


# https://github.com/father-bot/chatgpt_telegram_bot/issues/30
def test_edits() -> None:
    event = one(message("edited_message", text="better", edit_date=DATE + 5))
    assert isinstance(event, EditEvent)
    assert event == EditEvent(event.chat, event.sender, "12", "better", event.written)
    assert event.written
    assert (event.written.message_id, event.written.text) == ("12", "better")
    assert ignored(message("edited_message", location={}, edit_date=DATE)) == "edit_without_content"


def test_a_press_also_on_a_message_that_is_gone() -> None:
    query = {"id": "77", "from": ANN, "data": "fb:1:u", "message": {"message_id": 8, "date": 0, "chat": FORUM}}
    event = one(update(callback_query=query))
    assert event == PressEvent(ChatAddress("-1006", "1", "group"), event.sender, "77", "8", "fb:1:u")
    assert (
        ignored(update(callback_query={"id": "77", "from": ANN, "data": "x", "inline_message_id": "i"}))
        == "press_without_message"
    )


def test_a_reaction_is_the_whole_new_set() -> None:
    def reacted(*new: object) -> frozenset[str]:
        body = {
            "chat": PRIVATE,
            "message_id": 8,
            "date": DATE,
            "user": ANN,
            "old_reaction": [],
            "new_reaction": list(new),
        }
        event = one(update(message_reaction=body))
        assert isinstance(event, ReactionEvent)
        return event.emoji

    up, heart = {"type": "emoji", "emoji": "👍"}, {"type": "emoji", "emoji": "❤"}
    assert reacted(up, heart) == {"👍", "❤"}
    assert reacted() == frozenset()
    assert reacted({"type": "custom_emoji", "custom_emoji_id": "5"}) == {"custom_emoji"}
    assert reacted({"type": "aura"}) == {"aura"}


def test_a_reaction_of_nobody_votes_for_nobody() -> None:
    body = {"chat": GROUP, "message_id": 8, "date": DATE, "actor_chat": GROUP, "old_reaction": [], "new_reaction": []}
    assert ignored(update(message_reaction=body)) == "anonymous_reaction"
    assert ignored(update(message_reaction={**body, "user": BOT})) == "bot"
    assert ignored(update(message_reaction_count=body)) == "reaction_count"


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ("member", "kicked", "gone"),
        ("administrator", "left", "gone"),
        ("kicked", "member", "here"),
        ("left", "administrator", "here"),
    ],
)
def test_blocking_and_coming_back(old: str, new: str, change: str) -> None:
    body = {
        "chat": PRIVATE,
        "from": ANN,
        "date": DATE,
        "old_chat_member": {"status": old},
        "new_chat_member": {"status": new},
    }
    event = one(update(my_chat_member=body))
    assert isinstance(event, MembershipEvent)
    assert event.change == change
    body["new_chat_member"] = {"status": old}
    assert ignored(update(my_chat_member=body)) == "membership_unchanged"


def test_a_group_that_moves_is_told_twice_and_means_the_same() -> None:
    old = {"id": -55, "type": "group", "title": "Tea"}
    for body in (message(chat=old, migrate_to_chat_id=-1005), message(chat=GROUP, migrate_from_chat_id=-55)):
        event = one(body)
        assert isinstance(event, MembershipEvent)
        assert (event.chat.external_id, event.change, event.new_chat_id) == ("-55", "moved", "-1005")


# --------------------------------------------------------------------------------------------------------- malformed


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[]",
        b'"text"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"update_id":' + b"9" * 5000 + b"}",
        b'{"message":{"text":"no id"}}',
        b'{"update_id":true,"message":{}}',
        update(message=None),
        update(message={"message_id": 1, "chat": PRIVATE, "from": ANN, "text": "no date"}),
        message(text=["a", "list"]),
        message(text="x", chat={"id": "71", "type": "private"}),
        message(text="x", chat={"id": 71, "type": "cave"}),
        message(text="x", **{"from": "Ann"}),
        message(text="x", entities={"type": "mention"}),
        message(chat=GROUP, text="x", entities=[{"type": "mention", "offset": "0", "length": 1}]),
        message(text="x", message_thread_id="4", is_topic_message=True),
        update(message_reaction={"chat": PRIVATE, "message_id": 1, "user": ANN, "new_reaction": [{}]}),
        update(callback_query={"id": 5, "from": ANN}),
        update(my_chat_member={"chat": PRIVATE, "from": ANN}),
    ],
)
def test_what_cannot_be_used_is_refused_and_can_be_stored(body: bytes) -> None:
    with pytest.raises(InvalidInputError):
        parse(body, ME)
    stored = raw_update(body, ME)
    assert stored.body == body
    assert stored.keys
    assert stored.lane


def test_text_that_cannot_be_stored_is_made_storable() -> None:
    assert said(rb'{"update_id":1,"message":{"message_id":1,"date":1,"chat":{"id":1,"type":"private"},'
                rb'"from":{"id":1,"first_name":"\u0000"},"text":"a\ud83d\u0000b"}}').text == "a\ufffd\ufffdb"  # fmt: skip


@pytest.mark.parametrize(("offset", "length"), [(-5, 3), (0, 99_999), (10**12, 1), (3, -3), (0, 0)])
def test_entities_outside_the_text_name_nobody(offset: int, length: int) -> None:
    entity = {"type": "mention", "offset": offset, "length": length}
    assert not said(message(chat=GROUP, text="hello there", entities=[entity])).addressed


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from([
    "message_id", "date", "chat", "from", "text", "caption", "entities", "reply_to_message", "quote", "user", "id", "data",
    "new_reaction", "message", "sender_chat", "message_thread_id", "migrate_to_chat_id", "old_chat_member", "edit_date",
])  # fmt: skip
KINDS = st.sampled_from(
    ["message", "edited_message", "callback_query", "message_reaction", "my_chat_member", "channel_post"]
)


@settings(deadline=None)
@given(KINDS, st.dictionaries(FIELDS, VALUES, max_size=4), st.sets(FIELDS, max_size=2))
def test_nothing_but_a_refusal_comes_of_damage(kind: str, damage: JSON, missing: set[str]) -> None:
    whole: JSON = {
        "id": "1", "message_id": 1, "date": 1, "chat": PRIVATE, "from": ANN, "user": ANN, "text": "x", "data": "d",
        "message": {"message_id": 1, "date": 0, "chat": PRIVATE}, "new_reaction": [],
        "old_chat_member": {"status": "left"}, "new_chat_member": {"status": "member"},
    }  # fmt: skip
    body = update(**{kind: {k: v for k, v in (whole | damage).items() if k not in missing}})
    raw_update(body, ME)
    try:
        events = parse(body, ME)
    except InvalidInputError:
        return
    assert events


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(body: bytes) -> None:
    assert raw_update(body, ME).body == body
    with pytest.raises(InvalidInputError):
        parse(body, ME)
