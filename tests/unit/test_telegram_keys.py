"""By what a repeat is known, and who waits for whom."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.event import STOPPING, MessageEvent
from bots.telegram.keys import QUARANTINE_LANE, raw_update
from bots.telegram.parse import parse
from bots.telegram.people import Me

JSON = dict[str, object]
ME = Me(9001, "mentee_bot")
CHAT: JSON = {"id": 71, "type": "private"}
FORUM: JSON = {"id": -1006, "type": "supergroup", "is_forum": True}


def body(update_id: int = 1, **content: object) -> bytes:
    return json.dumps({"update_id": update_id, **content}).encode()


def text(words: str = "hi", **more: object) -> JSON:
    return {"message_id": 12, "date": 1_790_000_000, "chat": CHAT, "text": words, **more}


def named(words: str, **more: object) -> JSON:
    """A message in which somebody is named."""
    start, length = words.index("@"), len(words[words.index("@") :].split(maxsplit=1)[0].rstrip(","))
    return text(words, entities=[{"type": "mention", "offset": start, "length": length}], **more)


def keys(raw: bytes) -> set[str]:
    return set(raw_update(raw, ME).keys)


def lane(raw: bytes) -> str:
    return raw_update(raw, ME).lane


# https://github.com/openclaw/openclaw/issues/46674 https://github.com/NousResearch/hermes-agent/issues/68502
def test_a_repeat_is_known_by_update_and_by_message() -> None:
    first = keys(body(1, message=text()))
    assert first & keys(body(1, message=text()))
    assert first & keys(body(2, message=text()))
    assert not first & keys(body(2, message=text(message_id=13)))
    assert not first & set(raw_update(body(1, message=text()), replace(ME, id=9002)).keys)


# https://github.com/openclaw/openclaw/issues/45289
def test_no_number_is_too_low_and_a_reused_one_is_new() -> None:
    reaction = {"chat": CHAT, "message_id": 12, "date": 1_790_000_000, "user": {"id": 71}, "new_reaction": []}
    earlier = keys(body(5000, message=text()))
    assert not earlier & keys(body(4999, message_reaction=reaction))
    weeks_later = {**reaction, "date": 1_791_000_000}
    assert not keys(body(4999, message_reaction=reaction)) & keys(body(4999, message_reaction=weeks_later))


def test_an_edit_is_no_repeat_of_its_message_nor_of_another_edit() -> None:
    edits = [text("a", edit_date=5), text("b", edit_date=5), text("b", edit_date=6)]
    sizes = ({"file_id": name, "file_unique_id": name, "width": 9, "height": 9} for name in ("one", "another"))
    edits += [text("b", edit_date=6, photo=[size]) for size in sizes]
    found = [keys(body(n, edited_message=edit)) for n, edit in enumerate(edits)] + [keys(body(9, message=text("a")))]
    assert len(set.union(*found)) == sum(len(one) for one in found)
    assert keys(body(20, edited_message=edits[0])) & found[0]


def test_a_press_is_known_by_its_own_id() -> None:
    query = {"id": "55", "message": text(), "data": "x"}
    assert keys(body(1, callback_query=query)) & keys(body(2, callback_query=query))


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (body(message=text()), "71:"),
        (body(edited_message=text(edit_date=5)), "71:"),
        (body(message=text(chat=FORUM)), "-1006:1"),
        (body(message=text(chat=FORUM, message_thread_id=40, is_topic_message=True)), "-1006:40"),
        (body(message=text("/stop")), "stop:71:"),
        (body(message=text("/STOP@mentee_bot now")), "stop:71:"),
        (body(message=text("/stopwatch")), "71:"),
        (body(message=text("/stop", forward_origin={"type": "hidden_user"})), "71:"),
        (body(message=text("/cancel")), "stop:71:"),
        (body(message=text(" \n/stop")), "stop:71:"),
        (body(message=text("/stop@other_bot")), "71:"),
        (body(message=named("@mentee_bot /stop")), "stop:71:"),
        (body(message=named(" @Mentee_Bot,\n/stop please")), "stop:71:"),
        (body(message=named("@other_bot /stop")), "71:"),
        (body(message=named("@mentee_bot stop")), "71:"),
        (body(message=named("@mentee_bot /stop", forward_origin={"type": "hidden_user"})), "71:"),
        (body(edited_message=named("@mentee_bot /stop", edit_date=5)), "71:"),
        (body(message=text("please stop")), "71:"),
        (body(callback_query={"id": "1", "message": text(), "data": "x"}), "votes:71"),
        (body(callback_query={"id": "1", "message": text(), "data": "v:x:u"}), "votes:71"),
        (body(callback_query={"id": "1", "message": text(), "data": "t:x"}), "71:"),
        (body(callback_query={"id": "1", "message": text(chat=FORUM), "data": "r:x:style"}), "-1006:1"),
        (body(callback_query={"id": "1", "data": "t:x"}), "votes:"),
        (body(message_reaction={"chat": CHAT, "message_id": 1}), "votes:71"),
        (body(my_chat_member={"chat": CHAT}), "71:"),
        (body(telepathy={}), "other"),
        (b"{", QUARANTINE_LANE),
        (b'{"message":{}}', QUARANTINE_LANE),
        (body(message={"text": "without a chat"}), QUARANTINE_LANE),
    ],
)
def test_lanes(raw: bytes, expected: str) -> None:
    assert lane(raw) == expected


def test_the_bot_is_named_by_its_id_as_well() -> None:
    entity = {"type": "text_mention", "offset": 0, "length": 6, "user": {"id": ME.id}}
    assert lane(body(message=text("Mentee /stop", entities=[entity]))) == "stop:71:"


@pytest.mark.parametrize(
    ("words", "expected"), [("/stop", "stop:71:"), ("/stop@mentee_bot", "stop:71:"), ("@mentee_bot /stop", "71:")]
)
def test_before_the_bot_knows_its_name_only_what_is_behind_that_waits(words: str, expected: str) -> None:
    said = named(words) if "@" in words else text(words)
    assert raw_update(body(message=said), replace(ME, username="")).lane == expected


@given(st.lists(st.sampled_from(["@mentee_bot", "@other_bot", "/stop", "/cancel@mentee_bot", "/stop@other_bot", "stop",
                                 " ", "\n", ",", "\u200b", "x", "😀"]), max_size=6).map("".join), st.booleans())  # fmt: skip
def test_what_overtakes_is_what_the_dialogue_takes_for_a_command_that_stops(words: str, forwarded: bool) -> None:
    entities = [{"type": "mention", "offset": len(words[: m.start()].encode("utf-16-le")) // 2, "length": len(m[0])}
                for m in re.finditer(r"@\w+", words)]  # fmt: skip
    sender = {"id": 71, "is_bot": False, "first_name": "Ann"}
    origin = {"forward_origin": {"type": "hidden_user"}} if forwarded else {}
    raw = body(message=text(words, entities=entities, **{"from": sender}, **origin))
    (event,) = parse(raw, ME)
    stops = isinstance(event, MessageEvent) and event.command in STOPPING
    assert (lane(raw) == "stop:71:") == stops


def test_a_body_without_keys_is_known_by_its_bytes() -> None:
    assert keys(b"{broken") == keys(b"{broken")
    assert keys(b"{broken") != keys(b"{broken ")
