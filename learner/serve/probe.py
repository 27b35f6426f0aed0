"""The isolation probe: does a model server keep base and adapters apart when they share a batch?

    load two marked adapters, fill every slot ─► greedy replies quiet (one at a time) ─► mixed in one batch ─► compare

Some servers answer base requests with an adapter's weights as soon as both are in one batch. vLLM's CPU kernels do it
once its last slot has held an adapter: with one slot every time, with more as soon as as many adapters were in use; so
the probe puts marked weights into all of them first. Until a server passed this since its start, no adapter is routed
to it. Random weights, numpy and safetensors only.
"""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal
from uuid import uuid4

import numpy as np

from app.domain.profiles import LINEAR_TARGETS
from app.domain.prompt import ChatMessage
from app.errors import ArtifactError, ModelError, ModelUnavailableError
from app.ports import Model, Sampling
from learner.artifacts import Tensors
from learner.serve.bring_up import load_folder
from learner.serve.untrained import put_untrained
from learner.types import Precision, shared_start

RANK = 4
ALPHA = 16
STRENGTH = 0.06
SEEDS = {"a": 11, "b": 29}
ROUNDS = 2
SLOTS = 32
"""At least as many as a server has (`--max-loras`)."""
TOKENS = 12
PRIORITY = 10
PROMPTS = ("Name three things that float on water.", "Tell me about the moon in one sentence.")

Reason = Literal["ok", "cannot_load", "same_replies", "no_tokens", "mixed_differs", "answered_with_another"]
Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """What the probe saw. `different` replies of a mixed batch were not their quiet selves; `like_other` of these are
    nearer to another model's quiet reply.
    """

    reason: Reason
    compared: int = 0
    different: int = 0
    like_other: int = 0

    @property
    def passed(self) -> bool:
        """Whether adapters may be routed to this server."""
        return self.reason == "ok"

    def document(self) -> dict[str, object]:
        """Return the JSON form kept with the server."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ProbeBase:
    """The base that a server serves: its name there, its folder here, and the precision it is served in."""

    served_name: str
    model_dir: Path
    precision: Precision = "float32"


def probe_names(base: ProbeBase) -> tuple[str, str]:
    """Return the names under which the two marked adapters are loaded; they follow from the base's shape."""
    shape = hashlib.sha256(json.dumps(shapes(base.model_dir), sort_keys=True).encode()).hexdigest()[:8]
    return f"mentee-probe-a-{shape}", f"mentee-probe-b-{shape}"


def marker_name(base: ProbeBase) -> str:
    """Return the name that the reconciler loads after its own probe: a server without it was restarted since."""
    return probe_names(base)[0].replace("-probe-a-", "-proven-")


async def probe_server(model: Model, base: ProbeBase, workdir: Path) -> ProbeReport:
    """Run the probe against one server and return what it saw.

    Args:
        model: the server.
        base: what it serves.
        workdir: where the two adapters are written (10 MB); the server must be able to read it.

    Raises:
        ModelUnavailableError: the server went away meanwhile.
        StorageFullError: the disk is full; nothing was found out.
        ArtifactError: the base's configuration cannot be read, or the adapters cannot be written.
    """
    names = (base.served_name, *probe_names(base))
    try:
        for name, seed in zip(names[1:], SEEDS.values(), strict=True):
            await load_folder(model, name, write_marked_adapter(workdir / name, base.model_dir, seed))
        await _fill_slots(model, workdir / names[1])
    except ModelUnavailableError:
        raise
    except ModelError:
        return ProbeReport("cannot_load")
    quiet = {(name, prompt): await _reply(model, name, prompt) for prompt in PROMPTS for name in names}
    if not all(quiet.values()):
        return ProbeReport("no_tokens")
    if any(quiet[one, prompt] == quiet[two, prompt] for prompt in PROMPTS for one, two in combinations(names, 2)):
        return ProbeReport("same_replies")
    rounds = [await _mixed(model, names) for _ in range(ROUNDS)]
    return _compare(quiet, [pair for found in rounds for pair in found], names, base.precision)


def write_marked_adapter(directory: Path, model_dir: Path, seed: int) -> Path:
    """Write a random adapter of the base's shape, unless it is there whole; return its absolute folder.

    Raises:
        StorageFullError: the disk is full.
        ArtifactError: the base's configuration cannot be read, or the adapter cannot be written.
    """
    return put_untrained(directory, _config(model_dir), lambda: _marked(model_dir, seed), "the probe's adapter")


def _marked(model_dir: Path, seed: int) -> Tensors:
    generator = np.random.default_rng(seed)
    tensors: Tensors = {}
    for key, (inward, outward) in shapes(model_dir).items():
        down = generator.standard_normal((RANK, inward), np.float32) / np.float32(np.sqrt(inward))
        tensors[f"base_model.model.{key}.lora_A.weight"] = down
        tensors[f"base_model.model.{key}.lora_B.weight"] = generator.standard_normal(
            (outward, RANK), np.float32
        ) * np.float32(STRENGTH)
    return tensors


def _config(model_dir: Path) -> dict[str, object]:
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": str(model_dir),
        "r": RANK,
        "lora_alpha": ALPHA,
        "lora_dropout": 0.0,
        "bias": "none",
        "inference_mode": True,
        "target_modules": list(LINEAR_TARGETS),
    }


def shapes(model_dir: Path) -> dict[str, tuple[int, int]]:
    """Return module path -> (inputs, outputs) of every linear layer."""
    try:
        whole = json.loads((model_dir / "config.json").read_text("utf-8"))
        # A model that also sees has its words' layers in a part of its own; what it sees with takes no adapter.
        config = whole.get("text_config", whole)
        hidden, inner = int(config["hidden_size"]), int(config["intermediate_size"])
        heads, layers = int(config["num_attention_heads"]), int(config["num_hidden_layers"])
        head = int(config.get("head_dim") or hidden // heads)
        shared = int(config.get("num_key_value_heads") or heads)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactError("the base's config.json cannot be read") from error
    sizes = {
        "self_attn.q_proj": (hidden, heads * head),
        "self_attn.k_proj": (hidden, shared * head),
        "self_attn.v_proj": (hidden, shared * head),
        "self_attn.o_proj": (heads * head, hidden),
        "mlp.gate_proj": (hidden, inner),
        "mlp.up_proj": (hidden, inner),
        "mlp.down_proj": (inner, hidden),
    }
    stem = "model.layers" if config is whole else "model.language_model.layers"
    return {f"{stem}.{n}.{module}": size for n in range(layers) for module, size in sizes.items()}


async def _fill_slots(model: Model, directory: Path) -> None:
    """Put marked weights into every adapter slot. Loading activates an adapter; unloading only forgets its name."""
    for _ in range(SLOTS):
        name = f"mentee-slot-{uuid4().hex[:12]}"
        await load_folder(model, name, directory)
        await model.unload_adapter(name)


async def _reply(model: Model, name: str, prompt: str) -> Tokens:
    sampling = Sampling(temperature=0.0, max_tokens=TOKENS, priority=PRIORITY)
    # A fresh salt each time: a prefix computed in a quiet run must not stand in for one computed in a mixed batch.
    done = await model.complete(name, [ChatMessage(role="user", content=prompt)], sampling, salt=f"probe-{uuid4().hex}")
    return done.token_ids


async def _mixed(model: Model, names: Sequence[str]) -> list[tuple[str, str, Tokens]]:
    """Ask all models all prompts at once, each twice."""
    asked = [(name, prompt) for prompt in PROMPTS for _ in range(2) for name in names]
    replies = await asyncio.gather(*(_reply(model, name, prompt) for name, prompt in asked))
    return [(name, prompt, reply) for (name, prompt), reply in zip(asked, replies, strict=True)]


def _compare(
    quiet: dict[tuple[str, str], Tokens],
    mixed: Sequence[tuple[str, str, Tokens]],
    names: Sequence[str],
    precision: Precision,
) -> ProbeReport:
    different = like_other = 0
    for name, prompt, reply in mixed:
        if reply == quiet[name, prompt]:
            continue
        different += 1
        own = shared_start(reply, quiet[name, prompt])
        like_other += any(shared_start(reply, quiet[other, prompt]) >= own for other in names if other != name)
    reason: Reason = "ok"
    if like_other:
        reason = "answered_with_another"
    elif different and precision == "float32":
        reason = "mixed_differs"
    return ProbeReport(reason, len(mixed), different, like_other)
