"""Releases: live only after gates, loaded and checked, pinned, kept, taken back at once, healed after a restart."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import text

from app.domain.consent import Purpose
from app.domain.messages import text as say
from app.domain.person import Session
from app.domain.policy import Route
from app.errors import ConflictError, NotFoundError
from app.services import release
from app.services.forget import withdraw
from app.services.learn import consider, take_up
from app.store import Store, admission, jobs, lineage, memory, releases
from app.store.jobs import Work
from learner.artifacts import dematerialise
from learner.serve.reconcile import Reconciler
from learner.tasks.context import Learner
from learner.tasks.evaluate import release_of
from learner.tasks.run import handle
from tests.fakes.model import ModelServer
from tests.fakes.model.faults import NoLogprobs
from tests.fakes.model.replies import Call
from tests.support.lessons import Pupil, allow, base_folder, candidate, learner_on, pupil


def by_model(call: Call) -> str:
    return f"{call.model} says: {call.last_user}"


@pytest.fixture
async def learner(store: Store, model: ModelServer, tmp_path: Path) -> AsyncIterator[Learner]:
    """A learner on a server that proved its isolation."""
    model.reply_with(by_model)
    async with learner_on(store, model.url, tmp_path, base_folder(tmp_path / "base")) as made:
        await made.reconciler.once()
        yield made


async def do(learner: Learner, work: Work) -> tuple[str, str | None]:
    """Queue a job, do it, and return how it ended."""
    async with learner.store.begin() as tx:
        job_id = await jobs.enqueue(tx, work)
        await tx.execute(text("update jobs set due_at = now() where id = :i"), {"i": job_id})
    await handle(learner, job_id)
    async with learner.store.begin() as tx:
        row = (await tx.execute(text("select state, error from jobs where id = :i"), {"i": job_id})).one()
    return row.state, row.error


async def released(learner: Learner, who: Pupil, seed: int = 0) -> UUID:
    """Take a passed checkpoint live; return the release."""
    checkpoint_id, _ = await candidate(learner, who, seed, "passed")
    assert await do(learner, release_of(checkpoint_id, who.person_id)) == ("done", None)
    async with learner.store.begin() as tx:
        live = await releases.live(tx, who.person_id)
    assert live
    assert live.checkpoint_id == checkpoint_id
    return live.id


async def session(store: Store, who: Pupil, release_id: UUID | None, person_id: UUID | None = None) -> Session:
    """Open a conversation pinned to a release."""
    async with store.begin() as tx:
        await tx.execute(text("update sessions set ended_at = now() where ended_at is null"))
        row = await tx.scalar(
            text(
                "insert into sessions (chat_id, person_id, number, release_id) values "
                "(:c, :p, (select max(number) + 1 from sessions where chat_id = :c), :r) returning id"
            ),
            {"c": who.chat_id, "p": person_id or who.person_id, "r": release_id},
        )
    return Session(row, who.chat_id, who.person_id, 9, "train", release_id)


async def route(store: Store, who: Pupil, where: Session) -> Route | None:
    async with store.begin() as tx:
        return await release.routable(tx, who.person_id, where)


async def line_state(store: Store, who: Pupil) -> str:
    async with store.begin() as tx:
        return (await memory.access_line(tx, who.person_id, who.line_id)).state


async def test_a_release_is_loaded_checked_live_and_its_line_leaves_the_prompt(
    learner: Learner, model: ModelServer
) -> None:
    who = await pupil(learner.store)
    release_id = await released(learner, who)
    where = await session(learner.store, who, release_id)
    found = await route(learner.store, who, where)
    assert found
    assert found.adapter in model.adapters.loaded
    assert not found.announced
    assert await line_state(learner.store, who) == "graduated"
    async with learner.store.begin() as tx:
        assert list(await release.announce(tx, release_id)) == ["End every answer with: Have a calm day."]
        assert list(await release.announce(tx, release_id)) == []
        await release.keep(tx, who.person_id, release_id)
        events = list(await tx.scalars(text("select event from audit_log order by id")))
    assert events == ["release:checkpoint:live", "release:person:kept"]
    after = await route(learner.store, who, where)
    assert after
    assert after.announced


async def test_nothing_goes_live_without_a_passed_gate_run(learner: Learner) -> None:
    who = await pupil(learner.store)
    checkpoint_id, _ = await candidate(learner, who)
    async with learner.store.begin() as tx:
        await lineage.set_state(tx, checkpoint_id, "passed", among=("candidate",))
        with pytest.raises(ConflictError, match="passed its gates"):
            await releases.go_live(tx, who.person_id, checkpoint_id, "test")
    state, _ = await do(learner, release_of(checkpoint_id, who.person_id))
    assert state == "failed"
    async with learner.store.begin() as tx:
        assert await releases.live(tx, who.person_id) is None


async def test_a_server_without_logprobs_or_a_full_disk_makes_a_release_wait(
    learner: Learner, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    who = await pupil(learner.store)
    checkpoint_id, info = await candidate(learner, who, state="passed")
    model.always(NoLogprobs())
    state, sentence = await do(learner, release_of(checkpoint_id, who.person_id))
    assert state == "queued"
    assert "no adapter can be checked" in str(sentence)
    assert info.name not in model.adapters.loaded
    model.heal()
    dematerialise(learner.places.serving, info.name)
    with monkeypatch.context() as broken:
        broken.setattr("learner.durable.os.fsync", full)
        state, sentence = await do(learner, release_of(checkpoint_id, who.person_id))
    assert state == "queued"
    assert "free some space" in str(sentence)
    assert await do(learner, release_of(checkpoint_id, who.person_id)) == ("done", None)


def full(_handle: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_nobody_else_is_ever_routed_to_it(learner: Learner) -> None:
    one, two = await pupil(learner.store), await pupil(learner.store, "pupil-2")
    release_id = await released(learner, one)
    assert await route(learner.store, two, await session(learner.store, two, release_id)) is None
    of_one = await session(learner.store, one, release_id)
    async with learner.store.begin() as tx:
        assert await release.routable(tx, two.person_id, of_one) is None
        with pytest.raises(NotFoundError):
            await release.keep(tx, two.person_id, release_id)
    with pytest.raises(NotFoundError):
        async with learner.store.begin() as tx:
            await release.go_back(tx, two.person_id, release_id)


async def test_groups_and_unpinned_conversations_get_the_base(learner: Learner) -> None:
    who = await pupil(learner.store)
    release_id = await released(learner, who)
    assert await route(learner.store, who, await session(learner.store, who, None)) is None
    where = await session(learner.store, who, release_id)
    async with learner.store.begin() as tx:
        await tx.execute(text("update chats set kind = 'group'"))
    assert await route(learner.store, who, where) is None


async def test_a_server_whose_probe_failed_is_not_routed_to(learner: Learner) -> None:
    who = await pupil(learner.store)
    where = await session(learner.store, who, await released(learner, who))
    async with learner.store.begin() as tx:
        await tx.execute(text("update model_servers set probe_state = 'failed'"))
    assert await route(learner.store, who, where) is None


async def test_going_back_restores_memory_and_never_trains_it_again(learner: Learner) -> None:
    who = await pupil(learner.store)
    release_id = await released(learner, who)
    where = await session(learner.store, who, release_id)
    async with learner.store.begin() as tx:
        done = await release.go_back(tx, who.person_id, release_id)
    assert done.live_again is None
    assert done.returned == (who.line_id,)
    assert await route(learner.store, who, where) is None
    assert await line_state(learner.store, who) == "active"
    async with learner.store.begin() as tx:
        assert await tx.scalar(text("select excluded from feedback where id = :f"), {"f": who.feedback_id})
        assert await consider(tx, who.person_id, learner.settings) is None
    with pytest.raises(ConflictError):
        async with learner.store.begin() as tx:
            await release.go_back(tx, who.person_id, release_id)


async def test_a_rollback_brings_the_release_before_back_and_lists_what_was_written(learner: Learner) -> None:
    who = await pupil(learner.store)
    first = await released(learner, who, 1)
    second = await released(learner, who, 2)
    async with learner.store.begin() as tx:
        await tx.execute(text("update turns set release_id = :r where id = :t"), {"r": second, "t": who.turns[0]})
    done = await release.roll_back(learner.store, second, "worse", "ana")
    assert done.live_again == first
    assert done.written.turns == (who.turns[0],)
    assert done.written.memory == (who.line_id,)
    assert await line_state(learner.store, who) == "graduated"
    found = await route(learner.store, who, await session(learner.store, who, first))
    assert found
    async with learner.store.begin() as tx:
        act = (await tx.execute(text("select * from audit_log order by id desc limit 1"))).one()
    assert (act.actor, act.event, act.reason) == ("ana", "release:live:rolled_back", "worse")
    assert act.before_digest != act.after_digest


async def test_a_conversation_keeps_the_release_it_began_with(learner: Learner, model: ModelServer) -> None:
    who = await pupil(learner.store)
    first = await released(learner, who, 1)
    where = await session(learner.store, who, first)
    await released(learner, who, 2)
    await learner.reconciler.once()
    found = await route(learner.store, who, where)
    assert found
    assert found.release_id == first
    assert found.adapter in model.adapters.loaded


async def test_what_was_promoted_but_not_loaded_is_healed(learner: Learner, model: ModelServer) -> None:
    who = await pupil(learner.store)
    release_id = await released(learner, who)
    where = await session(learner.store, who, release_id)
    model.adapters.loaded.clear()  # the server was restarted
    await learner.reconciler.once()
    found = await route(learner.store, who, where)
    assert found
    assert found.adapter in model.adapters.loaded


async def test_an_adapter_that_left_routing_is_unloaded_after_a_grace(learner: Learner, model: ModelServer) -> None:
    who = await pupil(learner.store)
    release_id = await released(learner, who)
    await release.roll_back(learner.store, release_id, "worse", "ana")
    await learner.reconciler.once()
    assert any(name.startswith("person-") for name in model.adapters.loaded)
    async with learner.store.begin() as tx:
        await tx.execute(text("update releases set changed_at = now() - interval '2 minutes'"))
    await learner.reconciler.once()
    assert not any(name.startswith("person-") for name in model.adapters.loaded)


async def test_an_adapter_that_changes_nothing_is_caught_by_the_sentinel(
    learner: Learner, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    who = await pupil(learner.store)
    checkpoint_id, info = await candidate(learner, who, 0, "passed")
    monkeypatch.setattr("tests.fakes.model.wire.logprob", lambda _model, _before, _token: -1.0)
    model.reply_with(lambda call: call.last_user)
    state, error = await do(learner, release_of(checkpoint_id, who.person_id))
    assert state == "failed"
    assert error == "the model server answers as if the adapter were not there"
    assert info.name not in model.adapters.loaded
    async with learner.store.begin() as tx:
        assert (await lineage.checkpoint(tx, checkpoint_id)).state == "refused"


@pytest.mark.parametrize("purpose", [Purpose.MEMORY, Purpose.PERSONAL_TRAINING])
async def test_a_consent_that_is_gone_stops_a_release(learner: Learner, purpose: Purpose) -> None:
    who = await pupil(learner.store)
    checkpoint_id, _ = await candidate(learner, who, 0, "passed")
    await allow(learner.store, who.person_id, purpose, "withdrawn")
    assert (await do(learner, release_of(checkpoint_id, who.person_id)))[0] == "cancelled"
    async with learner.store.begin() as tx:
        assert await releases.live(tx, who.person_id) is None


async def test_withdrawing_overrides_the_pin_at_once(learner: Learner) -> None:
    who = await pupil(learner.store)
    release_id = await released(learner, who)
    where = await session(learner.store, who, release_id)
    async with learner.store.begin() as tx:
        await withdraw(tx, who.person_id, Purpose.PERSONAL_TRAINING)
    assert await route(learner.store, who, where) is None
    assert await line_state(learner.store, who) == "active"


async def test_a_paused_release_waits_and_goes_on(learner: Learner) -> None:
    who = await pupil(learner.store)
    checkpoint_id, _ = await candidate(learner, who, 0, "passed")
    async with learner.store.begin() as tx:
        await tx.execute(text("insert into switches (name, paused) values ('release', true)"))
    assert (await do(learner, release_of(checkpoint_id, who.person_id)))[0] == "queued"
    async with learner.store.begin() as tx:
        await tx.execute(text("update switches set paused = false"))
    assert (await do(learner, release_of(checkpoint_id, who.person_id)))[0] == "done"


@pytest.mark.parametrize(
    "change", ["update memory_lines set state = 'undone'", "update feedback set review_state = 'quarantined'"]
)
async def test_a_lesson_that_was_taken_back_meanwhile_is_not_released(learner: Learner, change: str) -> None:
    who = await pupil(learner.store)
    checkpoint_id, _ = await candidate(learner, who, 0, "passed")
    async with learner.store.begin() as tx:
        await tx.execute(text(change))
    assert (await do(learner, release_of(checkpoint_id, who.person_id)))[0] == "cancelled"


@pytest.mark.parametrize(
    ("state", "hours", "again"), [("failed", 2, ["queued"]), ("failed", 0, []), ("cancelled", 2, []), ("done", 2, [])]
)
async def test_a_release_that_gave_up_is_taken_up_again_later(
    learner: Learner, state: str, hours: int, again: list[str]
) -> None:
    who = await pupil(learner.store)
    checkpoint_id, _ = await candidate(learner, who, 0, "passed")
    async with learner.store.begin() as tx:
        await jobs.enqueue(tx, release_of(checkpoint_id, who.person_id))
        ended = "update jobs set state = :s, finished_at = now() - make_interval(hours => :h)"
        await tx.execute(text(ended), {"s": state, "h": hours})
    for _ in range(2):
        async with learner.store.begin() as tx:
            await take_up(tx)
    async with learner.store.begin() as tx:
        waiting = list(
            await tx.scalars(text("select state from jobs where kind = 'release' and state <> :s"), {"s": state})
        )
    assert waiting == again


async def test_what_was_released_or_overtaken_is_not_taken_up_again(learner: Learner) -> None:
    who = await pupil(learner.store)
    old, _ = await candidate(learner, who, 1, "passed")
    await released(learner, who, 2)
    async with learner.store.begin() as tx:
        await jobs.enqueue(tx, release_of(old, who.person_id))
        await tx.execute(text("update jobs set state = 'failed', finished_at = now() - interval '1 day'"))
        assert await take_up(tx) == 0


async def test_a_changed_base_parks_adapters_and_going_back_takes_them_up(learner: Learner, model: ModelServer) -> None:
    who = await pupil(learner.store)
    where = await session(learner.store, who, await released(learner, who))
    other = replace(learner.fleet, identity=replace(learner.base, revision="another"))
    await Reconciler(learner.store, other, learner.places, release.base_served).once()
    assert await route(learner.store, who, where) is None
    await Reconciler(learner.store, other, learner.places, release.base_served).once()
    async with learner.store.begin() as tx:
        queued = list(await tx.scalars(text("select state from jobs where kind = 'train'")))
        told = list(
            await tx.scalars(text("select content ->> 'text' from outbox where chat_id = :c"), {"c": who.chat_id})
        )
    assert queued == ["queued"]
    assert told == [say("en", "base_changed")]
    await learner.reconciler.once()
    found = await route(learner.store, who, where)
    assert found
    assert found.adapter in model.adapters.loaded


async def test_who_does_not_let_train_any_more_is_told_of_a_changed_base_and_not_trained(learner: Learner) -> None:
    who = await pupil(learner.store)
    await released(learner, who)
    await allow(learner.store, who.person_id, Purpose.PERSONAL_TRAINING, "withdrawn")
    other = replace(learner.fleet, identity=replace(learner.base, revision="another"))
    await Reconciler(learner.store, other, learner.places, release.base_served).once()
    async with learner.store.begin() as tx:
        assert list(await tx.scalars(text("select state from jobs where kind = 'train'"))) == []


async def test_a_lesson_taken_back_while_its_adapter_is_brought_up_does_not_go_live(
    learner: Learner, model: ModelServer
) -> None:
    """Undoing waits for nobody and a release for the person's row: whoever comes second finds what was decided."""
    who = await pupil(learner.store)
    checkpoint_id, _ = await candidate(learner, who, 0, "passed")
    async with learner.store.around() as undoing:
        await admission.hold(undoing, who.person_id)
        releasing = asyncio.create_task(do(learner, release_of(checkpoint_id, who.person_id)))
        async with asyncio.timeout(10):
            while not await _waits_for_a_lock(learner.store):
                await asyncio.sleep(0.02)
        await memory.set_state(undoing, who.person_id, who.line_id, "undone")
        assert await release.line_undone(undoing, who.person_id, who.line_id) is None
    assert (await releasing)[0] == "cancelled"
    async with learner.store.begin() as tx:
        assert await releases.live(tx, who.person_id) is None


async def _waits_for_a_lock(store: Store) -> bool:
    query = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    async with store.begin() as tx:
        return bool(await tx.scalar(text(query)))


async def test_a_parked_adapter_can_be_taken_back_and_is_not_taken_up_again(learner: Learner) -> None:
    who = await pupil(learner.store)
    await released(learner, who)
    other = replace(learner.fleet, identity=replace(learner.base, revision="another"))
    await Reconciler(learner.store, other, learner.places, release.base_served).once()
    async with learner.store.begin() as tx:
        await memory.set_state(tx, who.person_id, who.line_id, "undone")
        assert await release.line_undone(tx, who.person_id, who.line_id)
    await learner.reconciler.once()
    async with learner.store.begin() as tx:
        assert await tx.scalar(text("select state from checkpoints")) == "retired"


async def test_undoing_a_learnt_line_takes_every_adapter_that_knows_it_out(learner: Learner) -> None:
    who = await pupil(learner.store)
    first, second = await released(learner, who, 1), await released(learner, who, 2)
    where = await session(learner.store, who, first)
    async with learner.store.begin() as tx:
        await memory.set_state(tx, who.person_id, who.line_id, "undone")
        assert await release.line_undone(tx, who.person_id, who.line_id)
        assert await releases.live(tx, who.person_id) is None
        states = list(await tx.scalars(text("select state from releases")))
        assert await release.line_undone(tx, who.person_id, who.line_id) is None
    assert states == ["rolled_back", "rolled_back"]
    assert second != first
    assert await route(learner.store, who, where) is None
    assert await line_state(learner.store, who) == "undone"
