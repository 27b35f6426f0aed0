"""What a person takes along: everything held about them, as JSON; in files, or behind a link where none can be sent.

A link names its person and its end, and is sealed with the installation's secret: nothing is stored for it, and after an
hour it leads nowhere.
"""

import hashlib
import hmac
import json
import math
from collections.abc import AsyncIterator
from datetime import datetime
from uuid import UUID

from app import clock
from app.errors import NotFoundError
from app.store import Tx, export
from app.store.export import PERSON

LINK_S = 3600
FILE_NAME = "mentee-export.json"
# Telegram takes files of 50 MB; each is also one row and one request.
FILE_BYTES = 16_000_000
_ID_BYTES, _TIME_BYTES, _SEAL_BYTES = 16, 8, 16


async def export_files(tx: Tx, person_id: UUID) -> AsyncIterator[tuple[str, str]]:
    """Yield name and text of the JSON documents that hold everything about a person: as few as platforms carry."""
    pieces: list[str] = []
    current = 1
    async for number, piece in _pieces(tx, person_id, FILE_BYTES):
        if number != current:
            yield _file_name(current), "".join(pieces)
            current, pieces = number, []
        pieces.append(piece)
    yield _file_name(current), "".join(pieces)


async def export_whole(tx: Tx, person_id: UUID) -> AsyncIterator[str]:
    """Yield the one JSON document that holds everything about a person, row by row."""
    async for _, piece in _pieces(tx, person_id, math.inf):
        yield piece


def _file_name(number: int) -> str:
    return FILE_NAME if number == 1 else f"mentee-export-{number}.json"


async def _pieces(tx: Tx, person_id: UUID, most_bytes: float) -> AsyncIterator[tuple[int, str]]:
    """Yield documents of `most_bytes` at most, one longer row aside, in pieces: each with its document's number."""
    begun = f'{{\n"exported_at": {json.dumps(clock.now().isoformat())}'
    number, size, table = 1, 0, PERSON
    yield number, begun
    async for name, row in export.rows(tx, person_id):
        line = json.dumps(row, ensure_ascii=False)
        length = len(line.encode())
        if size and size + length > most_bytes:
            yield number, _end(table)
            number, size, table = number + 1, 0, PERSON
            yield number, begun
        yield number, _before(name, table) + line
        size, table = size + length, name
    yield number, _end(table)


def _before(name: str, table: str) -> str:
    """Return what stands before a row of `name` where the last one was of `table`; a person's own row is in no list."""
    if name == table != PERSON:
        return ",\n"
    end = "" if table == PERSON else "\n]"
    begin = "" if name == PERSON else "[\n"
    return f"{end},\n{json.dumps(name)}: {begin}"


def _end(table: str) -> str:
    return "\n}\n" if table == PERSON else "\n]\n}\n"


def link_token(secret: bytes, person_id: UUID, now: datetime) -> str:
    """Return what lets whoever has it read the export of a person for an hour."""
    named = person_id.bytes + int(now.timestamp() + LINK_S).to_bytes(_TIME_BYTES, "big")
    # Hexadecimal: channels read marks of their own into underscores and hyphens.
    return (named + _seal(secret, named)).hex()


def person_of(secret: bytes, token: str, now: datetime) -> UUID:
    """Return whose export a token opens. Raises `NotFoundError` for one that is not ours, or over."""
    try:
        raw = bytes.fromhex(token)
    except ValueError as error:
        raise NotFoundError from error
    named, seal = raw[:-_SEAL_BYTES], raw[-_SEAL_BYTES:]
    if len(named) != _ID_BYTES + _TIME_BYTES or not hmac.compare_digest(seal, _seal(secret, named)):
        raise NotFoundError
    if int.from_bytes(named[_ID_BYTES:], "big") < now.timestamp():
        raise NotFoundError
    return UUID(bytes=named[:_ID_BYTES])


def _seal(secret: bytes, named: bytes) -> bytes:
    return hmac.new(secret, b"export:" + named, hashlib.sha256).digest()[:_SEAL_BYTES]
