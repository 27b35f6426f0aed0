"""The message catalogues: every sentence a person reads, in Korean and English, one JSON file per room and language.

`text(language, key, **values)` is the only door. A missing key is a programming error and raises `KeyError`; a test
holds the languages equal in keys and placeholders.
"""

import json
from functools import lru_cache
from importlib.resources import files
from typing import Literal, cast

Language = Literal["en", "ko"]
LANGUAGES: tuple[Language, ...] = ("en", "ko")


@lru_cache
def catalogue(language: Language) -> dict[str, str]:
    """Return every sentence of `language` by key, from all `<room>.<language>.json` files."""
    found: dict[str, str] = {}
    for entry in sorted(files(__name__).iterdir(), key=lambda e: e.name):
        if entry.name.endswith(f".{language}.json"):
            found |= cast("dict[str, str]", json.loads(entry.read_text("utf-8")))
    return found


def text(language: str | None, key: str, **values: object) -> str:
    """Return the sentence `key` in `language` (its first two letters count; English where we have none)."""
    return catalogue(pick(language))[key].format(**values)


def pick(language: str | None) -> Language:
    """Return the nearest language we speak."""
    return "ko" if (language or "").lower().startswith("ko") else "en"
