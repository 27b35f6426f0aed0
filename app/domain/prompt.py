"""From person to prompt: the messages that the model sees, windowed to its context by a stated rule.

The rule: system prompt with memory, then memory's examples as turns (a small model follows examples, not bare
instructions), then the latest turns of the session that fit, whole turns only, then the new message. Memory is never
dropped for history. Lengths are estimates, and what is too long without any history goes out as it is: the model server
refuses it, and the person is told so. Whatever a message says, it cannot end itself and begin another: the base's own
marks are broken in every text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from app.domain.memory import Example, MemoryLine
from app.domain.text import without_markers

PROMPT_VERSION = "3"
# A token is at least this many UTF-8 bytes on average for the tokenizers we serve; used only to window history.
BYTES_PER_TOKEN = 3.0
MAX_EXAMPLES_PER_LINE = 2


class ChatMessage(TypedDict):
    """One message in the form of the OpenAI chat API."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class PastTurn:
    """An earlier exchange of the same session."""

    user: str
    reply: str


def estimate_tokens(text: str) -> int:
    """Return a careful estimate of the tokens in `text`, template overhead included."""
    return int(len(text.encode()) / BYTES_PER_TOKEN) + 8


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
    return "\n\n".join([message, *(line.text for line in memory if line.examples)])


def exchange(user: str, reply: str) -> list[ChatMessage]:
    """Return a question and its answer as two messages."""
    return [chat_message("user", user), chat_message("assistant", reply)]


def chat_message(role: Literal["system", "user", "assistant"], text: str) -> ChatMessage:
    """Return one message that stays one, whatever `text` says."""
    return ChatMessage(role=role, content=without_markers(text))


def build(
    identity_prompt: str,
    memory: Sequence[MemoryLine],
    history: Sequence[PastTurn],
    message: str,
    *,
    budget_tokens: int,
) -> list[ChatMessage]:
    """Return the messages for the model.

    Args:
        identity_prompt: the bot's system prompt.
        memory: the person's active lines; empty without consent, in groups, and for graduated lines.
        history: earlier turns of the session, oldest first.
        message: the new message.
        budget_tokens: the model's context less the longest reply.
    """
    last = chat_message("user", reminded(message, memory))
    head = [chat_message("system", system_text(identity_prompt, memory)), *example_messages(memory)]
    spent = sum(estimate_tokens(m["content"]) for m in [*head, last])
    kept: list[ChatMessage] = []
    for past in reversed(history):
        both = exchange(past.user, past.reply)
        cost = sum(estimate_tokens(m["content"]) for m in both)
        if spent + cost > budget_tokens:
            break
        spent += cost
        kept = [*both, *kept]
    return [*head, *kept, last]
