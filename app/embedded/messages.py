"""Sentences of the terminal in English and Korean, one `messages.<language>.json` a folder. Knows nothing of who prints them."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from app.config import Settings
from app.errors import PartError

FOLDER = Path(__file__).parent
LOCALE_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")


@lru_cache
def catalogue(language: str, folder: Path = FOLDER) -> dict[str, str]:
    """Return every sentence of a language by key."""
    loaded: dict[str, str] = json.loads((folder / f"messages.{language}.json").read_text("utf-8"))
    return loaded


class Texts:
    """The sentences of one language."""

    def __init__(self, language: str, folder: Path = FOLDER) -> None:
        self.language = language
        self._sentences = catalogue(language, folder)

    def say(self, key: str, **values: object) -> str:
        """Return the sentence `key` with its values filled in."""
        return self._sentences[key].format(**values)


class SentenceError(PartError):
    """A part could not be started; the sentence that says why exists in every language of the terminal.

    Where it is raised nobody knows the terminal's language; `spoken` and `sentence` do. As text it is English.
    """

    def __init__(self, key: str, **values: object) -> None:
        super().__init__(Texts("en").say(key, **values))
        self.key = key
        self.values = values


def sentence(error: Exception, texts: Texts) -> str:
    """Return what to tell about an error."""
    return texts.say(error.key, **error.values) if isinstance(error, SentenceError) else str(error)


@contextmanager
def spoken(texts: Texts) -> Iterator[None]:
    """Raise what is raised inside in the terminal's language."""
    try:
        yield
    except SentenceError as error:
        raise PartError(sentence(error, texts)) from error


def language_of(settings: Settings) -> str:
    """Return the language of the terminal: the setting where one was made, else the locale's."""
    return settings.language if "language" in settings.model_fields_set else locale_language(settings.language)


def locale_language(otherwise: str = "en") -> str:
    """Return the language of the locale where it is one of ours."""
    locale = next((os.environ[name] for name in LOCALE_VARIABLES if os.environ.get(name)), "")
    return "ko" if locale.lower().startswith("ko") else otherwise
