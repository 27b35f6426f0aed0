"""What an update leads to is read in one statement: its chat, the bot's newest identity, its person's consents."""

from dataclasses import replace
from uuid import UUID

import pytest
from sqlalchemy import text

from app.domain.consent import Purpose
from app.domain.event import ChatAddress
from app.domain.person import Session
from app.store import StatementPool, Store, Tx, entering, inbox, people, sessions

HERE, GROUP = ChatAddress("71"), ChatAddress("-5", kind="group")


@pytest.fixture
async def arrived(store: Store, pool: StatementPool) -> tuple[UUID, UUID, int]:
    """Somebody new has sent an update: bot, person and the update's number."""
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
        person = await people.add_person(tx, language="en")
    accepted = await inbox.accept(pool, bot, inbox.Stored((b"1",), "71:", b"{}"), "host:1")
    assert accepted.claimed
    return bot, person, accepted.claimed.id


async def answered(tx: Tx, person: UUID, purpose: Purpose, event: str) -> None:
    await people.record_consent(
        tx, person, purpose, event, notice="notice", language="en", channel="telegram", evidence="test"
    )


async def test_a_chat_comes_with_the_newest_identity_of_its_bot(store: Store, arrived: tuple[UUID, UUID, int]) -> None:
    bot, person, update = arrived
    async with store.begin() as tx:
        nameless = await entering.enter(tx, bot, HERE, person, update)
        for name in ("Old", "New"):
            await people.add_identity(tx, bot, name=name, system_prompt=name, privacy_notice="", created_by="test")
        found = await entering.enter(tx, bot, HERE, person, update)
        assert found.identity == await people.identity(tx, bot)
    assert nameless.identity is None
    assert found.identity
    assert (found.chat, found.chat.bot_id, found.chat.person_id) == (nameless.chat, bot, person)
    assert (found.identity.name, found.identity.version) == ("New", 2)


async def test_the_last_answer_to_each_purpose_counts(store: Store, arrived: tuple[UUID, UUID, int]) -> None:
    bot, person, update = arrived
    async with store.begin() as tx:
        nothing = await entering.enter(tx, bot, HERE, person, update)
        for purpose, event in (
            (Purpose.MEMORY, "given"),
            (Purpose.PERSONAL_TRAINING, "given"),
            (Purpose.PERSONAL_TRAINING, "withdrawn"),
            (Purpose.HUMAN_REVIEW, "refused"),
        ):
            await answered(tx, person, purpose, event)
        found = await entering.enter(tx, bot, HERE, person, update)
        assert found.consents == await people.consents(tx, person)
    assert (nothing.consents.allowed, nothing.consents.answered) == (frozenset(), frozenset())
    assert found.consents.allowed == {Purpose.MEMORY}
    assert found.consents.answered == {Purpose.MEMORY, Purpose.PERSONAL_TRAINING, Purpose.HUMAN_REVIEW}


async def test_in_a_group_nobody_allows_anything(store: Store, arrived: tuple[UUID, UUID, int]) -> None:
    bot, person, update = arrived
    async with store.begin() as tx:
        await answered(tx, person, Purpose.MEMORY, "given")
        found = await entering.enter(tx, bot, GROUP, person, update)
    assert (found.chat.person_id, found.consents.allowed) == (None, frozenset())


async def test_an_update_without_its_body_is_known_by_it(store: Store, arrived: tuple[UUID, UUID, int]) -> None:
    bot, person, update = arrived
    async with store.begin() as tx:
        before = await entering.enter(tx, bot, HERE, person, update)
        await tx.execute(text("update inbox set body = null"))
        after = await entering.enter(tx, bot, HERE, person, update)
        unknown = await entering.enter(tx, bot, HERE, person, update + 1)
    assert (before.has_body, after.has_body, unknown.has_body) == (True, False, False)


async def test_a_session_that_was_added_is_the_one_that_is_read(store: Store, arrived: tuple[UUID, UUID, int]) -> None:
    bot, person, update = arrived

    async def current() -> Session:
        return (await sessions.current(tx, found.chat, person, sessions.Limits(30, 24)))[0]

    async with store.begin() as tx:
        found = await entering.enter(tx, bot, HERE, person, update)
        for number in (1, 2, 3):
            new = await current()
            await sessions.add(tx, new)
            again = await current()
            assert (new.number, new.fresh, new.person_id) == (number, True, person)
            assert again == replace(new, fresh=False)
            await sessions.end(tx, found.chat.id)
