"""What a person takes along: everything held about them, as one JSON document."""

import json
from uuid import UUID

from app import clock
from app.store import Tx, export


async def export_person(tx: Tx, person_id: UUID) -> str:
    """Return everything held about a person as JSON."""
    held = await export.everything(tx, person_id)
    return json.dumps({"exported_at": clock.now().isoformat(), **held}, ensure_ascii=False, indent=2)
