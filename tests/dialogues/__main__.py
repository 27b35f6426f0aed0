"""`python -m tests.dialogues [FILE]`: plays every scene and writes the page, `dialogues.html` unless told otherwise."""

import asyncio
import sys
from pathlib import Path

import asyncpg

from tests.dialogues.page import page
from tests.dialogues.scenes import SCENES
from tests.dialogues.stage import play_all
from tests.support.pace import brisk_pace
from tests.support.postgres import migrate, throwaway_postgres

TEMPLATE = "scenes"


async def _template(server: str) -> None:
    connection = await asyncpg.connect(server.format("postgres"))
    await connection.execute(f"create database {TEMPLATE}")
    await connection.close()


def main() -> None:
    """Write the page."""
    where = Path(sys.argv[1] if len(sys.argv) > 1 else "dialogues.html")
    with throwaway_postgres() as server, brisk_pace():
        asyncio.run(_template(server))
        migrate(server.format(TEMPLATE))
        where.write_text(page(asyncio.run(play_all(server, TEMPLATE, SCENES))), "utf-8")
    print(where)


if __name__ == "__main__":
    main()
