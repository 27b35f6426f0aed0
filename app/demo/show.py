"""What a person sees of a demonstration: a line when a stage begins and ends, then the tables. Knows no product."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from app.demo.report import CELLS, Report, Stage, comparisons, problems
from app.embedded.lines import Lines
from app.embedded.messages import Texts

FOLDER = Path(__file__).parent


class Show(Lines):
    """Prints to `out`."""

    def __init__(self, language: str, out: TextIO | None = None) -> None:
        super().__init__(Texts(language, FOLDER), out)
        self._began = time.monotonic()

    def note(self, text: str) -> None:
        """Print what the product says about itself."""
        self.print(f"    {text}")

    def entering(self, name: str) -> None:
        """Say that a stage begins."""
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        self.print(f"[{minutes:02}:{seconds:02}] {self.texts.say(f'stage.{name}')} …")

    def left(self, stage: Stage) -> None:
        """Say how a stage ended."""
        key = "stage_done" if stage.ok else "stage_failed"
        self.line(key, stage=self.texts.say(f"stage.{stage.name}"), n=stage.n, seconds=stage.seconds)

    def gates(self, table: Sequence[Mapping[str, Any]]) -> None:
        """Print a gate table."""
        for row in table:
            figures = " ".join(f"{name}={_short(row[name])}" for name in ("value", "bound", "threshold"))
            self.print(f"    {row['gate'][:24]:24} {row['outcome']:12} n={row['n']:<3} {figures}")

    def report(self, report: Report) -> None:
        """Print the tables and the verdict."""
        self.print("")
        self.line("head_stages")
        for stage in report.stages.values():
            mark = "✓" if stage.ok else "✗"
            self.print(f"  {mark} {self.texts.say(f'stage.{stage.name}'):44} n={stage.n:<4} {stage.seconds:7.1f} s")
        for name, value in report.changed.items():
            self.line(f"changed.{name}", value=value)
        self.print("")
        self.cells(report)
        self._verdict(report)

    def cells(self, report: Report) -> None:
        """Print the cells with their intervals, and how they compare."""
        self.line("head_cells", wish=report.wish)
        for name in CELLS:
            if cell := report.cells.get(name):
                low, high = cell.interval
                shown = f"{sum(cell.held):>3} / {cell.n:<3} {cell.rate:5.2f}  [{low:.2f}, {high:.2f}]"
                self.print(f"  {self.texts.say(f'cell.{name}'):44} {shown}")
        for found in comparisons(report.cells):
            self.print(f"  {found.first} > {found.second}: {found.wins}–{found.losses}, p = {found.p:.2g}")

    def _verdict(self, report: Report) -> None:
        self.print("")
        found = problems(report)
        for problem in found:
            kind, _, about = problem.partition(":")
            self.line(f"problem.{kind}", about=about)
        if report.error:
            self.line("error", error=report.error)
        self.line("failed" if found or report.error else "passed", minutes=report.seconds / 60)


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else "–" if value is None else str(value)
