"""The web chat: a channel like the others, whose platform is our own page.

    page ─ POST /chat/api/updates ─► receive ─► accept (inbox) ─► … ─► outbox row ─► send: "look again"
      ▲                                                                                │
      └──────────── read: messages, me, files ◄──── live: events ◄─────────────────────┘

`guard` stands before every route, `identity` knows how people come and go, `parse` reads stored updates, `render` makes
Markdown safe to show. Nothing here decides what is answered: that is the dialogue's.
"""

from aiohttp import web

from app.config import Settings
from app.services.stream import Streams
from app.store import StatementPool, Store
from bots.base import Accept
from bots.web import guard, identity, live, page, read, receive
from bots.web.context import CONTEXT, Context
from bots.web.cookie import COOKIE_NAME, name_for
from bots.web.send import WebChannel

__all__ = ["WebChannel", "create_web_chat"]

PREFIX = "/chat"


def create_web_chat(
    store: Store, pool: StatementPool, streams: Streams, accept: Accept, settings: Settings
) -> tuple[web.Application, WebChannel]:
    """Return the routes, to be mounted with `root.add_subapp("/chat", routes)`, and the channel for the dialogue.

    Args:
        store: the database.
        pool: the same, for what every request asks.
        streams: where replies are shown while they are written; the same object the services publish to.
        accept: stores updates of the web bot (`app.store.people.ensure_bot(tx, "web", "web")`).
        settings: host, public address, ladder thresholds.
    """
    app = web.Application(middlewares=[guard.errors, guard.same_site])
    app[CONTEXT] = Context(store, pool, streams, accept, settings)
    app[COOKIE_NAME] = name_for(settings)
    app[live.OPEN_STREAMS] = set()
    app.on_response_prepare.append(guard.security_headers)
    app.on_shutdown.append(live.close_streams)
    app.add_routes(
        [
            web.get("", page.page),
            web.get("/strings/{language}.json", page.strings),
            web.static("/static", page.STATIC),
            web.post("/api/start", identity.start),
            web.post("/api/recover", identity.recover),
            web.post("/api/leave", identity.leave),
            web.post("/api/recovery-code", identity.renew_code),
            web.post("/api/language", identity.choose_language),
            web.post("/api/updates", receive.updates),
            web.get("/api/messages", read.messages),
            web.get("/api/me", read.me),
            web.get("/api/stream", live.stream, allow_head=False),
            web.get(r"/api/files/{part:\d{1,18}}", read.file),
        ]
    )
    return app, WebChannel(streams, settings)
