"""What a person sees of a demonstration: a line when a stage begins and ends, then the tables. Knows no product."""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

from app.demo.report import CELLS, Report, Stage, comparisons, problems

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
        self._began = time.monotonic()

    def line(self, key: str, **values: object) -> None:
        """Print a sentence."""
        self._print(self._texts[key].format(**values))

    def note(self, text: str) -> None:
        """Print what the product says about itself."""
        self._print(f"    {text}")

    def entering(self, name: str) -> None:
        """Say that a stage begins."""
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        self._print(f"[{minutes:02}:{seconds:02}] {self._texts[f'stage.{name}']} …")

    def left(self, stage: Stage) -> None:
        """Say how a stage ended."""
        key = "stage_done" if stage.ok else "stage_failed"
        self.line(key, stage=self._texts[f"stage.{stage.name}"], n=stage.n, seconds=stage.seconds)

    def gates(self, table: Sequence[Mapping[str, Any]]) -> None:
        """Print a gate table."""
        for row in table:
            figures = " ".join(f"{name}={_short(row[name])}" for name in ("value", "bound", "threshold"))
            self._print(f"    {row['gate'][:24]:24} {row['outcome']:12} n={row['n']:<3} {figures}")

    def report(self, report: Report) -> None:
        """Print the tables and the verdict."""
        self._print("")
        self.line("head_stages")
        for stage in report.stages.values():
            mark = "✓" if stage.ok else "✗"
            self._print(f"  {mark} {self._texts[f'stage.{stage.name}']:44} n={stage.n:<4} {stage.seconds:7.1f} s")
        self._print("")
        self.cells(report)
        self._verdict(report)

    def cells(self, report: Report) -> None:
        """Print the cells with their intervals, and how they compare."""
        self.line("head_cells", wish=report.wish)
        for name in CELLS:
            if cell := report.cells.get(name):
                low, high = cell.interval
                shown = f"{sum(cell.held):>3} / {cell.n:<3} {cell.rate:5.2f}  [{low:.2f}, {high:.2f}]"
                self._print(f"  {self._texts[f'cell.{name}']:44} {shown}")
        for found in comparisons(report.cells):
            self._print(f"  {found.first} > {found.second}: {found.wins}–{found.losses}, p = {found.p:.2g}")

    def _verdict(self, report: Report) -> None:
        self._print("")
        found = problems(report)
        for problem in found:
            kind, _, about = problem.partition(":")
            self.line(f"problem.{kind}", about=about)
        if report.error:
            self.line("error", error=report.error)
        self.line("failed" if found or report.error else "passed", minutes=report.seconds / 60)

    def _print(self, text: str) -> None:
        print(text, file=self._out, flush=True)


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else "–" if value is None else str(value)
