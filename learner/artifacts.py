"""Adapter directories: written once, verified before every use, materialised for a model server by content name.

Owns the form (standard PEFT, safetensors, lineage in its header, a `STABLE` marker last) and the name
`<scope>-<12 hex>`. A stored adapter names its base by id and revision; the path of the base is written only in
the copy made for a server. Reading the tensor file is `learner/tensors.py`. Knows nothing of torch.
"""

import hashlib
import json
import os
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from app.errors import ArtifactError
from learner.dataset.manifest import canonical
from learner.durable import discard, fsync_directory, rename_durably, write_durably
from learner.tensors import TensorFile, read_tensor_file
from learner.types import LINEAR_TARGETS, BaseIdentity, Scope

CONFIG, WEIGHTS, STABLE = "adapter_config.json", "adapter_model.safetensors", "STABLE"
NAME = re.compile(r"(person|global)-[0-9a-f]{12}")
MAX_CONFIG_BYTES = 64 * 1024
_KEY = re.compile(
    r"base_model\.model\.model\.layers\.(?P<layer>\d{1,4})\.(?:self_attn|mlp)\.(?P<target>\w+)\.lora_(?P<side>[AB])\.weight"
)
_LINEAGE_KEYS = frozenset(
    {
        "scope",
        "run_id",
        "snapshot",
        "base_id",
        "base_revision",
        "tokenizer_digest",
        "template_digest",
        "seed",
        "code_revision",
        "format",
    }
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

Tensors = dict[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where an adapter comes from; goes into the header of its weights. No personal text."""

    scope: Scope
    run_id: str
    snapshot: str
    base: BaseIdentity
    seed: int
    code_revision: str

    def as_header(self) -> dict[str, str]:
        """Return the flat string form that a safetensors header takes."""
        fields = {
            "format": "pt",
            "scope": self.scope,
            "run_id": self.run_id,
            "snapshot": self.snapshot,
            "seed": str(self.seed),
            "code_revision": self.code_revision,
            **asdict(self.base),
        }
        return {("base_revision" if key == "revision" else key): value for key, value in fields.items()}

    @classmethod
    def from_header(cls, header: dict[str, str]) -> "Lineage":
        """Read the lineage back.

        Raises:
            ArtifactError: a field is missing, unknown or malformed.
        """
        if set(header) != _LINEAGE_KEYS or header["scope"] not in get_args(Scope):
            raise ArtifactError("the adapter's header does not say where it comes from")
        base = BaseIdentity(
            header["base_id"], header["base_revision"], header["tokenizer_digest"], header["template_digest"]
        )
        try:
            seed = int(header["seed"])
        except ValueError as error:
            raise ArtifactError("the adapter's header names no seed") from error
        scope: Scope = "person" if header["scope"] == "person" else "global"
        return cls(scope, header["run_id"], header["snapshot"], base, seed, header["code_revision"])


@dataclass(frozen=True, slots=True)
class AdapterInfo:
    """A verified adapter: `name` follows from `content_sha256`, which covers base, form and weights, not the run."""

    directory: Path
    name: str
    content_sha256: str
    rank: int
    alpha: int
    targets: tuple[str, ...]
    size_bytes: int
    lineage: Lineage


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


def write_adapter(directory: Path, tensors: Tensors, rank: int, alpha: int, lineage: Lineage) -> AdapterInfo:
    """Write a checkpoint: everything into a hidden directory beside it, fsync, rename, and the marker last.

    Raises:
        ArtifactError: the disk is full or not writable (nothing is left behind), or something is there already.
    """
    if directory.exists():
        raise ArtifactError("a checkpoint is never written over another one")
    targets = sorted({match["target"] for key in tensors if (match := _KEY.fullmatch(key))})
    config = _config(rank, alpha, targets, lineage.base.label)
    files = {CONFIG: config, WEIGHTS: save(tensors, metadata=lineage.as_header())}
    content = _content_sha256(tensors, rank, alpha, targets, lineage.base)
    _write_directory(directory, files, content)
    return AdapterInfo(
        directory,
        adapter_name(lineage.scope, content),
        content,
        rank,
        alpha,
        tuple(targets),
        len(files[WEIGHTS]),
        lineage,
    )


def verify(directory: Path, base: BaseIdentity, max_rank: int, base_path: Path | None = None) -> AdapterInfo:
    """Check a checkpoint from its marker to its last number and return what it is.

    `base_path` is given for a materialised copy, whose configuration must name exactly that path.

    Raises:
        ArtifactError: it is unfinished, truncated, altered, malformed, of another base, above `max_rank`, not finite,
            or holds anything but LoRA pairs on linear layers.
    """
    marker = _check_files(directory)
    config = _read_config(directory / CONFIG, max_rank, str(base_path) if base_path else base.label)
    weights = read_tensor_file(directory / WEIGHTS)
    _check_digests(directory, marker)
    lineage = Lineage.from_header(weights.metadata)
    if lineage.base != base:
        raise ArtifactError(f"the adapter belongs to the base {lineage.base.label}, not to {base.label}")
    rank, targets = int(config["r"]), sorted(config["target_modules"])
    _check_pairs(weights, rank, targets)
    tensors = weights.finite_arrays()
    content = _content_sha256(tensors, rank, int(config["lora_alpha"]), targets, base)
    if content != marker["content_sha256"]:
        raise ArtifactError("the adapter's content does not match its marker")
    return AdapterInfo(
        directory,
        adapter_name(lineage.scope, content),
        content,
        rank,
        int(config["lora_alpha"]),
        tuple(targets),
        weights.size_bytes,
        lineage,
    )


def materialise(checkpoint_dir: Path, serve_root: Path, model_path: Path, base: BaseIdentity, max_rank: int) -> Path:
    """Make the copy a model server loads: weights linked or copied, the base's path written, under the content name.

    Idempotent; returns `serve_root/<name>`.

    Raises:
        ArtifactError: the checkpoint does not verify, or another content stands under its name.
    """
    info = verify(checkpoint_dir, base, max_rank)
    target = served_path(serve_root, info.name)
    if target.exists():
        if verify(target, base, max_rank, model_path).content_sha256 != info.content_sha256:
            raise ArtifactError("another adapter is already materialised under this name")
        return target
    config = _config(info.rank, info.alpha, list(info.targets), str(model_path))
    _write_directory(target, {CONFIG: config}, info.content_sha256, link=checkpoint_dir / WEIGHTS)
    return target


def served_path(serve_root: Path, name: str) -> Path:
    """Return where an adapter of this name is materialised, inside `serve_root` and nowhere else.

    Raises:
        ArtifactError: the name is not one, or a symbolic link stands there.
    """
    path = serve_root / checked_name(name)
    if path.is_symlink():
        raise ArtifactError("an adapter directory may not be a symbolic link")
    return path


def dematerialise(serve_root: Path, name: str) -> None:
    """Remove a materialised copy; absent is fine.

    Raises:
        ArtifactError: the name is not one.
    """
    path = served_path(serve_root, name)
    if path.exists():
        (path / STABLE).unlink(missing_ok=True)
        shutil.rmtree(path)


def _config(rank: int, alpha: int, targets: list[str], base_name: str) -> bytes:
    config = {
        **_FIXED_CONFIG,
        "r": rank,
        "lora_alpha": alpha,
        "target_modules": targets,
        "base_model_name_or_path": base_name,
    }
    return json.dumps(config, sort_keys=True, indent=2).encode()


def _content_sha256(tensors: Tensors, rank: int, alpha: int, targets: list[str], base: BaseIdentity) -> str:
    """Hash what the adapter does, not where it came from: two equal trainings have one name."""
    digest = hashlib.sha256(canonical({"base": asdict(base), "rank": rank, "alpha": alpha, "targets": targets}))
    for key in sorted(tensors):
        array = tensors[key]
        digest.update(canonical([key, str(array.dtype), list(array.shape)]))
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _write_directory(directory: Path, files: dict[str, bytes], content: str, link: Path | None = None) -> None:
    hidden = directory.parent / f".{directory.name}.{os.getpid()}"
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        discard(hidden)
        hidden.mkdir()
        for name, data in files.items():
            write_durably(hidden / name, data)
        if link:
            _link_or_copy(link, hidden / WEIGHTS)
        fsync_directory(hidden)
        digests = {name: _file_sha256(hidden / name) for name in (CONFIG, WEIGHTS)}
        rename_durably(hidden, directory)
        write_durably(directory / STABLE, canonical({"content_sha256": content, "files": digests}))
        fsync_directory(directory)
    except OSError as error:
        discard(hidden)
        if not (directory / STABLE).exists():
            discard(directory)
        raise ArtifactError(
            f"the adapter could not be saved: {error.strerror}; free some space and run it again"
        ) from error


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without hard links
        write_durably(target, source.read_bytes())


def _file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_files(directory: Path) -> dict[str, Any]:
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


def _check_digests(directory: Path, marker: dict[str, Any]) -> None:
    for name, expected in marker["files"].items():
        if _file_sha256(directory / name) != expected:
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


def _read_config(path: Path, max_rank: int, base_name: str) -> dict[str, Any]:
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


def _check_pairs(weights: TensorFile, rank: int, targets: list[str]) -> None:
    """Check that the tensors are whole LoRA pairs of the stated rank on the stated modules."""
    pairs: dict[tuple[str, str], dict[str, tuple[int, ...]]] = {}
    for key, entry in weights.entries.items():
        match = _KEY.fullmatch(key)
        if not match or match["target"] not in targets or len(entry.shape) != 2:  # noqa: PLR2004  # a matrix
            raise ArtifactError("the adapter holds a tensor that is no LoRA matrix of a linear layer")
        pairs.setdefault((match["layer"], match["target"]), {})[match["side"]] = entry.shape
    if not pairs or {target for _, target in pairs} != set(targets):
        raise ArtifactError("the adapter's tensors and its target modules disagree")
    for sides in pairs.values():
        if set(sides) != {"A", "B"} or sides["A"][0] != rank or sides["B"][1] != rank:
            raise ArtifactError("a LoRA pair is incomplete or not of the stated rank")
