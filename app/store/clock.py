"""Time as the database tells it: leases and due dates never depend on a process's own clock."""

from datetime import datetime

from sqlalchemy import ColumnElement, func


def after(seconds: float) -> ColumnElement[datetime]:
    """Return the moment `seconds` from now; negative for the past."""
    return func.now() + func.make_interval(0, 0, 0, 0, 0, 0, seconds)
