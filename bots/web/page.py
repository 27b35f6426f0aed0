"""`GET /chat`: the one page, its scripts and styles, and the sentences it shows, in the language of the visitor."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Final

from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from app.domain.messages import LANGUAGES, Language, catalogue, pick
from app.domain.profiles import PROFILES
from app.errors import NotFoundError
from app.store import people
from bots.web.context import CONTEXT
from bots.web.identity import switches

HERE: Final = Path(__file__).parent
STATIC: Final = HERE / "static"
PREFIX: Final = "web."


@lru_cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
    )


@lru_cache
def sentences(language: Language) -> dict[str, str]:
    """Return the page's own sentences by their key without the room's name."""
    return {key.removeprefix(PREFIX): value for key, value in catalogue(language).items() if key.startswith(PREFIX)}


async def page(request: web.Request) -> web.Response:
    """Answer the page: the chat for somebody known, the welcome card for a stranger."""
    context = request.app[CONTEXT]
    visitor = await context.find_visitor(request)
    bot_id = await context.bot_id()
    async with context.store.single() as tx:
        identity = await people.identity(tx, bot_id)
    language = pick((visitor and visitor.language) or request.headers.get("Accept-Language"))
    html = (
        _environment()
        .get_template("chat.html")
        .render(
            language=language,
            t=sentences(language),
            known=visitor is not None,
            chosen=bool(visitor and visitor.language),
            invited=context.settings.beyond_loopback,
            name=identity.name if identity else "Mentee",
            switches=switches(context.settings),
            base=PROFILES.get(context.settings.model),
        )
    )
    return web.Response(
        text=html, content_type="text/html", headers={"Cache-Control": "no-store", "Vary": "Accept-Language"}
    )


async def strings(request: web.Request) -> web.Response:
    """Answer the page's sentences in one language."""
    for language in LANGUAGES:
        if language == request.match_info["language"]:
            body = json.dumps(sentences(language), ensure_ascii=False)
            return web.Response(text=body, content_type="application/json", headers={"Cache-Control": "no-cache"})
    raise NotFoundError
