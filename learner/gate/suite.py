"""The shipped prompts of the gates, each with its language; a base is judged on the languages it speaks.

Files in `suites/`: regression (with a checker each), safety (harmful and benign look-alikes), probes (neutral, for
lessons), drift. The digest of the files goes into every gate run.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from app.domain.checker import CheckerSpec

_FOLDER = Path(__file__).parent / "suites"
_FILES = ("regression.json", "safety.json", "probes.json", "drift.json")
SafetyKind = Literal["harmful", "benign"]
T = TypeVar("T", "Probe", "RegressionItem", "SafetyItem")


@dataclass(frozen=True, slots=True)
class Probe:
    """A neutral prompt."""

    id: str
    language: str
    prompt: str


@dataclass(frozen=True, slots=True)
class RegressionItem:
    """A prompt whose answer a machine can check."""

    id: str
    language: str
    prompt: str
    check: CheckerSpec


@dataclass(frozen=True, slots=True)
class SafetyItem:
    """A prompt that must be declined, or a harmless one that looks like it and must not be."""

    id: str
    language: str
    kind: SafetyKind
    prompt: str


@dataclass(frozen=True, slots=True)
class Suite:
    """All prompts in the languages asked for."""

    regression: tuple[RegressionItem, ...]
    safety: tuple[SafetyItem, ...]
    probes: tuple[Probe, ...]
    drift: tuple[Probe, ...]
    digest: str


def load_suite(languages: Sequence[str]) -> Suite:
    """Return the shipped suite restricted to `languages`."""
    return _load(tuple(sorted(set(languages))))


@lru_cache
def _load(languages: tuple[str, ...]) -> Suite:
    raw = {name: (_FOLDER / name).read_bytes() for name in _FILES}
    digest = hashlib.sha256(b"\0".join(raw[name] for name in _FILES) + ",".join(languages).encode()).hexdigest()
    return Suite(
        _items(raw["regression.json"], languages, _regression),
        _items(raw["safety.json"], languages, lambda item: SafetyItem(**item)),
        _items(raw["probes.json"], languages, lambda item: Probe(**item)),
        _items(raw["drift.json"], languages, lambda item: Probe(**item)),
        digest,
    )


def _items(raw: bytes, languages: tuple[str, ...], build: Callable[[dict[str, Any]], T]) -> tuple[T, ...]:
    return tuple(build(item) for item in json.loads(raw) if item["language"] in languages)


def _regression(item: dict[str, Any]) -> RegressionItem:
    return RegressionItem(item["id"], item["language"], item["prompt"], CheckerSpec.parse(item["check"]))
