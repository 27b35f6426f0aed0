"""A turn: one message and the reply to it, with everything that made the reply."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self
from uuid import UUID

from app.domain.consent import TRAINING


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a user message came from, as far as learning is concerned; any flag set keeps the turn out of training.

    `media`: it was answered with pictures in view, or its words were heard and not written. Training knows texts alone, and
    what a transcriber believes to have heard is not what was said.
    """

    forwarded: bool = False
    group: bool = False
    automated: bool = False
    quoted: bool = False
    media: bool = False
    consents: Mapping[str, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Read the JSON form."""
        kept = {name: bool(document.get(name)) for name in ("forwarded", "group", "automated", "quoted", "media")}
        return cls(**kept, consents=dict(document.get("consents") or {}))

    def again(self, first: Self) -> Self:
        """Return where words come from that are answered again: also from where they came the first time.

        What was not allowed then is not allowed by what is allowed now.
        """
        return replace(
            self,
            forwarded=self.forwarded or first.forwarded,
            group=self.group or first.group,
            automated=self.automated or first.automated,
            quoted=self.quoted or first.quoted,
            media=self.media or first.media,
            consents={purpose: yes and first.consents.get(purpose, False) for purpose, yes in self.consents.items()},
        )

    @property
    def own_words(self) -> bool:
        """Whether the person wrote all of this themself, in private, and words are all there was."""
        return not (self.forwarded or self.group or self.automated or self.quoted or self.media)

    @property
    def may_train(self) -> bool:
        """Whether a reply to it may ever train anything: the words are their own, and they allowed it when they wrote them."""
        return self.own_words and any(self.consents.get(purpose) for purpose in TRAINING)

    def document(self) -> dict[str, object]:
        """Return the JSON form kept in `turns.flags`."""
        return {
            "forwarded": self.forwarded,
            "group": self.group,
            "automated": self.automated,
            "quoted": self.quoted,
            "media": self.media,
            "consents": dict(self.consents),
        }


@dataclass(frozen=True, slots=True)
class Turn:
    """One row of `turns` as the services see it."""

    id: UUID
    session_id: UUID
    chat_id: UUID
    person_id: UUID | None
    number: int
    state: str
    user_text: str | None
    reply_text: str | None
    checkpoint_id: UUID | None = None
    memory_version: int = 0
    user_message_id: str | None = None
    sibling_of: UUID | None = None
    learnable: bool = False
    origin: Origin = field(default_factory=Origin)


@dataclass(frozen=True, slots=True)
class BaseIdentity:
    """Exactly which base answered: name, revision and the digests of tokenizer and chat template."""

    base_id: str
    revision: str
    tokenizer_digest: str
    template_digest: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """What made a reply (invariant I2): base, checkpoint, release, identity, memory lines, prompt version, sampling."""

    base: BaseIdentity
    prompt_version: str
    memory_used: tuple[UUID, ...]
    sampling: Mapping[str, object]
    identity_id: UUID | None = None
    checkpoint_id: UUID | None = None
    release_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a turn ended: `state` is done, failed or stopped."""

    state: str
    reply_text: str | None = None
    finish_reason: str | None = None
    failure: str | None = None
    prompt_token_ids: tuple[int, ...] = ()
    response_token_ids: tuple[int, ...] = ()
    response_logprobs: tuple[float, ...] = ()
    first_token_ms: float | None = None
    duration_ms: float | None = None
    learnable: bool = False
