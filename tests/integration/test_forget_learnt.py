"""Forgetting what was learnt: its words are nowhere afterwards, the chat is. What was refused is not admitted by forgetting."""

from pathlib import Path

import pytest
from sqlalchemy import text

from app.services.forget import forget_person
from app.store import Store, admission
from tests.fakes.model import ModelServer
from tests.integration.test_forget import everywhere
from tests.integration.test_memory import dislike
from tests.integration.test_own_choice import settled
from tests.support.lessons import pupil
from tests.support.road import Road, Visitor, button

CANARY = "zebra-canary-7731"
LINE = f"End every answer with '{CANARY}'"
LONG = f"Tea is {CANARY}. " + "It is a drink. " * 40


async def taught(running: Road, visitor: Visitor) -> None:
    """Leave the canary wherever what is learnt goes: line, rewrite, example, prompt, notices, export, raw updates."""
    await visitor.allow("memory", "personal_training")
    await dislike(visitor)
    await visitor.say(LINE)
    offered = await visitor.offered("Did you mean like this?", "Like this")
    await visitor.press(button(offered, "Like this"), offered["message_id"])
    await visitor.told("This is now the example")
    await visitor.ask("And coffee?")
    await visitor.command("memory")
    await visitor.told("What I remember about you")
    await visitor.command("export")
    await settled(running)


async def test_a_planted_string_is_nowhere_after_forgetting_what_was_learnt(
    running: Road, visitor: Visitor, model: ModelServer
) -> None:
    model.reply_with(
        lambda call: LONG if call.last_user == LINE else f"You said: {call.last_user.partition(chr(10))[0]}"
    )
    await taught(running, visitor)
    held = {"examples", "feedback", "inbox", "memory_lines", "outbox", "rewrites"}
    assert set(await everywhere(running.store, CANARY)) >= held
    (told,) = await running.rows("select prompt_token_ids from turns where user_text = 'And coffee?'")
    assert told["prompt_token_ids"]
    receipts = "select 1 from outbox where content->>'text' like '%/receipt%'"
    for scope in ("learnt", "learnt"):
        await visitor.press(f"f::{scope}")
        await settled(running)
    assert await everywhere(running.store, CANARY) == []
    turns = await running.rows(
        "select user_text, prompt_token_ids, response_logprobs, learnable from turns order by number"
    )
    assert [t["user_text"] for t in turns] == ["What is tea?", "And coffee?"]
    assert turns[0]["prompt_token_ids"]  # nothing learnt was in it
    assert (turns[1]["prompt_token_ids"], turns[1]["response_logprobs"], turns[1]["learnable"]) == (None, None, False)
    assert len(await running.rows(receipts)) == 2
    assert "What was wrong?" in str(await visitor.messages())


REFUSALS = (
    "excluded = true",
    "quarantined = true",
    "review_state = 'rejected'",
    "review_state = 'quarantined'",
    """flags = '{"forwarded": true}'""",
)


@pytest.mark.parametrize("refusal", [*REFUSALS, None])
async def test_a_refused_line_stays_refused_when_its_feedback_goes_with_the_chat(
    store: Store, tmp_path: Path, refusal: str | None
) -> None:
    who = await pupil(store)
    if refusal:
        async with store.begin() as tx:
            await tx.execute(text(f"update feedback set {refusal}"))  # noqa: S608 - a constant above
            assert await admission.lines(tx, who.person_id) == []
    await forget_person(store, tmp_path, who.person_id, "chat", "person")
    async with store.begin() as tx:
        assert await tx.scalar(text("select count(*) from feedback")) == 0
        assert await tx.scalar(text("select count(*) from memory_lines where state = 'active'")) == 1
        admitted = await admission.lines(tx, who.person_id)
    assert len(admitted) == (0 if refusal else 1)
