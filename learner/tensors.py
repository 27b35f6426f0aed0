"""Reads a safetensors file as if an enemy had written it: header, offsets, sizes and numbers are checked by hand.

Owns the byte form only; what the tensors mean is `learner/artifacts.py`. Knows nothing of torch.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.errors import ArtifactError

MAX_HEADER_BYTES = 1024 * 1024
MAX_FILE_BYTES = 4 * 1024**3
_PREFIX = 8
_BYTES_PER_NUMBER = 4


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """Where one float32 tensor lies in the data part: `[start, end)` in bytes."""

    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TensorFile:
    """A file whose layout was checked; numbers are read on demand."""

    path: Path
    metadata: dict[str, str]
    entries: dict[str, TensorEntry]
    data_start: int
    size_bytes: int

    def finite_arrays(self) -> dict[str, NDArray[np.float32]]:
        """Return every tensor.

        Raises:
            ArtifactError: a number is NaN or infinite.
        """
        data = self.path.read_bytes()[self.data_start :]
        arrays = {
            key: np.frombuffer(data[entry.start : entry.end], np.float32).reshape(entry.shape)
            for key, entry in self.entries.items()
        }
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise ArtifactError("the adapter holds numbers that are not finite")
        return arrays


def read_tensor_file(path: Path) -> TensorFile:
    """Read and check the layout of a safetensors file of float32 matrices.

    Raises:
        ArtifactError: truncated, too large, malformed, overlapping, with gaps, or of another number type.
    """
    size = path.stat().st_size
    if not _PREFIX < size <= MAX_FILE_BYTES:
        raise ArtifactError("the adapter's weights are truncated or too large")
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_PREFIX), "little")
        if not 2 <= length <= min(MAX_HEADER_BYTES, size - _PREFIX):  # noqa: PLR2004  # "{}" is the least header
            raise ArtifactError("the header of the adapter's weights is truncated or too large")
        header = _parse(file.read(length))
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ArtifactError("the header of the adapter's weights has malformed metadata")
    entries = {key: _entry(value) for key, value in header.items()}
    _check_layout(entries, size - _PREFIX - length)
    return TensorFile(path, metadata, entries, _PREFIX + length, size)


def _parse(raw: bytes) -> dict[str, Any]:
    try:
        header = json.loads(raw, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise ArtifactError("the header of the adapter's weights is not JSON") from error
    if not isinstance(header, dict):
        raise ArtifactError("the header of the adapter's weights is not an object")
    return header


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ArtifactError("the header of the adapter's weights names a tensor twice")
    return dict(pairs)


def _entry(value: object) -> TensorEntry:
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        raise ArtifactError("the header of the adapter's weights describes a tensor badly")
    if value["dtype"] != "F32":
        raise ArtifactError("the adapter's weights are not float32")
    shape, offsets = value["shape"], value["data_offsets"]
    if not _naturals(shape) or not _naturals(offsets) or len(offsets) != 2 or 0 in shape:  # noqa: PLR2004  # [start, end)
        raise ArtifactError("the header of the adapter's weights describes a tensor badly")
    entry = TensorEntry(tuple(shape), offsets[0], offsets[1])
    if entry.end - entry.start != math.prod(shape) * _BYTES_PER_NUMBER:
        raise ArtifactError("a tensor's size does not fit its shape")
    return entry


def _naturals(value: object) -> bool:
    return isinstance(value, list) and all(type(number) is int and number >= 0 for number in value)


def _check_layout(entries: dict[str, TensorEntry], data_size: int) -> None:
    position = 0
    for entry in sorted(entries.values(), key=lambda e: e.start):
        if entry.start != position:
            raise ArtifactError("the adapter's tensors overlap or leave gaps")
        position = entry.end
    if position != data_size:
        raise ArtifactError("the adapter's weights are truncated or hold extra bytes")
