"""The one place that reads the wall clock. Knows nothing of time zones but UTC."""

from datetime import UTC, datetime


def now() -> datetime:
    """Return the present moment, timezone-aware, in UTC."""
    return datetime.now(UTC)
