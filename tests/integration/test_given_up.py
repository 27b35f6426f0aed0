"""What fails again and again ends with an honest word: no button is answered by silence, no reply stays a placeholder."""

import asyncio

import pytest

from tests.integration.test_memory import LINE, dislike
from tests.support.road import Road, Visitor, button

PAUSE = "insert into switches (name, paused) values ('intake', true) on conflict (name) do update set paused = true returning name"
RESUME = "update switches set paused = false returning name"
# As after four tries that an unforeseen error ended.
TRIED = "update inbox set attempts = 4 where state = 'stored' returning id"
SORRY = "Something went wrong on my side with what you pressed"


async def hopeless(running: Road, visitor: Visitor, data: str, message_id: str | None = None) -> None:
    """Press a button whose handling failed four times."""
    await running.rows(PAUSE)
    await asyncio.sleep(0.6)
    await visitor.press(data, message_id)
    assert await running.rows(TRIED)
    await running.rows(RESUME)


async def test_a_reply_that_was_begun_again_says_so_in_place_of_its_placeholder(
    running: Road, visitor: Visitor
) -> None:
    turn = (await visitor.ask("What is tea?"))["turn"]["id"]
    await running.rows(PAUSE)
    await asyncio.sleep(0.6)
    await visitor.press(f"t:{turn}")
    (update,) = await running.rows(TRIED)
    # As a try left it that was cut off while it wrote.
    (begun,) = await running.rows(
        """insert into turns (inbox_id, session_id, chat_id, person_id, user_text, state, sibling_of)
           select :inbox, session_id, chat_id, person_id, user_text, 'generating', id from turns returning id, chat_id""",
        inbox=update["id"],
    )
    await running.rows(
        """insert into outbox (chat_id, turn_id, kind, content) values (:chat, :turn, 'reply', '{"text": "…"}')
           returning id""",
        chat=begun["chat_id"],
        turn=begun["id"],
    )
    await running.rows(RESUME)
    told = await visitor.told(SORRY)
    assert told["turn"]["state"] == "failed"
    assert not [i for i in await visitor.messages() if i.get("plain") == "…"]


@pytest.mark.parametrize("label", ["Style", "Just this time"])
async def test_a_chosen_reason_is_not_answered_by_silence(running: Road, visitor: Visitor, label: str) -> None:
    await dislike(visitor)
    asked = await visitor.offered("What was wrong?", label)
    await hopeless(running, visitor, button(asked, label), asked["message_id"])
    await visitor.told(SORRY)
    assert await running.rows("select 1 from inbox where state = 'dead' and error = 'gave_up'")


async def test_a_new_question_is_not_answered_by_silence(running: Road, visitor: Visitor) -> None:
    await visitor.allow("memory")
    await dislike(visitor)
    await visitor.say(LINE)
    told = await visitor.offered("I'll keep this in mind", "new question")
    await hopeless(running, visitor, button(told, "new question"), told["message_id"])
    await visitor.told(SORRY)
    assert await running.rows("select 1 from inbox where state = 'dead' and error = 'gave_up'")
