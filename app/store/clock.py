"""Time as the database tells it: leases and due dates never depend on a process's own clock."""

from datetime import datetime
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, func


def after(seconds: float | BindParameter[Any]) -> ColumnElement[datetime]:
    """Return the moment `seconds` from now, now or as bound later; negative for the past."""
    return func.now() + func.make_interval(0, 0, 0, 0, 0, 0, seconds)
