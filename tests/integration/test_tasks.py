"""Tasks: what may train, what is frozen, how a gate run ends, and what is refused, on a fake model server."""

import asyncio
import errno
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import text

from app.clients.vllm import VllmClient
from app.config import Settings
from app.domain.consent import Purpose
from app.domain.prompt import PROMPT_VERSION
from app.domain.turn import BaseIdentity, Origin
from app.errors import (
    ArtifactError,
    GateDelayedError,
    MenteeError,
    PausedError,
    StoreUnavailableError,
    TrainingStoppedError,
)
from app.services import learn
from app.services.forget import forget_person
from app.services.learn import consider
from app.store import Store, Tx, admission, jobs, lineage
from app.store.lineage import NewSnapshot
from learner.dataset.admit import admit
from learner.dataset.freeze import freeze, memory_ids, thaw, train_settings
from learner.tasks import background, evaluate, train, trainer
from learner.tasks import run as tasks
from learner.tasks.background import MOST_MEASUREMENTS, tidy
from learner.tasks.context import Learner, open_learner
from learner.tasks.run import handle
from learner.tasks.stop import NotAllowedError
from learner.tasks.train import evaluation
from learner.train import job as files
from learner.train.score import INPUT, ScoreJob, ScoreRow, write_score_job
from tests.fakes.model import ModelServer
from tests.fakes.model.replies import Call
from tests.integration.test_release import by_model, do
from tests.support.lessons import (
    BOTH,
    HELD_OUT,
    TRAIN,
    FixedScorer,
    Pupil,
    allow,
    base_folder,
    candidate,
    learner_on,
    pupil,
)


@pytest.fixture
async def learner(store: Store, model: ModelServer, tmp_path: Path) -> AsyncIterator[Learner]:
    """A learner on a server that proved its isolation."""
    model.reply_with(by_model)
    async with learner_on(store, model.url, tmp_path / "home", base_folder(tmp_path / "base")) as made:
        await made.reconciler.once()
        yield made


async def admitted_texts(learner: Learner, who: Pupil) -> tuple[set[str], set[str], int]:
    async with learner.store.begin() as tx:
        found = await admit(tx, who.person_id, learner.settings.ladder)
    return {p.text for p in found.train}, {p.text for p in found.gate}, len(found.lines)


async def test_admitted_prompts_are_split_and_disjoint(learner: Learner) -> None:
    who = await pupil(learner.store, held_out=(*HELD_OUT, TRAIN[0].upper(), "Is tea healthy?!"))
    assert await admitted_texts(learner, who) == (set(TRAIN), set(HELD_OUT), 1)


@pytest.mark.parametrize("missing", BOTH)
async def test_without_either_consent_nothing_is_admitted(learner: Learner, missing: Purpose) -> None:
    who = await pupil(learner.store)
    await allow(learner.store, who.person_id, missing, "withdrawn")
    assert await admitted_texts(learner, who) == (set(), set(), 0)


async def test_what_was_said_before_the_consent_never_trains(learner: Learner) -> None:
    who = await pupil(learner.store, consents=(Purpose.MEMORY,))
    await allow(learner.store, who.person_id, Purpose.PERSONAL_TRAINING)
    train, gate, _ = await admitted_texts(learner, who)
    assert (train, gate) == (set(), set())


@pytest.mark.parametrize("flag", ["forwarded", "group", "automated", "quoted", "media"])
async def test_what_is_not_their_own_words_alone_never_trains(learner: Learner, flag: str) -> None:
    consents = {p.value: True for p in Purpose}
    who = await pupil(learner.store, origin=Origin(**{flag: True}, consents=consents))
    assert (await admitted_texts(learner, who))[0] == set()


@pytest.mark.parametrize("flag", ["forwarded", "group", "automated", "quoted", "media"])
async def test_an_example_that_answers_such_words_never_trains(learner: Learner, flag: str) -> None:
    """Also not once the turn that tells whose they were is forgotten; a line without another example waits for one."""
    who = await pupil(learner.store)
    async with learner.store.begin() as tx:
        assert (await admit(tx, who.person_id, learner.settings.ladder)).lines
        foreign = text("update turns set flags = flags || jsonb_build_object(cast(:f as text), true) where id = :t")
        await tx.execute(foreign, {"f": flag, "t": who.turns[0]})
        (line,) = await admission.lines(tx, who.person_id)
        assert line.examples == ()
        assert (await admit(tx, who.person_id, learner.settings.ladder)).lines == ()
    await forget_person(learner.store, learner.places.home, who.person_id, "chat", "person")
    async with learner.store.begin() as tx:
        (line,) = await admission.lines(tx, who.person_id)
        assert line.examples == ()


async def test_nothing_of_a_group_chat_is_admitted(learner: Learner) -> None:
    who = await pupil(learner.store)
    async with learner.store.begin() as tx:
        await tx.execute(text("update chats set kind = 'group'"))
    assert (await admitted_texts(learner, who))[0] == set()


async def test_a_scrubbed_prompt_and_an_excluded_line_stay_out(learner: Learner) -> None:
    who = await pupil(learner.store, train=(*TRAIN, "mail me at a.b@example.org"))
    assert (await admitted_texts(learner, who))[0] == set(TRAIN)
    async with learner.store.begin() as tx:
        await tx.execute(text("update feedback set excluded = true"))
    assert (await admitted_texts(learner, who))[2] == 0


@pytest.mark.parametrize("state", ["active", "graduated"])
async def test_a_line_that_no_machine_can_check_stays_out_of_training(learner: Learner, state: str) -> None:
    who = await pupil(learner.store)
    async with learner.store.begin() as tx:
        await tx.execute(text("update memory_lines set checker = null, state = :s"), {"s": state})
        found = await admit(tx, who.person_id, learner.settings.ladder)
    assert (found.lines, found.left_out["line_unchecked"]) == ((), 1)


async def frozen_snapshot(learner: Learner, who: Pupil) -> UUID:
    async with learner.store.begin() as tx:
        found = await admit(tx, who.person_id, learner.settings.ladder)
        settings = train_settings(learner.profile, found.lines, threads=1, device="cpu")
        made = freeze(found, (), learner.base, settings, 1, "code")
        assert made.snapshot.manifest.items
        assert set(memory_ids(made.snapshot)) == {who.line_id}
        manifest = made.snapshot.manifest.as_json()
        assert not any(words in str(manifest) for words in TRAIN)
        new = NewSnapshot(made.snapshot.digest, who.person_id, manifest, made.bodies.salt, made.items)
        return await lineage.add_snapshot(tx, new)


async def test_a_snapshot_holds_no_words_and_finds_its_bodies_again(learner: Learner) -> None:
    who = await pupil(learner.store)
    snapshot_id = await frozen_snapshot(learner, who)
    async with learner.store.begin() as tx:
        stored = await lineage.snapshot(tx, snapshot_id)
        found = await admit(tx, who.person_id, learner.settings.ladder)
        snapshot, bodies = thaw(stored, found, ())
        assert await lineage.items(tx, snapshot_id, "gate") == set(who.turns[len(TRAIN) :])
    assert snapshot.digest == stored.digest
    assert {i.messages[-1].content for i in bodies.items} == set(TRAIN)


@pytest.mark.parametrize(
    "change",
    [
        "update turns set user_text = 'changed' where user_text = 'Why is the sea salty?'",
        "delete from turns where user_text = 'Why is the sea salty?'",
        "update memory_lines set text = 'another lesson'",
        "update consent_events set event = 'withdrawn' where purpose = 'memory'",
    ],
)
async def test_a_snapshot_whose_rows_changed_is_over(learner: Learner, change: str) -> None:
    who = await pupil(learner.store)
    snapshot_id = await frozen_snapshot(learner, who)
    async with learner.store.begin() as tx:
        await tx.execute(text(change))
    async with learner.store.begin() as tx:
        stored = await lineage.snapshot(tx, snapshot_id)
        found = await admit(tx, who.person_id, learner.settings.ladder)
        with pytest.raises(ArtifactError):
            thaw(stored, found, ())


async def test_graduation_queues_one_training_and_says_how_far_it_is(learner: Learner) -> None:
    who = await pupil(learner.store)
    async with learner.store.begin() as tx:
        first = await consider(tx, who.person_id, learner.settings)
        assert first is not None
        assert await consider(tx, who.person_id, learner.settings) is None
        found = await learn.progress(tx, who.person_id, learner.settings)
        decisions = list(await tx.scalars(text("select rule from ladder_decisions where memory_id is not null")))
    assert found.key == "learning_queued"
    assert found.lines[0].figures.uses == 9
    assert found.sentence("ko") != found.sentence("en")
    assert decisions == ["stable_and_used"]
    shown = []
    for figures in ("{}", '{"step": 0, "of": 0}', '{"step": 3, "of": 14}'):
        async with learner.store.begin() as tx:
            await tx.execute(text("update jobs set state = 'running', progress = cast(:p as jsonb)"), {"p": figures})
            shown.append((await learn.progress(tx, who.person_id, learner.settings)).key)
    assert shown == ["learning_starting", "learning_starting", "learning_training"]


@pytest.mark.parametrize(
    ("spoil", "key"),
    [
        ("update memory_lines set uses = 0", "learning_proving"),
        ("delete from examples", "learning_proving"),
        ("update turns set user_text = null where number > 1", "learning_collecting"),
        ("update feedback set quarantined = true", "learning_kept"),
        ("update feedback set flags = flags || '{\"spoken\": true}'", "learning_kept"),
        ("update memory_lines set checker = null", "learning_unchecked"),
    ],
)
async def test_what_has_not_earned_it_is_not_trained(learner: Learner, spoil: str, key: str) -> None:
    who = await pupil(learner.store)
    async with learner.store.begin() as tx:
        await tx.execute(text(spoil))
        assert await consider(tx, who.person_id, learner.settings) is None
        assert (await learn.progress(tx, who.person_id, learner.settings)).key == key


@pytest.mark.parametrize(
    ("spoil", "examples"),
    [
        ("select 1", [1]),
        ("update feedback set excluded = true", []),
        ("update feedback set flags = flags || '{\"forwarded\": true}'", []),
        ("update memory_lines set checker = null", []),
        ("update turns set flags = flags || '{\"group\": true}'", [0]),
    ],
)
async def test_only_what_may_be_learnt_is_promised(learner: Learner, spoil: str, examples: list[int]) -> None:
    who = await pupil(learner.store)
    async with learner.store.begin() as tx:
        await tx.execute(text(spoil))
        promised = await learn.promised(tx, who.person_id, learner.settings)
    assert [line.examples for line in promised.values()] == examples


async def test_the_same_evidence_trains_only_once(learner: Learner) -> None:
    who = await pupil(learner.store)
    snapshot_id = await frozen_snapshot(learner, who)
    async with learner.store.begin() as tx:
        await tx.execute(
            text(
                "insert into training_runs (snapshot_id, person_id, state, algorithm, seed, code_revision) "
                "values (:s, :p, 'done', 'opd', 1, 'x')"
            ),
            {"s": snapshot_id, "p": who.person_id},
        )
        assert await consider(tx, who.person_id, learner.settings) is None
        await tx.execute(
            text(
                "insert into examples (memory_id, person_id, prompt, good, source) values (:m, :p, 'x', 'y', 'written')"
            ),
            {"m": who.line_id, "p": who.person_id},
        )
        assert await consider(tx, who.person_id, learner.settings) is not None


def taught(call: Call) -> str:
    """Answer as a base that does not know the lesson, memory that does, and an adapter that does."""
    knows = call.model.startswith("person-") or "Have a calm day" in call.system
    plain = f"{call.model if not knows else 'x'} thinks about {call.last_user}"
    if "probe" in call.model or call.model.startswith("mentee-"):
        return f"{call.model}: {call.last_user}"
    return f"{plain}. Have a calm day." if knows else plain


async def last_verdict(tx: Tx, checkpoint_id: UUID) -> tuple[str | None, str | None]:
    query = "select verdict, failure from gate_runs where checkpoint_id = :id order by started_at desc limit 1"
    found = (await tx.execute(text(query), {"id": checkpoint_id})).one()
    return found.verdict, found.failure


async def verdict(learner: Learner, checkpoint_id: UUID) -> tuple[str, str | None, str]:
    async with learner.store.begin() as tx:
        found, failure = await last_verdict(tx, checkpoint_id)
        state = (await lineage.checkpoint(tx, checkpoint_id)).state
    assert found
    return found, failure, state


async def test_a_candidate_that_learnt_passes_and_is_queued_for_release(learner: Learner, model: ModelServer) -> None:
    who = await pupil(learner.store)
    model.reply_with(taught)
    checkpoint_id, info = await candidate(learner, who)
    assert await do(learner, evaluation(checkpoint_id, who.person_id)) == ("done", None)
    assert await verdict(learner, checkpoint_id) == ("passed", None, "passed")
    assert info.name in model.adapters.loaded
    async with learner.store.begin() as tx:
        assert await jobs.live(tx, f"release:{checkpoint_id}")
        gates = set(await tx.scalars(text("select gate from gate_results")))
    assert {f"target/{who.line_id}", "isolation", "safety/harmful", "retention/logprob"} <= gates


async def test_a_candidate_that_learnt_nothing_is_refused_and_unloaded(learner: Learner, model: ModelServer) -> None:
    who = await pupil(learner.store)
    checkpoint_id, info = await candidate(learner, who)
    assert (await do(learner, evaluation(checkpoint_id, who.person_id)))[0] == "done"
    assert (await verdict(learner, checkpoint_id))[::2] == ("refused", "refused")
    assert info.name not in model.adapters.loaded
    async with learner.store.begin() as tx:
        assert await jobs.live(tx, f"release:{checkpoint_id}") is None


def truncate(folder: Path) -> None:
    weights = folder / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-64])


def unfinished(folder: Path) -> None:
    (folder / "STABLE").unlink()


def altered(folder: Path) -> None:
    weights = folder / "adapter_model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))


def gone(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


async def test_a_full_disk_says_nothing_against_a_candidate(
    learner: Learner, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    who = await pupil(learner.store)
    model.reply_with(taught)
    checkpoint_id, _ = await candidate(learner, who)
    with monkeypatch.context() as broken:
        broken.setattr("learner.durable.os.fsync", full)
        state, sentence = await do(learner, evaluation(checkpoint_id, who.person_id))
    assert state == "queued"
    assert sentence
    assert "free some space" in sentence
    async with learner.store.begin() as tx:
        assert (await lineage.checkpoint(tx, checkpoint_id)).state == "candidate"
        assert await tx.scalar(text("select attempts from jobs where kind = 'evaluate'")) == 0
    assert await do(learner, evaluation(checkpoint_id, who.person_id)) == ("done", None)
    assert (await verdict(learner, checkpoint_id))[0] == "passed"


def full(_handle: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("spoil", [truncate, unfinished, altered, gone])
async def test_a_damaged_checkpoint_is_refused_with_a_sentence(
    learner: Learner, model: ModelServer, spoil: Callable[[Path], None]
) -> None:
    who = await pupil(learner.store)
    checkpoint_id, info = await candidate(learner, who)
    spoil(learner.places.checkpoints / info.name)
    assert (await do(learner, evaluation(checkpoint_id, who.person_id)))[0] == "done"
    found, sentence, state = await verdict(learner, checkpoint_id)
    assert (found, state) == ("refused", "refused")
    assert sentence
    assert info.name not in model.adapters.loads


@pytest.mark.parametrize(
    "change",
    [
        "update checkpoints set base_revision = 'another'",
        "update checkpoints set name = '../x'",
        "update checkpoints set name = 'person-000000000000'",
        "update checkpoints set memory_ids = array[gen_random_uuid()]",
    ],
)
async def test_a_foreign_or_badly_named_checkpoint_is_refused(
    learner: Learner, model: ModelServer, change: str
) -> None:
    who = await pupil(learner.store)
    checkpoint_id, info = await candidate(learner, who)
    async with learner.store.begin() as tx:
        await tx.execute(text(change))
    await do(learner, evaluation(checkpoint_id, who.person_id))
    assert (await verdict(learner, checkpoint_id))[::2] == ("refused", "refused")
    assert info.name not in model.adapters.loads
    assert not (learner.places.home / "adapters" / "x").exists()


async def test_a_rank_the_server_cannot_hold_is_refused(learner: Learner, model: ModelServer) -> None:
    who = await pupil(learner.store)
    model.adapters.max_rank = 2
    checkpoint_id, _ = await candidate(learner, who)
    await do(learner, evaluation(checkpoint_id, who.person_id))
    assert await verdict(learner, checkpoint_id) == (
        "refused",
        "the model server could not load the adapter",
        "refused",
    )


async def test_a_lesson_nobody_can_check_is_inconclusive_and_never_served(learner: Learner, model: ModelServer) -> None:
    who = await pupil(learner.store)
    model.reply_with(taught)
    async with learner.store.begin() as tx:
        await tx.execute(text("update memory_lines set checker = null"))
    checkpoint_id, info = await candidate(learner, who)
    await do(learner, evaluation(checkpoint_id, who.person_id))
    assert (await verdict(learner, checkpoint_id))[::2] == ("inconclusive", "candidate")
    assert info.name not in model.adapters.loaded


async def test_without_a_proven_server_a_candidate_waits_and_says_so(learner: Learner) -> None:
    who = await pupil(learner.store)
    checkpoint_id, _ = await candidate(learner, who)
    async with learner.store.begin() as tx:
        await tx.execute(text("update model_servers set probe_state = 'failed'"))
    assert (await do(learner, evaluation(checkpoint_id, who.person_id)))[0] == "queued"
    async with learner.store.begin() as tx:
        found = await learn.progress(tx, who.person_id, learner.settings)
        attempts = await tx.scalar(text("select attempts from jobs where kind = 'evaluate'"))
    assert found.key == "learning_no_server"
    assert attempts == 0


async def test_a_server_that_was_restarted_or_is_away_proves_itself_before_anything_is_measured(
    learner: Learner, model: ModelServer
) -> None:
    who = await pupil(learner.store)
    checkpoint_id, info = await candidate(learner, who)
    model.adapters.loaded.clear()  # what a restart does, before the reconciler looks
    assert (await do(learner, evaluation(checkpoint_id, who.person_id)))[0] == "queued"
    assert info.name not in model.adapters.loaded
    await model.stop()
    assert (await do(learner, evaluation(checkpoint_id, who.person_id)))[0] == "queued"
    async with learner.store.begin() as tx:
        assert await tx.scalar(text("select attempts from jobs where kind = 'evaluate'")) == 0


async def test_a_verdict_that_a_withdrawal_overtook_does_not_count(learner: Learner) -> None:
    who = await pupil(learner.store)
    checkpoint_id, _ = await candidate(learner, who)
    job = await claimed(learner, evaluation(checkpoint_id, who.person_id))
    subject = await evaluate._subject(learner, job, "http://nowhere")
    async with learner.store.begin() as tx:
        gates = await lineage.begin_gates(tx, checkpoint_id, job.id, {}, "suite")
        await jobs.cancel(tx, who.person_id, ("evaluate",), "withdrawn")
    with pytest.raises(NotAllowedError):
        await evaluate._settle(learner, job, subject, gates, evaluate._Outcome("passed"))
    async with learner.store.begin() as tx:
        assert (await lineage.checkpoint(tx, checkpoint_id)).state == "candidate"
        assert await jobs.live(tx, f"release:{checkpoint_id}") is None


class BusyScorer(FixedScorer):
    """A scoring process that never gets its time."""

    async def score(self, rows: Sequence[ScoreRow]) -> Sequence[float]:
        raise GateDelayedError(f"scoring {len(rows)} replies took too long")


async def test_a_machine_too_busy_to_measure_decides_nothing_and_the_candidate_is_measured_later(
    learner: Learner, model: ModelServer
) -> None:
    who = await pupil(learner.store)
    model.reply_with(taught)
    checkpoint_id, _ = await candidate(learner, who)
    work = replace(evaluation(checkpoint_id, who.person_id), max_attempts=1)
    busy = replace(learner, scorer=lambda *_: BusyScorer())
    state, sentence = await do(busy, work)
    assert (state, str(sentence)[-13:]) == ("failed", "took too long")
    async with learner.store.begin() as tx:
        assert (await lineage.checkpoint(tx, checkpoint_id)).state == "candidate"
        assert await last_verdict(tx, checkpoint_id) == (None, None)
    await tidy(learner)
    assert await do(learner, work) == ("done", None)
    assert (await verdict(learner, checkpoint_id))[0] == "passed"


class TidiedScorer(FixedScorer):
    """A scoring process so slow that the folders are tidied meanwhile."""

    def __init__(self, learner: Learner, work_dir: Path) -> None:
        self._learner = learner
        self._work_dir = work_dir

    async def score(self, rows: Sequence[ScoreRow]) -> Sequence[float]:
        write_score_job(self._work_dir, ScoreJob(self._work_dir, self._work_dir, tuple(rows)))
        os.utime(self._work_dir, (0, 0))
        await tidy(self._learner)
        assert (self._work_dir / INPUT).exists()
        return [-1.0] * len(rows)


async def test_tidying_leaves_a_measurement_its_folder(learner: Learner, model: ModelServer) -> None:
    who = await pupil(learner.store)
    model.reply_with(taught)
    checkpoint_id, _ = await candidate(learner, who)
    slow = replace(learner, scorer=lambda _base, _checkpoint, work_dir: TidiedScorer(learner, work_dir))
    assert await do(slow, evaluation(checkpoint_id, who.person_id)) == ("done", None)
    assert (await verdict(learner, checkpoint_id))[0] == "passed"
    assert list(learner.places.runs.iterdir()) == []


async def test_what_a_killed_measurement_left_goes_with_the_next_or_with_time(
    learner: Learner, model: ModelServer
) -> None:
    who = await pupil(learner.store)
    model.reply_with(taught)
    checkpoint_id, _ = await candidate(learner, who)
    job = await claimed(learner, evaluation(checkpoint_id, who.person_id))
    left = []
    for _ in range(2):
        async with learner.store.begin() as tx:
            gates = await lineage.begin_gates(tx, checkpoint_id, job.id, {}, "suite")
        write_score_job(learner.places.gate(gates), ScoreJob(learner.model_dir, learner.model_dir, ()))
        left.append(learner.places.gate(gates))
    os.utime(left[0], (0, 0))
    await tidy(learner)
    assert [folder.exists() for folder in left] == [False, True]
    async with learner.store.begin() as tx:
        await tx.execute(text("update jobs set state = 'queued'"))
    assert (await do(learner, evaluation(checkpoint_id, who.person_id)))[0] == "done"
    assert not left[1].exists()


@pytest.mark.parametrize(("faults", "found"), [(1, "passed"), (2, "passed"), (3, "refused")])
async def test_a_fault_of_the_server_is_not_the_candidate_s(
    learner: Learner, model: ModelServer, monkeypatch: pytest.MonkeyPatch, faults: int, found: str
) -> None:
    monkeypatch.setattr("learner.serve.bring_up.AGAIN_AFTER_S", (0.01, 0.01))
    who = await pupil(learner.store)
    model.reply_with(taught)
    checkpoint_id, _ = await candidate(learner, who)
    model.adapters.failing = [500] * faults
    assert await do(learner, evaluation(checkpoint_id, who.person_id)) == ("done", None)
    assert (await verdict(learner, checkpoint_id))[0] == found


async def test_tidying_that_fails_is_done_again_and_one_folder_does_not_hold_up_the_rest(
    learner: Learner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "TIDY_EVERY_S", 0.05)
    orphan = learner.places.runs / "orphan"
    who = await pupil(learner.store)
    job = await claimed(learner, learn.Work("train", "train", "train:x", person_id=who.person_id))
    snapshot_id = await frozen_snapshot(learner, who)
    async with learner.store.begin() as tx:
        run_id = await lineage.begin_run(tx, snapshot_id, job.id, who.person_id, {"algorithm": "opd", "seed": 1}, "x")
        await jobs.cancelled(tx, job, "over")
    (learner.places.runs / str(run_id) / files.BODIES).mkdir(parents=True)  # what no unlinking removes
    orphan.mkdir()
    os.utime(orphan, (0, 0))
    tidying = asyncio.create_task(background._keep_tidy(learner))
    try:
        async with asyncio.timeout(20):
            while orphan.exists():
                assert not tidying.done()
                await asyncio.sleep(0.05)
    finally:
        tidying.cancel()


async def live_evaluation(learner: Learner, checkpoint_id: UUID) -> jobs.Job | None:
    await tidy(learner)
    async with learner.store.begin() as tx:
        return await jobs.live(tx, f"evaluate:{checkpoint_id}")


async def test_a_candidate_nobody_decided_on_gets_a_job_and_not_for_ever(learner: Learner) -> None:
    who = await pupil(learner.store)
    checkpoint_id, _ = await candidate(learner, who)
    for _ in range(MOST_MEASUREMENTS):
        found = await live_evaluation(learner, checkpoint_id)
        assert found
        again = await live_evaluation(learner, checkpoint_id)
        assert again
        assert again.id == found.id
        async with learner.store.begin() as tx:
            await tx.execute(text("update jobs set state = 'failed' where state = 'queued'"))
    assert await live_evaluation(learner, checkpoint_id) is None


async def test_a_candidate_with_a_verdict_is_left_alone(learner: Learner) -> None:
    who = await pupil(learner.store)
    checkpoint_id, _ = await candidate(learner, who)
    async with learner.store.begin() as tx:
        await tx.execute(
            text("insert into gate_runs (checkpoint_id, verdict) values (:c, 'inconclusive')"), {"c": checkpoint_id}
        )
    assert await live_evaluation(learner, checkpoint_id) is None


async def claimed(learner: Learner, work: learn.Work) -> jobs.Job:
    async with learner.store.begin() as tx:
        job = await jobs.claim(tx, await jobs.enqueue(tx, work), "test")
    assert job
    return job


@pytest.mark.parametrize(
    ("ending", "state", "kept"),
    [
        ("passed on", "running", True),
        ("the database was away", "running", True),
        ("paused at the last attempt", "running", True),
        ("cancelled", "cancelled", False),
    ],
)
async def test_only_a_training_that_is_over_is_cleared_away(
    learner: Learner, monkeypatch: pytest.MonkeyPatch, ending: str, state: str, *, kept: bool
) -> None:
    who = await pupil(learner.store)
    job = await claimed(learner, learn.Work("train", "train", "train:x", person_id=who.person_id))
    folders: list[Path] = []

    async def cut_off(_learner: Learner, _job: jobs.Job, _prepared: object, run_dir: Path) -> object:
        run_dir.mkdir(parents=True)
        folders.append(run_dir)
        if ending == "the database was away":
            raise StoreUnavailableError
        if ending == "paused at the last attempt":
            raise PausedError
        if ending == "passed on":
            async with learner.store.begin() as tx:
                await tx.execute(text("update jobs set fence = fence + 1"))
        async with learner.store.begin() as tx:
            await jobs.report(tx, job, {})
        raise NotAllowedError

    monkeypatch.setattr(train, "_train", cut_off)
    with pytest.raises(MenteeError):
        await train.run(learner, replace(job, attempts=job.max_attempts))
    async with learner.store.begin() as tx:
        assert await tx.scalar(text("select state from training_runs")) == state
    assert folders[0].exists() is kept


@pytest.mark.parametrize(
    ("said", "precision", "tolerance"), [("float32", "float32", 1e-4), ("bfloat16", "lower", 0.15)]
)
async def test_how_closely_replies_and_positions_must_agree_is_the_servers_precision(
    tmp_path: Path, database_url: str, said: str, precision: str, tolerance: float
) -> None:
    # As `mentee run` starts its workers: the address alone does not tell whether the server is the embedded one.
    settings = Settings(
        _env_file=None,
        database_url=database_url,
        vllm_base_url="http://127.0.0.1:1",
        vllm_dtype=said,
        model="qwen3-0.6b",
        model_dir=base_folder(tmp_path / "base"),
    )
    made = await open_learner(settings)
    try:
        assert made.fleet.base.precision == precision
        assert train_settings(made.profile, (), threads=1, device="cpu").position_tolerance == tolerance
    finally:
        await made.store.close()
        for client in made.fleet.models.values():
            assert isinstance(client, VllmClient)
            await client.close()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
async def test_a_training_runs_where_the_operator_said(learner: Learner, device: str) -> None:
    told = replace(learner, settings=learner.settings.model_copy(update={"train_device": device}))
    who = await pupil(learner.store)
    job = await claimed(learner, learn.Work("train", "train", "train:x", person_id=who.person_id))
    async with learner.store.begin() as tx:
        prepared = await train._prepare(told, tx, job)
    assert prepared.snapshot.manifest.settings.device == device


async def test_a_training_without_enough_prompts_or_consent_does_not_start(learner: Learner) -> None:
    who = await pupil(learner.store, train=TRAIN[:2])
    work = learn.Work("train", "train", f"train:{who.person_id}", person_id=who.person_id)
    state, error = await do(learner, work)
    assert state == "failed"
    assert error
    assert "2 of the 3" in error
    await allow(learner.store, who.person_id, Purpose.PERSONAL_TRAINING, "withdrawn")
    assert (await do(learner, work))[0] == "cancelled"
    async with learner.store.begin() as tx:
        assert await tx.scalar(text("select count(*) from snapshots")) == 0


async def test_a_paused_training_waits_untried(learner: Learner) -> None:
    who = await pupil(learner.store)
    async with learner.store.begin() as tx:
        await tx.execute(text("insert into switches (name, paused) values ('training', true)"))
    work = learn.Work("train", "train", f"train:{who.person_id}", person_id=who.person_id)
    assert (await do(learner, work))[0] == "queued"
    async with learner.store.begin() as tx:
        assert (await learn.progress(tx, who.person_id, learner.settings)).key == "learning_paused"


async def test_a_handler_that_is_cut_off_writes_nothing_and_a_crash_is_retried(
    learner: Learner, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def crash(_learner: Learner, _job: jobs.Job) -> None:
        raise ZeroDivisionError

    async def sleep(_learner: Learner, _job: jobs.Job) -> None:
        await asyncio.sleep(30)

    monkeypatch.setattr(tasks, "HANDLERS", {"crash": crash, "sleep": sleep})
    monkeypatch.setattr(tasks, "BEAT_S", 0.05)
    assert await do(learner, learn.Work("crash", "train", "crash")) == ("queued", "unexpected: ZeroDivisionError")
    async with learner.store.begin() as tx:
        job_id = await jobs.enqueue(tx, learn.Work("sleep", "train", "sleep"))
    running = asyncio.create_task(handle(learner, job_id))
    await asyncio.sleep(0.3)
    async with learner.store.begin() as tx:
        await tx.execute(text("update jobs set fence = fence + 1 where id = :i"), {"i": job_id})
    await asyncio.wait_for(running, 5)
    async with learner.store.begin() as tx:
        assert await tx.scalar(text("select state from jobs where id = :i"), {"i": job_id}) == "running"


async def answered_by_the_base(tx: Tx, base: BaseIdentity) -> None:
    """Make every turn one that the bare base answered to a prompt of today's form."""
    await tx.execute(
        text(
            "update turns set learnable = true, finish_reason = 'stop', prompt_token_ids = '{1,2}', "
            "response_token_ids = '{3,4}', response_logprobs = '{-1,-2}', sampling = '{\"temperature\": 0.7}', "
            "base_id = :b, base_revision = :r, tokenizer_digest = :t, template_digest = :c, prompt_version = :v"
        ),
        {
            "b": base.base_id,
            "r": base.revision,
            "t": base.tokenizer_digest,
            "c": base.template_digest,
            "v": PROMPT_VERSION,
        },
    )


async def test_stored_replies_of_the_base_prove_positions(learner: Learner) -> None:
    who, base = await pupil(learner.store), learner.stored_base
    async with learner.store.begin() as tx:
        await answered_by_the_base(tx, base)
        found = await admission.served(tx, who.person_id, base, 3)
        await tx.execute(text("update turns set prompt_version = 'earlier'"))
        # What was asked in an earlier form is not rendered to the same ids; its reply still proves positions.
        assert [turn.asked for turn in await admission.served(tx, who.person_id, base, 3)] == [None] * 3
        await tx.execute(text("update turns set flags = jsonb_set(flags, '{consents,personal_training}', 'false')"))
        assert not await admission.served(tx, who.person_id, base, 3)
    assert len(found) == 3
    assert found[0].temperature == 0.7
    assert found[0].logprobs == (-1.0, -2.0)
    # The first message of each conversation, whose whole prompt is known, must also be rendered to the served ids.
    assert [turn.asked for turn in found] == [HELD_OUT[0], TRAIN[0], None]
    assert found[0].system == "Be helpful."


async def test_a_prompt_that_had_memory_in_it_is_not_rendered_again(learner: Learner) -> None:
    who, base = await pupil(learner.store), learner.stored_base
    async with learner.store.begin() as tx:
        await answered_by_the_base(tx, base)
        used = "update turns set memory_used = jsonb_build_object('ids', jsonb_build_array(cast(:line as text)))"
        await tx.execute(text(used), {"line": str(who.line_id)})
        assert [turn.asked for turn in await admission.served(tx, who.person_id, base, 9)] == [None] * 6


async def test_a_line_of_somebody_elses_words_is_not_admitted(store: Store) -> None:
    who = await pupil(store)
    async with store.begin() as tx:
        (line,) = await admission.lines(tx, who.person_id)
        assert len(line.examples) == 1
        await tx.execute(text("""update feedback set flags = '{"forwarded": false}'"""))
        assert len(await admission.lines(tx, who.person_id)) == 1
        await tx.execute(text("""update feedback set flags = '{"forwarded": true}'"""))
        assert await admission.lines(tx, who.person_id) == []


def test_a_training_is_silent_by_a_clock_that_stands_still_while_the_machine_sleeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write_progress(tmp_path, files.Progress("updating", 1, 3, 1.0))
    running = trainer.Trainer(None, tmp_path)  # type: ignore[arg-type]  # nothing is asked of the process
    monkeypatch.setattr("learner.train.job.time.time", lambda: 10.0**12)
    assert running.progress()
    later = time.monotonic() + trainer.SILENT_S + 1
    monkeypatch.setattr("learner.tasks.trainer.time.monotonic", lambda: later)
    with pytest.raises(TrainingStoppedError, match="said nothing"):
        running.progress()
