"""The end of a turn in one statement: each step only where the one before was, the first part claimed where its chat is quiet."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

import pytest
from sqlalchemy import text

from app.domain.event import ChatAddress
from app.domain.outgoing import Content
from app.domain.turn import Origin, Outcome
from app.store import StatementPool, Store, ending, inbox, outbox, people, sessions, turns
from tests.support.road import Item
from tests.support.webchat import MADE

OWNER = "host:1"
REPLY = Outcome("done", "the reply", prompt_token_ids=(1, 2, 3), response_token_ids=(4, 5), duration_ms=7.0)


@pytest.fixture
async def whole(store: Store) -> ending.Ending:
    """The end of a turn that answers an update which OWNER holds."""
    pool = StatementPool(store.engine.url.render_as_string(hide_password=False), size=1)
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
        person = await people.add_person(tx, language="en")
        chat = await people.chat_of(tx, bot, ChatAddress("71"), person)
        session, _ = await sessions.current(tx, chat, person, sessions.Limits(30, 24))
        await sessions.add(tx, session)
    accepted = await inbox.accept(pool, bot, inbox.Stored((b"1",), "71", b"{}"), OWNER)
    await pool.close()
    assert accepted.claimed
    new = turns.NewTurn(accepted.id, session.id, chat.id, person, "hi", None, Origin())
    async with store.begin() as tx:
        turn = await turns.begin(tx, new, MADE)
    return ending.Ending(
        turn.id, chat.id, person, REPLY, (Content("one"), Content("two")), accepted.claimed, OWNER, OWNER
    )


async def end(store: Store, whole: ending.Ending) -> ending.Ended:
    """End it."""
    async with store.single() as tx:
        return await ending.end(tx, whole)


async def rows(store: Store, query: str) -> Sequence[Item]:
    """Return what a query finds."""
    async with store.begin() as tx:
        return [dict(row) for row in (await tx.execute(text(query))).mappings()]


async def shown(store: Store) -> Sequence[tuple[str, str]]:
    """Return text and state of the parts."""
    found = await rows(store, "select content ->> 'text' as words, state from outbox order by id")
    return [(str(row["words"]), str(row["state"])) for row in found]


async def test_everything_of_an_end_is_stored_and_the_first_part_is_the_senders(
    store: Store, whole: ending.Ending
) -> None:
    ended = await end(store, whole)
    assert (ended.lost, ended.first, ended.more) == (False, True, False)
    assert ended.due
    assert (ended.due.content.text, ended.due.attempts, ended.due.provider_message_id) == ("one", 1, None)
    assert ended.due.address == ChatAddress("71")
    assert await shown(store) == [("one", "sending"), ("two", "due")]
    (turn,) = await rows(store, "select * from turns")
    assert (turn["state"], turn["reply_text"], turn["response_token_ids"]) == ("done", "the reply", [4, 5])
    (used,) = await rows(store, "select messages, tokens from usage")
    assert used == {"messages": 1, "tokens": 5}
    (update,) = await rows(store, "select state, finished_at is not null as finished from inbox")
    assert update == {"state": "done", "finished": True}
    async with store.begin() as tx:
        assert (await outbox.sent(tx, ended.due, "17")).followed


async def test_an_update_that_somebody_else_holds_ends_nothing(store: Store, whole: ending.Ending) -> None:
    ended = await end(store, replace(whole, held_by="host:2"))
    assert (ended.lost, ended.first, ended.due) == (True, False, None)
    assert await shown(store) == []
    assert await rows(store, "select 1 from usage") == []
    (turn,) = await rows(store, "select state from turns")
    assert turn["state"] == "generating"


async def test_a_turn_that_had_ended_shows_nothing_and_its_update_ends(store: Store, whole: ending.Ending) -> None:
    async with store.begin() as tx:
        await turns.finish(tx, whole.turn_id, Outcome("stopped", "before"))
    ended = await end(store, whole)
    assert (ended.lost, ended.first, ended.due) == (False, False, None)
    assert await shown(store) == []
    (update,) = await rows(store, "select state from inbox")
    assert update["state"] == "done"


async def test_an_update_that_had_ended_before_still_ends_its_turn(store: Store, whole: ending.Ending) -> None:
    async with store.begin() as tx:
        await inbox.finish(tx, whole.update, OWNER, "done")
    ended = await end(store, replace(whole, held_by=None))
    assert (ended.lost, ended.first) == (False, True)
    assert await shown(store) == [("one", "sending"), ("two", "due")]


async def test_who_asks_to_stop_in_the_moment_of_the_end_takes_nothing_of_it(
    store: Store, whole: ending.Ending
) -> None:
    """PostgreSQL looks at a row once more that changed while it was waited for: no step may be lost or done twice by that."""
    async with store.begin() as tx:
        assert await turns.request_stop(tx, whole.chat_id) == whole.turn_id
        ending_now = asyncio.create_task(end(store, whole))
        await _waits(store)
    ended = await ending_now
    assert (ended.lost, ended.first) == (False, True)
    assert ended.due
    assert await shown(store) == [("one", "sending"), ("two", "due")]
    (update,) = await rows(store, "select state from inbox")
    assert update["state"] == "done"


async def _waits(store: Store) -> None:
    """Wait until somebody waits for a row."""
    waiting = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    async with asyncio.timeout(10):
        while not await _others(store, waiting):
            await asyncio.sleep(0.02)


async def _others(store: Store, query: str) -> bool:
    async with store.engine.connect() as connection:
        return (await connection.execute(text(query))).first() is not None


@pytest.mark.parametrize("state", ["due", "sending"])
async def test_a_part_waits_behind_what_is_on_its_way(store: Store, whole: ending.Ending, state: str) -> None:
    async with store.begin() as tx:
        notice = await outbox.put(tx, whole.chat_id, Content("a notice"))
        await tx.execute(text("update outbox set state = :state where id = :id"), {"state": state, "id": notice})
    ended = await end(store, whole)
    assert ended.first
    assert ended.due is None
    assert await shown(store) == [("a notice", state), ("one", "due"), ("two", "due")]


async def test_nobody_sends_at_once_where_nobody_is_named(store: Store, whole: ending.Ending) -> None:
    ended = await end(store, replace(whole, sender=None))
    assert ended.due is None
    assert await shown(store) == [("one", "due"), ("two", "due")]


async def test_a_placeholder_on_its_way_stays_with_whoever_sends_it(store: Store, whole: ending.Ending) -> None:
    bot = whole.update.bot_id
    async with store.begin() as tx:
        assert await outbox.put_placeholder(tx, whole.turn_id, Content("…"))
        (placeholder,) = await outbox.claim(tx, OWNER, 10, [bot])
    ended = await end(store, whole)
    assert ended.due is None
    async with store.begin() as tx:
        assert await outbox.sent(tx, placeholder, "17") == outbox.Receipt(recorded=True, followed=True)
        (again,) = await outbox.claim(tx, OWNER, 10, [bot])
    assert (again.content.text, again.provider_message_id) == ("one", "17")


async def test_a_placeholder_that_was_sent_is_edited_at_once(store: Store, whole: ending.Ending) -> None:
    async with store.begin() as tx:
        await outbox.put_placeholder(tx, whole.turn_id, Content("…"))
        (placeholder,) = await outbox.claim(tx, OWNER, 10, [whole.update.bot_id])
        await outbox.sent(tx, placeholder, "17")
    ended = await end(store, whole)
    assert ended.due
    assert (ended.due.content.text, ended.due.provider_message_id, ended.due.version) == ("one", "17", 2)


async def test_no_placeholder_comes_after_the_reply(store: Store, whole: ending.Ending) -> None:
    await end(store, whole)
    async with store.begin() as tx:
        assert not await outbox.put_placeholder(tx, whole.turn_id, Content("…"))
    assert await shown(store) == [("one", "sending"), ("two", "due")]


async def test_what_was_held_stays_held(store: Store, whole: ending.Ending) -> None:
    async with store.begin() as tx:
        await outbox.put_placeholder(tx, whole.turn_id, Content("…"))
        await tx.execute(text("update outbox set state = 'held'"))
    ended = await end(store, whole)
    assert ended.due is None
    assert await shown(store) == [("one", "held"), ("two", "due")]


async def test_whether_to_ask_is_told_with_this_reply_counted_in(store: Store, whole: ending.Ending) -> None:
    ended = await end(store, replace(whole, look_back=ending.LookBack(lately=5, idle_minutes=30)))
    assert ended.signals
    assert (ended.signals.since_feedback, ended.signals.since_asked, ended.signals.asked_today) == (1, None, 0)


async def test_whether_to_ask_is_not_told_where_nobody_may(store: Store, whole: ending.Ending) -> None:
    assert (await end(store, whole)).signals is None


async def test_what_waits_behind_is_told(store: Store, whole: ending.Ending) -> None:
    pool = StatementPool(store.engine.url.render_as_string(hide_password=False), size=1)
    await inbox.accept(pool, whole.update.bot_id, inbox.Stored((b"2",), "71", b"{}"), OWNER)
    await pool.close()
    assert (await end(store, whole)).more


async def test_a_claim_that_nobody_learnt_of_is_given_back(store: Store, whole: ending.Ending) -> None:
    ended = await end(store, whole)
    assert ended.due
    async with store.begin() as tx:
        bots = [whole.update.bot_id]
        assert await outbox.give_back(tx, OWNER, bots, [ended.due.id]) == 0
        assert await outbox.give_back(tx, "host:2", bots, []) == 0
        assert await outbox.give_back(tx, OWNER, [uuid4()], []) == 0
        assert await outbox.give_back(tx, OWNER, bots, []) == 1
        (again,) = await outbox.claim(tx, "host:2", 10, [whole.update.bot_id])
    assert (again.content.text, again.attempts) == ("one", 1)
    async with store.begin() as tx:
        assert not (await outbox.sent(tx, ended.due, "17")).recorded
