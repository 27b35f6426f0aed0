"""Pushing an unloaded adapter's weights out of a model server.

Unloading only makes vLLM forget the name; the weights stay in its cache until others push them out. So as many tiny
fillers as the cache holds are loaded and unloaded again. Adapters in use are pushed out too, and read from disk again
at their next request.
"""

import json
from pathlib import Path
from uuid import uuid4

import numpy as np
from safetensors.numpy import save_file

from app.domain.profiles import CACHED_ADAPTERS
from app.errors import ModelUnavailableError
from app.ports import Model
from learner.durable import unwritten
from learner.serve.probe import shapes

_MODULE = "self_attn.q_proj"


async def evict(model: Model, names: tuple[str, ...], model_dir: Path, workdir: Path) -> int:
    """Unload `names` and push their weights out; return how many were loaded.

    Raises:
        ModelUnavailableError: the server is away; a restart empties its cache anyway.
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
    """Write the smallest adapter there is, one module of one layer, unless it is there; return its absolute folder."""
    directory = directory.resolve()
    if (directory / "adapter_config.json").exists():
        return directory
    module, (inward, outward) = next((k, v) for k, v in shapes(model_dir).items() if k.endswith(_MODULE))
    zeros = {
        f"base_model.model.{module}.lora_A.weight": np.zeros((1, inward), np.float32),
        f"base_model.model.{module}.lora_B.weight": np.zeros((outward, 1), np.float32),
    }
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": str(model_dir),
        "r": 1,
        "lora_alpha": 1,
        "bias": "none",
        "target_modules": [_MODULE.partition(".")[2]],
    }
    try:
        directory.mkdir(parents=True, exist_ok=True)
        save_file(zeros, directory / "adapter_model.safetensors", metadata={"format": "pt"})
        (directory / "adapter_config.json").write_text(json.dumps(config), "utf-8")
    except OSError as error:
        raise unwritten(error, "the filler could not be written") from error
    return directory
