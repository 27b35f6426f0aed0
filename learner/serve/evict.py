"""Pushing an unloaded adapter's weights out of a model server.

Unloading only makes vLLM forget the name; the weights stay in its cache until others push them out. So as many tiny
fillers as the cache holds are loaded and unloaded again. Adapters in use are pushed out too, and read from disk again
at their next request.
"""

from pathlib import Path
from uuid import uuid4

import numpy as np

from app.domain.profiles import CACHED_ADAPTERS
from app.errors import ModelUnavailableError
from app.ports import Model
from learner.artifacts import Tensors
from learner.serve.probe import shapes
from learner.serve.untrained import put_untrained

_MODULE = "self_attn.q_proj"


async def evict(model: Model, names: tuple[str, ...], model_dir: Path, workdir: Path) -> int:
    """Unload `names` and push their weights out; return how many were loaded.

    Raises:
        ModelUnavailableError: the server is away; a restart empties its cache anyway.
        ModelError: it refused.
        StorageFullError: the disk is full.
        ArtifactError: the filler could not be written.
    """
    loaded = {m.name for m in await model.models()} & set(names)
    for name in loaded:
        await model.unload_adapter(name)
    if not names:
        return 0
    filler = str(_filler(workdir / "filler", model_dir))
    for _ in range(CACHED_ADAPTERS):
        name = f"mentee-filler-{uuid4().hex[:12]}"
        await model.load_adapter(name, filler)
        await model.unload_adapter(name)
    still = {m.name for m in await model.models()} & set(names)
    if still:
        raise ModelUnavailableError("the model server still names an adapter that was unloaded")
    return len(loaded)


def _filler(directory: Path, model_dir: Path) -> Path:
    """Write the smallest adapter there is, one module of one layer, unless it is there whole; return its folder."""
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": str(model_dir),
        "r": 1,
        "lora_alpha": 1,
        "bias": "none",
        "target_modules": [_MODULE.partition(".")[2]],
    }
    return put_untrained(directory, config, lambda: _zeros(model_dir), "the filler")


def _zeros(model_dir: Path) -> Tensors:
    module, (inward, outward) = next((k, v) for k, v in shapes(model_dir).items() if k.endswith(_MODULE))
    return {
        f"base_model.model.{module}.lora_A.weight": np.zeros((1, inward), np.float32),
        f"base_model.model.{module}.lora_B.weight": np.zeros((outward, 1), np.float32),
    }
