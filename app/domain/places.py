"""Where the learner keeps its files under the home folder. Names only; touches nothing."""

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Places:
    """The learner's folders under `home`."""

    home: Path

    @property
    def checkpoints(self) -> Path:
        """Finished adapters, one folder per content name."""
        return self.home / "adapters" / "checkpoints"

    @property
    def serving(self) -> Path:
        """The copies that model servers load, one folder per content name."""
        return self.home / "adapters" / "serving"

    @property
    def probes(self) -> Path:
        """The marked adapters of the isolation probe."""
        return self.home / "adapters" / "probes"

    @property
    def runs(self) -> Path:
        """One folder per training run: rollouts, progress, result; while it runs also its texts."""
        return self.home / "runs"

    def gate(self, gate_run_id: UUID | str) -> Path:
        """Where one measurement of the gates works, beside the training runs."""
        return self.runs / f"gate-{gate_run_id}"

    @property
    def exports(self) -> Path:
        """Files made for people who asked for their data, one folder per person."""
        return self.home / "exports"
