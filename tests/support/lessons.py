"""Somebody whose memory has earned a training: rows as the road leaves them, and a learner on a fake model server."""

import json
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from sqlalchemy import func, insert, text, update

from app.clients.vllm import VllmClient
from app.config import LadderSettings, Settings
from app.domain.consent import Purpose
from app.domain.event import ChatAddress, Sender
from app.domain.memory import Example
from app.domain.profiles import IDENTITY_FILE, ModelIdentity, profile
from app.domain.turn import Origin
from app.store import Store, Tx, lineage, memory, people
from app.store.lineage import NewCheckpoint, NewSnapshot
from app.store.tables.feedback import feedback, memory_lines
from app.store.tables.people import sessions
from app.store.tables.road import inbox, turns
from learner.artifacts import AdapterInfo, write_adapter
from learner.tasks.context import Learner, assemble
from learner.train.score import ScoreRow
from tests.fakes.adapters import lineage as adapter_lineage
from tests.fakes.adapters import tiny_tensors

MODEL = "smollm2-135m"
BOTH = (Purpose.MEMORY, Purpose.PERSONAL_TRAINING)
TRAIN = ("How do I boil an egg?", "Why is the sea salty?", "What is a good hobby?", "How do plants drink?")
HELD_OUT = ("Why do cats purr?", "What is a comet?")
WIDTH = 8
LADDER = LadderSettings(train_cooldown_s=0, graduate_after_uses=2, graduate_after_sessions=1)


@dataclass(frozen=True)
class Pupil:
    """A person in a private chat with a lesson that earned its place."""

    person_id: UUID
    chat_id: UUID
    bot_id: UUID
    external_id: str
    line_id: UUID
    feedback_id: UUID
    sessions: tuple[UUID, ...]
    turns: tuple[UUID, ...]


@dataclass
class FixedScorer:
    """Stands where the scoring process would: every reply as likely with the adapter as without."""

    asked: int = 0

    async def score(self, rows: Sequence[ScoreRow]) -> Sequence[float]:
        self.asked += len(rows)
        return [-1.0] * len(rows)


async def pupil(
    store: Store,
    name: str = "pupil-1",
    *,
    consents: tuple[Purpose, ...] = BOTH,
    train: Sequence[str] = TRAIN,
    held_out: Sequence[str] = HELD_OUT,
    lesson: str = "End every answer with: Have a calm day.",
    origin: Origin | None = None,
) -> Pupil:
    """Write the rows of a person whose lesson is ripe."""
    async with store.begin() as tx:
        bot_id = await people.ensure_bot(tx, "web", "web")
        if await people.identity(tx, bot_id) is None:
            await people.add_identity(
                tx, bot_id, name="Mentee", system_prompt="Be helpful.", privacy_notice="-", created_by="test"
            )
        identity = await people.identity(tx, bot_id)
        assert identity
        account = await people.account_of(tx, bot_id, Sender(name, name=name))
        chat = await people.chat_of(tx, bot_id, ChatAddress(name), account.person_id)
        for purpose in consents:
            await allow(store, account.person_id, purpose, tx=tx)
        made: list[UUID] = []
        session_ids: list[UUID] = []
        flags = origin or Origin(consents={p.value: p in consents for p in Purpose})
        for number, (split, texts) in enumerate((("train", train), ("heldout", held_out)), 1):
            opened = insert(sessions).values(
                chat_id=chat.id, person_id=account.person_id, number=number, split=split, ended_at=func.now()
            )
            session_ids.append(UUID(str(await tx.scalar(opened.returning(sessions.c.id)))))
            for words in texts:
                turn = insert(turns).values(
                    session_id=session_ids[-1],
                    chat_id=chat.id,
                    person_id=account.person_id,
                    state="done",
                    user_text=words,
                    reply_text=f"Reply to {words}",
                    flags=flags.document(),
                    identity_id=identity.id,
                )
                made.append(UUID(str(await tx.scalar(turn.returning(turns.c.id)))))
        given = insert(feedback).values(
            turn_id=made[0], person_id=account.person_id, kind="correction", text=lesson, **{"class": "style"}
        )
        feedback_id = UUID(str(await tx.scalar(given.returning(feedback.c.id))))
        checker = {"all": [{"kind": "ends_with", "value": "Have a calm day."}]}
        line_id = await memory.add(
            tx, account.person_id, kind="preference", text=lesson, checker=checker, feedback_id=feedback_id
        )
        await tx.execute(
            update(memory_lines).where(memory_lines.c.id == line_id).values(uses=9, session_ids=session_ids)
        )
        line = await memory.access_line(tx, account.person_id, line_id)
        shown = Example("Is tea healthy?", "It mostly is. Have a calm day.", "It mostly is.", "written")
        await memory.add_example(tx, line, shown, made[0])
        await tx.execute(insert(inbox).values(bot_id=bot_id, lane=f"{bot_id}:web:{name}", body=lesson.encode()))
    return Pupil(account.person_id, chat.id, bot_id, name, line_id, feedback_id, tuple(session_ids), tuple(made))


async def allow(store: Store, person_id: UUID, purpose: Purpose, event: str = "given", tx: Tx | None = None) -> None:
    """Record an answer."""
    if tx is None:
        async with store.begin() as opened:
            await allow(store, person_id, purpose, event, tx=opened)
        return
    await people.record_consent(
        tx, person_id, purpose, event, notice="n", language="en", channel="web", evidence="test"
    )


def base_folder(path: Path) -> Path:
    """Write a base of toy size, without weights: enough for the probe, the artifacts and the fake server."""
    path.mkdir(parents=True)
    config = {
        "hidden_size": WIDTH,
        "intermediate_size": WIDTH,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "num_hidden_layers": 2,
    }
    (path / "config.json").write_text(json.dumps(config))
    identity = ModelIdentity(MODEL, "Toy", "r1", "t" * 64, "c" * 64, "test")
    (path / IDENTITY_FILE).write_text(identity.dump())
    return path


@asynccontextmanager
async def learner_on(
    store: Store, url: str, home: Path, model_dir: Path, scorer: FixedScorer | None = None
) -> AsyncIterator[Learner]:
    """Yield a learner on one model server."""
    settings = Settings(mentee_home=home, model_dir=model_dir, ladder=LADDER)
    client = VllmClient(url)
    made = assemble(store, settings, profile(MODEL), {url: client})
    fixed = scorer or FixedScorer()
    try:
        yield replace(made, scorer=lambda *_: fixed)
    finally:
        await client.close()


async def candidate(learner: Learner, who: Pupil, seed: int = 0, state: str = "candidate") -> tuple[UUID, AdapterInfo]:
    """Write what a training would have left: snapshot, run, checkpoint row and folder."""
    scratch = learner.places.home / f"scratch-{seed}"
    info = write_adapter(scratch, tiny_tensors(4, WIDTH, seed=seed), 4, 8, adapter_lineage(learner.base))
    place = learner.places.checkpoints / info.name
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(scratch, place)
    async with learner.store.begin() as tx:
        snapshot = NewSnapshot(info.content_sha256, who.person_id, {"seed": seed}, b"salt")
        snapshot_id = await lineage.add_snapshot(tx, snapshot)
        run_id = UUID(
            str(
                await tx.scalar(
                    text(
                        "insert into training_runs (snapshot_id, person_id, state, algorithm, seed, code_revision) "
                        "values (:s, :p, 'done', 'opd', 1, 'x') returning id"
                    ),
                    {"s": snapshot_id, "p": who.person_id},
                )
            )
        )
        new = NewCheckpoint(
            name=info.name,
            digest=info.content_sha256,
            person_id=who.person_id,
            run_id=run_id,
            base=learner.stored_base,
            rank=4,
            targets=info.targets,
            path=str(place),
            size_bytes=info.size_bytes,
            memory_ids=(who.line_id,),
        )
        checkpoint_id = await lineage.add_checkpoint(tx, new)
        if state != "candidate":
            await lineage.set_state(tx, checkpoint_id, state, among=("candidate",))
        if state == "passed":
            await tx.execute(
                text("insert into gate_runs (checkpoint_id, verdict) values (:c, 'passed')"), {"c": checkpoint_id}
            )
    return checkpoint_id, info
