"""The road of a message through a whole gateway: what is said is stored, answered once, in order, and honestly."""

import asyncio
import uuid
from collections.abc import AsyncGenerator
from itertools import pairwise
from pathlib import Path

import aiohttp
import pytest

from app.clients.vllm import VllmClient
from app.domain.prompt import PROMPT_VERSION
from app.embedded import invite
from app.ports import Delta
from tests.fakes.model import ModelServer, faults
from tests.fakes.model import replies as scripts
from tests.support.lessons import base_folder
from tests.support.road import Road, Visitor, button, replies, road


async def test_a_message_is_answered(running: Road, visitor: Visitor) -> None:
    reply = await visitor.ask("hello there")
    assert reply["plain"] == "You said: hello there"
    assert reply["turn"]["state"] == "done"
    (turn,) = await running.rows("select * from turns")
    assert turn["prompt_version"] == PROMPT_VERSION
    assert turn["sampling"]["top_p"] == 1.0
    assert turn["response_token_ids"]
    assert turn["prompt_token_ids"]
    assert (await running.rows("select state from inbox"))[0]["state"] == "done"


@pytest.mark.parametrize("allowed", [(), ("memory", "human_review"), ("personal_training",), ("shared_training",)])
async def test_what_only_training_needs_is_kept_where_it_may_train(
    database_url: str, model: ModelServer, tmp_path: Path, allowed: tuple[str, ...]
) -> None:
    known = base_folder(tmp_path / "base")
    async with road(database_url, model.url, model_dir=known) as gateway, gateway.visitor() as visitor:
        await visitor.allow(*allowed)
        await visitor.ask("hello there")
        (turn,) = await gateway.rows("select response_token_ids, response_logprobs, learnable from turns")
    trains = any(purpose.endswith("training") for purpose in allowed)
    assert turn["learnable"] == trains == model.calls[-1].body["logprobs"]
    assert len(turn["response_logprobs"] or ()) == (len(turn["response_token_ids"]) if trains else 0)


async def test_what_is_said_in_the_moment_of_being_forgotten_is_kept_nowhere(running: Road, visitor: Visitor) -> None:
    async with visitor.session.get(f"{running.url}/chat/api/stream") as stream:
        while not (await stream.content.readline()).startswith(b"event: changed"):
            pass
        await running.store_execute("delete from people")
        body = {"id": str(uuid.uuid4()), "kind": "message", "text": "my planted words"}
        # Their page was just seen by its stream, so it is taken in.
        async with visitor.session.post(
            f"{running.url}/chat/api/updates", json=body, headers={"Origin": running.url}
        ) as answer:
            assert answer.status == 202
    while await running.rows("select 1 from inbox where state in ('stored', 'claimed')"):
        await asyncio.sleep(0.02)
    assert await running.rows("select 1 from inbox where body is not null") == []
    assert await running.rows("select 1 from people") == await running.rows("select 1 from turns") == []
    async with visitor.session.get(f"{running.url}/chat/api/me") as answer:
        assert answer.status == 401


async def test_an_update_sent_twice_is_answered_once(running: Road, visitor: Visitor) -> None:
    same = str(uuid.uuid4())
    await asyncio.gather(*(visitor.say("once", update_id=same) for _ in range(5)))
    await visitor.told("You said: once")
    await visitor.ask("another")
    turns = await running.rows("select user_text from turns order by number")
    assert [t["user_text"] for t in turns] == ["once", "another"]


async def test_messages_of_a_chat_keep_their_order(running: Road, visitor: Visitor, model: ModelServer) -> None:
    model.always(faults.Slow(first_token_s=0.05))
    for number in range(6):
        await visitor.say(f"number {number}")
    await visitor.wait(lambda items: len(replies(items)) == 6)
    rows = await running.rows("select user_text, finished_at, created_at from turns order by number")
    assert [r["user_text"] for r in rows] == [f"number {n}" for n in range(6)]
    assert all(a["finished_at"] <= b["created_at"] for a, b in pairwise(rows))


async def test_chats_do_not_wait_for_each_other(running: Road, model: ModelServer) -> None:
    model.reply_with("fine")
    model.next(faults.Slow(first_token_s=60.0))
    async with running.visitor() as slow, running.visitor() as quick:
        await slow.say("take your time")
        async with asyncio.timeout(20):
            while not model.calls:
                await asyncio.sleep(0.02)
        reply = await quick.ask("and me?")
        assert reply["plain"] == "fine"
        assert not replies(await slow.messages())
        await slow.command("stop")
        assert await slow.told("Stopped")


async def test_the_conversation_is_remembered_within_its_session_only(visitor: Visitor, model: ModelServer) -> None:
    await visitor.ask("my first words")
    await visitor.ask("my second words")
    assert [m["content"] for m in model.calls[-1].messages[1:]] == [
        "my first words",
        "You said: my first words",
        "my second words",
    ]
    await visitor.command("new")
    await visitor.ask("a new beginning")
    assert [m["content"] for m in model.calls[-1].messages[1:]] == ["a new beginning"]


@pytest.mark.parametrize("words", ["   ", "\n\t", "\u200b\u200e", "\u202e"])
async def test_what_nobody_can_see_gets_a_sentence(visitor: Visitor, model: ModelServer, words: str) -> None:
    await visitor.say(words)
    await visitor.told("I only see spaces there")
    assert model.calls == []


async def test_one_emoji_is_a_message(visitor: Visitor) -> None:
    assert "🙂" in (await visitor.ask("🙂"))["plain"]


async def test_too_long_is_said_not_swallowed(visitor: Visitor, model: ModelServer) -> None:
    await visitor.say("x" * 100_000)
    told = await visitor.told("100000 characters")
    assert "8000" in told["plain"]
    assert model.calls == []
    assert "still here" in (await visitor.ask("still here?"))["plain"]


@pytest.mark.parametrize(
    "words", ["nul \x00 inside", "lone \ud83d surrogate", "\u202ertl \u200f mark", "non \ufdd0\uffff characters"]
)
async def test_odd_characters_are_stored_and_answered(visitor: Visitor, words: str) -> None:
    reply = await visitor.ask(words)
    assert reply["turn"]["state"] == "done"


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (faults.Refuse(500), "can't reach the model"),
        (faults.Refuse(400, "too long"), "could not take this message"),
        (faults.Garbage(), "not usable"),
        (faults.Misshapen("delta", "s"), "not usable"),
        (faults.Cut(1), "can't reach the model"),
        (faults.BrokenStream(), "can't reach the model"),
    ],
)
async def test_a_failing_model_gets_an_honest_sentence_and_a_retry(
    visitor: Visitor, model: ModelServer, fault: faults.Fault, sentence: str
) -> None:
    model.next(fault)
    await visitor.say("please answer")
    told = await visitor.told(sentence)
    assert told["turn"]["state"] == "failed"
    await visitor.press(f"t:{told['turn']['id']}")
    await visitor.told("You said: please answer")


async def test_a_model_that_is_down_gets_the_same(visitor: Visitor, model: ModelServer) -> None:
    await model.stop()
    await visitor.say("anyone?")
    await visitor.told("can't reach the model")
    await model.start()
    assert "You said: back" in (await visitor.ask("back"))["plain"]


@pytest.mark.parametrize("reply", [scripts.EMPTY, scripts.THINK_ONLY])
async def test_an_empty_reply_is_said(visitor: Visitor, model: ModelServer, reply: scripts.Reply) -> None:
    model.reply_with(reply)
    await visitor.say("well?")
    assert (await visitor.told("empty answer"))["turn"]["failure"] == "empty"


async def test_thinking_without_an_opener_is_not_shown(visitor: Visitor, model: ModelServer) -> None:
    model.reply_with(scripts.THINK_WITHOUT_OPENER)
    assert (await visitor.ask("hi"))["plain"] == "Hello!"


async def test_a_cut_reply_says_so_and_keeps_its_reason(running: Road, visitor: Visitor, model: ModelServer) -> None:
    model.reply_with(scripts.LENGTH_CUT)
    assert "cut at its longest length" in (await visitor.ask("steps?"))["plain"]
    assert (await running.rows("select finish_reason from turns"))[0]["finish_reason"] == "length"


async def test_broken_markdown_is_shown_whole(visitor: Visitor, model: ModelServer) -> None:
    model.reply_with(scripts.BROKEN_MARKDOWN)
    assert "Bold that never ends" in (await visitor.ask("format?"))["html"]


@pytest.mark.parametrize("fault", [faults.NoLogprobs(), faults.NoTokenIds()])
async def test_a_reply_without_logprobs_is_shown_and_never_learnt_from(
    database_url: str, model: ModelServer, tmp_path: Path, fault: faults.Fault
) -> None:
    model.always(fault)
    known = base_folder(tmp_path / "base")
    async with road(database_url, model.url, model_dir=known) as gateway, gateway.visitor() as visitor:
        await visitor.allow("memory", "personal_training")
        await visitor.ask("anything")
        (turn,) = await gateway.rows("select learnable, response_logprobs from turns")
    assert model.calls[-1].body["logprobs"] is True
    assert turn["learnable"] is False
    assert turn["response_logprobs"] is None


async def test_stop_overtakes_the_reply_being_written(running: Road, visitor: Visitor, model: ModelServer) -> None:
    model.reply_with(scripts.LONG)
    model.always(faults.Slow(per_token_s=0.05))
    await visitor.say("tell me everything")
    await visitor.wait(lambda items: [i for i in items if i.get("kind") == "pending"])
    await asyncio.sleep(0.5)
    await visitor.command("stop")
    told = await visitor.told("(stopped)")
    assert told["turn"]["state"] == "stopped"
    assert "A sentence" in told["plain"]


async def test_stop_ends_the_request_to_the_model_at_once(
    visitor: Visitor, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[AsyncGenerator[Delta]] = []
    stream = VllmClient.stream

    def held(client: VllmClient, *args: object, **more: object) -> AsyncGenerator[Delta]:
        asked.append(stream(client, *args, **more))  # type: ignore[arg-type]
        return asked[-1]

    monkeypatch.setattr(VllmClient, "stream", held)
    model.reply_with(scripts.LONG)
    model.always(faults.Slow(per_token_s=0.05))
    await visitor.say("tell me everything")
    await visitor.wait(lambda items: [i for i in items if i.get("kind") == "pending"])
    await asyncio.sleep(0.5)
    await visitor.command("stop")
    await visitor.told("(stopped)")
    (one,) = asked
    with pytest.raises(StopAsyncIteration):  # closed, though somebody still holds it
        await anext(one)


async def test_stop_need_not_wait_for_the_first_word(running: Road, visitor: Visitor, model: ModelServer) -> None:
    model.next(faults.Slow(first_token_s=30.0))
    await visitor.say("think about it")
    await visitor.wait(lambda items: [i for i in items if i.get("kind") == "pending"])
    await asyncio.sleep(0.5)
    await visitor.command("stop")
    told = await visitor.told("Stopped.")
    assert (told["plain"], told["turn"]["state"]) == ("Stopped.", "stopped")


async def test_regenerating_keeps_both_replies_as_siblings(running: Road, visitor: Visitor, model: ModelServer) -> None:
    model.reply_with("first answer")
    reply = await visitor.ask("a question")
    model.reply_with("second answer")
    await visitor.press(f"t:{reply['turn']['id']}")
    await visitor.told("second answer")
    rows = await running.rows("select id, reply_text, sibling_of from turns order by number")
    assert [r["reply_text"] for r in rows] == ["first answer", "second answer"]
    assert rows[1]["sibling_of"] == rows[0]["id"]
    assert [m["content"] for m in model.calls[-1].messages[1:]] == ["a question"]
    model.reply_with("third answer")
    await visitor.press(f"t:{reply['turn']['id']}")
    await visitor.told("third answer")
    assert [m["content"] for m in model.calls[-1].messages[1:]] == ["a question"]
    await visitor.ask("and then?")
    assert [m["content"] for m in model.calls[-1].messages[1:]] == ["a question", "third answer", "and then?"]


async def test_a_reply_in_the_middle_is_made_again_from_what_came_before_it(
    running: Road, visitor: Visitor, model: ModelServer
) -> None:
    await visitor.ask("one")
    reply = await visitor.ask("two")
    await visitor.ask("three")
    calls = len(model.calls)
    await visitor.press(f"t:{reply['turn']['id']}")
    await visitor.wait(lambda _: len(model.calls) > calls)
    assert [m["content"] for m in model.calls[-1].messages[1:]] == ["one", "You said: one", "two"]
    await visitor.wait(lambda items: len(replies(items)) == 4)
    await visitor.ask("four")
    assert [m["content"] for m in model.calls[-1].messages[1::2]] == ["one", "two", "three", "four"]


async def test_what_was_not_kept_cannot_be_answered_again(running: Road, visitor: Visitor, model: ModelServer) -> None:
    from app.services.housekeeping import clean

    reply = await visitor.ask("nothing to keep")
    await visitor.command("new")
    await visitor.told("A fresh conversation")
    await clean(running.store, running.settings)
    calls = len(model.calls)
    await visitor.press(f"t:{reply['turn']['id']}")
    await visitor.told("no reply to try again")
    assert len(model.calls) == calls


async def test_votes_are_set_switched_and_cleared(running: Road, visitor: Visitor) -> None:
    turn = (await visitor.ask("rate me"))["turn"]["id"]
    for data, value in [("u", 1), ("u", 1), ("d", -1), ("0", 0), ("u", 1)]:
        await visitor.press(f"v:{turn}:{data}")
        await visitor.wait(lambda items, value=value: [i for i in replies(items) if i["turn"]["vote"] == value])
    events = await running.rows("select value from vote_events order by at")
    assert [e["value"] for e in events] == [1, -1, 0, 1]
    assert len(await running.rows("select 1 from votes")) == 1


async def test_nobody_votes_on_somebody_elses_turn(running: Road, visitor: Visitor) -> None:
    turn = (await visitor.ask("mine alone"))["turn"]["id"]
    async with running.visitor() as stranger:
        for data in (
            f"v:{turn}:u",
            f"c:{turn}",
            f"t:{turn}",
            f"r:{turn}:style",
            "v:AAAAAAAAAAAAAAAAAAAAAA:u",
            "v:x:u",
            "nonsense",
        ):
            await stranger.press(data)
        await stranger.ask("am I still welcome?")
    assert await running.rows("select 1 from votes") == []
    assert await running.rows("select 1 from feedback") == []
    assert len(await running.rows("select 1 from turns")) == 2


async def test_a_message_that_cannot_be_handled_gets_an_honest_word(
    running: Road, visitor: Visitor, model: ModelServer
) -> None:
    await running.rows("insert into switches (name, paused) values ('intake', true) returning id")
    await asyncio.sleep(0.6)
    await visitor.say("cursed")
    # As after four tries that an unforeseen error ended.
    await running.rows("update inbox set attempts = 4 returning id")
    await running.rows("update switches set paused = false returning id")
    await visitor.told("Something went wrong on my side")
    assert model.calls == []
    assert [row["state"] for row in await running.rows("select state from inbox")] == ["dead"]
    assert "and now" in (await visitor.ask("and now?"))["plain"]


async def test_a_paused_intake_keeps_everything_for_later(running: Road, visitor: Visitor) -> None:
    await running.rows("insert into switches (name, paused) values ('intake', true) returning id")
    await asyncio.sleep(0.6)
    await visitor.say("while paused")
    await asyncio.sleep(1.0)
    assert await running.rows("select 1 from turns") == []
    await running.rows("update switches set paused = false returning id")
    await visitor.told("You said: while paused")


async def test_without_memory_consent_the_conversation_ends_with_its_session(running: Road, visitor: Visitor) -> None:
    from app.services.housekeeping import clean

    await visitor.ask("nothing to keep")
    await visitor.command("new")
    await visitor.told("A fresh conversation")
    await clean(running.store, running.settings)
    (turn,) = await running.rows("select user_text, reply_text, response_token_ids from turns")
    assert turn == {"user_text": None, "reply_text": None, "response_token_ids": None}
    shown = await running.rows("select content from outbox where turn_id is not null")
    assert [s["content"]["text"] for s in shown] == [""]


async def test_with_memory_consent_it_stays(running: Road, visitor: Visitor) -> None:
    from app.services.housekeeping import clean

    await visitor.allow("memory")
    await visitor.ask("something to keep")
    await visitor.command("new")
    await visitor.told("A fresh conversation")
    await clean(running.store, running.settings)
    assert (await running.rows("select user_text from turns"))[0]["user_text"] == "something to keep"


async def test_logs_hold_nothing_that_was_said(
    visitor: Visitor, model: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    planted = "swordfish-4711"
    with caplog.at_level("DEBUG", logger="app"), caplog.at_level("DEBUG", logger="bots"):
        await visitor.ask(f"my secret is {planted}")
        model.next(faults.Garbage())
        await visitor.say(f"{planted} again")
        await visitor.told("not usable")
    assert planted not in "\n".join(f"{r.getMessage()} {getattr(r, 'fields', '')}" for r in caplog.records)


async def test_unknown_commands_and_help(visitor: Visitor) -> None:
    await visitor.command("frobnicate")
    await visitor.told("don't know that command")
    await visitor.command("help")
    assert "/forget" in (await visitor.told("Just write to me"))["plain"]


async def test_the_language_can_be_chosen(visitor: Visitor) -> None:
    await visitor.command("language", "ko")
    await visitor.told("한국어로 말할게요")
    await visitor.command("help")
    assert "/forget" in (await visitor.told("새 대화"))["plain"]


async def test_buttons_of_a_question_go_when_it_is_settled(visitor: Visitor) -> None:
    await visitor.allow("memory")
    await visitor.ask("tell me about tea")
    turn = replies(await visitor.messages())[-1]
    await visitor.press(f"v:{turn['turn']['id']}:d")
    asked = await visitor.told("What was wrong?")
    assert button(asked, "Just this time")


async def test_beyond_loopback_a_newcomer_needs_an_invitation(database_url: str, model: ModelServer) -> None:
    async with road(database_url, model.url, public_url="https://chat.example.org") as gateway:
        code = await asyncio.to_thread(invite.make, gateway.settings)
        headers = {"Origin": gateway.url}
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            start = f"{gateway.url}/chat/api/start"
            answers = []
            for body in ({}, {"invitation": "guessed"}, {"invitation": code}, {"invitation": code}):
                session.cookie_jar.clear()
                async with session.post(start, json=body, headers=headers) as answer:
                    answers.append(answer.status)
    assert answers[:2] == [403, 403]
    assert answers[2] in {200, 201}
    assert answers[3] == 403


async def test_the_identitys_facts_reach_the_model(running: Road, visitor: Visitor, model: ModelServer) -> None:
    await running.rows(
        "update bot_identities set system_prompt = 'You guide guests.', facts = '{\"Opening hours\": \"9 to 18\"}' "
        "where bot_id = (select id from bots where channel = 'web') returning id"
    )
    await visitor.ask("when do you open?")
    assert model.calls[-1].system == "You guide guests.\n\nFacts you know:\n- Opening hours: 9 to 18"


@pytest.mark.parametrize(("command", "words"), [("privacy", "Your choices now"), ("whoami", "the base model")])
async def test_commands_about_oneself(visitor: Visitor, command: str, words: str) -> None:
    await visitor.ask("hello")
    await visitor.command(command)
    assert await visitor.told(words)


async def test_retry_answers_the_last_message_again(running: Road, visitor: Visitor) -> None:
    await visitor.ask("once more")
    await visitor.command("retry")
    await visitor.wait(lambda items: len(replies(items)) == 2)
    rows = await running.rows("select user_text, sibling_of is not null as sibling from turns order by number")
    assert [(r["user_text"], r["sibling"]) for r in rows] == [("once more", False), ("once more", True)]
