"""The migrations make exactly the schema that the tables describe, and can be taken back."""

import os
import subprocess
import sys

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.store import Store
from tests.support.postgres import ROOT


def alembic(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "alembic", "-c", "migrations/alembic.ini", *arguments],
        check=False,
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": url},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_models_and_migrations_agree(database_url: str) -> None:
    checked = alembic(database_url, "check")
    assert checked.returncode == 0, checked.stdout + checked.stderr


async def test_migrations_can_be_taken_back(database_url: str, store: Store) -> None:
    assert alembic(database_url, "downgrade", "base").returncode == 0
    async with store.begin() as tx:
        left = await tx.scalar(text("select count(*) from pg_tables where schemaname = 'public'"))
    assert left == 1  # alembic's own
    assert alembic(database_url, "upgrade", "head").returncode == 0


@pytest.mark.parametrize(
    "statement", ["update audit_log set actor = 'x'", "delete from audit_log", "truncate audit_log"]
)
async def test_the_audit_log_only_grows(store: Store, statement: str) -> None:
    async with store.begin() as tx:
        await tx.execute(text("insert into audit_log (actor, event) values ('a', 'admin:login:done')"))
    with pytest.raises(DBAPIError, match="append-only"):
        async with store.begin() as tx:
            await tx.execute(text(statement))
