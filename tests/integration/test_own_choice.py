"""A person's own word stands: what they chose to be wrong, took back, withdrew, or pressed once with two fingers."""

import asyncio

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.fakes.model import ModelServer, faults
from tests.integration.test_judge import UNCLEAR, Judge
from tests.integration.test_memory import LINE, dislike
from tests.support.road import Road, Visitor, button, road

KEPT = "select text, state from memory_lines"
IDLE = """
    update chats set state = jsonb_set(state, '{awaiting,since}', to_jsonb((now() - interval '31 minutes')::text))
    where state ? 'awaiting' returning id
"""


async def chosen(visitor: Visitor, label: str) -> str:
    """Dislike a reply, say by button what was wrong with it, and return the turn."""
    turn = await dislike(visitor)
    asked = await visitor.offered("What was wrong?", label)
    await visitor.press(button(asked, label), asked["message_id"])
    await visitor.told("Tell me in words how you want it")
    return turn


async def vote_is(running: Road, value: int) -> None:
    async with asyncio.timeout(10):
        while (await running.rows("select value from votes order by changed_at desc limit 1"))[0]["value"] != value:
            await asyncio.sleep(0.02)


async def settled(running: Road) -> None:
    """Wait until every update was handled."""
    async with asyncio.timeout(20):
        while await running.rows("select 1 from inbox where state in ('stored', 'claimed')"):
            await asyncio.sleep(0.02)


async def test_a_wrong_fact_stays_one_though_the_words_sound_like_a_style(running: Road, visitor: Visitor) -> None:
    await visitor.allow("memory")
    await chosen(visitor, "Wrong fact")
    await visitor.say("You should always say Canberra")
    await visitor.told("I can't check facts myself")
    assert await running.rows(KEPT) == []
    (said,) = await running.rows("select class, classified_by, confidence from feedback where text is not null")
    assert said == {"class": "wrong_fact", "classified_by": "person", "confidence": 1.0}


async def test_a_style_that_no_rule_knows_is_not_asked_about_again(running: Road, visitor: Visitor) -> None:
    await visitor.allow("memory")
    await chosen(visitor, "Style")
    await visitor.say("like a pirate")
    await visitor.told("I'll keep this in mind from now on: “like a pirate”")
    assert not [i for i in await visitor.messages() if "I'm not sure what you meant" in i.get("plain", "")]


async def test_the_choice_outlasts_the_correct_button(running: Road, visitor: Visitor) -> None:
    await visitor.allow("memory")
    await visitor.press(f"c:{await chosen(visitor, 'Style')}")
    await visitor.wait(lambda items: len([i for i in items if "Tell me in words" in i.get("plain", "")]) == 2)
    await visitor.say("like a pirate")
    await visitor.told("I'll keep this in mind from now on: “like a pirate”")
    assert len(await running.rows(KEPT)) == 1


@pytest.mark.parametrize(("choice", "value"), [("u", 1), ("0", 0)])
async def test_a_dislike_that_is_gone_waits_for_no_correction(
    running: Road, visitor: Visitor, choice: str, value: int
) -> None:
    turn = await dislike(visitor)
    await visitor.press(f"v:{turn}:{choice}")
    await vote_is(running, value)
    await visitor.ask("Please always tell me where Paris is")
    assert await running.rows("select 1 from feedback") == []


async def test_another_replys_vote_leaves_the_awaited_correction(running: Road, visitor: Visitor) -> None:
    await visitor.allow("memory")
    other = (await visitor.ask("And coffee?"))["turn"]["id"]
    await dislike(visitor)
    await visitor.press(f"v:{other}:u")
    await vote_is(running, 1)
    await visitor.say("like a pirate, and always in short sentences")
    await visitor.told("I'll keep this in mind")
    assert len(await running.rows("select 1 from memory_lines where state = 'active'")) == 1


async def test_a_question_is_forgotten_after_the_silence_that_ends_a_conversation(
    running: Road, visitor: Visitor
) -> None:
    await dislike(visitor)
    assert await running.rows(IDLE)
    await visitor.ask("Please always tell me where Paris is")
    assert await running.rows("select 1 from feedback") == []


async def test_what_is_withdrawn_while_the_judge_thinks_is_not_kept(database_url: str, model: ModelServer) -> None:
    judge = Judge(silence_s=2.0)
    app = web.Application()
    app.router.add_post("/v1/chat/completions", judge.answer)
    async with TestServer(app) as server:
        address = f"http://127.0.0.1:{server.port}"
        async with (
            road(database_url, model.url, judge_base_url=address, judge_model="judge") as running,
            running.visitor() as visitor,
        ):
            await visitor.allow("memory", "outside_judge")
            reply = await visitor.ask("What is tea?")
            await visitor.say(UNCLEAR, reply_to=reply["message_id"])
            async with asyncio.timeout(10):
                while not judge.asked:
                    await asyncio.sleep(0.02)
            await visitor.switch("memory", on=False)
            await visitor.told("you haven't allowed memory")
            assert await running.rows(KEPT) == []
            (said,) = await running.rows("select consents->>'memory' as memory from feedback")
            assert said["memory"] == "false"


async def test_what_is_withdrawn_while_rewrites_are_made_leads_to_no_offer(
    running: Road, visitor: Visitor, model: ModelServer
) -> None:
    await visitor.allow("memory")
    await dislike(visitor)
    model.always(faults.Slow(first_token_s=2.0))
    await visitor.say(LINE)
    await visitor.told("I'll keep this in mind")
    await visitor.switch("memory", on=False)
    await settled(running)
    assert await running.rows("select 1 from rewrites") == []
    assert [line["state"] for line in await running.rows(KEPT)] == ["undone"]


async def test_a_new_question_pressed_twice_is_answered_once(running: Road, visitor: Visitor) -> None:
    await visitor.allow("memory")
    await dislike(visitor)
    await visitor.say(LINE)
    told = await visitor.offered("I'll keep this in mind", "new question")
    again = button(told, "new question")
    await asyncio.gather(*(visitor.press(again, told["message_id"]) for _ in range(2)))
    await visitor.told(f"You said: {LINE}")
    assert await running.rows("select 1 from memory_lines where state = 'active'") == []
    await settled(running)
    assert len(await running.rows("select 1 from turns where user_text = :line", line=LINE)) == 1


async def test_a_new_question_is_answered_though_its_line_was_undone_before(running: Road, visitor: Visitor) -> None:
    await visitor.allow("memory")
    await dislike(visitor)
    await visitor.say(LINE)
    told = await visitor.offered("I'll keep this in mind", "new question")
    await visitor.command("undo")
    await visitor.told(f"“{LINE}”")
    await visitor.press(button(told, "new question"), told["message_id"])
    await visitor.told(f"You said: {LINE}")
    assert await running.rows("select 1 from memory_lines where state = 'active'") == []


@pytest.mark.parametrize(("label", "sentence"), [("Style", "Tell me in words"), ("Just this time", "just this time.")])
async def test_a_reason_without_words_pressed_twice_is_taken_once(
    running: Road, visitor: Visitor, label: str, sentence: str
) -> None:
    await dislike(visitor)
    asked = await visitor.offered("What was wrong?", label)
    reason = button(asked, label)
    await asyncio.gather(*(visitor.press(reason, asked["message_id"]) for _ in range(2)))
    await visitor.told(sentence)
    await settled(running)
    assert len([i for i in await visitor.messages() if sentence in i.get("plain", "")]) == 1
    assert len(await running.rows("select 1 from feedback")) == 1


async def test_a_reason_chosen_again_after_a_new_dislike_counts_again(running: Road, visitor: Visitor) -> None:
    turn = await chosen(visitor, "Style")
    for choice, value in (("0", 0), ("d", -1)):
        await visitor.press(f"v:{turn}:{choice}")
        await vote_is(running, value)
    asked = await visitor.offered("What was wrong?", "Style")
    await visitor.press(button(asked, "Style"), asked["message_id"])
    await visitor.wait(lambda items: len([i for i in items if "Tell me in words" in i.get("plain", "")]) == 2)
    assert len(await running.rows("select 1 from feedback where kind = 'reason'")) == 2


async def test_a_thumb_where_there_is_no_reply_is_not_answered_by_silence(
    running: Road, visitor: Visitor, model: ModelServer
) -> None:
    model.next(faults.Refuse(500))
    await visitor.say("anyone?")
    await visitor.told("can't reach the model")
    await visitor.say("👎")
    await visitor.told("There is no reply of mine there to rate")
    assert await running.rows("select 1 from votes") == []


async def test_an_example_for_what_was_undone_is_not_answered_by_silence(running: Road, visitor: Visitor) -> None:
    await visitor.allow("memory")
    await dislike(visitor)
    await visitor.say(LINE)
    offered = await visitor.offered("Did you mean like this?", "Like this")
    await visitor.command("undo")
    await visitor.told("I don't use this any more")
    await visitor.press(button(offered, "Like this"), offered["message_id"])
    await visitor.told("I don't keep that in mind any more")
    assert await running.rows("select 1 from examples") == []
