"""Message parts on their way: a content that changes while its part is being sent never makes a second message."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from app.domain.event import ChatAddress
from app.domain.outgoing import Content
from app.errors import ChatMovedError, DeliveryRetryError, DeliveryUncertainError
from app.ports import Capabilities
from app.services import deliver, housekeeping
from app.services.deliver import Deliverer
from app.store import Store, outbox, people
from app.store.outbox import Due
from tests.support.begun import begun
from tests.support.deaf import DeafStore
from tests.support.road import Item

OWNER = "host:1"


@pytest.fixture
async def part(store: Store) -> Due:
    """The placeholder of a turn, being sent."""
    async with store.begin() as tx:
        bot = await people.ensure_bot(tx, "telegram", "9001")
        turn = await begun(tx)
        await outbox.put_part(tx, turn.chat_id, turn.id, 0, Content("…"))
        (due,) = await outbox.claim(tx, OWNER, 10, [bot])
    return due


async def change(store: Store, part: Due) -> None:
    """Let the part show the reply."""
    assert part.turn_id is not None
    async with store.begin() as tx:
        await outbox.put_part(tx, part.chat_id, part.turn_id, 0, Content("the reply"))


async def test_a_part_that_changes_while_it_is_sent_becomes_an_edit(store: Store, part: Due) -> None:
    await change(store, part)
    async with store.begin() as tx:
        assert await outbox.claim(tx, OWNER, 10, [part.bot_id]) == []
        await outbox.sent(tx, part, "17")
        (again,) = await outbox.claim(tx, OWNER, 10, [part.bot_id])
    assert (again.provider_message_id, again.content.text) == ("17", "the reply")


async def test_a_part_that_was_refused_is_tried_with_its_new_content(store: Store, part: Due) -> None:
    await change(store, part)
    async with store.begin() as tx:
        await outbox.fail(tx, part, "refused")
        (again,) = await outbox.claim(tx, OWNER, 10, [part.bot_id])
        await outbox.fail(tx, again, "refused")
        assert await outbox.claim(tx, OWNER, 10, [part.bot_id]) == []


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


@asynccontextmanager
async def delivering(store: Store, channels: Mapping[UUID, object]) -> AsyncIterator[None]:
    """Send what is due until the block ends, through channels that have a name, send and edit."""
    deliverer = Deliverer(store, channels, OWNER, asyncio.Event())  # type: ignore[arg-type]
    running = asyncio.create_task(deliverer.run())
    yield
    await deliverer.stop()
    await running


async def seen(condition: Callable[[], object]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.02)


async def row_of(store: Store) -> Item:
    """Return the only part."""
    async with store.begin() as tx:
        return dict((await tx.execute(text("select * from outbox"))).mappings().one())


async def let_go(store: Store, part: Due) -> None:
    """Give the part back as if nobody had looked at it."""
    async with store.begin() as tx:
        await outbox.put_back(tx, part, 0, "")


class MovingPlatform:
    """A channel whose chat "71" became "72"."""

    name = "telegram"
    capabilities = Capabilities()

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
        await outbox.sent(tx, part, "17")  # the placeholder, under the old id
    await change(store, part)
    platform = MovingPlatform()
    async with delivering(store, {part.bot_id: platform}):
        await seen(lambda: platform.shown)
    assert platform.shown == [("72", "the reply")]
    async with store.begin() as tx:
        row = (await tx.execute(text("select state, provider_message_id, attempts from outbox"))).one()
        chats = (await tx.execute(text("select external_id, status from chats order by created_at"))).all()
    assert tuple(row) == ("sent", "m1", 0)
    assert [tuple(c) for c in chats] == ([("71", "gone"), ("72", "active")] if known else [("72", "active")])


class Platform:
    """A channel that answers each send as it is told, and then takes everything."""

    name = "telegram"
    capabilities = Capabilities()

    def __init__(self, *answers: Exception | float) -> None:
        self.answers = list(answers)
        self.sent: list[str] = []

    async def send(self, chat: ChatAddress, content: Content) -> str:
        self.sent.append(content.text)
        match self.answers.pop(0) if self.answers else None:
            case Exception() as error:
                raise error
            case float() as seconds:
                await asyncio.sleep(seconds)
        return f"m{len(self.sent)}"


async def test_a_part_waits_for_a_gateway_that_has_its_bot(store: Store, part: Due) -> None:
    await let_go(store, part)
    async with delivering(store, {uuid4(): Platform()}):
        await asyncio.sleep(2 * deliver.IDLE_S)
    row = await row_of(store)
    assert (row["state"], row["attempts"]) == ("due", 0)
    platform = Platform()
    async with delivering(store, {part.bot_id: platform}):
        await seen(lambda: platform.sent)
    row = await row_of(store)
    assert (row["state"], row["provider_message_id"]) == ("sent", "m1")


async def test_what_one_gateway_cannot_send_does_not_take_the_seats_of_what_it_can(store: Store, part: Due) -> None:
    await let_go(store, part)
    async with store.begin() as tx:
        other = await people.ensure_bot(tx, "web", "web")
        chat = await people.chat_of(tx, other, ChatAddress("1"), None)
        await outbox.put(tx, chat.id, Content("hello"))
        (due,) = await outbox.claim(tx, OWNER, 1, [other])
    assert due.content.text == "hello"


async def test_waiting_for_a_platform_spends_no_tries(store: Store, part: Due) -> None:
    await let_go(store, part)
    waits = [DeliveryRetryError("not connected yet", 0.0) for _ in range(2 * deliver.MAX_ATTEMPTS)]
    platform = Platform(*waits, DeliveryUncertainError(), DeliveryRetryError("wait", 0.0))
    async with delivering(store, {part.bot_id: platform}):
        await seen(lambda: len(platform.sent) == len(waits) + 3)
    row = await row_of(store)
    assert (row["state"], row["provider_message_id"]) == ("sent", f"m{len(waits) + 3}")


@pytest.mark.parametrize("error", [DeliveryUncertainError(), KeyError("a bug")], ids=["answer_lost", "unforeseen"])
async def test_a_part_that_never_succeeds_is_given_up(
    store: Store, part: Due, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "MAX_BACKOFF_S", 0.0)
    await let_go(store, part)
    platform = Platform(*[error] * 100)
    async with delivering(store, {part.bot_id: platform}):
        await seen(lambda: len(platform.sent) >= deliver.MAX_ATTEMPTS)
        await asyncio.sleep(2 * deliver.IDLE_S)
    row = await row_of(store)
    assert len(platform.sent) == deliver.MAX_ATTEMPTS
    assert (row["state"], row["attempts"]) == ("failed", deliver.MAX_ATTEMPTS)
    assert row["error"] == ("answer_lost" if isinstance(error, DeliveryUncertainError) else "KeyError")


def test_the_time_between_two_tries_doubles_and_has_an_end() -> None:
    assert [deliver._backoff(attempts) for attempts in (1, 2, 3)] == [2.0, 4.0, 8.0]
    assert deliver._backoff(5_000) == deliver.MAX_BACKOFF_S


async def test_a_send_ends_before_its_lease_does(store: Store, part: Due, monkeypatch: pytest.MonkeyPatch) -> None:
    assert deliver.SEND_S < outbox.LEASE_S
    monkeypatch.setattr(deliver, "SEND_S", 0.2)
    monkeypatch.setattr(deliver, "MAX_BACKOFF_S", 0.0)
    await let_go(store, part)
    platform = Platform(30.0)
    async with delivering(store, {part.bot_id: platform}):
        await seen(lambda: len(platform.sent) == 2)
    row = await row_of(store)
    assert (row["state"], row["provider_message_id"]) == ("sent", "m2")


async def test_what_an_overtaken_sender_says_has_no_effect(store: Store, part: Due) -> None:
    async with store.begin() as tx:
        await tx.execute(text("update outbox set lease_until = now() - interval '1 second'"))
    async with store.begin() as tx:
        (again,) = await outbox.claim(tx, OWNER, 10, [part.bot_id])
    async with store.begin() as tx:
        await outbox.fail(tx, part, "refused")
        assert not (await outbox.sent(tx, part, "first")).recorded
        assert (await outbox.sent(tx, again, "second")).recorded
    assert (await row_of(store))["provider_message_id"] == "second"


async def test_a_part_that_appears_behind_one_being_sent_waits_for_it(store: Store, part: Due) -> None:
    async with store.begin() as tx:
        await tx.execute(
            text(
                "insert into outbox (id, chat_id, part, kind, content) overriding system value"
                " select id - 1, chat_id, 0, 'notice', content from outbox"
            )
        )
        assert await outbox.claim(tx, OWNER, 10, [part.bot_id]) == []
        await tx.execute(text("update outbox set lease_until = now() - interval '1 second' where state = 'sending'"))
    async with store.begin() as tx:
        (again,) = await outbox.claim(tx, OWNER, 10, [part.bot_id])
        assert again.id == part.id
        assert (await outbox.sent(tx, again, "17")).recorded
        (late,) = await outbox.claim(tx, OWNER, 10, [part.bot_id])
        assert late.id == part.id - 1


async def test_what_was_claimed_by_a_statement_whose_answer_was_lost_goes_out_at_the_next_look(
    store: Store, part: Due
) -> None:
    platform = MovingPlatform()
    deliverer = Deliverer(store, {part.bot_id: platform}, OWNER, asyncio.Event())  # type: ignore[dict-item]
    with pytest.raises(ConnectionError), deliverer.slot(part.bot_id):
        raise ConnectionError
    running = asyncio.create_task(deliverer.run())
    await seen(lambda: platform.shown)
    await deliverer.stop()
    await running
    assert [words for _, words in platform.shown] == ["…"]
    assert (await row_of(store))["state"] == "sent"


async def test_what_the_loop_claimed_unheard_goes_out_at_the_next_look(
    database_url: str, store: Store, part: Due, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "STORE_AWAY_S", 0.01)
    async with store.begin() as tx:
        await outbox.put_back(tx, part, 0.0, "asked_to_wait")
    platform, deaf = MovingPlatform(), DeafStore(database_url)
    deliverer = Deliverer(deaf, {part.bot_id: platform}, OWNER, asyncio.Event())  # type: ignore[dict-item]
    running = asyncio.create_task(deliverer.run())
    await seen(lambda: platform.shown)
    await deliverer.stop()
    await asyncio.gather(running, deaf.close())
    assert [words for _, words in platform.shown] == ["…"]


async def test_a_slot_is_kept_for_bots_that_are_sent_for_here(store: Store, part: Due) -> None:
    deliverer = Deliverer(store, {part.bot_id: MovingPlatform()}, OWNER, asyncio.Event(), concurrency=1)  # type: ignore[dict-item]
    with deliverer.slot(uuid4()) as nobody:
        assert nobody is None
    with deliverer.slot(part.bot_id) as first, deliverer.slot(part.bot_id) as second:
        assert (first, second) == (OWNER, None)
    with deliverer.slot(part.bot_id) as again:
        assert again == OWNER
    await deliverer.stop()
    with deliverer.slot(part.bot_id) as late:
        assert late is None


@pytest.mark.parametrize("owner", ["here:abc:4243", "there:abc:4242"], ids=["living", "elsewhere"])
async def test_what_a_dead_process_was_sending_is_sent_by_who_lives(
    store: Store, part: Due, monkeypatch: pytest.MonkeyPatch, owner: str
) -> None:
    monkeypatch.setattr(housekeeping, "DEAD_S", 0.05)
    platform = Platform()
    await own(store, owner)  # nobody who is dead, as far as anybody here can tell
    freeing = asyncio.create_task(housekeeping.free_the_dead(store, "here", lambda pid: pid != 4242))
    async with delivering(store, {part.bot_id: platform}):
        await asyncio.sleep(0.3)
        assert not platform.sent
        await own(store, "here:abc:4242")
        await seen(lambda: platform.sent)
    freeing.cancel()
    assert platform.sent == ["…"]


async def own(store: Store, owner: str) -> None:
    """Let the part be sent by somebody."""
    async with store.begin() as tx:
        await tx.execute(text("update outbox set owner = :owner"), {"owner": owner})
