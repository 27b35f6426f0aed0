"""The plain data the learner's rooms pass around: lessons, prompts, anchors, bases, settings of a training.

Pure: no torch, no database. `learner/tasks` fills these from rows; `learner/train` and `learner/gate` read them.
"""

from dataclasses import dataclass, field, fields
from typing import Literal, Self

from app.errors import InvalidInputError

Role = Literal["system", "user", "assistant"]
ItemKind = Literal["prompt", "example", "memory", "feedback"]
Scope = Literal["person", "global"]
Precision = Literal["float32", "lower"]


def shared_start(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """Return how many tokens two replies share from their beginning."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def normal_form(text: str) -> str:
    """Return the form by which two prompts count as the same: letters and digits, no case."""
    return "".join(c for c in text.casefold() if c.isalnum())


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a prompt, without any memory line in it."""

    role: Role
    content: str

    def as_dict(self) -> dict[str, str]:
        """Return the form that chat templates and model servers take."""
        return {"role": self.role, "content": self.content}


@dataclass(frozen=True, slots=True)
class TrainingItem:
    """A consented prompt the student answers afresh; its last message is the user's."""

    id: str
    messages: tuple[ChatMessage, ...] = field(repr=False)
    kind: ItemKind = "prompt"


@dataclass(frozen=True, slots=True)
class Example:
    """A request with the reply the person wanted, and the one they did not where there is one."""

    user: str = field(repr=False)
    bad: str | None = field(repr=False)
    good: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a memory line says and shows: the privileged context of the teacher."""

    id: str
    hint: str = field(repr=False)
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True)
class Anchor:
    """A reply a human wrote or approved, learnt word for word with a small weight."""

    id: str
    messages: tuple[ChatMessage, ...] = field(repr=False)
    reply: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ServedTurn:
    """What the model server stored of one reply of the bare base: proof that positions agree.

    `logprobs[i]` (nats) belongs to `response_token_ids[i]`, processed with `temperature`, top_p 1, no penalties.
    With `messages` the rendered prompt must also give `prompt_token_ids`.
    """

    prompt_token_ids: tuple[int, ...]
    response_token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    temperature: float = 1.0
    messages: tuple[ChatMessage, ...] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class BaseIdentity:
    """Which frozen model an adapter belongs to; two bases are the same only if all four agree."""

    base_id: str
    revision: str
    tokenizer_digest: str
    template_digest: str

    @property
    def label(self) -> str:
        """The base by id and revision, as adapter files name it."""
        return f"{self.base_id}@{self.revision}"


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """How one adapter is trained; defaults are the vetted ones of the bundled model (fp32, CPU).

    `kl_abort` is the mean k3 (nats per token) to the base above which a run is stopped as run away; on-policy
    distillation of a format moves tokens a lot on purpose, so it is far above what suits a reward. `forward_share` is f
    of `learner/algo/opd.py`, for the supports that see distributions.
    """

    algorithm: Literal["opd"] = "opd"
    rank: int = 8
    alpha: int = 16
    learning_rate: float = 2e-3
    steps: int = 12
    rollouts_per_step: int = 8
    max_new_tokens: int = 32
    max_prompt_tokens: int = 768
    micro_batch: int = 8
    temperature: float = 1.0
    support: Literal["full", "top_k", "sampled"] = "full"
    top_k: int = 20
    forward_share: float = 0.5
    advantage_clip: float = 5.0
    opd_weight: float = 1.0
    anchor_weight: float = 0.1
    anchors_per_step: int = 4
    kl_weight: float = 0.0
    kl_abort: float = 8.0
    grad_clip: float = 1.0
    position_tolerance: float = 1e-4
    threads: int = 2
    niceness: int = 19
    device: str = "cpu"

    def __post_init__(self) -> None:
        """Refuse what cannot be trained.

        Raises:
            InvalidInputError: a count is below one, or a rate or weight is not a usable number.
        """
        counts = (self.rank, self.alpha, self.steps, self.rollouts_per_step, self.max_new_tokens, self.micro_batch)
        rates = (self.learning_rate, self.temperature, self.grad_clip, self.kl_abort, self.advantage_clip)
        weights = (self.opd_weight, self.anchor_weight, self.kl_weight)
        if not (min(counts) >= 1 and all(r > 0 for r in rates) and all(w >= 0 for w in weights)):
            raise InvalidInputError("training settings: counts start at 1, rates above 0, weights at 0")
        if not 0 <= self.forward_share <= 1:
            raise InvalidInputError("training settings: the forward share lies between 0 and 1")

    @classmethod
    def from_json(cls, data: dict[str, object]) -> Self:
        """Build settings from parsed JSON; a name that is no setting is refused.

        Raises:
            InvalidInputError: an unknown name, or a value of the wrong type.
        """
        known = {f.name for f in fields(cls)}
        if unknown := sorted(set(data) - known):
            raise InvalidInputError(f"training settings: unknown {', '.join(unknown)}")
        try:
            return cls(**data)  # type: ignore[arg-type]  # values come from JSON; __post_init__ compares them
        except TypeError as error:
            raise InvalidInputError(f"training settings: {error}") from error
