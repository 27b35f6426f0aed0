"""Pictures in chat messages: what a server with a model that sees takes, and what one without refuses.

Owns the parts of type `image_url`. The sentences follow vLLM 0.32.
"""

import base64
import binascii
import hashlib
import re
from typing import Final

from tests.fakes.model.request import ModelError
from tests.fakes.model.tokens import JSON

_DATA: Final = re.compile(r"data:image/(?:jpeg|png);base64,(?P<body>[A-Za-z0-9+/]+=*)")
_HEADS: Final = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")


def check(body: JSON, name: str, *, sees: bool) -> None:
    """Refuse pictures where the model does not see, or where they are none."""
    for message in body["messages"]:
        found = shown(message)
        if found and not sees:
            raise ModelError(400, f"{name} is not a multimodal model")


def shown(message: JSON) -> list[bytes]:
    """The pictures of one message; raises `ModelError` for what cannot be loaded."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return [_loaded(str(part["image_url"]["url"])) for part in parts if part.get("type") == "image_url"]


def _loaded(url: str) -> bytes:
    match = _DATA.fullmatch(url)
    try:
        data = base64.b64decode(match["body"], validate=True) if match else b""
    except binascii.Error:
        data = b""
    if not data.startswith(_HEADS):
        raise ModelError(400, "cannot identify image file")
    return data


def digest(picture: bytes) -> str:
    """Eight characters by which a reply tells which picture was seen."""
    return hashlib.sha256(picture).hexdigest()[:8]
