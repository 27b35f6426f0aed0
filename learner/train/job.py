"""The contract between a training process and its parent: files in a run directory. Free of torch.

RUN_DIR/job.json        what to train (`RunSpec`): ids, digests, settings; no texts
RUN_DIR/bodies.json     the texts and their salt; deleted when the process ends
RUN_DIR/progress.json   replaced at every step; its age is the heartbeat
RUN_DIR/rollouts.json   token ids drawn so far; hashed, kept as an artifact; a resumed run replays it
RUN_DIR/checkpoint/     the adapter, complete once its STABLE marker exists
RUN_DIR/result.json     how it ended (`Result`), written last
"""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from app.errors import InvalidInputError
from learner.dataset.manifest import Snapshot, canonical, check_bodies
from learner.durable import unwritten, write_atomically, write_durably
from learner.types import Anchor, ChatMessage, Example, Lesson, ServedTurn, TrainingItem

JOB, BODIES, PROGRESS, ROLLOUTS, RESULT, CHECKPOINT = (
    "job.json",
    "bodies.json",
    "progress.json",
    "rollouts.json",
    "result.json",
    "checkpoint",
)
Stage = Literal["loading", "checking", "rollouts", "updating", "saving"]
Outcome = Literal["done", "failed", "stopped"]
EXIT_CODES = {
    "InvalidInputError": 3,
    "ArtifactError": 4,
    "TrainingStoppedError": 5,
    "StorageFullError": 7,
    "MenteeError": 1,
}
EXIT_STOPPED = 6


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One training: settings, seed, scope and base are the snapshot's own, so that they cannot disagree with it.

    `template_args` are the chat-template arguments of the base's profile, the same that the model server gets.
    """

    run_id: str
    model_dir: Path
    snapshot: Snapshot
    resume: bool = False
    template_args: Mapping[str, bool] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the job file's content."""
        return {
            "run_id": self.run_id,
            "model_dir": str(self.model_dir),
            "snapshot": self.snapshot.manifest.as_json(),
            "snapshot_digest": self.snapshot.digest,
            "resume": self.resume,
            "template_args": dict(self.template_args),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Read a job.

        Raises:
            InvalidInputError: a field is missing or of the wrong kind.
            ArtifactError: the snapshot does not match its digest.
        """
        try:
            snapshot = Snapshot.load(data["snapshot"], str(data["snapshot_digest"]))
            arguments = {str(name): bool(value) for name, value in data["template_args"].items()}
            return cls(str(data["run_id"]), Path(data["model_dir"]), snapshot, bool(data["resume"]), arguments)
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidInputError(f"{JOB} is incomplete: {error}") from error


@dataclass(frozen=True, slots=True)
class Bodies:
    """The texts of a snapshot, with the salt that proves they are its own."""

    salt: bytes
    items: tuple[TrainingItem, ...]
    lessons: tuple[Lesson, ...]
    anchors: tuple[Anchor, ...] = ()
    served_turns: tuple[ServedTurn, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the bodies file's content."""
        parts = {name: [asdict(body) for body in getattr(self, name)] for name in _PARTS}
        return {"salt": self.salt.hex(), **parts}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Read the bodies.

        Raises:
            InvalidInputError: a field is missing or of the wrong kind.
        """
        try:
            return cls(
                bytes.fromhex(data["salt"]),
                tuple(TrainingItem(d["id"], _messages(d["messages"]), d["kind"]) for d in data["items"]),
                tuple(Lesson(d["id"], d["hint"], tuple(Example(**e) for e in d["examples"])) for d in data["lessons"]),
                tuple(Anchor(d["id"], _messages(d["messages"]), d["reply"]) for d in data["anchors"]),
                tuple(_served(d) for d in data["served_turns"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(f"{BODIES} is malformed: {type(error).__name__}") from error

    def check(self, snapshot: Snapshot) -> None:
        """Check that these are the snapshot's bodies.

        Raises:
            ArtifactError: one is missing, added or changed.
        """
        check_bodies(snapshot.manifest, self.salt, (*self.items, *self.lessons, *self.anchors))


@dataclass(frozen=True, slots=True)
class Progress:
    """One heartbeat: where the run is and what the last step measured. Figures only."""

    stage: Stage
    step: int
    of: int
    seconds: float
    loss: float | None = None
    opd: float | None = None
    anchor: float | None = None
    kl: float | None = None
    tokens: int = 0
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended; `error` is the name of a class in `app.errors`, `message` its sentence.

    `prompts_trimmed` were taught with fewer examples than there are, `prompts_left_out` not at all: they were too long.
    """

    outcome: Outcome
    steps: int
    seconds: float
    error: str | None = None
    message: str | None = None
    adapter_name: str | None = None
    content_sha256: str | None = None
    rollouts_sha256: str | None = None
    rollouts: int = 0
    prompts_trimmed: int = 0
    prompts_left_out: int = 0


_PARTS = ("items", "lessons", "anchors", "served_turns")


def write_job(run_dir: Path, spec: RunSpec, bodies: Bodies) -> None:
    """Lay down a run's input.

    Raises:
        StorageFullError: the disk is full.
        ArtifactError: the bodies are not the snapshot's, or it is not writable.
    """
    bodies.check(spec.snapshot)
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        (run_dir / RESULT).unlink(missing_ok=True)
        write_durably(run_dir / JOB, canonical(spec.as_json()))
        # Last: where there is no room for the one or the other, no text stays behind.
        write_durably(run_dir / BODIES, canonical(bodies.as_json()))
        (run_dir / BODIES).chmod(0o600)
    except OSError as error:
        raise unwritten(error, "the run's input could not be written") from error


def read_job(run_dir: Path) -> tuple[RunSpec, Bodies]:
    """Read a run's input back and check it.

    Raises:
        InvalidInputError: a file is missing or malformed.
        ArtifactError: digests do not match.
    """
    spec = RunSpec.from_json(_read(run_dir / JOB))
    bodies = Bodies.from_json(_read(run_dir / BODIES))
    bodies.check(spec.snapshot)
    return spec, bodies


def write_progress(run_dir: Path, progress: Progress) -> None:
    """Replace the heartbeat.

    Raises:
        OSError: the disk is full.
    """
    write_atomically(run_dir / PROGRESS, canonical({**asdict(progress), "at": time.time()}))


def read_progress(run_dir: Path) -> Progress | None:
    """Return the last heartbeat, if there is one."""
    try:
        return Progress(**json.loads((run_dir / PROGRESS).read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def write_result(run_dir: Path, result: Result) -> None:
    """Write how the run ended.

    Raises:
        OSError: the disk is full.
    """
    write_durably(run_dir / RESULT, canonical(asdict(result)))


def read_result(run_dir: Path) -> Result | None:
    """Return how the run ended, if it has."""
    try:
        return Result(**json.loads((run_dir / RESULT).read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{path.name} cannot be read") from error
    if not isinstance(data, dict):
        raise InvalidInputError(f"{path.name} is not an object")
    return data


def _messages(data: list[dict[str, Any]]) -> tuple[ChatMessage, ...]:
    return tuple(ChatMessage(message["role"], message["content"]) for message in data)


def _served(data: dict[str, Any]) -> ServedTurn:
    return ServedTurn(
        tuple(data["prompt_token_ids"]),
        tuple(data["response_token_ids"]),
        tuple(data["logprobs"]),
        float(data["temperature"]),
        _messages(data["messages"]) if data["messages"] else None,
    )
