"""What a person takes along: everything held about them, as one JSON document; and a link to it where no file can be sent.

A link names its person and its end, and is sealed with the installation's secret: nothing is stored for it, and after an
hour it leads nowhere.
"""

import hashlib
import hmac
import json
from datetime import datetime
from uuid import UUID

from app import clock
from app.errors import NotFoundError
from app.store import Tx, export

LINK_S = 3600
FILE_NAME = "mentee-export.json"
_ID_BYTES, _TIME_BYTES, _SEAL_BYTES = 16, 8, 16


async def export_person(tx: Tx, person_id: UUID) -> str:
    """Return everything held about a person as JSON."""
    held = await export.everything(tx, person_id)
    return json.dumps({"exported_at": clock.now().isoformat(), **held}, ensure_ascii=False, indent=2)


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
