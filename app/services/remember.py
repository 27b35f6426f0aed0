"""From words to memory: a line at once, a checker where one can be derived, and rewrites that show it was understood.

A small model does not follow a bare instruction, so a correction samples a few retries with the line in the prompt; a
machine check drops those that break it; the rest is offered, and what the person approves (or writes) becomes the
line's example. Nothing is claimed to be learnt before that.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from app.domain import prompt as prompts
from app.domain.checker import CheckerSpec, check, derive
from app.domain.checker.mend import mend
from app.domain.feedback import FeedbackClass
from app.domain.media import Picture
from app.domain.memory import Example, MemoryKind, MemoryLine
from app.domain.text import is_blank, without_thinking
from app.errors import ModelError
from app.ports import Completion, Model, Sampling
from app.store import Tx, memory
from app.telemetry import Log

log = Log(__name__)
MAX_LINE_CHARS = 400
REWRITE_TEMPERATURE = 0.8
REWRITE_PRIORITY = 2
REVISION_TOKENS = 4096


def line_text(words: str) -> str:
    """Return a person's own words as one memory line."""
    return " ".join(words.split())[:MAX_LINE_CHARS]


async def remember(tx: Tx, person_id: UUID, words: str, kind: FeedbackClass, feedback_id: UUID | None) -> MemoryLine:
    """Keep what a person said as a memory line and return it; the same words are not kept twice."""
    fact = kind is FeedbackClass.PERSONAL_FACT
    text = line_text(words)
    spec = None if fact else derive(text)
    line_kind: MemoryKind = "fact" if fact else "preference"
    line_id = await memory.add(
        tx, person_id, kind=line_kind, text=text, checker=spec.as_json() if spec else None, feedback_id=feedback_id
    )
    return await memory.access_line(tx, person_id, line_id)


async def learn_example(tx: Tx, line: MemoryLine, example: Example, turn_id: UUID | None) -> None:
    """Give a line an example, and derive its checker anew now that a good and a bad reply are known."""
    await memory.add_example(tx, line, example, turn_id)
    examples = (*line.examples, example)
    bad = [e.bad for e in examples if e.bad]
    if spec := derive(line.text, [e.good for e in examples], bad):
        await memory.set_checker(tx, line.id, spec.as_json())


def fits(line: MemoryLine, reply: str) -> bool | None:
    """Whether `reply` follows the line, by its checker; None where a machine cannot tell."""
    if line.checker is None:
        return None
    return check(CheckerSpec.parse(line.checker), reply)


@dataclass(frozen=True, slots=True)
class Disliked:
    """The exchange that a person corrected, with the pictures in it, and the bot's system prompt at that time."""

    identity_prompt: str
    question: str
    reply: str
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True)
class Sampled:
    """Different retries of a reply, and how many tokens were read and written for them."""

    texts: tuple[str, ...] = ()
    tokens: int = 0


class Rewriter:
    """Samples retries of a disliked reply from the base model."""

    def __init__(self, model: Model, name: str, max_tokens: int) -> None:
        """Take the client, the base's served name, and the longest rewrite in tokens."""
        self._model = model
        self._name = name
        self._sampling = Sampling(REWRITE_TEMPERATURE, max_tokens=max_tokens, priority=REWRITE_PRIORITY)

    async def sample(self, line: MemoryLine, disliked: Disliked, count: int) -> Sampled:
        """Return up to `count` different retries with the line in the prompt, and the disliked reply mended if it can be.

        Every other one is asked as a revision of the disliked reply: a small model edits more readily than it obeys.
        """
        asked = [_revision(line, disliked) if number % 2 else _retry(line, disliked) for number in range(count)]
        answers = await asyncio.gather(*(self._one(messages, line) for messages in asked))
        said = [without_thinking(answer.text) for answer in answers if answer]
        retries = [*(text for text in said if not is_blank(text)), _mended(line, disliked)]
        different = dict.fromkeys(text for text in retries if text and text != disliked.reply)
        return Sampled(tuple(different), sum(answer.tokens for answer in answers if answer))

    async def _one(self, messages: Sequence[prompts.ChatMessage], line: MemoryLine) -> Completion | None:
        salt = hashlib.sha256(f"{line.person_id}:rewrite".encode()).hexdigest()
        try:
            return await self._model.complete(self._name, messages, self._sampling, salt=salt)
        except ModelError as error:
            log.warning("rewrite:sample:failed", kind=type(error).__name__)
            return None


def _mended(line: MemoryLine, disliked: Disliked) -> str | None:
    """Return the disliked reply with the least change that fits; a model that is away or weak is no dead end then."""
    return mend(CheckerSpec.parse(line.checker), disliked.reply) if line.checker else None


def _retry(line: MemoryLine, disliked: Disliked) -> list[prompts.ChatMessage]:
    shown = disliked.pictures
    return prompts.build(disliked.identity_prompt, [line], [], disliked.question, budget_tokens=0, pictures=shown)


def _revision(line: MemoryLine, disliked: Disliked) -> list[prompts.ChatMessage]:
    shown = disliked.pictures
    history = [prompts.PastTurn(disliked.question, disliked.reply, len(shown), shown=shown)]
    return prompts.build(disliked.identity_prompt, [], history, line.text, budget_tokens=REVISION_TOKENS)
