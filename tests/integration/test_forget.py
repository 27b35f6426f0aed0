"""Forgetting and withdrawal: a planted string is nowhere afterwards, and nothing of it answers or trains."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from app.domain.consent import Purpose
from app.domain.outgoing import Content
from app.domain.profiles import CACHED_ADAPTERS
from app.errors import InvalidInputError, NotFoundError
from app.services.forget import ATTEMPTS, forget_person, preview, receipt, withdraw
from app.services.learn import take_up
from app.store import Store, jobs, lineage, outbox, releases
from app.store.jobs import Work
from learner.tasks.context import Learner
from learner.tasks.run import handle
from learner.tasks.train import evaluation
from learner.train.score import ScoreJob, write_score_job
from tests.fakes.adapters import tiny_adapter
from tests.fakes.model import ModelServer
from tests.integration.test_release import by_model, do, line_state, released
from tests.support.lessons import Pupil, allow, base_folder, candidate, learner_on, pupil
from tests.support.road import Road
from tests.support.small_disk import may_mount, small_folder

CANARY = "zebra-canary-7731"
NAME = "canary-account-4412"


@pytest.fixture
async def learner(store: Store, model: ModelServer, tmp_path: Path) -> AsyncIterator[Learner]:
    """A learner on a server that proved its isolation."""
    model.reply_with(by_model)
    async with learner_on(store, model.url, tmp_path / "home", base_folder(tmp_path / "base")) as made:
        await made.reconciler.once()
        yield made


def pressed(account: str, data: str) -> bytes:
    """A press without its message, as a platform sends it."""
    return f'{{"callback_query": {{"from": {{"id": {account}, "is_bot": false}}, "data": "{data}"}}}}'.encode()


async def everywhere(store: Store, words: str) -> list[str]:
    """Return the tables that hold `words` in any column, as text or as bytes."""
    found = []
    async with store.begin() as tx:
        tables = list(await tx.scalars(text("select tablename from pg_tables where schemaname = 'public'")))
        for table in tables:
            # The whole row as text; bytes are shown in hex there.
            held = await tx.scalar(
                text(f"select count(*) from {table} r where r::text ilike :w or r::text ilike :h"),  # noqa: S608
                {"w": f"%{words}%", "h": f"%{words.encode().hex()}%"},
            )
            if held:
                found.append(table)
    return sorted(found)


def in_files(root: Path, words: str) -> list[str]:
    """Return the files below `root` that hold `words`."""
    return [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and words.encode() in p.read_bytes()]


async def canary(store: Store, home: Path) -> Pupil:
    """Somebody who left the canary wherever a person's words go."""
    who = await pupil(
        store, NAME, train=(f"Tell me about {CANARY}", "Why?", "How so?"), lesson=f"End every answer with {CANARY}"
    )
    async with store.begin() as tx:
        await outbox.put(tx, who.chat_id, Content(f"I heard {CANARY}"))
        await tx.execute(
            text("update turns set reply_text = :w, failure = :w where person_id = :p"),
            {"w": CANARY, "p": who.person_id},
        )
        await tx.execute(text("update examples set prompt = :w, good = :w, bad = :w"), {"w": CANARY})
        await tx.execute(
            text("insert into rewrites (feedback_id, person_id, text) values (:f, :p, :w)"),
            {"f": who.feedback_id, "p": who.person_id, "w": CANARY},
        )
        await tx.execute(
            text("insert into evaluation_items (feedback_id, prompt) values (:f, :w)"),
            {"f": who.feedback_id, "w": CANARY},
        )
        await tx.execute(
            text("insert into inbox (bot_id, lane, body) values (:b, :l, :w)"),
            {"b": who.bot_id, "l": f"{who.bot_id}:votes:", "w": pressed(NAME, CANARY)},
        )
        await tx.execute(
            text("insert into inbox (bot_id, lane, body, state) values (:b, :l, :w, 'claimed')"),
            {"b": who.bot_id, "l": f"{who.bot_id}:web:{NAME}:now", "w": CANARY.encode()},
        )
        await tx.execute(text("update people set display_name = :w where id = :p"), {"w": CANARY, "p": who.person_id})
        await tx.execute(text('update chats set state = \'{"awaiting": {"kind": "x"}}\''))
    exports = home / "exports" / str(who.person_id)
    exports.mkdir(parents=True)
    (exports / "export.json").write_text(CANARY)
    return who


async def run_dir(learner: Learner, who: Pupil) -> Path:
    async with learner.store.begin() as tx:
        run_id = await tx.scalar(text("select id from training_runs where person_id = :p"), {"p": who.person_id})
    folder = learner.places.runs / str(run_id)
    folder.mkdir(parents=True)
    (folder / "bodies.json").write_text(CANARY)
    (folder / "rollouts.json").write_text(json.dumps({"words": CANARY}))
    return folder


async def removal(learner: Learner) -> str:
    """Do the queued removal and return its state."""
    async with learner.store.begin() as tx:
        await tx.execute(text("update outbox set state = 'sent'"))
        await tx.execute(text("update chats set created_at = now() - interval '1 minute'"))
        job_id = await tx.scalar(
            text("update jobs set due_at = now() where kind = 'forget' and state = 'queued' returning id")
        )
    assert isinstance(job_id, UUID)
    await handle(learner, job_id)
    async with learner.store.begin() as tx:
        return str(await tx.scalar(text("select state from jobs where id = :i"), {"i": job_id}))


async def test_a_planted_string_is_nowhere_after_forgetting_everything(
    learner: Learner, model: ModelServer, capfd: pytest.CaptureFixture[str]
) -> None:
    who = await canary(learner.store, learner.places.home)
    other = await pupil(learner.store, "somebody-else")
    await released(learner, who)
    folder = await run_dir(learner, who)
    assert len(await everywhere(learner.store, CANARY)) >= 9
    assert await everywhere(learner.store, NAME)
    assert in_files(learner.places.home, CANARY)

    given = await forget_person(learner.store, learner.places.home, who.person_id, "all", "person")
    assert given.counts["turns"] == 5
    assert not folder.exists()
    assert (await receipt(learner.store, given.code)).state == "running"
    assert await removal(learner) == "done"

    assert await everywhere(learner.store, CANARY) == []
    assert await everywhere(learner.store, NAME) == []
    assert await everywhere(learner.store, str(who.person_id)) == []
    assert in_files(learner.places.home, CANARY) == []
    assert not any(name.startswith("person-") for name in model.adapters.loaded)
    assert sum(name.startswith("mentee-filler-") for name in model.adapters.unloads) == CACHED_ADAPTERS
    found = await receipt(learner.store, given.code)
    assert (found.state, found.summary["weights_evicted"]) == ("done", 1)
    assert CANARY not in "".join(capfd.readouterr())
    assert await line_state(learner.store, other) == "active"
    with pytest.raises(NotFoundError):
        await receipt(learner.store, "another-code")
    with pytest.raises(NotFoundError):
        await forget_person(learner.store, learner.places.home, who.person_id, "all", "person")


async def test_updates_of_others_that_wait_survive_though_they_name_the_account(store: Store, tmp_path: Path) -> None:
    who, other = await pupil(store, NAME), await pupil(store, "somebody-else")
    theirs, presses = f"{other.bot_id}:web:{other.external_id}", f"{other.bot_id}:votes:"
    quote = f"Is {NAME} still here?".encode()
    rows = {
        (theirs, "stored", quote): True,
        (theirs, "done", quote): False,
        (f"{theirs}:now", "claimed", quote): True,
        (presses, "stored", pressed("71", f'\\"id\\":{NAME},')): True,
        (presses, "stored", pressed(NAME, "x")): False,
        (f"{who.bot_id}:web:{NAME}", "stored", b"mine"): False,
    }
    async with store.begin() as tx:
        await tx.execute(text("delete from inbox"))
        for lane, state, body in rows:
            await tx.execute(
                text("insert into inbox (bot_id, lane, state, body) values (:b, :l, :s, :w)"),
                {"b": who.bot_id, "l": lane, "s": state, "w": body},
            )
    await forget_person(store, tmp_path, who.person_id, "chat", "person")
    async with store.begin() as tx:
        left = (await tx.execute(text("select lane, state, body from inbox order by id"))).all()
    assert [(row.lane, row.state, bytes(row.body)) for row in left] == [row for row, stays in rows.items() if stays]


async def test_forgetting_the_chat_keeps_what_was_learnt(learner: Learner) -> None:
    who = await canary(learner.store, learner.places.home)
    release_id = await released(learner, who)
    await forget_person(learner.store, learner.places.home, who.person_id, "chat", "person")
    assert await everywhere(learner.store, f"about {CANARY}") == []
    assert await line_state(learner.store, who) == "graduated"
    async with learner.store.begin() as tx:
        live = await releases.live(tx, who.person_id)
        held = await preview(tx, who.person_id)
    assert live
    assert live.id == release_id
    assert (held["turns"], held["memories"], held["examples"], held["checkpoints"]) == (0, 1, 1, 1)


async def test_forgetting_the_chat_ends_the_training_on_it_and_removes_what_trainings_wrote_down(
    learner: Learner,
) -> None:
    who = await canary(learner.store, learner.places.home)
    await released(learner, who)
    folder = await run_dir(learner, who)
    async with learner.store.begin() as tx:
        name = await tx.scalar(text("select name from checkpoints where person_id = :p"), {"p": who.person_id})
        running = await jobs.claim(tx, await jobs.enqueue(tx, training(who, "train:x")), "w")
        queued = await jobs.enqueue(tx, training(who, "train:y"))
    assert running
    await forget_person(learner.store, learner.places.home, who.person_id, "chat", "person")
    assert not folder.exists()
    async with learner.store.begin() as tx:
        assert await jobs.heartbeat(tx, running)
        assert await jobs.claim(tx, queued, "w") is None
    folder.mkdir()  # what a training writes that has not noticed yet
    assert await removal(learner) == "done"
    assert not folder.exists()
    assert (learner.places.checkpoints / str(name)).exists()
    async with learner.store.begin() as tx:
        assert await releases.live(tx, who.person_id)


def training(who: Pupil, key: str) -> Work:
    return Work("train", "train", key, person_id=who.person_id)


async def test_forgetting_what_was_learnt_keeps_the_chat(learner: Learner) -> None:
    who = await canary(learner.store, learner.places.home)
    await released(learner, who)
    await forget_person(learner.store, learner.places.home, who.person_id, "learnt", "person")
    async with learner.store.begin() as tx:
        held = await preview(tx, who.person_id)
        assert await releases.live(tx, who.person_id) is None
    assert held == {
        "turns": 5, "sessions": 2, "feedback": 0, "memories": 0, "examples": 0, "snapshots": 0, "checkpoints": 0,
    }  # fmt: skip


async def test_a_running_job_of_somebody_forgotten_can_change_nothing(learner: Learner) -> None:
    who = await pupil(learner.store)
    async with learner.store.begin() as tx:
        job_id = await jobs.enqueue(tx, Work("train", "train", "train:x", person_id=who.person_id))
        job = await jobs.claim(tx, job_id, "w")
    assert job
    await forget_person(learner.store, learner.places.home, who.person_id, "learnt", "person")
    async with learner.store.begin() as tx:
        with pytest.raises(jobs.JobLostError):
            await jobs.finish(tx, job)


async def test_weights_wait_for_a_server_that_is_away(learner: Learner, model: ModelServer) -> None:
    who = await pupil(learner.store)
    await released(learner, who)
    await model.stop()
    given = await forget_person(learner.store, learner.places.home, who.person_id, "all", "person")
    assert await removal(learner) == "queued"
    assert (await receipt(learner.store, given.code)).state == "running"
    await model.start()
    assert await removal(learner) == "done"
    assert (await receipt(learner.store, given.code)).state == "done"


@pytest.mark.parametrize("spoilt", ["adapter_config.json", "adapter_model.safetensors"])
async def test_a_half_written_filler_is_written_anew(learner: Learner, spoilt: str) -> None:
    for name, spoil in (("pupil-1", False), ("pupil-2", True)):
        who = await pupil(learner.store, name)
        await released(learner, who, spoil)
        if spoil:
            (learner.places.probes / "filler" / spoilt).write_bytes(b"{")
        given = await forget_person(learner.store, learner.places.home, who.person_id, "all", "person")
        assert await removal(learner) == "done"
        assert (await receipt(learner.store, given.code)).state == "done"


async def test_a_server_that_refuses_is_asked_until_it_does_not(learner: Learner, model: ModelServer) -> None:
    who = await pupil(learner.store)
    await released(learner, who)
    given = await forget_person(learner.store, learner.places.home, who.person_id, "all", "person")
    model.adapters.failing = [400]
    assert await removal(learner) == "queued"
    assert (await receipt(learner.store, given.code)).state == "running"
    assert await removal(learner) == "done"
    assert (await receipt(learner.store, given.code)).state == "done"


@pytest.mark.skipif(not may_mount(), reason="a disk of a few pages can be mounted by root only")
async def test_without_room_for_the_filler_folders_go_and_weights_wait(learner: Learner, model: ModelServer) -> None:
    who = await pupil(learner.store)
    await released(learner, who)
    _, waiting = await candidate(learner, who, 5)
    given = await forget_person(learner.store, learner.places.home / "elsewhere", who.person_id, "all", "person")
    with small_folder(learner.places.probes, kib=4) as disk:
        assert await removal(learner) == "queued"
        assert list(disk.path.iterdir()) == []
        assert (await receipt(learner.store, given.code)).state == "running"
        assert not (learner.places.checkpoints / waiting.name).exists()
        async with learner.store.begin() as tx:
            assert "free some space" in str(await tx.scalar(text("select error from jobs where kind = 'forget'")))
        disk.grow(kib=64)
        assert await removal(learner) == "done"
    assert (await receipt(learner.store, given.code)).state == "done"
    assert sum(name.startswith("mentee-filler-") for name in model.adapters.unloads) == CACHED_ADAPTERS


@pytest.mark.parametrize(("state", "hours", "again"), [("failed", 2, 1), ("failed", 0, 0), ("done", 2, 0)])
async def test_a_removal_that_gave_up_is_taken_up_again_later(
    learner: Learner, state: str, hours: int, again: int
) -> None:
    who = await pupil(learner.store)
    await released(learner, who)
    given = await forget_person(learner.store, learner.places.home, who.person_id, "all", "person")
    async with learner.store.begin() as tx:
        ended = "update jobs set state = :s, finished_at = now() - make_interval(hours => :h) where kind = 'forget'"
        await tx.execute(text(ended), {"s": state, "h": hours})
    for _ in range(2):
        async with learner.store.begin() as tx:
            await take_up(tx)
    async with learner.store.begin() as tx:
        queued = (await tx.execute(text("select max_attempts from jobs where state = 'queued'"))).all()
    assert [row.max_attempts for row in queued] == [ATTEMPTS] * again
    if again:
        assert await removal(learner) == "done"
        assert (await receipt(learner.store, given.code)).state == "done"


async def test_what_is_not_registered_yet_is_gone_before_the_receipt_says_so(learner: Learner) -> None:
    who = await pupil(learner.store)
    checkpoint_id, measured = await candidate(learner, who)
    placed = tiny_adapter(learner.places.checkpoints / "placed", learner.base, seed=9)
    placed.directory.rename(learner.places.checkpoints / placed.name)
    half = learner.places.serving / f".{measured.name}.17-0a0b0c0d"
    half.mkdir(parents=True)
    (half / "adapter_model.safetensors").write_text(CANARY)
    async with learner.store.begin() as tx:
        train = await jobs.claim(tx, await jobs.enqueue(tx, training(who, "train:x")), "killed")
        assert train
        await jobs.remember(tx, train, adapter=placed.name)
        job = await jobs.claim(tx, await jobs.enqueue(tx, evaluation(checkpoint_id, who.person_id)), "killed")
        assert job
        gates = await lineage.begin_gates(tx, checkpoint_id, job.id, {}, "suite")
    write_score_job(learner.places.gate(gates), ScoreJob(learner.model_dir, measured.directory, ()))

    given = await forget_person(learner.store, learner.places.home / "elsewhere", who.person_id, "all", "person")
    assert await removal(learner) == "done"
    assert (await receipt(learner.store, given.code)).state == "done"
    places = learner.places
    assert [f.name for p in (places.checkpoints, places.serving, places.runs) if p.is_dir() for f in p.iterdir()] == []


async def test_forgetting_the_chat_takes_an_adapter_of_a_training_that_ends_with_it(learner: Learner) -> None:
    who = await pupil(learner.store)
    _, kept = await candidate(learner, who)
    placed = tiny_adapter(learner.places.checkpoints / "placed", learner.base, seed=9)
    placed.directory.rename(learner.places.checkpoints / placed.name)
    async with learner.store.begin() as tx:
        train = await jobs.claim(tx, await jobs.enqueue(tx, training(who, "train:x")), "killed")
        assert train
        await jobs.remember(tx, train, adapter=placed.name)
    await forget_person(learner.store, learner.places.home / "elsewhere", who.person_id, "chat", "person")
    assert await removal(learner) == "done"
    assert [f.name for f in learner.places.checkpoints.iterdir()] == [kept.name]


async def test_an_unknown_scope_forgets_nothing(learner: Learner) -> None:
    who = await pupil(learner.store)
    with pytest.raises(InvalidInputError):
        await forget_person(learner.store, learner.places.home, who.person_id, "everything", "person")
    assert await line_state(learner.store, who) == "active"


async def test_withdrawing_training_stops_it_and_lets_go_of_the_weights(learner: Learner, model: ModelServer) -> None:
    who = await pupil(learner.store)
    await released(learner, who)
    _, waiting = await candidate(learner, who, 5)
    async with learner.store.begin() as tx:
        queued = await jobs.enqueue(tx, Work("train", "train", "train:x", person_id=who.person_id))
        await withdraw(tx, who.person_id, Purpose.PERSONAL_TRAINING)
        assert await jobs.claim(tx, queued, "w") is None
    assert await removal(learner) == "done"
    assert not any(name.startswith("person-") for name in model.adapters.loaded)
    assert not (learner.places.checkpoints / waiting.name).exists()
    assert not any(learner.places.serving.iterdir())
    assert await line_state(learner.store, who) == "active"


async def test_withdrawing_memory_takes_lines_texts_and_adapter(learner: Learner) -> None:
    who = await canary(learner.store, learner.places.home)
    await released(learner, who)
    await allow(learner.store, who.person_id, Purpose.MEMORY, "withdrawn")
    async with learner.store.begin() as tx:
        await withdraw(tx, who.person_id, Purpose.MEMORY)
        assert await releases.live(tx, who.person_id) is None
        left = await tx.scalar(text("select count(*) from turns where user_text is not null"))
    assert left == 0
    assert await line_state(learner.store, who) == "undone"


async def test_both_ways_out_work_at_once(learner: Learner) -> None:
    who = await pupil(learner.store)
    await released(learner, who)
    async with learner.store.begin() as tx:
        await withdraw(tx, who.person_id, Purpose.PERSONAL_TRAINING)
    await forget_person(learner.store, learner.places.home, who.person_id, "all", "person")
    assert await do(learner, Work("forget", "release", "forget:none", {"adapters": [], "runs": []})) == ("done", None)


async def test_a_message_that_comes_in_after_its_person_was_forgotten_makes_nobody(running: Road) -> None:
    """Accepted a moment before, by a cookie that nobody has any more."""
    update = {"id": str(uuid4()), "kind": "message", "text": "hello"}
    body = json.dumps({"account": "a" * 64, "chat": str(uuid4()), "language": "en", "update": update})
    async with running.store.begin() as tx:
        await tx.execute(
            text("insert into inbox (bot_id, lane, body) select id, 'late', :body from bots where channel = 'web'"),
            {"body": body.encode()},
        )
    async with asyncio.timeout(10):
        while [row["state"] for row in await running.rows("select state from inbox")] != ["done"]:
            await asyncio.sleep(0.05)
    assert await running.rows("select 1 from people") == await running.rows("select 1 from chats") == []
