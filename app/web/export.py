"""`GET /export/<token>`: the file of everything held about a person, for an hour from the /export that gave the link.

    rows ─► file on this machine, without a name ─► answer

However much it is, little of it is in memory; and whoever reads slowly holds no connection to the database.
"""

import asyncio
import tempfile
from contextlib import suppress
from http import HTTPStatus
from typing import IO
from uuid import UUID

from aiohttp import web

from app import clock
from app.errors import NotFoundError
from app.services.export import FILE_NAME, export_whole, person_of
from app.store import Store, people

CHUNK = 1 << 18


def add_export_route(app: web.Application, store: Store, secret: bytes) -> None:
    """Add the route to `app`."""

    async def export(request: web.Request) -> web.StreamResponse:
        person_id = person_of(secret, request.match_info["token"], clock.now())
        with tempfile.TemporaryFile() as file:
            await _write(store, person_id, file)
            headers = {"Content-Disposition": f'attachment; filename="{FILE_NAME}"', "Cache-Control": "no-store"}
            response = web.StreamResponse(status=HTTPStatus.OK, headers=headers)
            response.content_type, response.charset = "application/json", "utf-8"
            response.content_length = file.tell()
            with suppress(ConnectionError):  # who hangs up may ask again
                await response.prepare(request)
                await _send(response, file)
        return response

    # An answer to HEAD has no body; ours would be read as the next answer on the same connection.
    app.router.add_get("/export/{token}", export, allow_head=False)


async def _send(response: web.StreamResponse, file: IO[bytes]) -> None:
    file.seek(0)
    while chunk := await asyncio.to_thread(file.read, CHUNK):
        await response.write(chunk)
    await response.write_eof()


async def _write(store: Store, person_id: UUID, file: IO[bytes]) -> None:
    async with store.begin() as tx:
        if await people.person(tx, person_id) is None:
            raise NotFoundError
        async for piece in export_whole(tx, person_id):
            await asyncio.to_thread(file.write, piece.encode())
