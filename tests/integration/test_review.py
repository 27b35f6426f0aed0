"""What a reviewer refuses never trains; what a person took back stays out whatever a reviewer says."""

from app.gateway.learning import Acts
from app.store import Store
from tests.support.road import Road, Visitor, button, replies


async def _correction(visitor: Visitor) -> str:
    await visitor.allow("memory", "human_review")
    await visitor.ask("A recipe, please")
    reply = replies(await visitor.messages())[-1]
    await visitor.say("I am allergic to nuts", reply_to=reply["message_id"])
    told = await visitor.told("I'll keep this in mind")
    return button(told, "Undo")


async def _reviewed(running: Road, store: Store, state: str) -> bool:
    (row,) = await running.rows("select id from feedback")
    async with store.begin() as tx:
        await Acts(store, running.settings).feedback_reviewed(tx, row["id"], state)
    (row,) = await running.rows("select excluded from feedback")
    return bool(row["excluded"])


async def test_a_refusal_excludes_and_can_be_taken_back(running: Road, visitor: Visitor, store: Store) -> None:
    await _correction(visitor)
    assert await _reviewed(running, store, "quarantined") is True
    assert await _reviewed(running, store, "rejected") is True
    assert await _reviewed(running, store, "new") is False
    assert await _reviewed(running, store, "approved") is False


async def test_approval_never_readmits_what_its_person_took_back(running: Road, visitor: Visitor, store: Store) -> None:
    undo = await _correction(visitor)
    await visitor.press(undo)
    await visitor.told("I don't use this any more")
    assert await _reviewed(running, store, "rejected") is True
    assert await _reviewed(running, store, "approved") is True
    assert [row["review_state"] for row in await running.rows("select review_state from feedback")] == ["new"]
