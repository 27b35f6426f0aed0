"""Time as the database tells it: leases and due dates never depend on a process's own clock."""

from datetime import datetime
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Float, Text, func, literal_column

TODAY = "to_char(now() at time zone 'UTC', 'YYYY-MM-DD')"
"""The day in UTC, as 2026-01-31, for statements in words."""


def after(seconds: float | BindParameter[Any]) -> ColumnElement[datetime]:
    """Return the moment `seconds` from now, now or as bound later; negative for the past."""
    return func.now() + func.make_interval(0, 0, 0, 0, 0, 0, seconds)


def seconds_since(moment: ColumnElement[datetime]) -> ColumnElement[float]:
    """Return how long ago a moment was."""
    return func.extract("epoch", func.now() - moment).cast(Float)


def today() -> ColumnElement[str]:
    """Return the day in UTC, as 2026-01-31."""
    return literal_column(TODAY, Text)


def seconds_left_today() -> ColumnElement[float]:
    """Return how long the day in UTC still lasts."""
    return (86_400 - func.extract("epoch", _utc() - func.date_trunc("day", _utc()))).cast(Float)


def _utc() -> ColumnElement[datetime]:
    return func.timezone("UTC", func.now())
