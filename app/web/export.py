"""`GET /export/<token>`: the file of everything held about a person, for an hour from the /export that gave the link."""

from http import HTTPStatus

from aiohttp import web

from app import clock
from app.errors import NotFoundError
from app.services.export import FILE_NAME, export_person, person_of
from app.store import Store, people


def add_export_route(app: web.Application, store: Store, secret: bytes) -> None:
    """Add the route to `app`."""

    async def export(request: web.Request) -> web.Response:
        person_id = person_of(secret, request.match_info["token"], clock.now())
        async with store.begin() as tx:
            if await people.person(tx, person_id) is None:
                raise NotFoundError
            document = await export_person(tx, person_id)
        headers = {"Content-Disposition": f'attachment; filename="{FILE_NAME}"', "Cache-Control": "no-store"}
        return web.Response(status=HTTPStatus.OK, text=document, content_type="application/json", headers=headers)

    app.router.add_get("/export/{token}", export)
