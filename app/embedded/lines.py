"""Prints sentences of a catalogue, each on a line of its own and at once, also into a pipe. Knows nothing of what they say."""

import sys
from typing import TextIO

from app.embedded.messages import Texts


class Lines:
    """Prints to `out`, by default to the terminal."""

    def __init__(self, texts: Texts, out: TextIO | None = None) -> None:
        self.texts = texts
        self._out = out or sys.stdout

    def line(self, key: str, **values: object) -> None:
        """Print a sentence."""
        self.print(self.texts.say(key, **values))

    def print(self, text: str) -> None:
        """Print what is no sentence of the catalogue."""
        print(text, file=self._out, flush=True)
