"""Adapter directories: written once, verified before every use, materialised for a model server by content name.

Standard PEFT, safetensors, lineage in the header, a `STABLE` marker last. A stored adapter names its base by id and
revision; the path of the base is written only in the copy made for a server. What is allowed inside is
`learner/adapter_form.py`, how the tensor file is read `learner/tensors.py`. Knows nothing of torch.
"""

import hashlib
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from app.errors import ArtifactError
from learner.adapter_form import (
    CONFIG,
    KEY,
    STABLE,
    WEIGHTS,
    adapter_config,
    adapter_name,
    check_digests,
    check_pairs,
    checked_name,
    file_sha256,
    read_config,
    read_marker,
)
from learner.dataset.manifest import canonical
from learner.durable import appearing, discard, unwritten, write_durably
from learner.tensors import read_tensor_file
from learner.types import BaseIdentity, Scope

__all__ = [
    "CONFIG",
    "STABLE",
    "WEIGHTS",
    "AdapterInfo",
    "Lineage",
    "Tensors",
    "adapter_name",
    "checked_name",
    "dematerialise",
    "materialise",
    "served_path",
    "verify",
    "write_adapter",
]

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


def write_adapter(directory: Path, tensors: Tensors, rank: int, alpha: int, lineage: Lineage) -> AdapterInfo:
    """Write a checkpoint: everything into a hidden directory beside it, the marker last, fsync, rename.

    Raises:
        StorageFullError: the disk is full; nothing is left behind.
        ArtifactError: it is not writable, and nothing is left behind, or something is there already.
    """
    if directory.exists():
        raise ArtifactError("a checkpoint is never written over another one")
    targets = sorted({match["target"] for key in tensors if (match := KEY.fullmatch(key))})
    config = adapter_config(rank, alpha, targets, lineage.base.label)
    files = {CONFIG: config, WEIGHTS: save(tensors, metadata=lineage.as_header())}
    content = _content_sha256(tensors, rank, alpha, targets, lineage.base)
    try:
        _write_directory(directory, files, content)
    except OSError as error:
        raise unwritten(error, "the adapter could not be saved") from error
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
    marker = read_marker(directory)
    config = read_config(directory / CONFIG, max_rank, str(base_path) if base_path else base.label)
    weights = read_tensor_file(directory / WEIGHTS)
    check_digests(directory, marker)
    lineage = Lineage.from_header(weights.metadata)
    if lineage.base != base:
        raise ArtifactError(f"the adapter belongs to the base {lineage.base.label}, not to {base.label}")
    rank, targets = int(config["r"]), sorted(config["target_modules"])
    check_pairs(weights, rank, targets)
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
        StorageFullError: the disk is full; nothing is left behind.
    """
    info = verify(checkpoint_dir, base, max_rank)
    target = served_path(serve_root, info.name)
    if not target.exists():
        config = adapter_config(info.rank, info.alpha, list(info.targets), str(model_path))
        try:
            _write_directory(target, {CONFIG: config}, info.content_sha256, link=checkpoint_dir / WEIGHTS)
        except OSError as error:
            if not target.exists():  # else another worker made it meanwhile
                raise unwritten(error, "the adapter could not be made ready to be served") from error
    if verify(target, base, max_rank, model_path).content_sha256 != info.content_sha256:
        raise ArtifactError("another adapter is already materialised under this name")
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
    discard(served_path(serve_root, name))


def _content_sha256(tensors: Tensors, rank: int, alpha: int, targets: list[str], base: BaseIdentity) -> str:
    """Hash what the adapter does, not where it came from: two equal trainings have one name."""
    digest = hashlib.sha256(canonical({"base": asdict(base), "rank": rank, "alpha": alpha, "targets": targets}))
    for key in sorted(tensors):
        array = tensors[key]
        digest.update(canonical([key, str(array.dtype), list(array.shape)]))
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _write_directory(directory: Path, files: dict[str, bytes], content: str, link: Path | None = None) -> None:
    """Write a directory that appears under its name with its marker in it."""
    with appearing(directory) as hidden:
        for name, data in files.items():
            write_durably(hidden / name, data)
        if link:
            _link_or_copy(link, hidden / WEIGHTS)
        digests = {name: file_sha256(hidden / name) for name in (CONFIG, WEIGHTS)}
        write_durably(hidden / STABLE, canonical({"content_sha256": content, "files": digests}))


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without hard links
        write_durably(target, source.read_bytes())
