"""Adapters that a gate must refuse, and small ones for tests of files: made at test time, seeded, never shipped.

`noop_adapter` changes nothing (B = 0). `always_short_adapter` is trained for a few NLL steps until the model answers
everything with one word; it needs torch and a base model, and takes about a minute on two cores.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from app.domain.profiles import LINEAR_TARGETS
from learner.artifacts import AdapterInfo, Lineage, Tensors, write_adapter
from learner.types import BaseIdentity, ChatMessage, Scope

TINY_BASE = BaseIdentity("tiny", "r1", "t" * 64, "c" * 64)
_MLP = {"gate_proj", "up_proj", "down_proj"}
_SHORT_PROMPTS = (
    "What is rain?",
    "How do I boil an egg?",
    "Tell me about the moon.",
    "Why is the sky blue?",
    "What is 2 + 2?",
    "How can I sleep better?",
    "Name a fruit.",
    "Explain what a computer is.",
)


def lineage(base: BaseIdentity = TINY_BASE, scope: Scope = "person", run_id: str = "run-1") -> Lineage:
    return Lineage(scope, run_id, "5" * 64, base, 1, "test")


def tiny_tensors(
    rank: int = 4, width: int = 8, layers: int = 2, targets: Sequence[str] = LINEAR_TARGETS, seed: int = 0
) -> Tensors:
    """LoRA pairs of a toy model, width x width."""
    random = np.random.default_rng(seed)
    return {
        key(layer, target, side): random.normal(size=(rank, width) if side == "A" else (width, rank)).astype(np.float32)
        for layer in range(layers)
        for target in targets
        for side in "AB"
    }


def key(layer: int, target: str, side: str) -> str:
    block = "mlp" if target in _MLP else "self_attn"
    return f"base_model.model.model.layers.{layer}.{block}.{target}.lora_{side}.weight"


def tiny_adapter(directory: Path, base: BaseIdentity = TINY_BASE, seed: int = 0, rank: int = 4) -> AdapterInfo:
    return write_adapter(directory, tiny_tensors(rank, seed=seed), rank, 2 * rank, lineage(base))


def noop_adapter(directory: Path, model_dir: Path, base: BaseIdentity, rank: int = 8) -> AdapterInfo:
    """An adapter of the right shape for the model in `model_dir` whose every B is zero."""
    config = json.loads((model_dir / "config.json").read_bytes())
    tensors: Tensors = {}
    for layer in range(config["num_hidden_layers"]):
        for target, (wide_in, wide_out) in _shapes(config).items():
            tensors[key(layer, target, "A")] = np.full((rank, wide_in), 0.01, np.float32)
            tensors[key(layer, target, "B")] = np.zeros((wide_out, rank), np.float32)
    return write_adapter(directory, tensors, rank, 2 * rank, lineage(base))


def always_short_adapter(directory: Path, model_dir: Path, base: BaseIdentity, steps: int = 12) -> AdapterInfo:
    """An adapter that answers everything with "Ok." and ends its turn."""
    import torch

    from learner.algo.anchor import anchor_nll
    from learner.train.batch import collate
    from learner.train.model import Policy

    torch.set_num_threads(2)
    policy = Policy.load(model_dir, 8, 16, seed=7)
    optimiser = torch.optim.AdamW(policy.trainable(), lr=2e-3)
    prompts = [policy.renderer.prompt((ChatMessage("user", text),)) for text in _SHORT_PROMPTS]
    batch = collate(prompts, [policy.renderer.reply("Ok.")] * len(prompts))
    for _ in range(steps):
        optimiser.zero_grad()
        anchor_nll(policy.response_logits(batch), batch.response_BT, batch.response_mask_BT).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        optimiser.step()
    return write_adapter(directory, policy.adapter_tensors(), 8, 16, lineage(base))


def _shapes(config: dict[str, int]) -> dict[str, tuple[int, int]]:
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    head = config.get("head_dim") or hidden // config["num_attention_heads"]
    queries, keys = head * config["num_attention_heads"], head * config["num_key_value_heads"]
    return {
        "q_proj": (hidden, queries),
        "k_proj": (hidden, keys),
        "v_proj": (hidden, keys),
        "o_proj": (queries, hidden),
        "gate_proj": (hidden, inner),
        "up_proj": (hidden, inner),
        "down_proj": (inner, hidden),
    }
