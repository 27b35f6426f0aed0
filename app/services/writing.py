"""One reply as the model writes it: streamed, shown on the way, waited for while its server starts, stopped when asked.

Stores nothing; what came of it is the `Outcome`.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from uuid import UUID

from app.domain.messages import text as say
from app.domain.prompt import ChatMessage
from app.domain.text import is_blank, without_thinking
from app.domain.turn import Outcome
from app.errors import ModelAwayError
from app.failpoints import reach
from app.ports import Completion, Model, Sampling
from app.services.ahead import Ahead
from app.services.live import LiveView
from app.services.stream import Item, Streams

MODEL_AGAIN_S = 1.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be written, by which model, and where it is shown.

    With logprobs it is learnable once all of it is known.
    """

    turn_id: UUID
    chat_id: UUID
    language: str
    model: str
    messages: Sequence[ChatMessage]
    sampling: Sampling
    salt: str


@dataclass(frozen=True, slots=True)
class Asking:
    """What is to be written, and its pieces on their way."""

    asked: Asked
    pieces: Ahead


class Writer:
    """Has replies written. One instance per gateway."""

    def __init__(self, model: Model, streams: Streams, wait_s: float) -> None:
        """Take the model and how many seconds a message waits for a model server that takes no connections."""
        self._model = model
        self._streams = streams
        self._wait_s = wait_s

    def ask(self, asked: Asked) -> Asking:
        """Return a reply to be written; the model is asked when it is, or when its pieces are started before."""
        stream = self._model.stream(asked.model, asked.messages, asked.sampling, salt=asked.salt)
        return Asking(asked, Ahead(stream))

    async def write(self, asking: Asking, view: LiveView, stop: asyncio.Event) -> Outcome:
        """Stream the reply; for a model server that takes no connections, as at its start, the message waits.

        Raises:
            ModelError: it stayed away too long, or failed in any other way.
        """
        started, asked = time.monotonic(), asking.asked
        while not stop.is_set():
            try:
                return await self._take(asking, view, stop)
            except ModelAwayError:
                if time.monotonic() - started >= self._wait_s:
                    raise
                asking = self.ask(asked)
            self._show(asked, view, say(asked.language, "model_not_ready"))
            with suppress(TimeoutError):
                async with asyncio.timeout(MODEL_AGAIN_S):
                    await stop.wait()
        return Outcome("stopped", "", duration_ms=_ms_since(started))

    async def _take(self, asking: Asking, view: LiveView, stop: asyncio.Event) -> Outcome:
        asked, pieces, text = asking.asked, asking.pieces, ""
        completion: Completion | None = None
        # Closed at once and not when it is collected: the model server writes on as long as somebody listens.
        async with aclosing(pieces), _until(stop):
            async for delta in pieces:
                if delta.completion is not None:
                    completion = delta.completion
                    break
                text += delta.text
                reach("converse:streaming")
                self._show(asked, view, without_thinking(text))
        if completion is None:
            duration_ms = _ms_since(pieces.since)
            return Outcome("stopped", without_thinking(text), first_token_ms=pieces.first_ms, duration_ms=duration_ms)
        return _outcome(asked, completion, pieces.first_ms, _ms_since(pieces.since))

    def _show(self, asked: Asked, view: LiveView, text: str) -> None:
        view.show(text)
        self._streams.publish(asked.chat_id, Item(asked.turn_id, text))


@asynccontextmanager
async def _until(stop: asyncio.Event) -> AsyncIterator[None]:
    """Run the body until somebody asks to stop; then leave it where it waits."""
    body = asyncio.timeout(None)

    async def watch() -> None:
        await stop.wait()
        body.reschedule(asyncio.get_running_loop().time())

    try:
        async with body:
            watching = asyncio.create_task(watch())
            try:
                yield
            finally:
                watching.cancel()
                await asyncio.wait([watching])
    except TimeoutError:
        if not body.expired():
            raise


def _outcome(asked: Asked, completion: Completion, first_ms: float | None, duration_ms: float) -> Outcome:
    text = without_thinking(completion.text)
    if is_blank(text):
        return Outcome(
            "failed", None, completion.finish_reason, "empty", first_token_ms=first_ms, duration_ms=duration_ms
        )
    return Outcome(
        state="done",
        reply_text=text,
        finish_reason=completion.finish_reason,
        prompt_token_ids=completion.prompt_token_ids,
        response_token_ids=completion.token_ids,
        response_logprobs=completion.logprobs,
        first_token_ms=first_ms,
        duration_ms=duration_ms,
        learnable=asked.sampling.logprobs and bool(completion.logprobs) and bool(completion.prompt_token_ids),
    )


def _ms_since(started: float) -> float:
    return (time.monotonic() - started) * 1000
