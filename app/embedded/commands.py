"""The one table of commands: what `mentee run` starts is what `docker/compose.yaml` starts.

Pure: argument lists without an interpreter in front, knows nothing of ports, environments or order.
"""

from dataclasses import dataclass

GATEWAY = ("-m", "app.main")
MIGRATE = ("-m", "alembic", "-c", "migrations/alembic.ini", "upgrade", "head")
LOWEST_PRIORITY = ("nice", "-n", "19")


@dataclass(frozen=True, slots=True)
class Worker:
    """One Celery worker: which queues it serves, and whether it yields to everybody else."""

    name: str
    queues: tuple[str, ...]
    before: tuple[str, ...] = ()

    def argv(self, python: str) -> tuple[str, ...]:
        """Return the command line with `python` as interpreter."""
        return (
            *self.before,
            python,
            *("-m", "celery", "-A", "app.worker", "worker"),
            *("-Q", ",".join(self.queues)),
            *("-c", "1", "--pool", "solo"),
            *("-n", f"{self.name}@%h"),
            "--without-gossip",
            "--without-mingle",
        )


WORKERS = (
    Worker("score", ("score",)),
    # A training may take every core that nobody else wants, and none that somebody does.
    Worker("train", ("train",), before=LOWEST_PRIORITY),
    Worker("evaluate", ("evaluate", "release")),
)
