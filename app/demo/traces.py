"""Looks for a planted word everywhere it could have stayed: every table, every file of the home, broker, logs.

Also as hexadecimal (raw bytes in a row show that way) and as the token ids that would give it back. PostgreSQL's own data
files are not opened: deleted rows stay there unreadable until the space is used again. The base model's files hold
nobody's words and are left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncpg
from redis.asyncio import Redis

LEFT_OUT = frozenset({"postgres", "models"})
LEAST_IDS = 3
TIMEOUT_S = 120.0
BROKER_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Traces:
    """How often the word was found, and where (names of tables and files only); how much was looked at."""

    tables: dict[str, int]
    files: tuple[str, ...]
    keys: int
    tables_seen: int
    files_seen: int
    keys_seen: int

    @property
    def found(self) -> int:
        """All findings together."""
        return sum(self.tables.values()) + len(self.files) + self.keys

    def document(self) -> dict[str, object]:
        """Return the JSON form."""
        seen = {"tables_seen": self.tables_seen, "files_seen": self.files_seen, "keys_seen": self.keys_seen}
        return {"tables": self.tables, "files": list(self.files), "keys": self.keys, **seen}


def forms(word: str, token_ids: Sequence[int]) -> tuple[str, ...]:
    """Return the texts by which a word would be found."""
    spellings = dict.fromkeys((word, word.lower(), word.upper()))
    hexed = [spelling.encode().hex() for spelling in spellings]
    ids = [joint.join(map(str, token_ids)) for joint in (",", ", ")] if len(token_ids) >= LEAST_IDS else []
    return (*spellings, *hexed, *ids)


async def search(database_url: str, broker_url: str, home: Path, wanted: Sequence[str]) -> Traces:
    """Look everywhere."""
    tables = await _tables(database_url, wanted)
    files = list(_files(home))
    needles = [text.encode() for text in wanted]
    hit = tuple(str(path.relative_to(home)) for path in files if _holds(path, needles))
    keys, keys_seen = await _broker(broker_url, needles)
    return Traces({t: n for t, n in tables.items() if n}, hit, keys, len(tables), len(files), keys_seen)


async def _tables(url: str, wanted: Sequence[str]) -> dict[str, int]:
    connection = await asyncpg.connect(url, timeout=10)
    try:
        names = await connection.fetch(
            "select format('%I.%I', schemaname, tablename) as name from pg_tables "
            "where schemaname not in ('pg_catalog', 'information_schema')"
        )
        query = (
            "select count(*) from {} r where exists (select 1 from unnest($1::text[]) w where strpos(r::text, w) > 0)"
        )
        return {
            row["name"]: int(await connection.fetchval(query.format(row["name"]), list(wanted), timeout=TIMEOUT_S))
            for row in names
        }
    finally:
        await connection.close(timeout=10)


def _files(home: Path) -> Iterator[Path]:
    for entry in sorted(home.iterdir()):
        if entry.name in LEFT_OUT:
            continue
        if entry.is_dir():
            yield from (path for path in sorted(entry.rglob("*")) if path.is_file())
        elif entry.is_file():
            yield entry


def _holds(path: Path, needles: Sequence[bytes]) -> bool:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return False  # removed meanwhile: nothing is left of it
    return any(needle in content for needle in needles)


async def _broker(url: str, needles: Sequence[bytes]) -> tuple[int, int]:
    client: Redis = Redis.from_url(url, socket_timeout=BROKER_TIMEOUT_S)
    found = seen = 0
    try:
        async for key in client.scan_iter():
            seen += 1
            held = key + b"\0" + (await client.dump(key) or b"")
            found += any(needle in held for needle in needles)
    finally:
        await client.aclose()
    return found, seen
