"""What a bench prints: what is being measured, and figures beside what is reached for. Knows no measurement."""

import json
import sys
from functools import lru_cache
from pathlib import Path
from typing import TextIO

from app.bench.figures import Figure

FOLDER = Path(__file__).parent


@lru_cache
def catalogue(language: str) -> dict[str, str]:
    """Return the sentences of a language."""
    loaded: dict[str, str] = json.loads((FOLDER / f"messages.{language}.json").read_text("utf-8"))
    return loaded


class Show:
    """Prints to `out`."""

    def __init__(self, language: str, out: TextIO | None = None) -> None:
        self._texts = catalogue(language)
        self._out = out or sys.stdout

    def line(self, key: str, **values: object) -> None:
        """Print a sentence."""
        print(self._texts[key].format(**values), file=self._out, flush=True)

    def figure(self, figure: Figure) -> None:
        """Print one line of the table."""
        value = "–" if figure.value is None else f"{figure.value:.3g}"
        sign = "≤" if figure.at_most else "≥"
        verdict, name = self._texts[f"verdict.{figure.verdict}"], self._texts[f"figure.{figure.key}"]
        row = f"  {verdict:10} {name:58} {value:>8} {figure.unit:3} {sign} {figure.reach:g}   n={figure.n}"
        print(row, file=self._out, flush=True)
