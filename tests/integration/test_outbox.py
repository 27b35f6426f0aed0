"""Message parts on their way: a content that changes while its part is being sent never makes a second message."""

import asyncio

import pytest
from sqlalchemy import text

from app.domain.event import ChatAddress
from app.domain.outgoing import Content
from app.domain.turn import Origin
from app.errors import ChatMovedError
from app.services.deliver import Deliverer
from app.store import Store, outbox, people, sessions, turns
from app.store.outbox import Due

OWNER = "host:1"


@pytest.fixture
async def part(store: Store) -> Due:
    """The placeholder of a turn, being sent."""
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
        chat = await people.chat_of(tx, bot, ChatAddress("71"), None)
        session = await sessions.current(tx, chat, None, idle_minutes=30, max_hours=24)
        turn = await turns.begin(tx, turns.NewTurn(None, session.id, chat.id, None, "hi", None, Origin()))
        await outbox.put_part(tx, chat.id, turn.id, 0, Content("…"))
        (due,) = await outbox.claim(tx, OWNER, 10)
    return due


async def change(store: Store, part: Due) -> None:
    """Let the part show the reply."""
    assert part.turn_id is not None
    async with store.begin() as tx:
        await outbox.put_part(tx, part.chat_id, part.turn_id, 0, Content("the reply"))


async def test_a_part_that_changes_while_it_is_sent_becomes_an_edit(store: Store, part: Due) -> None:
    await change(store, part)
    async with store.begin() as tx:
        assert await outbox.claim(tx, OWNER, 10) == []
        await outbox.sent(tx, part, OWNER, "17")
        (again,) = await outbox.claim(tx, OWNER, 10)
    assert (again.provider_message_id, again.content.text) == ("17", "the reply")


async def test_a_part_that_was_refused_is_tried_with_its_new_content(store: Store, part: Due) -> None:
    await change(store, part)
    async with store.begin() as tx:
        await outbox.fail(tx, part, OWNER, "refused")
        (again,) = await outbox.claim(tx, OWNER, 10)
        await outbox.fail(tx, again, OWNER, "refused")
        assert await outbox.claim(tx, OWNER, 10) == []


async def test_a_chat_without_a_person_belongs_to_who_writes_in_it(store: Store) -> None:
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
        person = await people.add_person(tx, language="en")
        other = await people.add_person(tx, language="en")
        assert (await people.chat_of(tx, bot, ChatAddress("71"), None)).person_id is None
        assert (await people.chat_of(tx, bot, ChatAddress("71"), person)).person_id == person
        assert (await people.chat_of(tx, bot, ChatAddress("71"), other)).person_id == person
        group = ChatAddress("-5", kind="group")
        assert (await people.chat_of(tx, bot, group, person)).person_id is None


class MovingPlatform:
    """A channel whose chat "71" became "72"."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, str]] = []

    async def send(self, chat: ChatAddress, content: Content) -> str:
        if chat.external_id == "71":
            raise ChatMovedError("72")
        self.shown.append((chat.external_id, content.text))
        return f"m{len(self.shown)}"

    async def edit(self, chat: ChatAddress, message_id: str, content: Content) -> None:
        raise ChatMovedError("72")


@pytest.mark.parametrize("known", [False, True], ids=["new", "known"])
async def test_a_part_follows_its_chat_to_its_new_id(store: Store, part: Due, known: bool) -> None:
    async with store.begin() as tx:
        if known:
            await people.chat_of(tx, part.bot_id, ChatAddress("72"), None)
        await outbox.sent(tx, part, OWNER, "17")  # the placeholder, under the old id
    await change(store, part)
    platform, due = MovingPlatform(), asyncio.Event()
    deliverer = Deliverer(store, {part.bot_id: platform}, OWNER, due)  # type: ignore[dict-item] - sends and edits only
    running = asyncio.create_task(deliverer.run())
    async with asyncio.timeout(5):
        while not platform.shown:
            await asyncio.sleep(0.02)
    await deliverer.stop()
    await running
    assert platform.shown == [("72", "the reply")]
    async with store.begin() as tx:
        row = (await tx.execute(text("select state, provider_message_id, attempts from outbox"))).one()
        chats = (await tx.execute(text("select external_id, status from chats order by created_at"))).all()
    assert tuple(row) == ("sent", "m1", 0)
    assert [tuple(c) for c in chats] == ([("71", "gone"), ("72", "active")] if known else [("72", "active")])
