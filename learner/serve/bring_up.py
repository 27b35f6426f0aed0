"""From a checkpoint on disk to an adapter that a server really answers with.

    verify ─► materialise ─► load ─► warm ─► sentinel

The sentinel exists because a server can take an adapter whose modules it does not know and go on answering as the base,
without an error. Knows no database.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from app.domain.prompt import ChatMessage
from app.errors import ArtifactError, GateError, ModelBadAnswerError, ModelRequestError, ModelUnavailableError
from app.ports import Model, Sampling, ServedModel
from learner.artifacts import dematerialise, materialise, served_path
from learner.types import BaseIdentity

PRIORITY = 10
WARM_TOKENS = 8
AGAIN_AFTER_S = (0.5, 2.0)
"""Pauses after which a server that failed to load an adapter is asked for it again."""
SENTINEL_PROMPT = "What should I have for lunch today?"
SENTINEL_TOKENS = 12
SENTINEL_SEED = 5
# Logprobs of one server on the same tokens repeat within 1e-5 in float32 and a few 1e-3 in bfloat16.
LEAST_SHIFT = 5e-3


@dataclass(frozen=True, slots=True)
class ServedBase:
    """The base as a server has it: name, and the path that an adapter's configuration must name."""

    name: str
    root: Path


class Adapter(Protocol):
    """What is brought up: its content name and the folder of its checkpoint."""

    @property
    def name(self) -> str:
        """The content name."""
        ...

    @property
    def path(self) -> str:
        """The checkpoint's folder."""
        ...


def served_base(models: list[ServedModel], name: str, model_dir: Path) -> ServedBase:
    """Return the base among what a server lists.

    Raises:
        ModelUnavailableError: the server answers, but not yet for this base.
    """
    for served in models:
        if served.name == name and served.parent is None:
            return ServedBase(name, Path(served.root or model_dir))
    raise ModelUnavailableError(f"the model server does not serve {name}")


async def load(
    model: Model, adapter: Adapter, base: ServedBase, identity: BaseIdentity, root: Path, max_rank: int
) -> None:
    """Verify, materialise under `root` and load; then one short reply, because the first one is slow.

    Raises:
        ArtifactError: the checkpoint is truncated, foreign, too large or badly named; nothing was loaded.
        ModelError: the server refused it or is away.
    """
    directory = _materialised(Path(adapter.path), adapter.name, root, base.root, identity, max_rank)
    await load_folder(model, adapter.name, directory)
    sampling = Sampling(temperature=0.0, max_tokens=WARM_TOKENS, priority=PRIORITY)
    await model.complete(
        adapter.name, [ChatMessage(role="user", content="Hello")], sampling, salt=f"warm-{uuid4().hex}"
    )


async def load_folder(model: Model, name: str, directory: Path) -> None:
    """Load a folder under a name. vLLM answers a bad adapter as it answers its own failures (500), so it is asked again.

    Raises:
        ModelRequestError: the server is there and cannot load this adapter.
        ModelUnavailableError: it is away.
    """
    for pause_s in AGAIN_AFTER_S:
        try:
            await model.load_adapter(name, str(directory.resolve()))
        except ModelUnavailableError:
            await model.models()  # raises when the server is away
            await asyncio.sleep(pause_s)
        else:
            return
    try:
        await model.load_adapter(name, str(directory.resolve()))
    except ModelUnavailableError as error:
        await model.models()
        raise ModelRequestError("the model server could not load the adapter") from error


async def sentinel(model: Model, adapter_name: str, base_name: str) -> float:
    """Return how far the adapter moves a fixed reply: mean |Δ logprob| in nats, 1 where the token itself differs.

    Both are drawn with one seed, so that an adapter that does nothing gives the base's very tokens and logprobs. The
    logprobs of a given text would be a finer measure, but asking for them beside adapter traffic ends vLLM's CPU engine.

    Raises:
        GateError: not at all, so the server answers as if the adapter were not there.
        ModelBadAnswerError: the server gives no logprobs: it is unfit, which says nothing of the adapter.
        ModelError: the server is away.
    """
    plain, adapted = await _drawn(model, base_name), await _drawn(model, adapter_name)
    shifts: list[float] = []
    for (token, logprob), (other, other_logprob) in zip(plain, adapted, strict=False):
        shifts.append(abs(logprob - other_logprob) if token == other else 1.0)
        if token != other:
            break
    if not shifts:
        raise ModelBadAnswerError("the model server gives no token ids or logprobs, so no adapter can be checked")
    shift = sum(shifts) / len(shifts)
    if shift < LEAST_SHIFT and len(plain) == len(adapted):
        raise GateError("the model server answers as if the adapter were not there")
    return shift


async def _drawn(model: Model, name: str) -> list[tuple[int, float]]:
    """Return the fixed reply's tokens with their logprobs."""
    asked = [ChatMessage(role="user", content=SENTINEL_PROMPT)]
    sampling = Sampling(
        temperature=1.0, max_tokens=SENTINEL_TOKENS, seed=SENTINEL_SEED, priority=PRIORITY, logprobs=True
    )
    reply = await model.complete(name, asked, sampling, salt=f"sentinel-{uuid4().hex}")
    return list(zip(reply.token_ids, reply.logprobs, strict=False))


def _materialised(
    checkpoint: Path, name: str, root: Path, base_root: Path, identity: BaseIdentity, max_rank: int
) -> Path:
    try:
        made = materialise(checkpoint, root, base_root, identity, max_rank)
    except ArtifactError:
        if not served_path(root, name).exists():
            raise
        # A copy that was made for a base in another folder, or damaged: the checkpoint decides.
        dematerialise(root, name)
        made = materialise(checkpoint, root, base_root, identity, max_rank)
    if made.name != name:
        dematerialise(root, made.name)
        raise ArtifactError("the checkpoint's files hold another adapter than its name says")
    return made
