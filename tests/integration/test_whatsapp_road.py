"""WhatsApp through a whole gateway: the twilio library, a server that speaks Twilio's API, people behind it."""

import asyncio
import re

import pytest
from sqlalchemy import text

from app.domain.outgoing import Content
from app.store import outbox
from bots.dialogue import dialogue
from bots.whatsapp import faults
from bots.whatsapp.webhook import MAX_BODY
from tests.fakes.model import ModelServer
from tests.fakes.model import replies as scripts
from tests.fakes.twilio import Sent, TwilioServer, signature
from tests.support.road import Road, road
from tests.support.whatsapp import PATH, PUBLIC, connect, count, settings, settled, until


async def test_first_contact_greets_asks_consent_and_answers(whatsapp: Road, twilio_server: TwilioServer) -> None:
    ann = twilio_server.person()
    await ann.say("hello")
    await until(ann, "You said: hello")
    assert twilio_server.hook.answers[0] == (200, '<?xml version="1.0" encoding="UTF-8"?><Response/>')
    assert "Answer a reply with 👍 or 👎" in ann.texts[0]
    assert "*Memory*: I keep" in ann.texts[1]
    assert "/1 ⬜ Memory" in ann.texts[1]
    assert [c.status for c in twilio_server.calls if c.path.endswith("Typing.json")] == [200]


async def test_what_is_said_here_can_never_help_the_shared_model(whatsapp: Road, twilio_server: TwilioServer) -> None:
    ann = twilio_server.person()
    await ann.say("/privacy")
    notice = await until(ann, "Your choices now")
    assert "Help the shared model" not in notice.body
    await ann.tap("s:shared_training:1", "Help", notice)
    for number in range(1, 4):
        await ann.say(f"/{number}")
    await settled(whatsapp)
    given = await whatsapp.rows("select purpose from consent_events where event = 'given'")
    assert {row["purpose"] for row in given} == {"memory", "personal_training", "human_review"}
    await ann.say("what is it?")
    await until(ann, "You said: what is it?")
    (turn,) = await whatsapp.rows("select flags from turns")
    assert turn["flags"]["consents"]["shared_training"] is False
    assert turn["flags"]["consents"]["personal_training"] is True


async def test_a_switch_chosen_by_number_is_turned_and_turned_back(whatsapp: Road, twilio_server: TwilioServer) -> None:
    ann = twilio_server.person()
    await ann.say("/privacy")
    await until(ann, "/1 ⬜ Memory")
    await ann.say("1")
    await until(ann, "Allowed: Memory")
    await ann.say("/1")
    await until(ann, "No longer allowed: Memory")
    assert await answers(whatsapp, "memory") == ["given", "withdrawn"]


async def test_every_list_of_switches_says_what_is_allowed_now(whatsapp: Road, twilio_server: TwilioServer) -> None:
    """What is chosen from one of two must not be stale in the other."""
    ann = twilio_server.person()
    await ann.say("/start")
    await until(ann, "/1 ⬜ Memory")
    await ann.say("/privacy")
    await until(ann, "Your choices now")
    await settled(whatsapp)
    first = next(sent for sent in ann.got if "⬜ Memory" in sent.body)
    await ann.say("/1", reply_to=first)
    await until(ann, "Allowed: Memory")
    await ann.say("/1")
    await until(ann, "No longer allowed: Memory")
    assert await answers(whatsapp, "memory") == ["given", "withdrawn"]


async def answers(road: Road, purpose: str) -> list[str]:
    """Return what was answered to a purpose, in order."""
    query = "select event from consent_events where purpose = :purpose order by at"
    return [row["event"] for row in await road.rows(query, purpose=purpose)]


async def test_a_repeated_post_is_answered_once(whatsapp: Road, twilio_server: TwilioServer) -> None:
    ann = twilio_server.person()
    for _ in range(3):
        await ann.say("only once", sid="SM" + "1" * 32)
    await until(ann, "You said: only once")
    await settled(whatsapp)
    assert ann.texts.count("You said: only once") == 1
    assert [status for status, _ in twilio_server.hook.answers[:3]] == [200] * 3
    assert await count(whatsapp, "turns") == 1


def _form(server: TwilioServer, **changed: str) -> list[tuple[str, str]]:
    known = {
        "MessageSid": "SM" + "2" * 32,
        "AccountSid": server.account_sid,
        "From": "whatsapp:+15550200000",
        "To": server.sender,
        "Body": "",
        "NumMedia": "0",
    }
    return list((known | changed).items())


async def test_what_twilio_did_not_sign_is_refused_and_not_stored(whatsapp: Road, twilio_server: TwilioServer) -> None:
    hook, form = twilio_server.hook, _form(twilio_server)
    body = b"&".join(f"{k}={v}".encode().replace(b"+", b"%2B") for k, v in form)
    good = signature(twilio_server.token, PUBLIC + PATH, form)
    for seal in (
        {},
        {"X-Twilio-Signature": ""},
        {"X-Twilio-Signature": "x" + good[1:]},
        {"X-Twilio-Signature": "ÿ"},
        {"X-Twilio-Signature": signature("another token", PUBLIC + PATH, form)},
        {"X-Twilio-Signature": signature(twilio_server.token, f"http://bot.example.org{PATH}", form)},
        {"X-Twilio-Signature": signature(twilio_server.token, f"{PUBLIC}{PATH}/", form)},
    ):
        assert await hook.post_as(PATH, body, seal) == 403
    assert await hook.post_as(PATH, body + b"&Body=more", {"X-Twilio-Signature": good}) == 403
    assert await hook.post_as(PATH, b"\xff=&&;", {"X-Twilio-Signature": good}) == 403
    assert await hook.post(PATH, _form(twilio_server, AccountSid="AC" + "f" * 32)) == 403
    assert await hook.post(PATH, _form(twilio_server, To="whatsapp:+15559999999")) == 403
    assert await hook.post(f"{PATH}/status", form) == 403
    assert await hook.post_as(PATH, b"a=" + b"x" * MAX_BODY, {"X-Twilio-Signature": good}) == 413
    assert await count(whatsapp, "inbox where lane not like '%status:%'") == 0
    assert await hook.post_as(PATH, body, {"X-Twilio-Signature": good}) == 200
    assert await count(whatsapp, "inbox where lane not like '%status:%'") == 1


async def test_a_form_of_many_long_fields_is_taken(whatsapp: Road, twilio_server: TwilioServer) -> None:
    addresses = {f"MediaUrl{n}": f"https://api.twilio.com/{n}/" + "x" * 20_000 for n in range(10)}
    assert await twilio_server.hook.post(PATH, _form(twilio_server, Body="see these", **addresses)) == 200
    assert await count(whatsapp, "inbox where lane not like '%status:%'") == 1


async def test_blank_and_repeated_fields_and_queries_are_signed_too(
    whatsapp: Road, twilio_server: TwilioServer
) -> None:
    form = [*_form(twilio_server), ("Extra", "2"), ("Extra", "1"), ("New", ""), ("Space", " kept ")]
    assert await twilio_server.hook.post(PATH, form) == 200
    assert await twilio_server.hook.post(f"{PATH}?tenant=a%20b", _form(twilio_server, MessageSid="SM3")) == 200


async def test_a_sender_in_a_messaging_service_is_served_like_any_other(
    whatsapp: Road, twilio_server: TwilioServer
) -> None:
    ann = twilio_server.person()
    await ann.say("hello", MessagingServiceSid="MG" + "1" * 32)
    await until(ann, "You said: hello")
    await settled(whatsapp)
    sent = [call.form for call in twilio_server.calls if call.path.endswith("Messages.json")]
    assert {form["From"] for form in sent} == {twilio_server.sender}
    assert all(form["StatusCallback"] and "MessagingServiceSid" not in form for form in sent)


async def test_a_blank_message_is_answered_with_a_sentence(whatsapp: Road, twilio_server: TwilioServer) -> None:
    ann = twilio_server.person()
    await ann.say("")
    await until(ann, "I only see spaces")
    await ann.send_picture()
    await until(ann, "could not look at what you sent (a picture)")
    assert await count(whatsapp, "turns") == 0


async def test_a_signed_form_that_makes_no_sense_is_quarantined_and_holds_nobody_up(
    whatsapp: Road, twilio_server: TwilioServer
) -> None:
    form = [(name, value) for name, value in _form(twilio_server) if name != "MessageSid"]
    assert await twilio_server.hook.post(PATH, form) == 200
    assert await twilio_server.hook.post(PATH, _form(twilio_server, From="sms:1")) == 200
    ann = twilio_server.person()
    await ann.say("after it")
    await until(ann, "You said: after it")
    states = await whatsapp.rows("select state from inbox order by id")
    assert [row["state"] for row in states[:2]] == ["quarantined", "quarantined"]


async def test_a_correction_by_swipe_reply_becomes_memory_and_is_taken_back(
    whatsapp: Road, twilio_server: TwilioServer
) -> None:
    ann = twilio_server.person()
    await ann.say("/learn on")
    await until(ann, "On: I may learn")
    await ann.say("What is tea?")
    reply = await until(ann, "You said: What is tea?")
    await ann.say("Please always end with 'Cheers!'", reply_to=reply)
    kept = await until(ann, "I'll keep this in mind")
    assert "/1 Undo" in kept.body
    await settled(whatsapp)
    await ann.say("1", reply_to=kept)
    await until(ann, "I don't use this any more")
    assert [m["state"] for m in await whatsapp.rows("select state from memory_lines")] == ["undone"]


@pytest.mark.parametrize(("thumb", "value"), [("👍", 1), ("👎🏽", -1)])
async def test_a_thumb_in_words_is_a_vote(whatsapp: Road, twilio_server: TwilioServer, thumb: str, value: int) -> None:
    ann = twilio_server.person()
    await ann.say("rate this")
    await until(ann, "You said: rate this")
    await ann.say(thumb)
    if value < 0:
        why = await until(ann, "What was wrong?")
        assert "/2 Style or format" in why.body
        await ann.say("4")
        await until(ann, "a new topic")
    await settled(whatsapp)
    assert [v["value"] for v in await whatsapp.rows("select value from votes")] == [value]
    assert await count(whatsapp, "turns") == 1


async def test_a_button_is_known_by_its_payload(whatsapp: Road, twilio_server: TwilioServer) -> None:
    ann = twilio_server.person()
    await ann.say("rate this")
    reply = await until(ann, "You said: rate this")
    await settled(whatsapp)
    (row,) = await whatsapp.rows("select content from outbox where turn_id is not null")
    await ann.tap(row["content"]["buttons"][0][0]["data"], "Good!", reply)
    await settled(whatsapp)
    assert [v["value"] for v in await whatsapp.rows("select value from votes")] == [1]


async def test_a_number_that_answers_the_model_is_a_message(whatsapp: Road, twilio_server: TwilioServer) -> None:
    ann = twilio_server.person()
    await ann.say("hello")
    await until(ann, "You said: hello")
    await settled(whatsapp)
    await ann.say("1")
    await until(ann, "You said: 1")
    assert await whatsapp.rows("select 1 from consent_events where event = 'given'") == []


async def test_commands_are_text(whatsapp: Road, twilio_server: TwilioServer) -> None:
    ann = twilio_server.person()
    await ann.say("/help")
    await until(ann, "Just write to me. In words")
    await ann.say("/export")
    await until(ann, "is in this file, for one hour")
    await ann.say("/nonsense")
    await until(ann, "I don't know that command")
    assert await whatsapp.rows("select 1 from turns") == []


async def test_a_long_reply_arrives_in_numbered_parts_in_order(
    database_url: str, twilio_server: TwilioServer, model: ModelServer
) -> None:
    model.reply_with(scripts.LONG)
    ann = twilio_server.person()
    async with road(database_url, model.url, **settings(twilio_server), max_reply_tokens=1900) as gateway:
        connect(twilio_server, gateway)
        await ann.say("tell me everything")
        await settled(gateway)
        await twilio_server.hang_up()
    parts = [re.match(r"\((\d+)/(\d+)\)\n", text) for text in ann.texts]
    numbers = [(int(m[1]), int(m[2])) for m in parts if m]
    assert len(numbers) > 1
    assert numbers == [(n, len(numbers)) for n in range(1, len(numbers) + 1)]
    assert not [call for call in twilio_server.calls if call.status >= 400]


async def test_a_korean_number_is_spoken_to_in_korean(whatsapp: Road, twilio_server: TwilioServer) -> None:
    minji = twilio_server.person("Minji", "whatsapp:+821000000001")
    await minji.say("안녕")
    await until(minji, "You said: 안녕")
    assert "안녕하세요" in minji.texts[0]


async def test_somebody_without_a_number_is_answered_and_stays_the_same_person(
    whatsapp: Road, twilio_server: TwilioServer
) -> None:
    ann = twilio_server.person("Ann", "whatsapp:+15550207777")
    await ann.say("first")
    await until(ann, "You said: first")
    ann.external_id = "whatsapp:US.1a2b3c"
    await ann.say("second")
    await until(ann, "You said: second")
    hidden = twilio_server.person("Ann", "whatsapp:US.1a2b3c", "whatsapp:US.1a2b3c")
    await hidden.say("third")
    await until(hidden, "You said: third")
    ann.external_id = None
    await ann.say("fourth")
    await until(ann, "You said: fourth")
    (account,) = await whatsapp.rows("select external_id, alias from accounts where external_id like 'whatsapp:%'")
    assert account == {"external_id": "whatsapp:US.1a2b3c", "alias": "whatsapp:+15550207777"}
    other = twilio_server.person("Bo", "whatsapp:+15550207777", "whatsapp:US.other")
    await other.say("new owner of the number")
    await until(other, "Answer a reply with")
    rows = await whatsapp.rows("select external_id, alias from accounts where external_id like 'whatsapp:%'")
    assert {row["external_id"]: row["alias"] for row in rows} == {
        "whatsapp:US.1a2b3c": None,
        "whatsapp:US.other": "whatsapp:+15550207777",
    }


async def test_too_many_requests_are_waited_out(
    whatsapp: Road, twilio_server: TwilioServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(faults._WAIT_S, 20429, 0.1)
    monkeypatch.setattr(faults, "_RETRY_NETWORK_S", 0.1)
    ann = twilio_server.person()
    twilio_server.fail_next(20429, times=2)
    await ann.say("hello")
    await until(ann, "You said: hello")
    await settled(whatsapp)
    assert ann.texts.count("You said: hello") == 1
    assert [c.status for c in twilio_server.calls if c.path.endswith("Messages.json")][:3] == [429, 429, 201]


async def test_who_opted_out_is_left_alone(whatsapp: Road, twilio_server: TwilioServer) -> None:
    ann = twilio_server.person()
    ann.refusal = 21610
    await ann.say("hello")
    await settled(whatsapp)
    assert [r["status"] for r in await whatsapp.rows("select status from chats")] == ["gone"]


async def test_that_somebody_is_gone_counts_once_and_not_after_they_wrote_again(
    whatsapp: Road, twilio_server: TwilioServer
) -> None:
    ann = twilio_server.person()
    twilio_server.reports = False
    await ann.say("hello")
    lost = await until(ann, "You said: hello")
    await settled(whatsapp)

    async def told(status: str) -> list[str]:
        known = {"AccountSid": twilio_server.account_sid, "From": twilio_server.sender, "To": ann.address}
        form = known | {"MessageSid": lost.sid, "MessageStatus": status, "ErrorCode": "63024"}
        assert await twilio_server.hook.post(f"{PATH}/status", list(form.items())) == 200
        await settled(whatsapp)
        return [row["status"] for row in await whatsapp.rows("select status from chats")]

    assert await told("failed") == ["gone"]
    await ann.say("I am back")
    await until(ann, "You said: I am back")
    assert await told("undelivered") == ["active"]


async def test_a_failure_that_is_reported_later_is_kept_and_never_taken_back(
    whatsapp: Road, twilio_server: TwilioServer
) -> None:
    ann = twilio_server.person()
    ann.later = 63013
    await ann.say("/help")
    await settled(whatsapp)
    for _ in range(200):
        rows = await whatsapp.rows("select state, error, provider_message_id as sid from outbox")
        if {row["state"] for row in rows} == {"failed"}:
            break
        await asyncio.sleep(0.05)
    assert {(row["state"], row["error"]) for row in rows} == {("failed", "twilio_63013")}
    lost = Sent(rows[0]["sid"], "")
    for status, code in (("delivered", None), ("sent", None), ("failed", 63013)):
        assert await twilio_server.report(lost, status, ann.address, code) == 200
    await settled(whatsapp)
    async with whatsapp.store.begin() as tx:
        (row,) = await tx.execute(text("select id from outbox where provider_message_id = :sid"), {"sid": lost.sid})
        await outbox.change(tx, row.id, Content("settled"))
        await outbox.change(tx, row.id, Content("settled once more"))
    await settled(whatsapp)
    after = await whatsapp.rows("select state, error from outbox where provider_message_id = :sid", sid=lost.sid)
    assert after == [{"state": "failed", "error": "twilio_63013"}]
    assert await count(whatsapp, "inbox where lane like '%status:%'") == len(rows)


async def test_how_far_a_message_came_only_ever_leads_on(whatsapp: Road, twilio_server: TwilioServer) -> None:
    """Statuses are acknowledged in any order and number; what arrived is not lost by a later word, and nothing is queued."""
    twilio_server.reports = False
    ann = twilio_server.person()
    await ann.say("/help")
    shown = await until(ann, "Just write to me")
    await settled(whatsapp)
    seen = []
    for status in ("queued", "sent", "delivered", "delivered", "sent", "read", "delivered", "read", "mystery"):
        assert await twilio_server.report(shown, status, ann.address) == 200
        (row,) = await whatsapp.rows("select state, delivery from outbox where provider_message_id = :s", s=shown.sid)
        seen.append(row["delivery"])
    assert seen == [None, None, *["delivered"] * 3, *["read"] * 4]
    assert await count(whatsapp, "inbox where lane not like '%status:%'") == 1
    for status in ("failed", "undelivered"):
        assert await twilio_server.report(shown, status, ann.address, 63013) == 200
    await settled(whatsapp, beyond=2)
    rows = await whatsapp.rows("select state, delivery, error from outbox where provider_message_id = :s", s=shown.sid)
    assert rows == [{"state": "sent", "delivery": "read", "error": None}]


async def test_what_is_told_of_a_message_before_its_receipt_waits_for_that(
    whatsapp: Road, twilio_server: TwilioServer
) -> None:
    ann = twilio_server.person()
    twilio_server.answer_late(1.5)
    await ann.say("/help")
    await until(ann, "Just write to me")
    await settled(whatsapp)
    rows = await whatsapp.rows("select state, delivery from outbox")
    assert {(row["state"], row["delivery"]) for row in rows} == {("sent", "read")}


@pytest.mark.parametrize(("code", "state"), [(63013, "failed"), (63016, "held"), (63024, "failed")])
async def test_a_failure_that_is_told_before_the_receipt_waits_for_that_as_long_as_it_takes(
    whatsapp: Road, twilio_server: TwilioServer, monkeypatch: pytest.MonkeyPatch, code: int, state: str
) -> None:
    monkeypatch.setattr(dialogue, "MAX_ATTEMPTS", 1)
    ann = twilio_server.person()
    ann.later = code
    twilio_server.answer_late(2.0, times=9)
    await ann.say("/help")
    async with asyncio.timeout(20):
        while {row["state"] for row in await whatsapp.rows("select state from outbox")} != {state}:
            await asyncio.sleep(0.05)
    (chat,) = await whatsapp.rows("select status from chats")
    assert chat["status"] == ("gone" if code == 63024 else "active")


async def test_a_lost_answer_leaves_nothing_waiting(whatsapp: Road, twilio_server: TwilioServer) -> None:
    """What is told of the copy whose answer was lost ends; the part ends as what is told of the other says."""
    ann = twilio_server.person()
    twilio_server.lose_response()
    await ann.say("/help")
    await until(ann, "Just write to me")
    async with asyncio.timeout(20):
        while await count(whatsapp, "outbox where delivery = 'read'") < 1:
            await asyncio.sleep(0.05)
        while await count(whatsapp, "outbox where state <> 'sent' or delivery is distinct from 'read'"):
            await asyncio.sleep(0.05)
    await settled(whatsapp)
    assert await count(whatsapp, "inbox where state <> 'done'") == 0
    assert len(ann.got) == await count(whatsapp, "outbox") + 1  # the documented second copy


async def test_a_status_of_somebody_elses_message_changes_nothing(whatsapp: Road, twilio_server: TwilioServer) -> None:
    twilio_server.reports = False
    ann, bo = twilio_server.person(), twilio_server.person("Bo")
    await ann.say("/help")
    shown = await until(ann, "Just write to me")
    await settled(whatsapp)
    assert await twilio_server.report(shown, "read", bo.address) == 200
    assert await twilio_server.report(Sent("SM" + "9" * 32, ""), "read", ann.address) == 200
    assert await count(whatsapp, "outbox where delivery is not null") == 0


async def test_who_forgets_everything_leaves_no_words_and_no_number(
    whatsapp: Road, twilio_server: TwilioServer
) -> None:
    ann = twilio_server.person("Ann Planted", "whatsapp:+15550207777", "whatsapp:US.1a2b3c")
    await ann.say("my planted words")
    await until(ann, "You said: my planted words")
    await settled(whatsapp)
    await ann.say("/forget")
    asked = await until(ann, "/3 Everything")
    await settled(whatsapp)
    await ann.say("3", reply_to=asked)
    receipt = await until(ann, "Your receipt")
    assert f"{PUBLIC}/receipt" in receipt.body
    await settled(whatsapp)
    await twilio_server.hang_up()
    found = [
        *await whatsapp.rows("select body from inbox"),
        *await whatsapp.rows("select cast(t as text) as t from turns t"),
    ]
    held = " ".join(str(bytes(row["body"]) if row.get("body") else row) for row in found)
    held += str(await whatsapp.rows("select cast(o as text) as o from outbox o"))
    assert "Your receipt" in held
    assert "planted" not in held.lower()
    assert "5550207777" not in held
    lanes = await whatsapp.rows("select lane from inbox")
    assert not [row for row in lanes if "5550207777" in row["lane"]]
    assert await count(whatsapp, "accounts where external_id like 'whatsapp:%'") == 0


async def test_health_names_whatsapp(whatsapp: Road, twilio_server: TwilioServer) -> None:
    part = whatsapp.gateway.channels["whatsapp"]
    assert part is not None
    await twilio_server.wait_for(lambda: part._checked)
    assert (await part.health()).state == "ok"
