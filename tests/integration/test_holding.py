"""Held parts against whoever writes in the very moment in which they are held."""

import asyncio
from uuid import UUID

import pytest
from sqlalchemy import text

from app.domain.event import ChatAddress
from app.domain.outgoing import Content, Template
from app.store import StatementPool, Store, entering, holding, inbox, outbox, people, reports
from app.store.outbox import Due

HERE = ChatAddress("whatsapp:+15550200001")


class Place:
    """A chat with its person, in which things are said and sent."""

    def __init__(self, store: Store, bot: UUID, person: UUID, chat: UUID, update: int) -> None:
        self.store, self.bot, self.person, self.chat, self.update = store, bot, person, chat, update

    async def claimed(self, *contents: Content) -> Due:
        """Return the first of some parts, being sent."""
        async with self.store.begin() as tx:
            for content in contents:
                await outbox.put(tx, self.chat, content)
            (due,) = await outbox.claim(tx, "host:1", 10, [self.bot])
        return due

    async def write(self) -> None:
        """Let the person write."""
        async with self.store.begin() as tx:
            await entering.enter(tx, self.bot, HERE, self.person, self.update)

    async def hold(self, part: Due) -> bool:
        """Hold a part."""
        async with self.store.begin() as tx:
            return await holding.hold(tx, part, "twilio_63016")

    async def states(self) -> list[str]:
        """Return the states of all parts, in order."""
        async with self.store.begin() as tx:
            return list(await tx.scalars(text("select state from outbox order by id")))


@pytest.fixture
async def place(store: Store, pool: StatementPool) -> Place:
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "whatsapp", "1")
        person = await people.add_person(tx, language="en")
        chat = await people.chat_of(tx, bot, HERE, person)
    accepted = await inbox.accept(pool, bot, inbox.Stored((b"1",), "lane", b"{}"))
    assert accepted.new
    async with store.begin() as tx:
        update = await tx.scalar(text("select id from inbox"))
    made = Place(store, bot, person, chat.id, update)
    await made.write()
    await store_execute(store, "update chats set heard_at = now() - interval '30 hours'")
    return made


async def store_execute(store: Store, statement: str) -> None:
    async with store.begin() as tx:
        await tx.execute(text(statement))


async def test_what_is_due_behind_is_held_too_and_a_template_is_not(place: Place) -> None:
    part = await place.claimed(Content("one"), Content("two"), Content("news", template=Template("HX1")))
    assert part.silent_s is not None
    assert part.silent_s > 29 * 3600
    assert await place.hold(part)
    assert await place.states() == ["held", "held", "due"]
    (template,) = await _claimed(place)
    assert template.content.template == Template("HX1")
    assert template.behind_held


async def test_who_wrote_meanwhile_does_not_wait(place: Place) -> None:
    part = await place.claimed(Content("one"), Content("two"))
    await store_execute(place.store, "update inbox set received_at = now()")
    await place.write()
    assert not await place.hold(part)
    assert await place.states() == ["due", "due"]


async def test_holding_waits_for_whoever_writes_just_now(place: Place) -> None:
    """Their word is not committed yet: what is held in that moment would wait for one more."""
    part = await place.claimed(Content("one"))
    await store_execute(place.store, "update inbox set received_at = now()")
    async with place.store.begin() as tx:
        await entering.enter(tx, place.bot, HERE, place.person, place.update)
        holding_it = asyncio.create_task(place.hold(part))
        await asyncio.sleep(0.2)
        assert not holding_it.done()
    assert not await holding_it
    assert await place.states() == ["due"]


async def test_an_older_word_does_not_move_the_moment_back(place: Place) -> None:
    await store_execute(place.store, "update chats set heard_at = now()")
    await store_execute(place.store, "update inbox set received_at = now() - interval '5 days'")
    await place.write()
    async with place.store.begin() as tx:
        assert await tx.scalar(text("select heard_at > now() - interval '1 minute' from chats"))


async def test_a_content_that_changes_while_it_waits_goes_on_waiting(place: Place) -> None:
    part = await place.claimed(Content("one"))
    await place.hold(part)
    async with place.store.begin() as tx:
        await outbox.change(tx, part.id, Content("another"))
    assert await place.states() == ["held"]
    await place.write()
    (due,) = await _claimed(place)
    assert due.content.text == "another"


async def test_what_arrived_is_not_taken_back(place: Place) -> None:
    part = await place.claimed(Content("one"))
    async with place.store.begin() as tx:
        await outbox.sent(tx, part, "SM1")
        assert await reports.delivered(tx, place.bot, HERE.external_id, "SM1", "delivered")
        assert await holding.take_back(tx, place.bot, "SM1", "twilio_63016") == place.chat
        assert await holding.take_back(tx, place.bot, "SM2", "twilio_63016") is None
    assert await place.states() == ["sent"]


async def _claimed(place: Place) -> list[Due]:
    async with place.store.begin() as tx:
        return await outbox.claim(tx, "host:1", 10, [place.bot])
