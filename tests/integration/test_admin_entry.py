"""Getting in and staying in: one-time links, login, limits, sessions, forms from elsewhere, redirects, language."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from sqlalchemy import text
from yarl import URL

from app.admin.auth import ATTEMPTS_PER_SUBJECT, create_admin_link
from app.store import Store
from tests.support.panel import PASSWORD, Admin, PanelServer, serving


@pytest.fixture
async def panel(store: Store) -> AsyncIterator[PanelServer]:
    async with serving(store) as server:
        yield server


@pytest.fixture
async def admin(panel: PanelServer) -> AsyncIterator[Admin]:
    async with panel.browser() as browser:
        yield browser


async def run(store: Store, statement: str, **values: object) -> None:
    async with store.begin() as tx:
        await tx.execute(text(statement), values)


async def events(store: Store) -> list[str]:
    async with store.begin() as tx:
        return list((await tx.execute(text("select event from audit_log order by id"))).scalars())


async def test_the_first_admin_comes_by_a_link_that_works_once(store: Store, admin: Admin) -> None:
    assert "mentee admin reset" in (await admin.get("/login")).text
    token = await create_admin_link(store, "first_admin")
    assert (await admin.get(f"/link/{token}")).status == 200
    assert (await admin.get(f"/link/{token}")).status == 200, "looking does not spend it"
    made = await admin.post(f"/link/{token}", {"login": " Mina ", "password": PASSWORD})
    assert made.path == "/admin/login?saved=yes"
    home = await admin.post("/login", {"login": "mina", "password": PASSWORD})
    assert (home.status, home.path) == (200, "/admin/")
    again = await admin.post(f"/link/{token}", {"login": "eve", "password": PASSWORD})
    assert again.status == 403
    assert await events(store) == ["admin:link:create", "admin:password:set", "admin:login:done"]


async def test_a_newer_link_replaces_the_older_and_links_expire(store: Store, admin: Admin) -> None:
    old = await create_admin_link(store, "first_admin")
    new = await create_admin_link(store, "reset")
    assert (await admin.get(f"/link/{old}")).status == 403
    assert (await admin.get(f"/link/{new}")).status == 200
    await run(store, "update admin_links set expires_at = now()")
    assert (await admin.get(f"/link/{new}")).status == 403


WEAK = ["short", "a" * 20, "x" * 300, "the-owner-the-owner-1"]


async def test_weak_passwords_are_refused_and_the_link_stays_good(store: Store, admin: Admin) -> None:
    for password in WEAK:
        token = await create_admin_link(store, "first_admin")
        await admin.get(f"/link/{token}")
        assert (await admin.post(f"/link/{token}", {"login": "the-owner", "password": password})).status == 400
        done = await admin.post(f"/link/{token}", {"login": "the-owner", "password": PASSWORD})
        assert done.path == "/admin/login?saved=yes"


@pytest.mark.parametrize("name", ["system", "Person", "anonymous", "system:cli", "a b", ""])
async def test_no_admin_is_called_what_the_audit_log_calls_nobody(store: Store, admin: Admin, name: str) -> None:
    token = await create_admin_link(store, "first_admin")
    await admin.get(f"/link/{token}")
    assert (await admin.post(f"/link/{token}", {"login": name, "password": PASSWORD})).status == 400
    done = await admin.post(f"/link/{token}", {"login": "system-owner", "password": PASSWORD})
    assert done.path == "/admin/login?saved=yes"


async def test_a_reset_ends_every_session(store: Store, panel: PanelServer, admin: Admin) -> None:
    await admin.sign_in("reviewer", "mina")
    token = await create_admin_link(store, "reset")
    async with panel.browser() as other:
        await other.get(f"/link/{token}")
        await other.post(f"/link/{token}", {"login": "mina", "password": PASSWORD + "!"})
    assert (await admin.get("/")).path.startswith("/admin/login")
    async with store.begin() as tx:
        assert await tx.scalar(text("select role from admins")) == "reviewer", "a reset gives no more rights"


async def test_wrong_name_and_wrong_password_look_the_same(admin: Admin) -> None:
    await admin.sign_in("owner", "mina")
    await admin.post("/logout")
    await admin.get("/login")
    wrong = await admin.post("/login", {"login": "mina", "password": "not the password at all"})
    unknown = await admin.post("/login", {"login": "nobody", "password": "not the password at all"})
    assert wrong.status == unknown.status == 401
    assert wrong.text == unknown.text


async def test_attempts_are_limited_even_with_the_right_password(store: Store, admin: Admin) -> None:
    await admin.sign_in("owner", "mina")
    await admin.post("/logout")
    await admin.get("/login")
    for _ in range(ATTEMPTS_PER_SUBJECT):
        headers = {"X-Forwarded-For": "203.0.113.9"}
        assert (await admin.post("/login", {"login": "mina", "password": "guess"}, headers=headers)).status == 401
    assert (await admin.post("/login", {"login": "mina", "password": PASSWORD})).status == 429
    assert "admin:login:limited" in await events(store)
    await run(store, "update login_attempts set at = now() - interval '6 minutes'")
    assert (await admin.post("/login", {"login": "mina", "password": PASSWORD})).path == "/admin/"


async def test_a_login_makes_a_new_session_and_ends_the_old(panel: PanelServer, admin: Admin) -> None:
    await admin.sign_in("owner", "mina")
    first = admin.cookie()
    await admin.post("/login", {"login": "mina", "password": PASSWORD})
    second = admin.cookie()
    assert first != second
    async with panel.browser() as thief:
        stolen = {"Cookie": f"mentee_admin={first}"}
        assert (await thief.get("/", headers=stolen)).path.startswith("/admin/login")


async def test_a_session_id_that_somebody_planted_is_worth_nothing(panel: PanelServer, admin: Admin) -> None:
    planted = {"Cookie": "mentee_admin=planted-by-somebody-else"}
    await admin.get("/login")
    admin.session.cookie_jar.update_cookies({"mentee_admin": "planted"}, panel.base)
    await admin.sign_in("owner", "mina")
    async with panel.browser() as thief:
        assert (await thief.get("/", headers=planted)).path.startswith("/admin/login")


async def test_logout_is_at_once_on_the_server(panel: PanelServer, admin: Admin) -> None:
    await admin.sign_in("owner", "mina")
    token = admin.cookie()
    await admin.post("/logout")
    async with panel.browser() as thief:
        assert (await thief.get("/", headers={"Cookie": f"mentee_admin={token}"})).path.startswith("/admin/login")


@pytest.mark.parametrize(
    "change",
    [
        "update admin_sessions set seen_at = now() - interval '31 minutes'",
        "update admin_sessions set expires_at = now()",
    ],
)
async def test_sessions_end_by_the_clock_of_the_database(store: Store, admin: Admin, change: str) -> None:
    await admin.sign_in()
    await run(store, change)
    assert (await admin.get("/")).path.startswith("/admin/login?next=")


async def test_sessions_last_twelve_hours_at_most(store: Store, admin: Admin) -> None:
    await admin.sign_in()
    async with store.begin() as tx:
        length = await tx.scalar(text("select expires_at - created_at from admin_sessions"))
    assert length == timedelta(hours=12)


async def test_a_page_that_refreshes_itself_keeps_nobody_signed_in(store: Store, admin: Admin) -> None:
    await admin.sign_in()
    await run(store, "update admin_sessions set seen_at = now() - interval '20 minutes'")
    before = "select seen_at from admin_sessions"
    async with store.begin() as tx:
        seen = await tx.scalar(text(before))
    assert (await admin.get("/live")).status == 200
    async with store.begin() as tx:
        assert await tx.scalar(text(before)) == seen
    await admin.get("/")
    async with store.begin() as tx:
        assert await tx.scalar(text(before)) > seen


async def test_old_sessions_and_links_are_not_kept(store: Store, admin: Admin) -> None:
    await admin.sign_in("owner", "mina")
    await create_admin_link(store, "reset")
    await run(store, "update admin_sessions set ended_at = now() - interval '31 days'")
    await run(store, "update admin_links set expires_at = now() - interval '31 days'")
    await admin.sign_in("owner", "mina")
    async with store.begin() as tx:
        counts = "select (select count(*) from admin_sessions) as sessions, (select count(*) from admin_links) as links"
        assert (await tx.execute(text(counts))).one() == (1, 0)


async def test_rights_end_at_once(store: Store, admin: Admin) -> None:
    await admin.sign_in("owner")
    await run(store, "update admins set role = 'viewer'")
    assert (await admin.get("/people")).status == 403
    await run(store, "update admins set active = false")
    assert (await admin.get("/")).path.startswith("/admin/login")


async def test_only_digests_are_stored(store: Store, admin: Admin) -> None:
    await admin.sign_in()
    token = admin.cookie()
    async with store.begin() as tx:
        rows = [dict(r) for r in (await tx.execute(text("select * from admin_sessions"))).mappings()]
        hashed = await tx.scalar(text("select password_hash from admins"))
    assert token
    assert token not in repr(rows)
    assert admin.csrf not in repr(rows)
    assert str(hashed).startswith("$argon2id$")


ELSEWHERE = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
]


async def test_forms_from_elsewhere_change_nothing(store: Store, admin: Admin) -> None:
    await admin.sign_in()
    form = {"position": "paused", "reason": "no"}
    for headers in ELSEWHERE:
        assert (await admin.post("/switches/intake", form, headers=headers)).status == 403, headers
        async with store.begin() as tx:
            assert await tx.scalar(text("select count(*) from switches")) == 0


async def test_forms_need_the_token_of_this_session(panel: PanelServer, admin: Admin, store: Store) -> None:
    await admin.sign_in()
    form = {"position": "paused", "reason": "no"}
    async with panel.browser() as other:
        await other.sign_in("trainer")
        foreign = other.csrf
    for csrf in ("", "wrong", foreign, admin.csrf[:-1]):
        assert (await admin.post("/switches/intake", form | {"csrf": csrf})).status == 403
    url = panel.base.join(panel.base.with_path("/admin/switches/intake"))
    async with admin.session.post(url, json=form, headers={"Origin": str(panel.base.origin())}) as response:
        assert response.status == 403
    async with admin.session.post(url, data=form | {"csrf": admin.csrf}) as response:
        assert response.status == 403, "neither Origin nor Sec-Fetch-Site: no browser of ours"
    assert (await admin.post("/switches/intake", form)).status == 200
    async with store.begin() as tx:
        assert await tx.scalar(text("select paused from switches where name = 'intake'"))


TOO_MUCH = [{"admin": "1"}, {"reason": "x" * 20_001}]


async def test_forms_are_closed(admin: Admin) -> None:
    await admin.sign_in()
    for extra in TOO_MUCH:
        assert (await admin.post("/switches/intake", {"position": "paused", "reason": "x"} | extra)).status == 400, (
            extra
        )


TARGETS = [
    "//evil.example/admin/",
    "https://evil.example/admin/",
    "/\\evil.example",
    "/admin/../../evil",
    "javascript:alert(1)",
    "/admin@evil.example",
    "/chat",
    "/admin/\r\nSet-Cookie: a=b",
]


async def test_login_leads_nowhere_else(admin: Admin) -> None:
    await admin.sign_in("owner", "mina")
    for target in TARGETS:
        await admin.post("/logout")
        await admin.get("/login")
        form = {"login": "mina", "password": PASSWORD, "next": target}
        answer = await admin.post("/login", form, allow_redirects=False)
        assert (answer.status, answer.headers["Location"]) == (303, "/admin/"), target


async def test_login_leads_where_one_wanted_to_go(admin: Admin) -> None:
    await admin.sign_in("owner", "mina")
    await admin.post("/logout")
    asked = await admin.get("/audit?event=admin")
    assert URL(asked.path).query["next"] == "/admin/audit?event=admin"
    form = {"login": "mina", "password": PASSWORD, "next": "/admin/audit?event=admin"}
    assert (await admin.post("/login", form)).path == "/admin/audit?event=admin"


async def test_cookies_are_strict_and_over_https_bound_to_the_host(store: Store) -> None:
    async with serving(store) as server, server.browser() as admin:
        await admin.get("/login")
        answer = await _login_cookie(admin)
        assert "HttpOnly" in answer
        assert "SameSite=Strict" in answer
        assert "Path=/admin" in answer
    async with serving(store, public_url="https://bot.example") as server, server.browser() as admin:
        answer = await _login_cookie(admin, headers={"Origin": "https://bot.example"}, host="__Host-")
        assert answer.startswith("__Host-mentee_admin=")
        assert "Secure" in answer
        assert "Path=/;" in answer


async def _login_cookie(admin: Admin, host: str = "", **options: object) -> str:
    async with admin.store.begin() as tx:
        from app.store import admins

        await admins.put_admin(tx, "mina", await admin.passwords.hash(PASSWORD), "owner")
    page = await admin.get("/login")
    form_cookie = page.headers["Set-Cookie"].split(";")[0]
    assert form_cookie.startswith(f"{host}mentee_form=")
    headers = {"Cookie": form_cookie, **dict(options.get("headers") or {})}  # type: ignore[call-overload]
    form = {"login": "mina", "password": PASSWORD}
    answer = await admin.post("/login", form, headers=headers, allow_redirects=False)
    assert answer.status == 303
    return answer.headers["Set-Cookie"]


async def test_language_comes_from_the_browser_until_chosen(admin: Admin) -> None:
    korean = {"Accept-Language": "ko-KR,ko;q=0.9"}
    assert "로그인" in (await admin.get("/login", headers=korean)).text
    await admin.sign_in("owner", "mina")
    assert 'lang="en"' in (await admin.get("/")).text
    chosen = await admin.post("/language", {"language": "ko", "next": "/admin/switches"})
    assert chosen.path == "/admin/switches"
    assert "스위치" in chosen.text
    assert "스위치" in (await admin.get("/switches", headers={"Accept-Language": "en"})).text


async def test_headers_of_every_page(admin: Admin) -> None:
    for path in ("/login", "/nowhere", "/static/panel.css", "/link/none"):
        headers = (await admin.get(path)).headers
        policy = headers["Content-Security-Policy"]
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Request-Id"]
    assert (await admin.get("/login")).headers["Cache-Control"] == "no-store"
