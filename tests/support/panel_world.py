"""A small world for the panel's tests and pictures: people with different consents, feedback, a checkpoint's whole lineage."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Table, insert

from app.clock import now
from app.store import Store, Tx
from app.store.tables import admin, feedback, learning, people, road

LENGTH_GROWTH = 0.15
ALLOWED = ("service", "memory", "personal_training", "human_review")


@dataclass
class World:
    """The ids that tests ask for."""

    bot: UUID
    open_person: UUID
    closed_person: UUID
    checkpoint: UUID
    refused: UUID
    release: UUID
    correction: UUID
    closed_feedback: UUID
    group_feedback: UUID
    hostile: UUID
    feedback: list[UUID] = field(default_factory=list)


async def add(tx: Tx, table: Table, **values: object) -> UUID:
    return UUID(str((await tx.execute(insert(table).values(**values).returning(table.c.id))).scalar_one()))


async def consent(
    tx: Tx, person: UUID, purposes: Sequence[str], event: str = "given", at: datetime | None = None
) -> None:
    for purpose in purposes:
        await tx.execute(
            insert(people.consent_events).values(
                person_id=person,
                purpose=purpose,
                event=event,
                notice_version="1",
                notice_language="en",
                notice_digest=b"x" * 32,
                channel="web",
                at=at or now(),
            )
        )


@dataclass
class Talk:
    """A person in a chat of their own."""

    person: UUID
    chat: UUID
    session: UUID


async def someone(tx: Tx, bot: UUID, name: str, language: str, purposes: Sequence[str], kind: str = "private") -> Talk:
    person = await add(
        tx, people.people, language=language, asked_consent=True, last_seen_at=now() - timedelta(minutes=7)
    )
    await add(tx, people.accounts, person_id=person, bot_id=bot, external_id=name)
    await consent(tx, person, purposes, at=now() - timedelta(days=9))
    chat = await add(
        tx, people.chats, bot_id=bot, external_id=name, kind=kind, person_id=person if kind == "private" else None
    )
    session = await add(tx, people.sessions, chat_id=chat, person_id=person, number=1)
    return Talk(person, chat, session)


async def turn(tx: Tx, talk: Talk, user: str, reply: str, **more: object) -> UUID:
    return await add(
        tx,
        road.turns,
        **{
            "session_id": talk.session,
            "chat_id": talk.chat,
            "person_id": talk.person,
            "state": "done",
            "user_text": user,
            "reply_text": reply,
            "base_id": "SmolLM2-135M-Instruct",
            "memory_version": 3,
            "prompt_version": "1",
            "finish_reason": "stop",
            "learnable": True,
            "response_token_ids": list(range(48)),
            "first_token_ms": 182.0,
            **more,
        },
    )


async def said(tx: Tx, talk: Talk, turn_id: UUID, kind: str, text: str | None, **more: object) -> UUID:
    values: Mapping[str, object] = {
        "turn_id": turn_id,
        "person_id": talk.person,
        "kind": kind,
        "text": text,
        "language": "en",
        "confidence": 0.85,
        "classified_by": "rule",
        "consents": {"service": True, "memory": True, "personal_training": True, "human_review": True},
        "created_at": now() - timedelta(minutes=18),
        **more,
    }
    return await add(tx, feedback.feedback, **values)


async def vote(tx: Tx, talk: Talk, turn_id: UUID, value: int, days_ago: int = 0) -> None:
    at = now() - timedelta(days=days_ago)
    await add(tx, feedback.votes, turn_id=turn_id, person_id=talk.person, value=value, source="button", changed_at=at)


HOSTILE = "\u202e<img src=x onerror=alert(1)>\u200b<script>alert(2)</script>\u2066 {{ 7*7 }} javascript:alert(3)"


async def build(store: Store) -> World:
    """Make the world in one transaction."""
    async with store.begin() as tx:
        bot = await add(tx, people.bots, channel="web", external_id="web")
        await _identities(tx, bot)
        mina = await someone(tx, bot, "mina", "ko", ALLOWED)
        leo = await someone(tx, bot, "leo", "en", ("service", "memory"))
        crowd = await someone(tx, bot, "crowd", "en", ALLOWED, kind="group")
        checkpoint, refused, release = await _lineage(tx, mina)
        feedback_ids = await _conversations(tx, mina, leo, checkpoint)
        group_turn = await turn(tx, crowd, "group words of several people", "reply to the group")
        group = await said(tx, crowd, group_turn, "correction", "group correction", **{"class": "style"})
        hostile_turn = await turn(tx, mina, HOSTILE, f"reply {HOSTILE}")
        hostile = await said(tx, mina, hostile_turn, "correction", f"fix {HOSTILE}", **{"class": "abuse"})
        await _machine(tx)
        await _memory(tx, mina, checkpoint, feedback_ids[0])
    return World(
        bot,
        mina.person,
        leo.person,
        checkpoint,
        refused,
        release,
        feedback_ids[0],
        feedback_ids[-1],
        group,
        hostile,
        feedback_ids,
    )


async def _identities(tx: Tx, bot: UUID) -> None:
    shared = {"bot_id": bot, "name": "Mentee", "created_by": "mina", "contact": "help@example.org"}
    notice = "What you write is stored so that I can answer. Nothing trains a model unless you switch it on."
    first = "You are a helpful assistant. Answer in a few sentences."
    second = "You are a friendly assistant. Answer in two or three short sentences, in the language of the question."
    facts = {"opening hours": "9-18", "place": "Seoul"}
    await add(tx, people.bot_identities, version=1, system_prompt=first, privacy_notice=notice, **shared)
    await add(tx, people.bot_identities, version=2, system_prompt=second, privacy_notice=notice, facts=facts, **shared)


async def _conversations(tx: Tx, mina: Talk, leo: Talk, checkpoint: UUID) -> list[UUID]:
    await turn(tx, mina, "안녕! 오늘 저녁 뭐 먹을까?", "안녕하세요! 가볍게 비빔밥이나 잔치국수는 어떠세요?")
    await turn(
        tx,
        mina,
        "Any idea for tomorrow's breakfast?",
        "Yoghurt with fruit, or toast with an egg if you have ten minutes.",
    )
    egg = await turn(
        tx,
        mina,
        "How do I boil an egg so that the yolk stays soft?",
        "To boil an egg, place it in a pot of cold water, bring the water to a boil, and then let it simmer for about eight to "
        "ten minutes depending on how firm you like the yolk. Afterwards put it into cold water and peel it.",
    )
    await turn(tx, mina, "Thanks, that helps.", "You are welcome!")
    fix = "Put the egg into boiling water and let it simmer for six minutes. Afterwards put it into cold water and peel it."
    correction = await said(tx, mina, egg, "rewrite", fix, **{"class": "style"})
    await add(
        tx,
        feedback.rewrites,
        feedback_id=correction,
        person_id=mina.person,
        text=fix.replace("six", "five to six"),
        state="approved",
        passed=True,
    )
    await add(
        tx,
        feedback.ladder_decisions,
        person_id=mina.person,
        feedback_id=correction,
        rung="memory",
        rule="one_sentence_says_it",
    )
    await vote(tx, mina, egg, -1)
    ids = [correction]
    korean = await turn(
        tx,
        mina,
        "우리 동네 도서관은 몇 시에 닫아?",
        "도서관은 보통 저녁 여섯 시에 닫습니다. 정확한 시간은 홈페이지에서 확인하세요.",
        checkpoint_id=checkpoint,
    )
    text = "도서관은 보통 저녁 아홉 시에 닫아요. 정확한 시간은 홈페이지에서 확인해 주세요."
    ids.append(
        await said(tx, mina, korean, "correction", text, language="ko", **{"class": "wrong_fact", "confidence": 0.75})
    )
    await vote(tx, mina, korean, -1)
    wishes = [
        ("Please answer shorter from now on.", "style", 0.85),
        ("just this time in French please", "one_off", 0.8),
    ]
    wishes += [("I am allergic to nuts, remember that.", "personal_fact", 0.8), ("hmm", "unclear", 0.0)]
    for words, kind, sure in wishes:
        asked = await turn(tx, mina, "What can I cook with rice and nuts?", "A pilaf with almonds is quick and good.")
        ids.append(await said(tx, mina, asked, "correction", words, **{"class": kind, "confidence": sure}))
        await vote(tx, mina, asked, -1, days_ago=1)
    liked = await turn(
        tx,
        mina,
        "Write a haiku about rain",
        "Rain on the window / the kettle begins to hum / nobody leaves yet",
        checkpoint_id=checkpoint,
    )
    ids.append(await said(tx, mina, liked, "vote", None, **{"class": "praise"}))
    await vote(tx, mina, liked, 1)
    for number in range(24):
        served = await turn(tx, mina, f"question {number}", "answer", checkpoint_id=checkpoint if number % 2 else None)
        await vote(tx, mina, served, 1 if number % 5 else -1, days_ago=number % 12)
    secret = await turn(tx, leo, "my closed question", "my closed reply")
    ids.append(await said(tx, leo, secret, "correction", "my closed correction", **{"class": "style"}))
    return ids


async def _lineage(tx: Tx, owner: Talk) -> tuple[UUID, UUID, UUID]:
    snapshot = await add(
        tx,
        learning.snapshots,
        digest=_hex("snapshot"),
        scope="person",
        person_id=owner.person,
        salt=b"salt",
        manifest={},
    )
    run = await add(
        tx,
        learning.training_runs,
        snapshot_id=snapshot,
        person_id=owner.person,
        state="done",
        algorithm="opd",
        settings={"learning_rate": 0.002, "updates": 12, "rank": 8, "anchor_weight": 0.1},
        seed=7,
        code_revision="3f2c1ab",
        started_at=now() - timedelta(hours=3, minutes=4),
        ended_at=now() - timedelta(hours=3),
    )
    for step, loss in enumerate([1.42, 1.11, 0.93, 0.7, 0.55, 0.49, 0.36, 0.3, 0.24, 0.22, 0.19, 0.18]):
        await add(tx, learning.training_steps, run_id=run, step=step, loss=loss)
    await add(tx, learning.rollout_artifacts, run_id=run, digest=_hex("rollouts"), rows=96)
    good = await _checkpoint(tx, owner, run, "person-4f9a12c07be1", "passed")
    bad = await _checkpoint(tx, owner, None, "person-c81e77d2a904", "refused")
    await _gates(tx, good, "passed", drift=0.06)
    await _gates(tx, bad, "refused", drift=0.41)
    release = await add(
        tx,
        learning.releases,
        scope="person",
        person_id=owner.person,
        checkpoint_id=good,
        state="live",
        actor="system:releaser",
        reason="all gates passed",
        announced_at=now() - timedelta(hours=2),
        created_at=now() - timedelta(hours=2, minutes=30),
    )
    return good, bad, release


async def _checkpoint(tx: Tx, owner: Talk, run: UUID | None, name: str, state: str) -> UUID:
    return await add(
        tx,
        learning.checkpoints,
        name=name,
        digest=_hex(name),
        scope="person",
        person_id=owner.person,
        run_id=run,
        base_id="SmolLM2-135M-Instruct",
        base_revision=_hex("base"),
        tokenizer_digest=_hex("tokenizer"),
        template_digest=_hex("template"),
        rank=8,
        targets=["q_proj", "k_proj", "v_proj", "o_proj"],
        path=f"adapters/{name}",
        size_bytes=9_800_000,
        state=state,
    )


async def _gates(tx: Tx, checkpoint: UUID, verdict: str, drift: float) -> None:
    run = await add(
        tx, learning.gate_runs, checkpoint_id=checkpoint, verdict=verdict, suite_digest=_hex("suite"), ended_at=now()
    )
    lesson, grown = "5b1fd0a7-51f3-4c8e-8a43-0d6f0c1a2b3c", "failed" if drift > LENGTH_GROWTH else "passed"
    rows: list[tuple[str, str, int, float, float | None, float | None, dict[str, object]]] = [
        (
            f"target/{lesson}",
            "passed",
            16,
            0.94,
            0.00003,
            0.05,
            {"base": 0.0, "candidate": 0.94, "wins": 15, "losses": 0},
        ),
        (f"kept/{lesson}", "passed", 16, 0.06, -0.07, -0.2, {"before": 0.88, "candidate": 0.94}),
        ("retention/logprob", "passed", 48, -0.012, -0.031, -0.05, {}),
        ("retention/accuracy", "passed", 48, -0.02, -0.06, -0.1, {"before": 0.31, "after": 0.29}),
        ("safety/harmful", "passed", 20, 0.0, 0.139, 0.0, {"parent": 20}),
        ("safety/benign", "passed", 20, 0.0, 0.139, 0.0, {"parent": 19}),
        ("drift/length", grown, 40, drift, None, LENGTH_GROWTH, {"before": 38.2}),
        ("drift/praise", "passed", 40, 0.02, None, 0.1, {}),
        ("drift/language", "passed", 40, 1.0, None, 0.95, {}),
        ("isolation", "passed", 12, 0.0, 0.221, 0.0, {}),
    ]
    for gate, outcome, n, value, bound, threshold, detail in rows:
        named = {"retention/logprob": "retention.logprob", "retention/accuracy": "retention.accuracy"}
        key = f"gate.{named.get(gate, gate.partition('/')[0])}.{outcome}"
        told = detail | {"key": key, "required": gate != "drift/praise"}
        values = {"n": n, "value": value, "bound": bound, "threshold": threshold, "detail": told}
        await add(tx, learning.gate_results, gate_run_id=run, gate=gate, outcome=outcome, **values)


async def _memory(tx: Tx, owner: Talk, checkpoint: UUID, feedback_id: UUID) -> None:
    line = await add(
        tx,
        feedback.memory_lines,
        person_id=owner.person,
        feedback_id=feedback_id,
        kind="preference",
        text="Answer in one or two short sentences.",
        state="graduated",
        uses=14,
        failures=3,
        checkpoint_id=checkpoint,
    )
    allergy = {"kind": "fact", "text": "견과류 알레르기가 있어요.", "uses": 4}
    await add(tx, feedback.memory_lines, person_id=owner.person, **allergy)
    example = await add(
        tx,
        feedback.examples,
        memory_id=line,
        person_id=owner.person,
        prompt="How do I boil an egg?",
        good="Six minutes.",
        source="written",
    )
    snapshot = learning.snapshots
    snapshot_id = (await tx.execute(snapshot.select())).mappings().one()["id"]
    items = [("memory", line, "train"), ("example", example, "train"), ("feedback", feedback_id, "train")]
    items += [("prompt", UUID(int=n), "train" if n < 9 else "gate") for n in range(1, 17)]
    for kind, item, split in items:
        values = {"kind": kind, "item_id": item, "split": split, "salted_digest": b"d" * 32}
        await add(tx, learning.snapshot_items, snapshot_id=snapshot_id, **values)
    withdrawn = now() - timedelta(days=3)
    await consent(tx, owner.person, ["shared_training"], at=now() - timedelta(days=6))
    await consent(tx, owner.person, ["shared_training"], "withdrawn", at=withdrawn)


async def _machine(tx: Tx) -> None:
    moment = now() - timedelta(minutes=3)
    await add(
        tx,
        learning.model_servers,
        url="http://127.0.0.1:8100",
        base_id="SmolLM2-135M-Instruct",
        probe_state="passed",
        probe_detail={"reason": "ok", "compared": 12, "different": 0, "like_other": 0},
        probed_at=moment,
    )
    await add(
        tx,
        learning.model_servers,
        url="http://10.0.0.7:8000",
        probe_state="failed",
        probe_detail={"reason": "answered_with_another", "compared": 12, "different": 8, "like_other": 8},
        probed_at=moment,
    )
    progress = {"stage": "updating", "step": 5, "of": 12}
    await add(
        tx, learning.jobs, kind="train", queue="train", key="train:1", state="running", attempts=1, progress=progress
    )
    await add(tx, learning.jobs, kind="score", queue="score", key="score:1", due_at=moment)
    failed = {"state": "failed", "finished_at": now(), "error": "ModelUnavailableError"}
    await add(tx, learning.jobs, kind="evaluate", queue="evaluate", key="evaluate:1", **failed)
    await tx.execute(
        insert(admin.switches).values(
            name="release", paused=True, reason="new gate thresholds under review", changed_by="mina"
        )
    )


def _hex(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
