"""LoRA adapters of the fake model: what may be loaded under which name, with vLLM's answers.

Owns the list of loaded names and the checks a real server makes when it reads an adapter directory. Like the real one
it does not compare the base model or the shapes of the weights; it never opens weights beyond their header.
"""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes.model.request import ModelError, need
from tests.fakes.model.tokens import JSON

WEIGHTS = "adapter_model.safetensors"


@dataclass(slots=True)
class Adapters:
    """Loaded adapters by name; `loads` and `unloads` count what was done, `failing` holds what the next loads answer."""

    base: str
    max_rank: int = 16
    loaded: dict[str, str] = field(default_factory=dict)
    loads: list[str] = field(default_factory=list)
    unloads: list[str] = field(default_factory=list)
    failing: list[int] = field(default_factory=list)

    def load(self, body: JSON) -> str:
        """Load by `lora_name` and `lora_path`; raises `ModelError` 400, 404 or 500."""
        name, path = str(need(body, "lora_name", str)), str(need(body, "lora_path", str))
        if not name or not path:
            raise _user_error("Both 'lora_name' and 'lora_path' must be provided.")
        if name == self.base:
            raise _user_error(f"The lora adapter '{name}' conflicts with a served base model.")
        if name in self.loaded and not body.get("load_inplace"):
            text = f"The lora adapter '{name}' has already been loaded. If you want to load the adapter in place, "
            raise _user_error(text + "set 'load_inplace' to True.")
        if self.failing:
            raise ModelError(self.failing.pop(0), "The server has a fault of its own.", "InternalServerError")
        _inspect(name, Path(path), self.max_rank)
        self.loaded[name] = path
        self.loads.append(name)
        return f"Success: LoRA adapter '{name}' added successfully."

    def unload(self, body: JSON) -> str:
        """Forget a name; raises `ModelError` 400 or 404."""
        name = str(need(body, "lora_name", str))
        if not name:
            raise _user_error("'lora_name' needs to be provided to unload a LoRA adapter.")
        if name not in self.loaded:
            raise ModelError(404, f"The lora adapter '{name}' cannot be found.", "NotFoundError")
        del self.loaded[name]
        self.unloads.append(name)
        return f"Success: LoRA adapter '{name}' removed successfully."

    def cards(self, root: str, window: int) -> list[JSON]:
        """The entries of /v1/models, the base first."""
        base = _card(self.base, root, None, window)
        return [base, *(_card(name, path, self.base, None) for name, path in self.loaded.items())]


def _user_error(text: str) -> ModelError:
    return ModelError(400, text, "InvalidUserInput")


def _worker_error(cause: str) -> ModelError:
    text = f"Call to add_lora method failed: Worker failed with error '{cause}', please check the stack trace above "
    return ModelError(500, text + "for the root cause", "InternalServerError")


def _inspect(name: str, path: Path, max_rank: int) -> None:
    config = path / "adapter_config.json"
    if not config.is_file():
        raise ModelError(404, f"Loading lora {name} failed: No adapter found for <path>", "NotFoundError")
    try:
        rank = int(json.loads(config.read_text())["r"])
    except (ValueError, KeyError, TypeError) as error:
        raise _worker_error(str(error)) from error
    if rank > max_rank:
        raise _worker_error(f"LoRA rank {rank} is greater than max_lora_rank {max_rank}.")
    if not (path / WEIGHTS).is_file():
        raise _worker_error("<path> doesn't contain tensors")
    if not _is_whole(path / WEIGHTS):
        raise _worker_error("Error while deserializing header: incomplete metadata, file not fully covered")


def _is_whole(weights: Path) -> bool:
    """Whether a safetensors file is as long as its header says (8 bytes length, JSON header, data)."""
    size = weights.stat().st_size
    with weights.open("rb") as file:
        header_size = int.from_bytes(file.read(8), "little")
        if not 0 < header_size <= size - 8:
            return False
        try:
            header = json.loads(file.read(header_size))
        except ValueError:
            return False
    ends = [item["data_offsets"][1] for name, item in header.items() if name != "__metadata__"]
    return size == 8 + header_size + max(ends, default=0)


def _card(name: str, root: str, parent: str | None, window: int | None) -> JSON:
    now = int(time.time())
    permission: JSON = {
        "id": f"modelperm-{abs(hash(name)):016x}"[:26], "object": "model_permission", "created": now,
        "allow_create_engine": False, "allow_sampling": True, "allow_logprobs": True, "allow_search_indices": False,
        "allow_view": True, "allow_fine_tuning": False, "organization": "*", "group": None, "is_blocking": False,
    }  # fmt: skip
    return {
        "id": name, "object": "model", "created": now, "owned_by": "vllm", "root": root, "parent": parent,
        "max_model_len": window, "permission": [permission],
    }  # fmt: skip
