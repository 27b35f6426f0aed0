"""The two secrets of a person: the cookie's token (256 bits, kept as a digest) and the recovery code (16 characters)."""

import hashlib
import re
import secrets

from aiohttp import web

from app.config import Settings

COOKIE = "mentee_chat"
TOKEN_BYTES = 32
YEAR_S = 365 * 24 * 3600
# Without 0/O, 1/I/L and U: 30 characters, so that 16 of them hold 78 bits and can be read aloud.
ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
CODE_LENGTH = 16
GROUP = 4
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


def new_token() -> str:
    """Return a fresh cookie value."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def token_digest(token: str) -> str:
    """Return what the account is known by: SHA-256 in hex. The token is random, so no salt is needed."""
    return hashlib.sha256(token.encode()).hexdigest()


def read_cookie(request: web.Request) -> str | None:
    """Return the token that came along, None when there is none of the right form."""
    value = request.cookies.get(name_of(request.app), "")
    return value if _TOKEN.fullmatch(value) else None


def set_cookie(request: web.Request, response: web.Response, token: str) -> None:
    """Hand the token to the browser; scripts cannot read it and other sites cannot send it."""
    response.set_cookie(
        name_of(request.app),
        token,
        max_age=YEAR_S,
        path="/",
        httponly=True,
        samesite="Strict",
        secure=name_of(request.app) != COOKIE,
    )


def clear_cookie(request: web.Request, response: web.Response) -> None:
    """Take the token back from the browser."""
    name = name_of(request.app)
    response.del_cookie(name, path="/", httponly=True, samesite="Strict", secure=name != COOKIE)


COOKIE_NAME = web.AppKey("cookie_name", str)


def name_for(settings: Settings) -> str:
    """Return the cookie's name; behind https the `__Host-` prefix makes browsers insist on Secure and on this host."""
    return f"__Host-{COOKIE}" if (settings.public_url or "").startswith("https://") else COOKIE


def name_of(app: web.Application) -> str:
    """Return the cookie's name of this gateway."""
    return app[COOKIE_NAME]


def new_recovery_code() -> str:
    """Return a recovery code as it is shown: four groups of four."""
    code = "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH))
    return "-".join(code[i : i + GROUP] for i in range(0, CODE_LENGTH, GROUP))


def recovery_hash(code: str) -> bytes | None:
    """Return the digest of a code however it was typed; None when it cannot be one."""
    plain = re.sub(r"[\s\-–—]", "", code).upper()
    if len(plain) != CODE_LENGTH or not set(plain) <= set(ALPHABET):
        return None
    return hashlib.sha256(f"recovery:{plain}".encode()).digest()


def invitation_hash(code: str) -> bytes:
    """Return the digest under which an invitation is kept."""
    return hashlib.sha256(code.strip().encode()).digest()
