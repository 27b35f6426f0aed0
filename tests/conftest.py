"""What every tier shares: a real PostgreSQL started once a run, a fresh migrated database for each test that asks."""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest
from hypothesis import HealthCheck, settings

from app.store import StatementPool, Store
from tests.support.postgres import migrate, throwaway_postgres
from tests.support.scale import SCALE

pytest_plugins = ["tests.fakes.fixtures"]

settings.register_profile(
    "scaled", max_examples=100 * SCALE, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# Without a deadline: no test fails because the machine is busy.
settings.load_profile("scaled")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The address of a server that this run started, with `{}` where the database's name goes."""
    if given := os.environ.get("MENTEE_TEST_DATABASE_SERVER"):
        yield given
        return
    with throwaway_postgres() as url:
        yield url


async def _execute(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


@pytest.fixture(scope="session")
def template_database(postgres_url: str) -> str:
    """A database that the migrations made; tests copy it."""
    name = f"template_{uuid.uuid4().hex[:12]}"
    asyncio.run(_execute(postgres_url.format("postgres"), f"create database {name}"))
    migrate(postgres_url.format(name))
    return name


@pytest.fixture
async def database_url(postgres_url: str, template_database: str) -> AsyncIterator[str]:
    """The address of a fresh, migrated database."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    await _execute(
        postgres_url.format("postgres"), f"create database {name} template {template_database} strategy file_copy"
    )
    yield postgres_url.format(name)
    await _execute(postgres_url.format("postgres"), f"drop database {name} with (force)")


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[Store]:
    """A store on a fresh database."""
    opened = Store(database_url, pool_size=5)
    yield opened
    await opened.close()


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[StatementPool]:
    """Single statements on the same database."""
    opened = StatementPool(database_url, size=4)
    yield opened
    await opened.close()
