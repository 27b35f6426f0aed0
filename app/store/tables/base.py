"""Shared column kinds. Every table's comment says what it holds · how long · under which consent; `docs/data.md`
is checked against these comments.
"""

from typing import Any

from sqlalchemy import CheckConstraint, Column, DateTime, ForeignKey, MetaData, Text, Uuid, text
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def uuid_key() -> Column[Any]:
    """Return the primary key of a row that people or other tables name."""
    return Column("id", Uuid, primary_key=True, server_default=text("gen_random_uuid()"))


def moment(name: str, *, nullable: bool = True) -> Column[Any]:
    """Return a timezone-aware moment that is unset until it happens."""
    return Column(name, DateTime(timezone=True), nullable=nullable)


def born(name: str = "created_at") -> Column[Any]:
    """Return the moment a row came to be, by the clock of the database."""
    return Column(name, DateTime(timezone=True), nullable=False, server_default=text("now()"))


def link(name: str, target: str, *, nullable: bool = False, ondelete: str = "CASCADE") -> Column[Any]:
    """Return a reference to `target`'s id; by default it goes when its target goes."""
    return Column(name, Uuid, ForeignKey(f"{target}.id", ondelete=ondelete), nullable=nullable, index=True)


def words(name: str, *, nullable: bool = True, default: str | None = None) -> Column[Any]:
    """Return a text column."""
    return Column(name, Text, nullable=nullable, server_default=default)


def document(name: str, *, nullable: bool = False) -> Column[Any]:
    """Return a JSON object column, `{}` unless set."""
    return Column(name, JSONB, nullable=nullable, server_default=None if nullable else text("'{}'::jsonb"))


def one_of(column: str, *values: str) -> CheckConstraint:
    """Return the constraint that closes a column's vocabulary."""
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} in ({listed})", name=column)
