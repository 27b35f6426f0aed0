"""A running panel for tests: its actions and parts stand-ins, and a browser without scripts."""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer
from argon2 import PasswordHasher
from sqlalchemy import update
from yarl import URL

from app.admin.application import create_admin_app
from app.admin.auth import Passwords
from app.config import Settings
from app.ports import PartHealth
from app.store import Store, Tx, admins, audit
from app.store.tables import learning
from app.web.middleware import install

PASSWORD = "correct horse battery staple"


class Actions:
    """Stands for the services: does what the port promises to the rows, and remembers what it was asked."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.reviewed: list[tuple[UUID, str]] = []
        self.forgotten: list[UUID] = []

    async def roll_back(self, release_id: UUID, *, reason: str, actor: str) -> None:
        releases = learning.releases
        async with self.store.begin() as tx:
            change = (
                update(releases)
                .where(releases.c.id == release_id)
                .values(state="rolled_back", reason=reason, actor=actor)
            )
            await tx.execute(change)
            await audit.record(tx, audit.Act(actor, "release:live:roll_back", f"release:{release_id}", reason))

    async def forget_person(self, person_id: UUID, *, actor: str, reason: str) -> str:
        self.forgotten.append(person_id)
        return "7KQ4-M2XW-9RTD"

    async def feedback_reviewed(self, tx: Tx, feedback_id: UUID, state: str) -> None:
        self.reviewed.append((feedback_id, state))


class Parts:
    """Parts of which one is not well."""

    async def health(self) -> Sequence[PartHealth]:
        return [
            PartHealth("database", "ok", required=True),
            PartHealth("broker", "ok"),
            PartHealth("model_server", "ok", "SmolLM2-135M-Instruct · 2 adapter slots", required=True),
            PartHealth("trainer", "degraded", "restarted 2 times in 10 minutes"),
            PartHealth("telegram", "off"),
        ]


@dataclass
class Answer:
    """An answer of the panel with its text read."""

    status: int
    text: str
    headers: Mapping[str, str]
    path: str


class Admin:
    """A browser without scripts: cookies of its own, forms sent with the token of the page that was last read."""

    def __init__(self, base: URL, session: aiohttp.ClientSession, store: Store, passwords: Passwords) -> None:
        self.base = base
        self.session = session
        self.store = store
        self.passwords = passwords
        self.csrf = ""

    async def get(self, path: str, **options: Any) -> Answer:  # noqa: ANN401 - aiohttp's own options
        async with self.session.get(self.base.join(URL(f"/admin{path}", encoded=True)), **options) as response:
            return await self._read(response)

    async def post(self, path: str, data: Mapping[str, str] | None = None, **options: Any) -> Answer:  # noqa: ANN401 - aiohttp's own options
        headers = {"Origin": str(self.base.origin()), "Sec-Fetch-Site": "same-origin"} | options.pop("headers", {})
        form = {"csrf": self.csrf} | dict(data or {})
        url = self.base.join(URL(f"/admin{path}", encoded=True))
        async with self.session.post(url, data=form, headers=headers, **options) as response:
            return await self._read(response)

    async def _read(self, response: aiohttp.ClientResponse) -> Answer:
        text = await response.text()
        if found := re.search(r'name="csrf" value="([^"]+)"', text):
            self.csrf = found[1]
        return Answer(response.status, text, response.headers, response.url.path_qs)

    async def sign_in(self, role: str = "owner", login: str | None = None) -> Answer:
        name = login or f"the-{role}"
        async with self.store.begin() as tx:
            await admins.put_admin(tx, name, await self.passwords.hash(PASSWORD), role)
        await self.get("/login")
        answer = await self.post("/login", {"login": name, "password": PASSWORD})
        await self.get("/switches")
        return answer

    def cookie(self, name: str = "mentee_admin") -> str:
        return next((c.value for c in self.session.cookie_jar if c.key.endswith(name)), "")


@dataclass
class PanelServer:
    """A running panel."""

    app: web.Application
    base: URL
    store: Store
    actions: Actions
    passwords: Passwords

    @asynccontextmanager
    async def browser(self) -> AsyncIterator[Admin]:
        """Open a browser without scripts."""
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            yield Admin(self.base, session, self.store, self.passwords)


@asynccontextmanager
async def serving(store: Store, **settings: Any) -> AsyncIterator[PanelServer]:  # noqa: ANN401 - any setting
    """Serve the panel behind the gateway's outermost layer, with quick password hashing."""
    passwords = Passwords(PasswordHasher(time_cost=1, memory_cost=64, parallelism=1))
    actions = Actions(store)
    app = web.Application()
    install(app)
    chosen = Settings(_env_file=None, **settings)  # type: ignore[call-arg]
    admin_app = create_admin_app(store, actions, Parts(), chosen, ("whatsapp",), passwords)
    app.add_subapp("/admin", admin_app)
    async with TestServer(app, host="127.0.0.1") as server:
        yield PanelServer(admin_app, server.make_url("/"), store, actions, passwords)
