"""The snapshot manifest: what a training learns from, by id and salted digest, never by body.

Immutable and content-addressed. The salt stays in a row that can be deleted, so that a manifest kept for its
lineage cannot be used to guess a forgotten text. Knows nothing of the database or of torch.
"""

import hashlib
import hmac
import json
from dataclasses import asdict, dataclass
from typing import Any, Self

from app.errors import ArtifactError
from learner.types import Anchor, BaseIdentity, ItemKind, Lesson, Scope, TrainingItem, TrainSettings

FORMAT = 1
_KINDS = frozenset({"prompt", "example", "memory", "feedback"})


@dataclass(frozen=True, slots=True)
class ManifestItem:
    """One thing learnt from; `digest` is HMAC-SHA256 of its canonical body under the snapshot's salt."""

    id: str
    kind: ItemKind
    digest: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that decides a training, bodies aside. Items are kept sorted, so order does not matter."""

    scope: Scope
    base: BaseIdentity
    items: tuple[ManifestItem, ...]
    settings: TrainSettings
    code_revision: str
    seed: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", tuple(sorted(self.items, key=lambda item: (item.kind, item.id))))

    def as_json(self) -> dict[str, Any]:
        """Return the manifest as plain JSON data."""
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Rebuild a manifest.

        Raises:
            ArtifactError: the data is not a manifest of this format.
        """
        try:
            if data["format"] != FORMAT or {item["kind"] for item in data["items"]} - _KINDS:
                raise ArtifactError("the snapshot manifest is of another format")
            return cls(
                scope=data["scope"],
                base=BaseIdentity(**data["base"]),
                items=tuple(ManifestItem(**item) for item in data["items"]),
                settings=TrainSettings.from_json(data["settings"]),
                code_revision=str(data["code_revision"]),
                seed=int(data["seed"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(f"the snapshot manifest cannot be read: {type(error).__name__}") from error


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A manifest with its address."""

    manifest: Manifest

    @property
    def digest(self) -> str:
        """The address: SHA-256 of the canonical manifest."""
        return snapshot_hash(self.manifest)

    @classmethod
    def load(cls, data: dict[str, Any], expected: str) -> Self:
        """Rebuild a snapshot and recompute its address.

        Raises:
            ArtifactError: the manifest is malformed or its address is not `expected`.
        """
        snapshot = cls(Manifest.from_json(data))
        if not hmac.compare_digest(snapshot.digest, expected):
            raise ArtifactError("the snapshot's content does not match its address")
        return snapshot


def canonical(data: object) -> bytes:
    """Return the one byte form of JSON data: sorted keys, no blanks, UTF-8."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode(
        "utf-8", "surrogatepass"
    )


def snapshot_hash(manifest: Manifest) -> str:
    """Return the SHA-256 (hex) of the manifest's canonical JSON."""
    return hashlib.sha256(canonical(manifest.as_json())).hexdigest()


def salted_digest(salt: bytes, body: object) -> str:
    """Return the HMAC-SHA256 (hex) of a body's canonical JSON."""
    return hmac.new(salt, canonical(body), hashlib.sha256).hexdigest()


def manifest_item(salt: bytes, body: TrainingItem | Lesson | Anchor) -> ManifestItem:
    """Return the manifest entry of a body: prompts as they are, lessons as `memory`, anchors as `example`."""
    kind: ItemKind = (
        body.kind if isinstance(body, TrainingItem) else "memory" if isinstance(body, Lesson) else "example"
    )
    return ManifestItem(body.id, kind, salted_digest(salt, asdict(body)))


def check_bodies(manifest: Manifest, salt: bytes, bodies: tuple[TrainingItem | Lesson | Anchor, ...]) -> None:
    """Check that the bodies are exactly those the manifest names.

    Raises:
        ArtifactError: one is missing, added or changed.
    """
    found = tuple(sorted((manifest_item(salt, b) for b in bodies), key=lambda item: (item.kind, item.id)))
    if found != manifest.items:
        raise ArtifactError("the bodies are not those the snapshot names")
