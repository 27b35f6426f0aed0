"""The doors to the outside as Protocols: what services ask of a channel, a model, a judge. Implementations live in
`bots/` and `app/clients/`; the conformance tests run against the fake and the real one.
"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from app.domain.event import AnyEvent, ChatAddress
from app.domain.media import Attachment
from app.domain.outgoing import Content
from app.domain.prompt import ChatMessage

LOGPROBS_MODE = "processed_logprobs"
"""What stored logprobs are: of the distribution that was sampled from. `--logprobs-mode` of the model server."""
State = Literal["ok", "starting", "degraded", "down", "off"]


@dataclass(frozen=True, slots=True)
class Push:
    """Messages are sent whenever there is something to say."""


@dataclass(frozen=True, slots=True)
class InResponse:
    """The platform reads replies in the answer to what a person sent, which must come within `limit_s` seconds."""

    limit_s: float


@dataclass(frozen=True, slots=True)
class SingleCallback:
    """What a person sent brings an address that takes replies for `deadline_s` seconds, `uses` times at most."""

    deadline_s: float
    uses: int = 1


ReplyMode = Push | InResponse | SingleCallback


@dataclass(frozen=True, slots=True)
class PartHealth:
    """How one part is.

    Attributes:
        name: `database`, `broker`, `model_server`, `scorer`, `trainer`, `evaluator`, or a channel's name.
        state: `off` means not configured, which is no fault.
        detail: one sentence for the operator: what is wrong, what to do. Never text of a person, never a secret.
        required: whether the gateway is not ready without it.
    """

    name: str
    state: State
    detail: str | None = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a channel can do; the dialogue adapts to it.

    `max_units` is the longest text of one part in the channel's own unit, `live_edit_s` the least seconds between two
    edits while a reply streams (None: the reply is shown when it is finished). `files` can be sent, `attachments` can come
    along with what people say. `formatting`: Markdown is shown as formats; else it arrives without its marks. `words`: where
    there is no menu, some words by themselves are commands (`app/domain/words.py`). `reply_to`: a person's message can point
    at the one it answers (`MessageEvent.reply_to`). `newcomers`: who writes for the first time becomes known by it; else they
    arrive by another way, and a sender whom nobody knows was forgotten. `window_hours`: for how long after a person's last
    word the platform takes what is freely written (None: always); what comes later waits for their next word. `reply_mode`:
    when the platform takes messages.
    """

    buttons: bool = True
    edits: bool = True
    reactions: bool = False
    typing: bool = False
    files: bool = False
    attachments: bool = False
    formatting: bool = True
    words: bool = False
    reply_to: bool = False
    newcomers: bool = True
    max_units: int = 4096
    live_edit_s: float | None = None
    reply_mode: ReplyMode = Push()
    window_hours: float | None = None


class Channel(Protocol):
    """One bot account on one platform: parse what came in, split, render and send what goes out."""

    name: str
    capabilities: Capabilities

    def parse(self, body: bytes) -> Sequence[AnyEvent]:
        """Return what `body` says. Raises `InvalidInputError` when it is authentic but unusable (→ quarantine).

        Raises `ChannelAwayError` while the channel does not know yet who it is (→ the update waits).
        """
        ...

    def split(self, text: str) -> Sequence[str]:
        """Return the parts of a Markdown text, each within the channel's limit once rendered; at least one."""
        ...

    async def send(self, chat: ChatAddress, content: Content) -> str:
        """Send a new message; return the platform's id for it. Raises the `DeliveryError` family."""
        ...

    async def edit(self, chat: ChatAddress, message_id: str, content: Content) -> None:
        """Make a sent message show `content`; already showing it is success. Raises the `DeliveryError` family.

        Of these `MessageGoneError` where the message is not there any more: a reply that nobody saw yet is sent anew.
        """
        ...

    def private_link(self) -> str:
        """Return `": <address>"` of the private chat with this bot, or `""` where there is none to give."""
        ...

    def own_notice(self, language: str) -> str | None:
        """Return the words about consent that this channel shows by itself; None where the dialogue's own are sent."""
        ...

    async def typing(self, chat: ChatAddress) -> None:
        """Show that an answer is on its way; failure does not matter and is swallowed by the channel."""
        ...

    async def fetch(self, attachment: Attachment) -> bytes:
        """Return what a person sent along, never more than `attachment.most` bytes. Raises the `AttachmentError` family.

        Whoever sent it may have forged all of it: nothing but the platform is asked, and credentials go nowhere else.
        """
        ...

    async def answer_press(self, press_id: str, note: str) -> None:
        """Tell the platform that a button press arrived, with a short note; too late is no failure."""
        ...


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn, and whether the server shall tell their `logprobs`, which costs it a few per cent of its pace.

    Learnable turns use top_p 1 and no penalties, so that stored logprobs are the policy's own.
    """

    temperature: float = 0.7
    top_p: float = 1.0
    max_tokens: int = 256
    seed: int | None = None
    priority: int = 0
    logprobs: bool = False

    def document(self) -> dict[str, float | int | str | None]:
        """Return the JSON form kept with the turn."""
        return {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_tokens": self.max_tokens,
            "seed": self.seed,
            "logprobs_mode": LOGPROBS_MODE if self.logprobs else None,
        }


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished reply. `logprobs` are the server's processed logprobs, one per response token; none where they were not
    asked for or the server gives none, and such a turn is not learnable. Both lists are empty where they do not fit.
    """

    text: str
    finish_reason: str
    model: str
    prompt_token_ids: tuple[int, ...] = ()
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()

    @property
    def tokens(self) -> int:
        """How many tokens were read and written for it."""
        return len(self.prompt_token_ids) + len(self.token_ids)


@dataclass(frozen=True, slots=True)
class Delta:
    """One piece of a streamed reply; the last one carries the `completion`."""

    text: str = ""
    completion: Completion | None = None


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A name the model server answers to, and the base it stands on (None for the base itself)."""

    name: str
    parent: str | None = None
    root: str | None = None


@dataclass(frozen=True, slots=True)
class PromptLogprobs:
    """Token ids of a prompt and the log-probability of each given those before it (the first has none: 0 positions skipped)."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...] = field(default_factory=tuple)


class Transcriber(Protocol):
    """Writes down what is said in a recording."""

    async def words(self, recording: bytes, content_type: str) -> str:
        """Return the words, `""` where there are none. Raises `TranscriptionError`."""
        ...


class Model(Protocol):
    """An OpenAI-compatible server with vLLM's extensions. `model` is the base's served name or an adapter's name."""

    def stream(
        self,
        model: str,
        messages: Sequence[ChatMessage],
        sampling: Sampling,
        *,
        salt: str,
    ) -> AsyncGenerator[Delta]:
        """Yield the reply piece by piece, the completion last; closing it ends the request. Raises the `ModelError` family.

        It may be begun in one task and read on or closed in another, one after the other.
        """
        ...

    async def complete(
        self,
        model: str,
        messages: Sequence[ChatMessage],
        sampling: Sampling,
        *,
        salt: str,
        schema: dict[str, object] | None = None,
    ) -> Completion:
        """Return a whole reply, by `schema` in JSON where given."""
        ...

    async def prompt_logprobs(self, model: str, token_ids: Sequence[int], *, salt: str) -> PromptLogprobs:
        """Return the log-probabilities of a given token sequence."""
        ...

    async def models(self) -> Sequence[ServedModel]:
        """Return what the server answers to now."""
        ...

    async def load_adapter(self, name: str, path: str) -> None:
        """Load the adapter directory `path` under `name`; already loaded is success."""
        ...

    async def unload_adapter(self, name: str) -> None:
        """Forget the adapter `name`; not loaded is success."""
        ...
