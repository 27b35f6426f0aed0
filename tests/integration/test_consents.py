"""The consent log is read by one rule: the latest answer counts, of two at the same instant the refusal, whoever asks."""

from uuid import UUID

import pytest
from sqlalchemy import select, text

from app.domain.consent import ConsentEvent, Consents, Purpose
from app.domain.event import ChatAddress
from app.domain.turn import Origin
from app.store import Store, Tx, admission, people, sessions, turns
from app.store.panel import people as panel
from app.store.panel.reading import allows_now
from app.store.tables.people import people as table
from tests.support.webchat import MADE

EVERY = tuple(Purpose)


async def answer(tx: Tx, person: UUID, events: list[str]) -> None:
    """Give every purpose these answers, in this order and all at one instant."""
    for event in events:
        for purpose in EVERY:
            await people.record_consent(
                tx, person, purpose, event, notice="", language="en", channel="web", evidence="test"
            )
    await tx.execute(text("update consent_events set at = '2026-01-01'"))


async def somebody_who_spoke(tx: Tx) -> UUID:
    """Return a person with one turn in a conversation."""
    bot = await people.ensure_bot(tx, "web", "web")
    person = await people.add_person(tx, language="en")
    chat = await people.chat_of(tx, bot, ChatAddress("1"), person)
    session, _ = await sessions.current(tx, chat, person, sessions.Limits(30, 24))
    await sessions.add(tx, session)
    await turns.begin(tx, turns.NewTurn(None, session.id, chat.id, person, "hi", None, Origin()), MADE)
    return person


@pytest.mark.parametrize("grants", ["given", "renewed"])
@pytest.mark.parametrize("refuses", ["withdrawn", "refused"])
@pytest.mark.parametrize("last", ["grants", "refuses"])
async def test_of_two_answers_at_one_instant_the_refusal_counts_for_everybody(
    store: Store, grants: str, refuses: str, last: str
) -> None:
    async with store.begin() as tx:
        person = await somebody_who_spoke(tx)
        await tx.execute(text("update sessions set ended_at = now()"))
        await answer(tx, person, [refuses, grants] if last == "grants" else [grants, refuses])
    async with store.begin() as tx:
        assert (await people.consents(tx, person)).allowed == frozenset()
        assert not await admission.allowed(tx, person)
        assert (await panel.person(tx, person)).allowed == []
        assert not await tx.scalar(select(allows_now(table.c.id, Purpose.HUMAN_REVIEW)))
        assert await turns.forget_texts_of_ended_sessions(tx, 30) == 1


@pytest.mark.parametrize(
    ("events", "dropped"),
    [(("given", "withdrawn"), 0), (("refused", "given"), 1)],
    ids=["memory was on when it ended, off now", "memory was off when it ended, on now"],
)
async def test_texts_stay_or_go_by_what_was_allowed_when_their_conversation_ended(
    store: Store, events: tuple[str, str], dropped: int
) -> None:
    async with store.begin() as tx:
        person = await somebody_who_spoke(tx)
        for event, at in zip(events, ("2026-01-01", "2026-01-03"), strict=True):
            await people.record_consent(
                tx, person, Purpose.MEMORY, event, notice="", language="en", channel="web", evidence="test"
            )
            await tx.execute(text(f"update consent_events set at = '{at}' where event = '{event}'"))  # noqa: S608
        await tx.execute(text("update sessions set ended_at = '2026-01-02'"))
        assert await turns.forget_texts_of_ended_sessions(tx, 30) == dropped


async def test_a_later_grant_counts_for_everybody(store: Store) -> None:
    async with store.begin() as tx:
        person = await people.add_person(tx, language="en")
        await answer(tx, person, ["refused"])
        for purpose in EVERY:
            await people.record_consent(
                tx, person, purpose, "given", notice="", language="en", channel="web", evidence="test"
            )
    async with store.begin() as tx:
        assert (await people.consents(tx, person)).allowed == set(EVERY)
        assert await admission.allowed(tx, person)
        assert list((await panel.person(tx, person)).allowed) == sorted(p.value for p in EVERY)
        assert await tx.scalar(select(allows_now(table.c.id, Purpose.HUMAN_REVIEW)))


@pytest.mark.parametrize("events", [["given", "withdrawn"], ["withdrawn", "given"]])
def test_the_rule_of_the_domain_is_the_same(events: list[str]) -> None:
    from app.clock import now

    moment = now()
    log = [ConsentEvent(Purpose.MEMORY, event, moment) for event in events]
    assert not Consents.of(log).allows(Purpose.MEMORY)
