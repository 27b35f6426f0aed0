"""The one table of commands: what `mentee run` starts is what `docker/compose.yaml` starts.

Pure: argument lists without an interpreter in front, knows nothing of ports, environments or order.
"""

from dataclasses import dataclass

GATEWAY = ("-m", "app.main")
MIGRATE = ("-m", "alembic", "-c", "migrations/alembic.ini", "upgrade", "head")


@dataclass(frozen=True, slots=True)
class Worker:
    """One Celery worker: which queues it serves, and how many jobs at once."""

    name: str
    queues: tuple[str, ...]
    threads: int = 1

    def argv(self, python: str) -> tuple[str, ...]:
        """Return the command line with `python` as interpreter."""
        return (
            python,
            *("-m", "celery", "-A", "app.worker", "worker"),
            *("-Q", ",".join(self.queues)),
            # Threads, since a solo worker answers no ping and releases nothing while a job runs; the heavy work has
            # processes of its own, which give way to everybody else.
            *("-c", str(self.threads), "--pool", "threads"),
            *("-n", f"{self.name}@%h"),
            "--without-gossip",
            "--without-mingle",
        )


WORKERS = (
    Worker("score", ("score",)),
    Worker("train", ("train",)),
    Worker("evaluate", ("evaluate", "release"), threads=2),
)
