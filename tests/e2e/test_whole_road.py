"""Everything real in one test: talk, correct, approve, a tiny training, load, talk to what was learnt, go back.

The gates have tests of their own, and the demo goes through them; a training of two steps teaches nothing, so here the
verdict is written by the test and everything else is the product's own.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import text

from app.clients.vllm import VllmClient
from app.config import LadderSettings, Settings
from app.domain.profiles import DEFAULT_PROFILE, profile
from app.store import Store, jobs, lineage
from learner.dataset.freeze import train_settings
from learner.tasks.context import Learner, assemble
from learner.tasks.evaluate import release_of
from learner.tasks.run import handle
from learner.types import TrainSettings
from tests.support.base_model import bundled_model
from tests.support.road import Road, Visitor, button, road
from tests.support.vllm_server import vllm_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
pytest.importorskip("torch")
LESSON = "End every answer with 'Stay curious!'"
SOON = 240.0
LADDER = LadderSettings(graduate_after_uses=1, graduate_after_sessions=1, train_min_prompts=3, train_cooldown_s=0)


def _tiny(make: Callable[..., TrainSettings], *arguments: object, **options: object) -> TrainSettings:
    made = make(*arguments, **options)
    return replace(made, niceness=0, max_new_tokens=8, rollouts_per_step=2)


@pytest.fixture
def short_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two updates on eight tokens, instead of twelve on many."""
    monkeypatch.setattr("learner.tasks.train.train_settings", partial(_tiny, train_settings))


async def test_talk_correct_train_load_talk_undo(
    database_url: str, store: Store, tmp_path: Path, short_training: None
) -> None:
    model_dir, _ = bundled_model()
    async with (
        vllm_server(model_dir) as url,
        road(
            database_url, url, model_dir=model_dir, mentee_home=tmp_path, max_reply_tokens=24, ladder=LADDER
        ) as gateway,
        gateway.visitor() as visitor,
    ):
        await _talk_and_correct(visitor)
        client = VllmClient(url)
        learner = _learner(gateway.settings, store, url, client)
        try:
            await learner.reconciler.once()
            await _learn(gateway, learner)
        finally:
            await client.close()
        await _meets_what_was_learnt(gateway, visitor)
        await _goes_back(gateway, visitor)
        assert [row["state"] for row in await gateway.rows("select state from releases")] == ["rolled_back"]


def _learner(settings: Settings, store: Store, url: str, client: VllmClient) -> Learner:
    made = assemble(store, settings, profile(DEFAULT_PROFILE), {url: client})
    lora = replace(made.profile.lora, updates=2)
    return replace(made, profile=replace(made.profile, lora=lora))


async def _talk_and_correct(visitor: Visitor) -> None:
    await visitor.allow("memory", "personal_training")
    for question in ("What is tea?", "Why is the sky blue?", "What do bees do?"):
        await visitor.say(question)
        await visitor.wait(lambda items, q=question: _answered(items, q), SOON)
    reply = [i for i in await visitor.messages() if i.get("kind") == "reply"][-1]
    await visitor.say(LESSON, reply_to=reply["message_id"])
    await visitor.told("I'll keep this in mind", SOON)
    settled = await visitor.wait(lambda items: [i for i in items if _asks(i)], SOON)
    asked = next(i for i in reversed(settled) if _asks(i))
    if "Did you mean like this?" in asked["plain"]:
        await visitor.press(button(asked, "Like this"), asked["message_id"])
    else:
        await visitor.say("Bees make honey. Stay curious!")
    await visitor.told("This is now the example", SOON)
    await visitor.say("How do plants drink?")
    await visitor.wait(lambda items: _answered(items, "How do plants drink?"), SOON)


def _answered(items: list[dict[str, object]], question: str) -> bool:
    turn = next((i["turn"] for i in items if i["who"] == "you" and i.get("text") == question), None)
    return any(i.get("kind") == "reply" and i["turn"]["id"] == turn for i in items)  # type: ignore[index]


def _asks(item: dict[str, object]) -> bool:
    said = str(item.get("plain", ""))
    return "Did you mean like this?" in said or "Write the reply the way you want it" in said


async def _learn(gateway: Road, learner: Learner) -> None:
    """Do what the workers would: train, be judged (by this test), be released."""
    await _do(gateway, learner, "train")
    (row,) = await gateway.rows("select id, name from checkpoints")
    checkpoint = UUID(str(row["id"]))
    async with learner.store.begin() as tx:
        await lineage.set_state(tx, checkpoint, "passed", among=("candidate",))
        verdict = "insert into gate_runs (checkpoint_id, verdict) values (:c, 'passed')"
        await tx.execute(text(verdict), {"c": checkpoint})
        await tx.execute(text("delete from jobs where kind = 'evaluate'"))
    (person,) = await gateway.rows("select person_id from checkpoints")
    async with learner.store.begin() as tx:
        await jobs.enqueue(tx, release_of(checkpoint, UUID(str(person["person_id"]))))
    await _do(gateway, learner, "release")


async def _do(gateway: Road, learner: Learner, kind: str) -> None:
    (job,) = await gateway.rows("select id from jobs where kind = :kind and state = 'queued'", kind=kind)
    async with learner.store.begin() as tx:
        await tx.execute(text("update jobs set due_at = now() where id = :i"), {"i": job["id"]})
    await handle(learner, UUID(str(job["id"])))
    (ended,) = await gateway.rows("select state, error from jobs where id = :i", i=job["id"])
    assert (ended["state"], ended["error"]) == ("done", None)


async def _meets_what_was_learnt(gateway: Road, visitor: Visitor) -> None:
    await visitor.command("new")
    await visitor.told("A fresh conversation")
    await visitor.say("What is rain?")
    await visitor.wait(lambda items: _answered(items, "What is rain?"), SOON)
    (turn,) = await gateway.rows(
        "select c.name, t.memory_used, t.learnable from turns t join checkpoints c on c.id = t.checkpoint_id"
    )
    assert turn["memory_used"] == {"ids": []}  # the line left the prompt
    assert turn["learnable"] is True
    assert str(turn["name"]).startswith("person-")


async def _goes_back(gateway: Road, visitor: Visitor) -> None:
    news = await visitor.offered("I have learnt something for you", "Go back")
    assert LESSON in news["plain"]
    await visitor.press(button(news, "Go back"), news["message_id"])
    await visitor.told("I went back", SOON)
    await visitor.say("What is snow?")
    await visitor.wait(lambda items: _answered(items, "What is snow?"), SOON)
    (turn,) = await gateway.rows("select checkpoint_id, memory_used from turns order by number desc limit 1")
    assert turn["checkpoint_id"] is None
    assert len(turn["memory_used"]["ids"]) == 1  # the line is in the prompt again
    assert [r["state"] for r in await gateway.rows("select state from releases")] == ["rolled_back"]
