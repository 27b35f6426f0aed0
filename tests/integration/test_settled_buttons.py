"""What is settled offers no buttons any more, and what takes long shows that it is under way."""

import asyncio

from tests.fakes.model import ModelServer, faults
from tests.integration.test_memory import LINE, dislike
from tests.integration.test_own_choice import settled
from tests.support.road import Item, Road, Visitor, button, replies


def _without_buttons(words: str, items: list[Item]) -> bool:
    return any(words in i.get("plain", "") and i["buttons"] == [] for i in items)


async def _kept(visitor: Visitor) -> Item:
    await visitor.allow("memory")
    await dislike(visitor)
    await visitor.say(LINE)
    return await visitor.offered("I'll keep this in mind", "Undo")


async def test_a_line_taken_back_in_the_panel_offers_no_undo_in_the_conversation(
    running: Road, visitor: Visitor
) -> None:
    kept = await _kept(visitor)
    await visitor.press(button(kept, "Undo"))  # as the panel does it: without naming a message
    await visitor.wait(lambda items: _without_buttons("I'll keep this in mind", items))
    assert [m["state"] for m in await running.rows("select state from memory_lines")] == ["undone"]


async def test_a_new_question_is_told_once(running: Road, visitor: Visitor) -> None:
    kept = await _kept(visitor)
    await visitor.press(button(kept, "new question"), kept["message_id"])
    await visitor.wait(lambda items: _without_buttons("I'll keep this in mind", items))
    await visitor.told(f"You said: {LINE}")
    assert [m["state"] for m in await running.rows("select state from memory_lines")] == ["undone"]
    assert len(await running.rows("select 1 from outbox where content->>'text' like 'I''ll keep this in mind%'")) == 1


async def test_a_chosen_reason_cannot_be_chosen_again(running: Road, visitor: Visitor) -> None:
    await dislike(visitor)
    asked = await visitor.offered("What was wrong?", "Just this time")
    await visitor.press(button(asked, "Just this time"), asked["message_id"])
    await visitor.wait(lambda items: _without_buttons("What was wrong?", items))
    await visitor.told("just this time")
    (chosen,) = await running.rows("select kind, class, classified_by from feedback")
    assert chosen == {"kind": "reason", "class": "one_off", "classified_by": "person"}


async def test_taps_while_one_more_reply_is_written_bring_no_further_one(
    running: Road, visitor: Visitor, model: ModelServer
) -> None:
    told = await visitor.ask("What is a lighthouse?")
    model.always(faults.Slow(first_token_s=0.5))
    for _ in range(5):
        await visitor.press(f"t:{told['turn']['id']}", told["message_id"])
    fresh = replies(await visitor.wait(lambda items: len(replies(items)) > 1))[-1]
    await settled(running)
    assert len(await running.rows("select 1 from turns")) == 2
    await visitor.press(f"t:{fresh['turn']['id']}", fresh["message_id"])
    await visitor.wait(lambda items: len(replies(items)) == 3)
    await settled(running)
    assert len(await running.rows("select 1 from turns")) == 3


async def _working(visitor: Visitor) -> bool:
    async with visitor.session.get(f"{visitor.base}/chat/api/messages") as answer:
        return bool((await answer.json())["working"])


async def test_a_correction_that_is_worked_on_shows(visitor: Visitor, model: ModelServer) -> None:
    await visitor.allow("memory")
    await dislike(visitor)
    assert not await _working(visitor)
    model.always(faults.Slow(first_token_s=2.5))
    await visitor.say(LINE)
    await visitor.told("I'll keep this in mind")
    async with asyncio.timeout(10):
        while not await _working(visitor):
            await asyncio.sleep(0.05)
        while await _working(visitor):
            await asyncio.sleep(0.05)
