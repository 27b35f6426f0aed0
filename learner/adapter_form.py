"""The form of an adapter directory: its files, its name, its configuration, its LoRA pairs. Refuses everything else.

Owns what is allowed; `learner/artifacts.py` owns writing, verifying and materialising. Knows nothing of torch.
"""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from app.domain.profiles import LINEAR_TARGETS
from app.errors import ArtifactError
from learner.tensors import TensorFile
from learner.types import Scope

CONFIG, WEIGHTS, STABLE = "adapter_config.json", "adapter_model.safetensors", "STABLE"
NAME = re.compile(r"(person|global)-[0-9a-f]{12}")
MAX_CONFIG_BYTES = 64 * 1024
KEY = re.compile(
    r"base_model\.model\.model\.(?:language_model\.)?layers\.(?P<layer>\d{1,4})\.(?:self_attn|mlp)\.(?P<target>\w+)\.lora_(?P<side>[AB])\.weight"
)
# What a served adapter may say beside rank, alpha and targets; anything else changes the model in ways the server
# or the gates do not know (DoRA, biases, extra modules, per-layer ranks).
_FIXED_CONFIG: dict[str, Any] = {
    "peft_type": "LORA",
    "task_type": "CAUSAL_LM",
    "bias": "none",
    "use_dora": False,
    "use_rslora": False,
    "fan_in_fan_out": False,
    "inference_mode": True,
    "lora_dropout": 0.0,
    "modules_to_save": None,
    "rank_pattern": {},
    "alpha_pattern": {},
    "layers_to_transform": None,
    "layers_pattern": None,
    "init_lora_weights": True,
}
_CONFIG_KEYS = frozenset(_FIXED_CONFIG) | {"r", "lora_alpha", "target_modules", "base_model_name_or_path"}


def adapter_name(scope: Scope, sha256: str) -> str:
    """Return the immutable name an adapter of this content is served under.

    Raises:
        ArtifactError: the scope or the digest is not one.
    """
    return checked_name(f"{scope}-{sha256[:12]}")


def checked_name(name: str) -> str:
    """Return the name unchanged.

    Raises:
        ArtifactError: it is not `<scope>-<12 hex>`; a path, a blank or a dot never is.
    """
    if not NAME.fullmatch(name):
        raise ArtifactError("an adapter's name must be person- or global- and 12 hex digits")
    return name


def adapter_config(rank: int, alpha: int, targets: list[str], base_name: str) -> bytes:
    """Return the content of `adapter_config.json`."""
    config = {
        **_FIXED_CONFIG,
        "r": rank,
        "lora_alpha": alpha,
        "target_modules": targets,
        "base_model_name_or_path": base_name,
    }
    return json.dumps(config, sort_keys=True, indent=2).encode()


def file_sha256(path: Path) -> str:
    """Return the SHA-256 (hex) of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_marker(directory: Path) -> dict[str, Any]:
    """Return the marker of a directory that holds the three plain files and nothing else.

    Raises:
        ArtifactError: unfinished, or something is missing, added, linked or malformed.
    """
    if directory.is_symlink() or not directory.is_dir():
        raise ArtifactError("there is no adapter directory")
    entries = list(directory.iterdir())
    if any(entry.is_symlink() or not entry.is_file() for entry in entries):
        raise ArtifactError("an adapter directory holds plain files only")
    names = {entry.name for entry in entries}
    if STABLE not in names:
        raise ArtifactError("the adapter is unfinished: its STABLE marker is missing")
    if names != {CONFIG, WEIGHTS, STABLE}:
        raise ArtifactError("the adapter directory misses a file or holds one that does not belong")
    marker = _read_json(directory / STABLE)
    files = marker.get("files")
    if set(marker) != {"content_sha256", "files"} or not isinstance(files, dict) or set(files) != {CONFIG, WEIGHTS}:
        raise ArtifactError("the adapter's STABLE marker is malformed")
    return marker


def check_digests(directory: Path, marker: dict[str, Any]) -> None:
    """Check the files against their marker.

    Raises:
        ArtifactError: one was changed after it was written.
    """
    for name, expected in marker["files"].items():
        if file_sha256(directory / name) != expected:
            raise ArtifactError(f"{name} was changed after it was written")


def _read_json(path: Path) -> dict[str, Any]:
    if path.stat().st_size > MAX_CONFIG_BYTES:
        raise ArtifactError(f"{path.name} is too large")
    try:
        data = json.loads(path.read_bytes())
    except ValueError as error:
        raise ArtifactError(f"{path.name} is not JSON") from error
    if not isinstance(data, dict):
        raise ArtifactError(f"{path.name} is not an object")
    return data


def read_config(path: Path, max_rank: int, base_name: str) -> dict[str, Any]:
    """Return a configuration that asks for plain LoRA on linear layers of `base_name`, up to `max_rank`.

    Raises:
        ArtifactError: it asks for anything else.
    """
    config = _read_json(path)
    if set(config) != _CONFIG_KEYS or any(config[key] != value for key, value in _FIXED_CONFIG.items()):
        raise ArtifactError("the adapter's configuration asks for more than plain LoRA")
    if config["base_model_name_or_path"] != base_name:
        raise ArtifactError("the adapter's configuration names another base")
    rank, alpha, targets = config["r"], config["lora_alpha"], config["target_modules"]
    if type(rank) is not int or type(alpha) is not int or not 1 <= rank <= max_rank or alpha < 1:
        raise ArtifactError(f"the adapter's rank must be between 1 and {max_rank}")
    if not isinstance(targets, list) or not targets or any(target not in LINEAR_TARGETS for target in targets):
        raise ArtifactError("the adapter changes modules other than the linear layers")
    return config


def check_pairs(weights: TensorFile, rank: int, targets: list[str]) -> None:
    """Check that the tensors are whole LoRA pairs of the stated rank on the stated modules."""
    pairs: dict[tuple[str, str], dict[str, tuple[int, ...]]] = {}
    for key, entry in weights.entries.items():
        match = KEY.fullmatch(key)
        if not match or match["target"] not in targets or len(entry.shape) != 2:  # noqa: PLR2004  # a matrix
            raise ArtifactError("the adapter holds a tensor that is no LoRA matrix of a linear layer")
        pairs.setdefault((match["layer"], match["target"]), {})[match["side"]] = entry.shape
    if not pairs or {target for _, target in pairs} != set(targets):
        raise ArtifactError("the adapter's tensors and its target modules disagree")
    for sides in pairs.values():
        if set(sides) != {"A", "B"} or sides["A"][0] != rank or sides["B"][1] != rank:
            raise ArtifactError("a LoRA pair is incomplete or not of the stated rank")
