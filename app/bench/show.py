"""What a bench prints: what is being measured, and figures beside what is reached for. Knows no measurement."""

from pathlib import Path
from typing import TextIO

from app.bench.figures import Figure
from app.embedded.lines import Lines
from app.embedded.messages import Texts

FOLDER = Path(__file__).parent


class Show(Lines):
    """Prints to `out`."""

    def __init__(self, language: str, out: TextIO | None = None) -> None:
        super().__init__(Texts(language, FOLDER), out)

    def figure(self, figure: Figure) -> None:
        """Print one line of the table."""
        value = "–" if figure.value is None else f"{figure.value:.3g}"
        sign = "≤" if figure.at_most else "≥"
        verdict, name = self.texts.say(f"verdict.{figure.verdict}"), self.texts.say(f"figure.{figure.key}")
        self.print(f"  {verdict:10} {name:58} {value:>8} {figure.unit:3} {sign} {figure.reach:g}   n={figure.n}")
