"""Runs the migrations against `DATABASE_URL` (or the `sqlalchemy.url` that a test sets), one transaction each."""

import asyncio
import os

from alembic import context
from sqlalchemy import text
from sqlalchemy.engine import Connection
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from app.store.engine import async_url
from app.store.tables import metadata


def _url() -> str:
    url = context.config.get_main_option("sqlalchemy.url") or os.environ.get("DATABASE_URL")
    if not url:
        message = "set DATABASE_URL to run the migrations"
        raise SystemExit(message)
    return async_url(url)


def _migrate(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=metadata, compare_server_default=False)
    with context.begin_transaction():
        connection.execute(text("set local lock_timeout = '4s'"))
        # Two processes that start together must not migrate together.
        connection.execute(text("select pg_advisory_xact_lock(hashtext('mentee-migrations'))"))
        context.run_migrations()


async def _run() -> None:
    engine = create_async_engine(_url(), poolclass=NullPool)
    async with engine.connect() as connection:
        await connection.run_sync(_migrate)
        await connection.commit()
    await engine.dispose()


asyncio.run(_run())
