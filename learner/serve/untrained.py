"""Adapters that nobody trained, as the probe and the eviction load them: put in place whole, and again where damaged.

Knows the files' form only, not what the weights are for.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from safetensors.numpy import save

from app.errors import ArtifactError
from learner.adapter_form import CONFIG, WEIGHTS
from learner.artifacts import Tensors
from learner.durable import appearing, discard, unwritten, write_durably
from learner.tensors import read_tensor_file


def put_untrained(directory: Path, config: Mapping[str, object], make: Callable[[], Tensors], what: str) -> Path:
    """Write an adapter, unless it is there whole and with this configuration; return its absolute folder.

    Raises:
        StorageFullError: the disk is full; nothing half-written is left.
        ArtifactError: `what` could not be written.
    """
    directory = directory.resolve()
    wanted = json.dumps(config, sort_keys=True).encode()
    if _is_whole(directory, wanted):
        return directory
    try:
        discard(directory)
        with appearing(directory) as hidden:
            write_durably(hidden / WEIGHTS, save(make(), metadata={"format": "pt"}))
            write_durably(hidden / CONFIG, wanted)
    except OSError as error:
        if not _is_whole(directory, wanted):  # else another process put it there meanwhile
            raise unwritten(error, f"{what} could not be written") from error
    return directory


def _is_whole(directory: Path, wanted: bytes) -> bool:
    """Whether nothing is missing or cut; a power cut or a kill may have left half of it."""
    try:
        read_tensor_file(directory / WEIGHTS)
        return (directory / CONFIG).read_bytes() == wanted
    except (OSError, ArtifactError):
        return False
