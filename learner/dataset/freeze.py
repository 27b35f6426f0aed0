"""From an admission to an immutable snapshot, and back to its bodies as long as the rows still say the same.

The manifest goes into the database and is never changed; the texts go into the run's folder while it runs.
"""

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from app.domain.profiles import BaseProfile
from app.domain.prompt import build, estimate_tokens, text_of
from app.store.admission import AdmittedLine, AdmittedPrompt, Served
from app.store.lineage import Item, StoredSnapshot
from learner.dataset.admit import Admission
from learner.dataset.manifest import Manifest, Snapshot, manifest_item, salted_digest
from learner.train.job import Bodies
from learner.types import Anchor, BaseIdentity, ChatMessage, Example, Lesson, ServedTurn, TrainingItem, TrainSettings

LEAST_NEW_TOKENS = 32
MOST_NEW_TOKENS = 96
MAX_TRAIN_PROMPTS = 64
POSITION_TOLERANCE = {"float32": 1e-4, "bfloat16": 0.15}
"""Mean |Δ| in nats between the server's logprobs and the trainer's, which are float32: 7e-6 measured where the server is
too. In bfloat16 logits of 16 to 32 are an eighth apart, so 0.03 and more of rounding is due to them alone; another base
or a shifted position is off by half a nat and more."""
_EVERYTHING = 1 << 30


@dataclass(frozen=True, slots=True)
class Frozen:
    """A snapshot with its bodies, and the rows it names on both sides."""

    snapshot: Snapshot
    bodies: Bodies = field(repr=False)
    items: tuple[Item, ...]


def prompt_messages(system: str, text: str) -> tuple[ChatMessage, ...]:
    """Return the prompt that the product builds for a first message, without any memory."""
    built = build(system, (), (), text, budget_tokens=_EVERYTHING)
    return tuple(ChatMessage(m["role"], text_of(m)) for m in built)


def train_settings(profile: BaseProfile, lines: Sequence[AdmittedLine], *, threads: int, device: str) -> TrainSettings:
    """Return how this base learns these lessons: replies long enough to reach the end of the longest example."""
    longest = max((estimate_tokens(e.example.good) for line in lines for e in line.examples), default=0)
    new_tokens = min(MOST_NEW_TOKENS, max(LEAST_NEW_TOKENS, math.ceil(longest * 1.25)))
    lora = profile.lora
    return TrainSettings(
        rank=lora.rank,
        alpha=lora.alpha,
        learning_rate=lora.learning_rate,
        steps=lora.updates,
        max_new_tokens=new_tokens,
        position_tolerance=POSITION_TOLERANCE[profile.dtype],
        threads=threads,
        device=device,
    )


def freeze(
    admitted: Admission, served: Sequence[Served], base: BaseIdentity, settings: TrainSettings, seed: int, code: str
) -> Frozen:
    """Return the snapshot of an admission."""
    bodies = _bodies(secrets.token_bytes(32), admitted.train[:MAX_TRAIN_PROMPTS], admitted, served)
    parts: tuple[TrainingItem | Lesson | Anchor, ...] = (*bodies.items, *bodies.lessons, *bodies.anchors)
    named = tuple(manifest_item(bodies.salt, part) for part in parts)
    manifest = Manifest("person", base, named, settings, code, seed)
    items = [Item(i.kind, UUID(i.id), bytes.fromhex(i.digest)) for i in named]
    items += [
        Item("prompt", p.turn_id, bytes.fromhex(salted_digest(bodies.salt, p.text)), "gate") for p in admitted.gate
    ]
    sources = {line.line.feedback_id for line in admitted.lines} - {None}
    items += [
        Item("feedback", source, bytes.fromhex(salted_digest(bodies.salt, str(source))))
        for source in sources
        if source is not None
    ]
    return Frozen(Snapshot(manifest), bodies, tuple(items))


def thaw(stored: StoredSnapshot, admitted: Admission, served: Sequence[Served]) -> tuple[Snapshot, Bodies]:
    """Return a stored snapshot with its bodies, read again from the rows that are still admitted.

    Raises:
        ArtifactError: a row is gone, was changed, or may not train any more, so the snapshot is over.
    """
    snapshot = Snapshot.load(stored.manifest, stored.digest)
    wanted = {item.id for item in snapshot.manifest.items if item.kind == "prompt"}
    prompts = [p for p in admitted.train if str(p.turn_id) in wanted]
    bodies = _bodies(stored.salt, prompts, admitted, served)
    bodies.check(snapshot)
    return snapshot, bodies


def memory_ids(snapshot: Snapshot) -> tuple[UUID, ...]:
    """Return the memory lines a snapshot teaches."""
    return tuple(UUID(item.id) for item in snapshot.manifest.items if item.kind == "memory")


def _bodies(salt: bytes, prompts: Sequence[AdmittedPrompt], admitted: Admission, served: Sequence[Served]) -> Bodies:
    return Bodies(
        salt=salt,
        items=tuple(TrainingItem(str(p.turn_id), prompt_messages(p.system, p.text)) for p in prompts),
        lessons=tuple(_lesson(line) for line in admitted.lines),
        anchors=tuple(
            Anchor(str(e.id), prompt_messages(admitted.system, e.example.prompt), e.example.good)
            for line in admitted.lines
            for e in line.examples
        ),
        served_turns=tuple(_served_turn(s) for s in served),
    )


def _served_turn(served: Served) -> ServedTurn:
    """Return the turn as the trainer checks it; where the whole prompt is known, the trainer must render the same ids."""
    messages = prompt_messages(served.system, served.asked) if served.asked else None
    return ServedTurn(served.prompt_token_ids, served.response_token_ids, served.logprobs, served.temperature, messages)


def _lesson(line: AdmittedLine) -> Lesson:
    shown = tuple(Example(e.example.prompt, e.example.bad, e.example.good) for e in line.examples)
    return Lesson(str(line.line.id), line.line.text, shown)
