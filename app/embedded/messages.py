"""Sentences of the terminal in English and Korean. Knows nothing of who prints them."""

import json
import os
from functools import lru_cache
from pathlib import Path

from app.config import Settings

CATALOGUE = Path(__file__).with_name("messages.json")
LOCALE_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")


class Texts:
    """The sentences of one language."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._sentences = catalogue()[language]

    def say(self, key: str, **values: object) -> str:
        """Return the sentence `key` with its values filled in."""
        return self._sentences[key].format(**values)


def language_of(settings: Settings) -> str:
    """Return the language of the terminal: the setting where one was made, else the locale's."""
    if "language" in settings.model_fields_set:
        return settings.language
    locale = next((os.environ[name] for name in LOCALE_VARIABLES if os.environ.get(name)), "")
    return "ko" if locale.lower().startswith("ko") else settings.language


@lru_cache
def catalogue() -> dict[str, dict[str, str]]:
    """Return every sentence by language and key."""
    loaded: dict[str, dict[str, str]] = json.loads(CATALOGUE.read_text(encoding="utf-8"))
    return loaded
