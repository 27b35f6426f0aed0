"""Every address of the panel needs a right: the router is held equal to the table, and each line of it is tried."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from sqlalchemy import text

from app.admin.access import ROLES, Right, may
from app.admin.routes import ROUTES
from app.admin.visit import Route
from app.store import Store
from tests.support.panel import PanelServer, serving

GUARDED = [route for route in ROUTES if route.right is not Right.PUBLIC]


@pytest.fixture
async def panel(store: Store) -> AsyncIterator[PanelServer]:
    async with serving(store) as server:
        yield server


def concrete(route: Route) -> str:
    return route.path.replace("{id}", str(uuid4())).replace("{name}", "intake")


async def test_the_router_is_the_table(panel: PanelServer) -> None:
    routed = {
        (r.method, (r.resource.canonical if r.resource else "").removeprefix("/admin"))
        for r in panel.app.router.routes()
    }
    table = {(r.method, r.path) for r in ROUTES} | {("HEAD", r.path) for r in ROUTES if r.method == "GET"}
    assert routed == table


def test_only_the_way_in_is_public() -> None:
    public = {(r.method, r.path) for r in ROUTES if r.right is Right.PUBLIC}
    assert {path for _, path in public} == {"", "/static/{name}", "/login", "/link/{token}", "/language"}


async def test_anonymous_visitors_get_nothing(panel: PanelServer) -> None:
    async with panel.browser() as nobody:
        await nobody.get("/login")
        for route in GUARDED:
            url = panel.base.with_path("/admin" + concrete(route))
            methods = ["GET", "HEAD"] if route.method == "GET" else ["POST"]
            for method in methods:
                headers = {"Origin": str(panel.base.origin())}
                async with nobody.session.request(method, url, headers=headers, allow_redirects=False) as response:
                    assert response.status in {302, 401}, (method, route.path, response.status)


async def test_wrong_roles_are_refused_and_noted(panel: PanelServer, store: Store) -> None:
    refused = 0
    for role in ROLES:
        async with panel.browser() as admin:
            await admin.sign_in(role)
            for route in GUARDED:
                if may(role, route.right):
                    continue
                call = admin.get if route.method == "GET" else admin.post
                assert (await call(concrete(route))).status == 403, (role, route.path)
                refused += 1
    async with store.begin() as tx:
        noted = await tx.scalar(text("select count(*) from audit_log where event = 'admin:access:denied'"))
    assert refused
    assert noted == refused


async def test_right_roles_get_in(panel: PanelServer) -> None:
    for role in ROLES:
        async with panel.browser() as admin:
            await admin.sign_in(role)
            for route in GUARDED:
                if route.method == "GET" and may(role, route.right):
                    assert (await admin.get(concrete(route))).status in {200, 404}, (role, route.path)


async def test_other_methods_do_nothing(panel: PanelServer) -> None:
    async with panel.browser() as admin:
        await admin.sign_in()
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            for path in ("/switches/intake", "/people"):
                headers = {"X-HTTP-Method-Override": "POST", "Origin": str(panel.base.origin())}
                url = panel.base.with_path(f"/admin{path}")
                async with admin.session.request(method, url, headers=headers) as response:
                    assert response.status == 405, (method, path)


def test_an_unknown_role_has_no_right() -> None:
    assert not any(may("root", right) for right in Right if right is not Right.PUBLIC)
