"""The schema, in rooms: people, road, feedback, learning, admin. Knows no queries."""

from app.store.tables import admin, feedback, learning, people, road
from app.store.tables.base import metadata

__all__ = ["admin", "feedback", "learning", "metadata", "people", "road"]
