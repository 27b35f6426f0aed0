"""The panel's static files: a closed list, read once, named by content, bound to the page by their digest (SRI)."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from aiohttp import web

from app.errors import NotFoundError

HTMX = "htmx-2.0.11.min.js"
# As published: a changed file is refused by the browser and by the tests.
HTMX_SRI = "sha384-2OatzQy1H+Zd/IIrjr1TcuDGqLXeHhbooAyJY1KdQMKnr4LZ22k31GBLdYKHmVjg"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FOLDER = Path(__file__).parent / "static"


@dataclass(frozen=True, slots=True)
class Asset:
    """One file."""

    name: str
    body: bytes
    content_type: str
    integrity: str

    @property
    def version(self) -> str:
        """The part of its digest that goes into its address."""
        return hashlib.sha256(self.body).hexdigest()[:12]


def load_assets() -> Mapping[str, Asset]:
    """Return every file of the folder by name."""
    return {path.name: _read(path) for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}


def _read(path: Path) -> Asset:
    body = path.read_bytes()
    integrity = HTMX_SRI if path.name == HTMX else integrity_of(body)
    return Asset(path.name, body, _TYPES[path.suffix], integrity)


def integrity_of(body: bytes) -> str:
    """Return the integrity attribute for a file."""
    return "sha384-" + base64.b64encode(hashlib.sha384(body).digest()).decode()


def serve(assets: Mapping[str, Asset], request: web.Request) -> web.Response:
    """Return a file; under an address with its version it may be kept for ever.

    Raises:
        NotFoundError: there is no such file.
    """
    asset = assets.get(request.match_info["name"])
    if asset is None:
        raise NotFoundError
    named = request.query.get("v") == asset.version
    cache = "public, max-age=31536000, immutable" if named else "no-cache"
    headers = {"ETag": f'"{asset.version}"', "Cache-Control": cache}
    if request.headers.get("If-None-Match") == headers["ETag"]:
        return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    return web.Response(body=asset.body, content_type=asset.content_type, charset="utf-8", headers=headers)
