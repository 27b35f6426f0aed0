"""From person to prompt: the messages that the model sees, windowed to its context by a stated rule.

The rule: system prompt with memory, then memory's examples as turns (a small model follows examples, not bare
instructions), then the latest turns of the session that fit, whole turns only, then the new message. Memory is never
dropped for history. Lengths are estimates, and what is too long without any history goes out as it is: the model server
refuses it, and the person is told so. Whatever a message says, it cannot end itself and begin another: the base's own
marks are broken in every text.

Pictures: a model that sees is shown those of the new message, or else those of the latest turn that has some, so that one
can go on talking about them; of others it reads that they were there. More would take the context from the words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypedDict
from uuid import UUID

from app.domain.media import Picture
from app.domain.memory import Example, MemoryLine
from app.domain.text import without_markers

PROMPT_VERSION = "3"
# A token is at least this many UTF-8 bytes on average for the tokenizers we serve; used only to window history.
BYTES_PER_TOKEN = 3.0
MAX_EXAMPLES_PER_LINE = 2


class ImageUrl(TypedDict):
    """Where a picture is: in our messages always an address that holds it."""

    url: str


class Part(TypedDict, total=False):
    """A piece of a message that is more than words."""

    type: Literal["text", "image_url"]
    text: str
    image_url: ImageUrl


class ChatMessage(TypedDict):
    """One message in the form of the OpenAI chat API; parts only where there are pictures."""

    role: Literal["system", "user", "assistant"]
    content: str | list[Part]


@dataclass(frozen=True, slots=True)
class PastTurn:
    """An earlier exchange of the same session. `pictures` is how many came with it, `shown` those that the model sees again;
    `holder` is the turn that they are kept with.
    """

    user: str
    reply: str
    pictures: int = 0
    holder: UUID | None = None
    shown: tuple[Picture, ...] = ()


def estimate_tokens(text: str) -> int:
    """Return a careful estimate of the tokens in `text`, template overhead included."""
    return int(len(text.encode()) / BYTES_PER_TOKEN) + 8


def text_of(message: ChatMessage) -> str:
    """Return the words of a message."""
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content if "text" in part)


def identity_text(system_prompt: str, facts: Mapping[str, object]) -> str:
    """Return a bot identity's own part of the system prompt: its words, and the facts it shall know."""
    if not facts:
        return system_prompt
    lines = "\n".join(f"- {name}: {value}" for name, value in facts.items())
    return f"{system_prompt}\n\nFacts you know:\n{lines}"


def system_text(identity_prompt: str, memory: Sequence[MemoryLine]) -> str:
    """Return the system prompt with the person's memory lines."""
    if not memory:
        return identity_prompt
    lines = "\n".join(f"- {line.text}" for line in memory)
    return f"{identity_prompt}\n\nWhat this person asked you to keep in mind:\n{lines}"


def example_messages(memory: Sequence[MemoryLine]) -> list[ChatMessage]:
    """Return the lines' approved examples as earlier exchanges, an only one twice: once is not yet a pattern."""
    pairs = [(line, example) for line in memory for example in _shown(line)]
    return [m for line, pair in pairs for m in exchange(reminded(pair.prompt, (line,)), pair.good)]


def _shown(line: MemoryLine) -> Sequence[Example]:
    shown = line.examples[-MAX_EXAMPLES_PER_LINE:]
    return shown * MAX_EXAMPLES_PER_LINE if len(shown) == 1 else shown


def reminded(message: str, memory: Sequence[MemoryLine]) -> str:
    """Return a message with the lines that examples show beneath it, as it stood beneath theirs.

    Measured on the bundled model (16 prompts, one written example, temperature 0.7): line in the system prompt and the
    example once 0.25; example twice 0.56; line beneath each message 0.56; both 0.94.
    """
    return "\n\n".join([*([message] if message else []), *(line.text for line in memory if line.examples)])


def exchange(user: str, reply: str) -> list[ChatMessage]:
    """Return a question and its answer as two messages."""
    return [chat_message("user", user), chat_message("assistant", reply)]


def chat_message(role: Literal["system", "user", "assistant"], text: str) -> ChatMessage:
    """Return one message that stays one, whatever `text` says."""
    return ChatMessage(role=role, content=without_markers(text))


def shown_message(text: str, pictures: Sequence[Picture]) -> ChatMessage:
    """Return what a person sent: the pictures first, as the models' own examples have it, then the words, if any."""
    said = chat_message("user", text)
    if not pictures:
        return said
    parts = [Part(type="image_url", image_url=ImageUrl(url=picture.data_url)) for picture in pictures]
    words = [Part(type="text", text=text_of(said))] if text else []
    return ChatMessage(role="user", content=[*parts, *words])


def _past(turn: PastTurn) -> list[ChatMessage]:
    if turn.shown or not turn.pictures:
        return [shown_message(turn.user, turn.shown), chat_message("assistant", turn.reply)]
    there = f"({turn.pictures} picture{'s' if turn.pictures > 1 else ''}, not shown again)"
    return exchange("\n".join([there, turn.user] if turn.user else [there]), turn.reply)


def _tokens(messages: Sequence[ChatMessage], pictures: Sequence[Picture]) -> int:
    return sum(estimate_tokens(text_of(m)) for m in messages) + sum(picture.tokens for picture in pictures)


def build(
    identity_prompt: str,
    memory: Sequence[MemoryLine],
    history: Sequence[PastTurn],
    message: str,
    *,
    budget_tokens: int,
    pictures: Sequence[Picture] = (),
) -> list[ChatMessage]:
    """Return the messages for the model.

    Args:
        identity_prompt: the bot's system prompt.
        memory: the person's active lines; empty without consent, in groups, and for graduated lines.
        history: earlier turns of the session, oldest first.
        message: the new message.
        budget_tokens: the model's context less the longest reply.
        pictures: those of the new message, for a model that sees.
    """
    last = shown_message(reminded(message, memory), pictures)
    head = [chat_message("system", system_text(identity_prompt, memory)), *example_messages(memory)]
    spent = _tokens([*head, last], pictures)
    kept: list[ChatMessage] = []
    for past in reversed(history):
        both = _past(past)
        cost = _tokens(both, past.shown)
        if spent + cost > budget_tokens and past.shown:
            both = _past(replace(past, shown=()))
            cost = _tokens(both, ())
        if spent + cost > budget_tokens:
            break
        spent += cost
        kept = [*both, *kept]
    return [*head, *kept, last]


def has_pictures(messages: Sequence[ChatMessage]) -> bool:
    """Whether the model sees a picture in these."""
    return any(not isinstance(message["content"], str) for message in messages)
