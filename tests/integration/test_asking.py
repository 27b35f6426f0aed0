"""The question how a reply was, through whole gateways: where it pays, once, on every channel, and counted with its answer."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from app.domain.press import Press, short_id
from bots.whatsapp.templates import definitions
from tests.fakes.model import ModelServer, faults
from tests.fakes.telegram import Chat, TelegramServer, User
from tests.fakes.twilio import Person, TwilioServer
from tests.support.road import Item, Road, button, road
from tests.support.whatsapp import connect, count, settled, until
from tests.support.whatsapp import settings as whatsapp_settings

ASKED, IN_WORDS = "How was that reply?", "Just answer 👍 or 👎"
EARLY: dict[str, object] = {"ask_after_silent_replies": 2}


@pytest.fixture
async def whatsapp(database_url: str, model: ModelServer, twilio_server: TwilioServer) -> AsyncIterator[Road]:
    """A gateway with WhatsApp that asks at the second reply without a word about any."""
    async with road(database_url, model.url, **whatsapp_settings(twilio_server), **EARLY) as gateway:
        connect(twilio_server, gateway)
        yield gateway
        await twilio_server.hang_up()


@pytest.fixture
async def telegram(
    database_url: str, model: ModelServer, telegram_server: TelegramServer, brisk: None
) -> AsyncIterator[Road]:
    """The same with Telegram."""
    known = {"telegram_bot_token": telegram_server.token, "telegram_base_url": telegram_server.base_url}
    async with road(database_url, model.url, **known, **EARLY) as gateway:
        yield gateway


@pytest.fixture
async def web(database_url: str, model: ModelServer) -> AsyncIterator[Road]:
    """The same with the web chat alone."""
    async with road(database_url, model.url, **EARLY) as gateway:
        yield gateway


async def asks(gateway: Road) -> list[Item]:
    """Return every question, in order."""
    return await gateway.rows("select turn_id, reason, outbox_id, answer, answered_at from asks order by asked_at")


async def votes(gateway: Road) -> list[int]:
    """Return the votes that are in force."""
    return [row["value"] for row in await gateway.rows("select value from votes order by changed_at")]


async def talked(gateway: Road, person: Person, *words: str) -> None:
    """Let somebody say things and read each reply."""
    for said in words:
        await person.say(said)
        await until(person, f"You said: {said}")
        await settled(gateway)


async def template(gateway: Road, server: TwilioServer, language: str = "en") -> str:
    """Let the question's template stand at Twilio and in the store; return its id."""
    wanted = next(one for one in definitions() if (one.name, one.language) == ("ask", language))
    made = server.contents.create(wanted.body())
    await gateway.store_execute(
        "insert into content_templates (bot_id, name, language, content_sid, digest) "
        "select id, 'ask', :language, :sid, 'x' from bots where channel = 'whatsapp'",
        language=language,
        sid=made.sid,
    )
    return made.sid


# ----------------------------------------------------------------------------------------------------------- WhatsApp


async def test_the_question_comes_behind_the_reply_and_not_before_it_pays(
    whatsapp: Road, twilio_server: TwilioServer
) -> None:
    ann = twilio_server.person()
    await talked(whatsapp, ann, "one")
    assert await asks(whatsapp) == []
    await talked(whatsapp, ann, "two", "three")
    assert ann.texts[-3:-1] == ["You said: two", next(t for t in ann.texts if ASKED in t)]
    assert IN_WORDS in ann.texts[-2]
    (ask,) = await asks(whatsapp)
    (turn,) = await whatsapp.rows("select id from turns where user_text = 'two'")
    assert (ask["turn_id"], ask["reason"], ask["answer"]) == (turn["id"], "long_silence", None)


async def test_where_its_template_stands_it_has_buttons_that_name_the_turn(
    whatsapp: Road, twilio_server: TwilioServer
) -> None:
    sid = await template(whatsapp, twilio_server)
    ann = twilio_server.person()
    await talked(whatsapp, ann, "one", "two")
    question = await until(ann, "How was that reply? Tap")
    (ask,) = await asks(whatsapp)
    turn = short_id(ask["turn_id"])
    assert list(question.buttons.values()) == [f"v:{turn}:u", f"v:{turn}:d", f"c:{turn}"]
    form = next(c.form for c in twilio_server.calls if c.form.get("ContentSid") == sid)
    assert "Body" not in form
    await ann.tap_label("👎 Not good", question)
    await until(ann, "What was wrong?")
    await settled(whatsapp)
    assert await votes(whatsapp) == [-1]
    assert [ask["answer"] for ask in await asks(whatsapp)] == ["down"]


async def test_the_button_that_corrects_waits_for_words(whatsapp: Road, twilio_server: TwilioServer) -> None:
    await template(whatsapp, twilio_server)
    ann = twilio_server.person()
    await talked(whatsapp, ann, "one", "two")
    await ann.tap_label("✏️ Correct it", await until(ann, "How was that reply? Tap"))
    await until(ann, "Tell me in words how you want it")
    await ann.say("Please always answer in one line")
    await settled(whatsapp, beyond=3)
    assert [row["text"] for row in await whatsapp.rows("select text from feedback")] == [
        "Please always answer in one line"
    ]
    assert [ask["answer"] for ask in await asks(whatsapp)] == ["words"]


async def test_a_template_that_is_gone_leaves_the_words(whatsapp: Road, twilio_server: TwilioServer) -> None:
    sid = await template(whatsapp, twilio_server)
    del twilio_server.contents.known[sid]
    ann = twilio_server.person()
    await talked(whatsapp, ann, "one", "two")
    assert (await until(ann, IN_WORDS)).body.startswith(ASKED)
    assert len(await asks(whatsapp)) == 1


async def test_a_question_in_korean(whatsapp: Road, twilio_server: TwilioServer) -> None:
    await template(whatsapp, twilio_server, "ko")
    minji = twilio_server.person("Minji", "whatsapp:+821000000001")
    await talked(whatsapp, minji, "하나", "둘")
    question = await until(minji, "방금 답은 어땠나요?")
    await minji.tap_label("👍 좋아요", question)
    await until(minji, "알려 주셔서 고마워요")
    assert await votes(whatsapp) == [1]


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("👍", 1),
        ("👎🏽", -1),
        ("good", 1),
        ("Not good.", -1),
        ("좋아요", 1),
        ("별로예요", -1),
        ("Good answer", 1),
        ("/bad", -1),
    ],
)
async def test_who_sees_no_buttons_answers_in_words(
    whatsapp: Road, twilio_server: TwilioServer, said: str, value: int
) -> None:
    ann = twilio_server.person()
    await talked(whatsapp, ann, "one", "two")
    await until(ann, IN_WORDS)
    await ann.say(said)
    await until(ann, "Noted, thank you" if value > 0 else "What was wrong?")
    await settled(whatsapp)
    assert await votes(whatsapp) == [value]
    assert [ask["answer"] for ask in await asks(whatsapp)] == ["up" if value > 0 else "down"]
    assert await count(whatsapp, "turns") == 2


@pytest.mark.parametrize("said", ["good", "bad", "좋아요", "별로"])
async def test_unasked_such_a_word_is_a_message(whatsapp: Road, twilio_server: TwilioServer, said: str) -> None:
    """It may answer what the model asked: nobody asked how its reply was."""
    ann = twilio_server.person()
    await talked(whatsapp, ann, "one", said)
    assert await votes(whatsapp) == []


@pytest.mark.parametrize(("said", "value"), [("good answer", 1), ("답변 별로예요", -1), ("/good", 1)])
async def test_unasked_clear_words_are_a_vote(
    whatsapp: Road, twilio_server: TwilioServer, said: str, value: int
) -> None:
    ann = twilio_server.person()
    await talked(whatsapp, ann, "one")
    await ann.say(said)
    await settled(whatsapp, beyond=1)
    assert await votes(whatsapp) == [value]
    assert await asks(whatsapp) == []


async def test_a_swipe_reply_to_the_question_is_about_its_reply(whatsapp: Road, twilio_server: TwilioServer) -> None:
    ann = twilio_server.person()
    await talked(whatsapp, ann, "one", "two")
    question = await until(ann, IN_WORDS)
    await settled(whatsapp)
    await talked(whatsapp, ann, "three")
    await ann.say("👎", reply_to=question)
    await until(ann, "What was wrong?")
    (vote,) = await whatsapp.rows("select t.user_text, v.value from votes v join turns t on t.id = v.turn_id")
    assert vote == {"user_text": "two", "value": -1}


async def test_who_answered_is_left_in_peace(whatsapp: Road, twilio_server: TwilioServer) -> None:
    ann = twilio_server.person()
    await talked(whatsapp, ann, "one", "two")
    await ann.say("👍")
    await until(ann, "Noted, thank you")
    await talked(whatsapp, ann, "three")
    assert len(await asks(whatsapp)) == 1


async def test_the_budget_of_a_day(whatsapp: Road, twilio_server: TwilioServer) -> None:
    ann = twilio_server.person()
    await talked(whatsapp, ann, *(f"number {n}" for n in range(8)))
    assert len(await asks(whatsapp)) == whatsapp.settings.ask_per_day == 2
    await whatsapp.store_execute("update asks set asked_at = asked_at - interval '25 hours'")
    await talked(whatsapp, ann, "the next day")
    assert len(await asks(whatsapp)) == 3


async def test_somebody_elses_button_has_no_effect(whatsapp: Road, twilio_server: TwilioServer) -> None:
    await template(whatsapp, twilio_server)
    ann, bo = twilio_server.person(), twilio_server.person("Bo")
    await talked(whatsapp, ann, "one", "two")
    question = await until(ann, "How was that reply? Tap")
    await talked(whatsapp, bo, "hello")
    known = await count(whatsapp, "inbox")
    await bo.tap(question.buttons["👎 Not good"], "👎 Not good", question)
    await bo.tap(Press("v", short_id(uuid4()), "u").data(), "👍 Good", question)
    await settled(whatsapp, beyond=known + 1)
    assert await votes(whatsapp) == []
    assert [ask["answer"] for ask in await asks(whatsapp)] == [None]


async def test_nobody_is_asked_in_the_breath_of_the_consent_question(
    database_url: str, model: ModelServer, twilio_server: TwilioServer
) -> None:
    ann = twilio_server.person()
    eager = {"ask_after_silent_replies": 1, "ask_per_day": 9}
    async with road(database_url, model.url, **whatsapp_settings(twilio_server), **eager) as gateway:
        connect(twilio_server, gateway)
        await talked(gateway, ann, "hello")
        assert await asks(gateway) == []
        await talked(gateway, ann, "again")
        assert len(await asks(gateway)) == 1
        await twilio_server.hang_up()


async def test_while_something_is_awaited_nothing_is_asked(whatsapp: Road, twilio_server: TwilioServer) -> None:
    ann = twilio_server.person()
    await talked(whatsapp, ann, "one")
    awaited = '{"awaiting": {"kind": "example", "since": "2999-01-01T00:00:00+00:00"}}'
    await whatsapp.store_execute("update chats set state = cast(:state as jsonb)", state=awaited)
    await ann.say("/retry")
    await settled(whatsapp, beyond=1)
    assert await count(whatsapp, "turns") == 2
    assert await asks(whatsapp) == []


async def test_a_reply_that_failed_is_not_asked_about(
    whatsapp: Road, twilio_server: TwilioServer, model: ModelServer
) -> None:
    ann = twilio_server.person()
    await talked(whatsapp, ann, "one")
    model.next(faults.Garbage())
    await ann.say("two")
    await settled(whatsapp, beyond=1)
    states = [row["state"] for row in await whatsapp.rows("select state from turns order by number")]
    assert states == ["done", "failed"]
    assert await asks(whatsapp) == []
    await talked(whatsapp, ann, "three")
    assert len(await asks(whatsapp)) == 1


@pytest.mark.parametrize(
    ("state", "confidence", "ballots", "reason"),
    [
        ("no_verdict", None, (), "judge_unsure"),
        ("scored", 0.4, (1, 1, 1), "judge_unsure"),
        ("scored", 0.9, (1, -1, 1), "votes_split"),
        ("scored", 0.9, (1, 1, 1), None),
        ("pending", None, (), None),
    ],
)
async def test_a_judges_doubt_about_the_last_replies_is_a_reason(
    whatsapp: Road,
    twilio_server: TwilioServer,
    state: str,
    confidence: float | None,
    ballots: tuple[int, ...],
    reason: str | None,
) -> None:
    ann = twilio_server.person()
    await talked(whatsapp, ann, "one")
    await whatsapp.store_execute(
        "insert into votes (turn_id, person_id, value, source) select id, person_id, 1, 'test' from turns"
    )
    await whatsapp.store_execute(
        "insert into scores (turn_id, judge, judge_version, state, confidence) select id, 'j', '1', :state, :c from turns",
        state=state,
        c=confidence,
    )
    for number, value in enumerate(ballots):
        await whatsapp.store_execute(
            "insert into score_votes (score_id, number, value) select id, :n, :v from scores", n=number, v=value
        )
    await talked(whatsapp, ann, "two")
    assert [ask["reason"] for ask in await asks(whatsapp)] == ([reason] if reason else [])


# ------------------------------------------------------------------------------------------------- Telegram, the web


async def finished(server: TelegramServer, chat: Chat, words: str) -> None:
    """Wait for the finished reply with `words` in it."""
    await server.wait_for(lambda: any(words in m.text and m.buttons for m in chat.from_bot), 20)


async def test_on_telegram_it_is_one_short_line_whose_buttons_go_with_the_answer(
    telegram: Road, telegram_server: TelegramServer
) -> None:
    ann: User = telegram_server.user("Ann")
    for said in ("one", "two"):
        ann.say(said)
        await finished(telegram_server, ann.chat, f"You said: {said}")
    await telegram_server.wait_for(lambda: any(m.text == ASKED and m.buttons for m in ann.chat.from_bot), 20)
    question = next(m for m in ann.chat.from_bot if m.text == ASKED)
    assert [b.text for b in question.buttons] == ["👍 Good", "👎 Not good", "✏️ Correct it"]
    ann.press(question, "👍 Good")
    await telegram_server.wait_for(lambda: not question.buttons, 20)
    reply = next(m for m in ann.chat.from_bot if "You said: two" in m.text)
    await telegram_server.wait_for(lambda: any(b.text == "👍 ✓" for b in reply.buttons), 20)
    assert await votes(telegram) == [1]
    assert [ask["answer"] for ask in await asks(telegram)] == ["up"]


async def test_a_vote_under_the_reply_answers_the_question_too(telegram: Road, telegram_server: TelegramServer) -> None:
    ann = telegram_server.user("Ann")
    for said in ("one", "two"):
        ann.say(said)
        await finished(telegram_server, ann.chat, f"You said: {said}")
    await telegram_server.wait_for(lambda: any(m.text == ASKED and m.buttons for m in ann.chat.from_bot), 20)
    reply = next(m for m in ann.chat.from_bot if "You said: two" in m.text)
    ann.press(reply, "👎")
    question = next(m for m in ann.chat.from_bot if m.text == ASKED)
    await telegram_server.wait_for(lambda: not question.buttons, 20)
    assert [ask["answer"] for ask in await asks(telegram)] == ["down"]


async def test_a_reaction_to_the_question_is_about_its_reply(telegram: Road, telegram_server: TelegramServer) -> None:
    ann = telegram_server.user("Ann")
    for said in ("one", "two"):
        ann.say(said)
        await finished(telegram_server, ann.chat, f"You said: {said}")
    await telegram_server.wait_for(lambda: any(m.text == ASKED and m.buttons for m in ann.chat.from_bot), 20)
    question = next(m for m in ann.chat.from_bot if m.text == ASKED)
    ann.react(question, "👍")
    await telegram_server.wait_for(lambda: not question.buttons, 20)
    assert await votes(telegram) == [1]
    assert [ask["answer"] for ask in await asks(telegram)] == ["up"]


async def test_a_group_is_never_asked(telegram: Road, telegram_server: TelegramServer) -> None:
    ann = telegram_server.user("Ann")
    group = telegram_server.group("Kitchen", ann)
    group.promote_bot()
    for number in range(4):
        ann.say(f"@{telegram_server.world.bot['username']} number {number}", group.chat)
        await finished(telegram_server, group.chat, f"number {number}")
    assert await asks(telegram) == []


async def test_in_the_web_chat_it_is_a_notice_with_buttons(web: Road) -> None:
    async with web.visitor() as visitor:
        await visitor.ask("one")
        await visitor.ask("two")
        question = await visitor.offered(ASKED, "👎 Not good")
        await visitor.press(button(question, "👎 Not good"))
        await visitor.told("What was wrong?")
        await visitor.wait(lambda items: [i for i in items if ASKED in i.get("plain", "") and not i.get("buttons")])
    assert await votes(web) == [-1]


async def test_who_sets_the_budget_to_nothing_asks_nobody(database_url: str, model: ModelServer) -> None:
    async with road(database_url, model.url, ask_after_silent_replies=1, ask_per_day=0) as gateway:
        async with gateway.visitor() as visitor:
            for words in ("one", "two", "three"):
                await visitor.ask(words)
        assert await asks(gateway) == []


async def test_the_questions_are_counted(web: Road) -> None:
    async with web.visitor() as visitor:
        await visitor.ask("one")
        await visitor.ask("two")
        question = await visitor.offered(ASKED, "👍 Good")
        await visitor.press(button(question, "👍 Good"))
        await visitor.wait(lambda items: [i for i in items if ASKED in i.get("plain", "") and not i.get("buttons")])
        async with visitor.session.get(f"{web.url}/metrics") as answer:
            figures = await answer.text()
    for name in ("mentee_asks_total", "mentee_asks_answered_total"):
        line = next(
            one for one in figures.splitlines() if one.startswith(f'{name}{{channel="web",reason="long_silence"}}')
        )
        assert float(line.split()[-1]) >= 1
