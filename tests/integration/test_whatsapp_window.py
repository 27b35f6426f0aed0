"""WhatsApp's 24 hours: what may not be sent waits for the person's next word, in order, and is told of once."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text

from app.domain.messages import text as say
from app.domain.outgoing import Content
from app.services.housekeeping import clean
from app.store import outbox
from tests.fakes.model import ModelServer
from tests.fakes.twilio import Person, TwilioServer
from tests.support.road import Road, road
from tests.support.whatsapp import connect, count, settings, settled, until

NEWS = say("en", "template.news.body")


@pytest.fixture
async def ann(whatsapp: Road, twilio_server: TwilioServer) -> Person:
    """Somebody who has talked to the bot."""
    person = twilio_server.person()
    await person.say("hello")
    await until(person, "You said: hello")
    await settled(whatsapp)
    person.got.clear()
    twilio_server.calls.clear()
    return person


async def silent_for(gateway: Road, hours: float) -> None:
    """Let everybody's last word be so long ago."""
    await gateway.store_execute(
        "update chats set heard_at = now() - make_interval(secs => :s), news_at = news_at - make_interval(secs => :s)",
        s=hours * 3600,
    )


async def tell(gateway: Road, *notices: str) -> None:
    """Have the bot say something by itself."""
    (chat,) = await gateway.rows("select c.id from chats c join bots b on b.id = c.bot_id where b.channel = 'whatsapp'")
    async with gateway.store.begin() as tx:
        for notice in notices:
            await outbox.put(tx, chat["id"], Content(notice))


async def held(gateway: Road) -> list[str]:
    """Return what waits for the person's next word."""
    rows = await gateway.rows("select content ->> 'text' as text from outbox where state = 'held' order by id")
    return [row["text"] for row in rows]


def sends(server: TwilioServer) -> list[dict[str, str]]:
    """Return the messages that Twilio was asked to send."""
    return [call.form for call in server.calls if call.path.endswith("Messages.json")]


async def approve(gateway: Road, server: TwilioServer, approval: str = "approved") -> None:
    """Let the news template stand at Twilio and in the store."""
    made = server.contents.create({"language": "en", "types": {"twilio/text": {"body": NEWS}}})
    server.contents.ask_approval(made.sid, {"name": "mentee_news", "category": "UTILITY"})
    server.contents.decide(approval)
    await gateway.store_execute(
        "insert into content_templates (bot_id, name, language, content_sid, digest, approval) "
        "select id, 'news', 'en', :sid, 'x', :approval from bots where channel = 'whatsapp'",
        sid=made.sid,
        approval=approval,
    )


async def test_what_comes_after_the_24_hours_waits_without_asking_twilio(
    whatsapp: Road, twilio_server: TwilioServer, ann: Person
) -> None:
    await silent_for(whatsapp, 24.1)
    await tell(whatsapp, "first", "second")
    await settled(whatsapp)
    assert await held(whatsapp) == ["first", "second"]
    await tell(whatsapp, "third")
    await settled(whatsapp)
    assert await held(whatsapp) == ["first", "second", "third"]
    assert sends(twilio_server) == []


async def test_within_the_24_hours_everything_is_sent(whatsapp: Road, ann: Person) -> None:
    await silent_for(whatsapp, 23.9)
    await tell(whatsapp, "in time")
    await until(ann, "in time")
    assert await held(whatsapp) == []


async def test_the_next_word_lets_it_out_in_order_and_before_the_reply(whatsapp: Road, ann: Person) -> None:
    await silent_for(whatsapp, 30)
    await tell(whatsapp, "first", "second")
    await settled(whatsapp)
    await ann.say("I am back")
    await until(ann, "You said: I am back")
    await settled(whatsapp)
    assert ann.texts == ["first", "second", "You said: I am back"]


async def test_what_changes_in_a_shown_message_waits_for_nothing_and_costs_no_template(
    whatsapp: Road, twilio_server: TwilioServer, ann: Person
) -> None:
    await approve(whatsapp, twilio_server)
    await silent_for(whatsapp, 30)
    async with whatsapp.store.begin() as tx:
        rows = await tx.execute(text("select id from outbox where provider_message_id is not null order by id"))
        for row in rows:
            await outbox.change(tx, row.id, Content("settled"))
    await settled(whatsapp)
    await clean(whatsapp.store, whatsapp.settings)
    await settled(whatsapp)
    assert await held(whatsapp) == []
    assert sends(twilio_server) == []
    await tell(whatsapp, "news that waits")
    await settled(whatsapp)
    async with whatsapp.store.begin() as tx:
        await outbox.change(tx, row.id, Content("settled again"))
    await settled(whatsapp)
    assert await held(whatsapp) == ["news that waits"]


async def test_a_tap_opens_the_window_too(whatsapp: Road, ann: Person) -> None:
    await silent_for(whatsapp, 30)
    await tell(whatsapp, "waiting")
    await settled(whatsapp)
    (row,) = await whatsapp.rows("select content from outbox where turn_id is not null")
    await ann.say("Good", ButtonPayload=row["content"]["buttons"][0][0]["data"], MessageType="interactive")
    await until(ann, "waiting")
    assert await held(whatsapp) == []


async def test_twilios_word_stands_above_our_clock(whatsapp: Road, twilio_server: TwilioServer, ann: Person) -> None:
    """63016 holds as our own clock does: one call to learn it, and none for what stands behind."""
    ann.refusal = 63016
    await tell(whatsapp, "first", "second")
    await settled(whatsapp)
    await tell(whatsapp, "third")
    await settled(whatsapp)
    assert await held(whatsapp) == ["first", "second", "third"]
    assert [form["Body"] for form in sends(twilio_server)] == ["first"]
    ann.refusal = None
    await ann.say("back")
    await until(ann, "You said: back")
    assert ann.texts == ["first", "second", "third", "You said: back"]


async def test_a_refusal_that_comes_later_is_sent_anew(
    whatsapp: Road, twilio_server: TwilioServer, ann: Person
) -> None:
    ann.later = 63016
    await tell(whatsapp, "too late")
    async with asyncio.timeout(20):
        while not await held(whatsapp):
            await asyncio.sleep(0.05)
    (before,) = await whatsapp.rows("select provider_message_id as sid from outbox where state = 'held'")
    ann.later = None
    await ann.say("back")
    await until(ann, "You said: back")
    await settled(whatsapp)
    assert ann.texts == ["too late", "You said: back"]
    rows = await whatsapp.rows(
        "select state, provider_message_id as sid from outbox where content ->> 'text' = 'too late'"
    )
    assert [row["state"] for row in rows] == ["sent"]
    assert rows[0]["sid"] != before["sid"]


async def test_a_late_refusal_of_what_was_said_before_they_wrote_again_is_sent_at_once(
    whatsapp: Road, twilio_server: TwilioServer, ann: Person
) -> None:
    await twilio_server.hang_up()
    await tell(whatsapp, "crossed")
    sent = await until(ann, "crossed")
    await settled(whatsapp)
    await ann.say("hello again")
    await until(ann, "You said: hello again")
    known = await count(whatsapp, "inbox where lane not like '%status:%'")
    assert await twilio_server.report(sent, "failed", ann.address, 63016) == 200
    await settled(whatsapp, beyond=known)
    async with asyncio.timeout(20):
        while ann.texts.count("crossed") < 2:
            await asyncio.sleep(0.05)
    await settled(whatsapp)
    assert await held(whatsapp) == []


async def test_a_webhook_that_was_missed_opens_only_what_is_left_of_its_24_hours(whatsapp: Road, ann: Person) -> None:
    """What was asked for by listing was said when it was said, and not when it was found."""
    at = "2020-01-01T00:00:00+00:00"
    await silent_for(whatsapp, 30)
    await tell(whatsapp, "waiting")
    await settled(whatsapp)
    await ann.say("said long ago", DateSent=at)
    await settled(whatsapp)
    (chat,) = await whatsapp.rows(
        "select heard_at < now() - interval '29 hours' as old from chats where heard_at is not null"
    )
    assert chat["old"]
    assert "waiting" in await held(whatsapp)


async def test_news_is_told_once_by_template_until_they_write(
    whatsapp: Road, twilio_server: TwilioServer, ann: Person
) -> None:
    await approve(whatsapp, twilio_server)
    for first in ("one", "two"):
        await silent_for(whatsapp, 30)
        ann.got.clear()
        await tell(whatsapp, first)
        await settled(whatsapp)
        for _ in range(3):
            await clean(whatsapp.store, whatsapp.settings)
            await tell(whatsapp, "more")
            await settled(whatsapp)
        assert ann.texts == [NEWS]
        assert [form for form in sends(twilio_server) if "Body" in form and "ContentSid" in form] == []
        await ann.say("what is it?")
        await until(ann, "You said: what is it?")
        await settled(whatsapp)
        assert ann.texts == [NEWS, first, "more", "more", "more", "You said: what is it?"]


@pytest.mark.parametrize("approval", ["pending", "rejected", "paused", None])
async def test_without_an_approved_template_it_just_waits(
    whatsapp: Road, twilio_server: TwilioServer, ann: Person, approval: str | None
) -> None:
    if approval:
        await approve(whatsapp, twilio_server, approval)
    await silent_for(whatsapp, 30)
    await tell(whatsapp, "waiting")
    await settled(whatsapp)
    await clean(whatsapp.store, whatsapp.settings)
    await settled(whatsapp)
    assert sends(twilio_server) == []
    assert await held(whatsapp) == ["waiting"]


async def test_an_approval_that_comes_later_is_used(whatsapp: Road, twilio_server: TwilioServer, ann: Person) -> None:
    await silent_for(whatsapp, 30)
    await tell(whatsapp, "waiting")
    await settled(whatsapp)
    await clean(whatsapp.store, whatsapp.settings)
    await approve(whatsapp, twilio_server)
    assert ann.texts == []
    await clean(whatsapp.store, whatsapp.settings)
    await until(ann, NEWS)


@pytest.mark.parametrize("how", ["opted_out", "paused"])
async def test_who_left_or_waits_for_a_human_is_told_nothing(
    whatsapp: Road, twilio_server: TwilioServer, ann: Person, how: str
) -> None:
    await approve(whatsapp, twilio_server)
    await silent_for(whatsapp, 30)
    await tell(whatsapp, "waiting")
    await settled(whatsapp)
    if how == "opted_out":
        await whatsapp.store_execute("update accounts set status = 'opted_out'")
    else:
        await whatsapp.store_execute("update chats set status = 'paused'")
    await clean(whatsapp.store, whatsapp.settings)
    await settled(whatsapp)
    assert sends(twilio_server) == []


async def test_who_opts_out_gets_nothing_of_what_waited(whatsapp: Road, ann: Person) -> None:
    await silent_for(whatsapp, 30)
    await tell(whatsapp, "waiting")
    await settled(whatsapp)
    await ann.say("STOP")
    await until(ann, "Done: I won't write to you any more")
    await settled(whatsapp)
    assert await held(whatsapp) == []
    assert "waiting" not in ann.texts


async def test_a_template_that_is_refused_is_not_tried_again(
    whatsapp: Road, twilio_server: TwilioServer, ann: Person
) -> None:
    """Meta may have taken its approval back since: nothing knocks again, and what waits goes on waiting."""
    await approve(whatsapp, twilio_server)
    twilio_server.contents.decide("paused")
    ann.refusal = 63016
    await silent_for(whatsapp, 30)
    await tell(whatsapp, "waiting")
    await settled(whatsapp)
    for _ in range(3):
        await clean(whatsapp.store, whatsapp.settings)
        await settled(whatsapp)
    assert len(sends(twilio_server)) == 1
    assert await held(whatsapp) == ["waiting"]
    assert await count(whatsapp, "outbox where state = 'failed' and error = 'twilio_63016'") == 1


async def test_what_waits_too_long_is_given_up(whatsapp: Road, ann: Person) -> None:
    await silent_for(whatsapp, 30)
    await tell(whatsapp, "old", "young")
    await settled(whatsapp)
    await whatsapp.store_execute(
        "update outbox set created_at = now() - interval '31 days' where content ->> 'text' = 'old'"
    )
    await clean(whatsapp.store, whatsapp.settings)
    assert await held(whatsapp) == ["young"]
    await clean(whatsapp.store, whatsapp.settings)
    assert await count(whatsapp, "outbox where content ->> 'text' = 'old'") == 0


async def test_what_waited_for_days_is_sent_and_not_given_up(whatsapp: Road, ann: Person) -> None:
    """It is as old as it is, and due only since the next word."""
    await silent_for(whatsapp, 300)
    await tell(whatsapp, "old news")
    await settled(whatsapp)
    await whatsapp.store_execute("update outbox set created_at = now() - interval '12 days' where state = 'held'")
    await whatsapp.store_execute("update outbox set state = 'due', released_at = now() where state = 'held'")
    async with whatsapp.store.begin() as tx:
        assert await outbox.give_up_waiting(tx, whatsapp.settings.raw_body_days) == []


async def test_who_is_forgotten_leaves_nothing_that_waits(whatsapp: Road, ann: Person) -> None:
    await silent_for(whatsapp, 30)
    await tell(whatsapp, "planted words")
    await settled(whatsapp)
    await ann.say("/forget")
    asked = await until(ann, "/3 Everything")
    await settled(whatsapp)
    await silent_for(whatsapp, 30)
    await tell(whatsapp, "planted again")
    await settled(whatsapp)
    await ann.say("3", reply_to=asked)
    await until(ann, "Your receipt")
    await settled(whatsapp)
    assert await count(whatsapp, "outbox where content ->> 'text' like '%planted%'") == 0


@pytest.fixture
async def web_road(database_url: str, model: ModelServer) -> AsyncIterator[Road]:
    """A gateway with the web chat alone."""
    async with road(database_url, model.url) as gateway:
        yield gateway


async def test_where_there_is_no_window_nothing_is_held(web_road: Road) -> None:
    async with web_road.visitor() as visitor:
        await visitor.ask("hello")
        await web_road.store_execute("update chats set heard_at = now() - interval '99 days'")
        (chat,) = await web_road.rows("select id from chats")
        async with web_road.store.begin() as tx:
            await outbox.put(tx, chat["id"], Content("still here"))
        await visitor.told("still here")
    assert await held(web_road) == []


@pytest.mark.parametrize("unknown", [True, False])
async def test_where_nobody_knows_when_they_wrote_twilio_is_asked(
    database_url: str, model: ModelServer, twilio_server: TwilioServer, unknown: bool
) -> None:
    """Chats from before their last word was kept."""
    ann = twilio_server.person()
    async with road(database_url, model.url, **settings(twilio_server)) as gateway:
        connect(twilio_server, gateway)
        await ann.say("hello")
        await until(ann, "You said: hello")
        await settled(gateway)
        if unknown:
            await gateway.store_execute("update chats set heard_at = null")
        else:
            await silent_for(gateway, 30)
        await tell(gateway, "a notice")
        await settled(gateway)
        assert ("a notice" in ann.texts) is unknown
        await twilio_server.hang_up()


@pytest.mark.parametrize("said", ["good", "👍", "great answer"])
async def test_a_word_of_who_comes_back_is_no_vote_on_what_waited_unseen(
    database_url: str, model: ModelServer, twilio_server: TwilioServer, said: str
) -> None:
    """The question about the reply that waits was lost with it: nobody asked, and nobody answers."""
    async with road(database_url, model.url, ask_after_silent_replies=2, **settings(twilio_server)) as gateway:
        connect(twilio_server, gateway)
        ben = twilio_server.person("Ben")
        await ben.say("one")
        await until(ben, "You said: one")
        await settled(gateway)
        ben.refusal = 63016
        await ben.say("two")
        await settled(gateway, beyond=1)
        assert "You said: two" in await held(gateway)
        ben.refusal = None
        await ben.say(said)
        await until(ben, "You said: two")
        await settled(gateway, beyond=2)
        voted = await gateway.rows("select t.user_text from votes v join turns t on t.id = v.turn_id")
        assert [row["user_text"] for row in voted if row["user_text"] != "one"] == []
        await twilio_server.hang_up()
