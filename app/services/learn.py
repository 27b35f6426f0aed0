"""Graduation: looks whether a person's memory has earned a training, queues it, and says how far things are.

Called in the transaction of a turn or of feedback, so that a job exists exactly when the evidence does. Decides by the
rules of `app/domain/ladder.py` on what the consent join admits, and writes each changed decision down.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from app.config import Settings
from app.domain import ladder
from app.domain.consent import Consents, Purpose
from app.domain.ladder import Decision, Rung
from app.domain.memory import MemoryLine
from app.domain.messages import text as say
from app.store import Tx, admission, feedback, jobs, learning, memory, people, switches
from app.store.admission import AdmittedLine
from app.store.jobs import Work
from app.store.learning import Step

STAGES = ("train", "evaluate", "release")
TAKEN_UP_AFTER_S = 3600.0


@dataclass(frozen=True, slots=True)
class LineProgress:
    """How far one line is: the ladder's figures and the rule that decides at the moment."""

    memory_id: UUID
    text: str = field(repr=False)
    state: str
    figures: ladder.Progress
    rule: str


@dataclass(frozen=True, slots=True)
class LearningProgress:
    """How far learning is for one person.

    `key` names the sentence for people (`sentence`); `step` is the job on its way or just over, None where there is none.
    """

    key: str
    lines: tuple[LineProgress, ...]
    prompts: int
    prompts_needed: int
    step: Step | None = None
    verdict: str | None = None

    def sentence(self, language: str) -> str:
        """Return where things stand, in one sentence."""
        shown = self.step.progress if self.step else {}
        return say(
            language,
            self.key,
            prompts=self.prompts,
            needed=self.prompts_needed,
            step=shown.get("step") or 0,
            of=shown.get("of") or 0,
        )


async def consider(tx: Tx, person_id: UUID, settings: Settings) -> UUID | None:
    """Look whether a training is earned and due now; return its job, None where nothing is queued."""
    consents = await people.consents(tx, person_id)
    decided = await _decide(tx, person_id, consents, settings)
    ripe = [line for line, decision in decided if decision.rung is Rung.ADAPTER]
    if not ripe or not consents.allows(Purpose.PERSONAL_TRAINING) or not consents.allows(Purpose.MEMORY):
        return None
    if not await _due(tx, person_id, ripe, settings):
        return None
    return await jobs.enqueue(tx, Work("train", "train", f"train:{person_id}", person_id=person_id))


async def take_up(tx: Tx) -> int:
    """Queue measurements, releases and removals again that failed more often than a job is tried; return how many.

    A server that was away for a day must not leave a checkpoint lying there for ever, nor anything of somebody forgotten.
    One an hour each is little enough.
    """
    given_up = await learning.stopped(tx, TAKEN_UP_AFTER_S)
    for work in given_up:
        await jobs.enqueue(tx, work)
    return len(given_up)


async def progress(tx: Tx, person_id: UUID, settings: Settings) -> LearningProgress:
    """Return how far learning is for a person."""
    consents = await people.consents(tx, person_id)
    lines = tuple(
        LineProgress(
            line.id,
            line.text,
            line.state,
            ladder.progress(line, settings.ladder),
            ladder.decide_graduation(line, consents, settings.ladder).rule,
        )
        for line in await _admitted(tx, person_id)
    )
    prompts = await learning.train_prompts(tx, person_id)
    step = await learning.last_step(tx, person_id, STAGES)
    verdict = await learning.last_verdict(tx, person_id)
    key = await _key(tx, consents, step, verdict, lines)
    if key == "learning_collecting" and not lines and await _keeps(tx, person_id):
        key = "learning_kept"
    elif key == "learning_collecting" and prompts >= settings.ladder.train_min_prompts:
        key = "learning_proving"
    return LearningProgress(key, lines, prompts, settings.ladder.train_min_prompts, step, verdict)


async def promised(tx: Tx, person_id: UUID, settings: Settings) -> Mapping[UUID, ladder.Progress]:
    """Return how far each line is that an adapter may learn; the others stay in memory, and nothing is promised of them."""
    lines = await _admitted(tx, person_id)
    # What no check was found for may get one with its first example, and not after that.
    checked = (line for line in lines if line.checker or not line.examples)
    return {line.id: ladder.progress(line, settings.ladder) for line in checked}


async def _keeps(tx: Tx, person_id: UUID) -> bool:
    return any(line.kind == "preference" for line in await memory.lines(tx, person_id, "active"))


async def _admitted(tx: Tx, person_id: UUID) -> Sequence[MemoryLine]:
    return [admitted.line for admitted in await admission.lines(tx, person_id)]


async def _decide(
    tx: Tx, person_id: UUID, consents: Consents, settings: Settings
) -> Sequence[tuple[AdmittedLine, Decision]]:
    """Return the ladder's decision on each admitted line that is in the prompt; new decisions are kept."""
    before = await learning.last_rules(tx, person_id)
    decided = []
    for line in await admission.lines(tx, person_id):
        if line.line.state != "active":
            continue
        decision = ladder.decide_graduation(line.line, consents, settings.ladder)
        if before.get(line.line.id) != decision.rule:
            await feedback.decide(tx, person_id, decision, memory_id=line.line.id, feedback_id=line.line.feedback_id)
        decided.append((line, decision))
    return decided


async def _due(tx: Tx, person_id: UUID, ripe: Sequence[AdmittedLine], settings: Settings) -> bool:
    """Whether a training may be queued now: none on its way, cooled down, enough prompts, and something new."""
    if await learning.on_its_way(tx, person_id, STAGES):
        return False
    needed = settings.ladder.train_min_prompts
    if await learning.train_prompts(tx, person_id) < needed:
        return False
    last = await learning.last_run(tx, person_id)
    if last is None:
        return True
    if last.seconds_ago < settings.ladder.train_cooldown_s:
        return False
    new_lesson = any(line.line.id not in last.lessons for line in ripe)
    new_example = any(example.id not in last.examples for line in ripe for example in line.examples)
    return new_lesson or new_example or last.new_prompts >= needed


_BY_STAGE = {"train": "learning_training", "evaluate": "learning_measuring", "release": "learning_releasing"}
_BY_VERDICT = {"refused": "learning_refused", "inconclusive": "learning_inconclusive"}


async def _key(
    tx: Tx, consents: Consents, step: Step | None, verdict: str | None, lines: Sequence[LineProgress]
) -> str:
    """Return the key of the sentence that says where things stand."""
    if not (consents.allows(Purpose.MEMORY) and consents.allows(Purpose.PERSONAL_TRAINING)):
        return "learning_off"
    if step is not None and step.state in jobs.LIVE:
        return await _live_key(tx, step)
    if step is not None and step.state == "failed":
        return "learning_failed"
    if verdict in _BY_VERDICT:
        return _BY_VERDICT[verdict]
    if any(line.state == "graduated" for line in lines):
        return "learning_live"
    unchecked = bool(lines) and all(line.rule == ladder.NEEDS_A_CHECK for line in lines)
    return "learning_unchecked" if unchecked else "learning_collecting"


async def _live_key(tx: Tx, step: Step) -> str:
    if step.kind != "evaluate" and await switches.paused(tx, "training" if step.kind == "train" else "release"):
        return "learning_paused"
    if step.state == "queued":
        return "learning_no_server" if step.progress.get("waiting") == "no_server" else "learning_queued"
    if step.kind == "train" and not step.progress.get("of"):
        return "learning_starting"  # the base is still being loaded
    return _BY_STAGE[step.kind]
