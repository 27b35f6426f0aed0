"""Signing in: passwords, one-time links, the limit of attempts, new sessions. Knows no HTML.

Secrets are 256 random bits and stored as digests. A session id is never reused: signing in always makes a new one. The
CSRF token is derived from the session id, so only its holder can know it.
"""

import asyncio
import hashlib
import hmac
import secrets
import unicodedata
from datetime import timedelta
from typing import Literal

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from app.errors import ForbiddenError, InvalidInputError, UnauthenticatedError
from app.store import Store, Tx, admins, audit
from app.store.admins import Account

LinkPurpose = Literal["first_admin", "reset"]

IDLE = timedelta(minutes=30)
ABSOLUTE = timedelta(hours=12)
LINK_LIFETIME = timedelta(hours=24)
ATTEMPT_WINDOW = timedelta(minutes=5)
ATTEMPTS_PER_SUBJECT = 10
ATTEMPTS_IN_ALL = 1000
MIN_PASSWORD, MAX_PASSWORD = 15, 256
MAX_LOGIN = 64
# Who acts in the audit log without being an admin.
NO_ADMINS = frozenset({"anonymous", "person", "system"})
# Each verification takes 64 MiB; more at a time would only queue for the same cores.
_PARALLEL_HASHES = 2


class LoginRefusedError(UnauthenticatedError):
    """The name or the password is wrong."""


class TooManyAttemptsError(ForbiddenError):
    """Too many attempts; wait five minutes."""

    status = 429


class LinkSpentError(ForbiddenError):
    """This link was used, replaced or has expired; `mentee admin reset` makes a new one."""


class PasswordError(InvalidInputError):
    """The password is too short, too long, repeats itself or contains the name."""


class LoginNameError(InvalidInputError):
    """The name must have 1 to 64 visible characters without spaces, and be none that the audit log uses for nobody."""


class Passwords:
    """Hashes and verifies in threads, a few at a time."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        """Use `hasher`'s parameters, argon2id with the library's defaults (RFC 9106, low memory) unless given."""
        self._hasher = hasher or PasswordHasher(time_cost=4)
        self._seats = asyncio.Semaphore(_PARALLEL_HASHES)
        self._decoy: str | None = None

    async def hash(self, password: str) -> str:
        """Return the hash to store."""
        async with self._seats:
            return await asyncio.to_thread(self._hasher.hash, unicodedata.normalize("NFC", password))

    async def matches(self, stored: str | None, password: str) -> bool:
        """Whether `password` is the one behind `stored`; for an unknown name (None) it takes just as long."""
        if self._decoy is None:
            self._decoy = await self.hash(secrets.token_urlsafe())
        async with self._seats:
            found = await asyncio.to_thread(self._verify, stored or self._decoy, password)
        return found and stored is not None

    def outdated(self, stored: str) -> bool:
        """Whether `stored` was made with other parameters than today's."""
        return self._hasher.check_needs_rehash(stored)

    def _verify(self, stored: str, password: str) -> bool:
        try:
            # Keyboards differ in how they compose Hangul and accents; the person typed the same password.
            return self._hasher.verify(stored, unicodedata.normalize("NFC", password))
        except (VerificationError, InvalidHashError):
            return False


def digest(token: str) -> bytes:
    """Return what is stored of a session id, link or CSRF token."""
    return hashlib.sha256(token.encode()).digest()


def csrf_token(session_token: str) -> str:
    """Return the CSRF token that belongs to a session."""
    return hmac.new(session_token.encode(), b"mentee csrf", hashlib.sha256).hexdigest()


def clean_login(login: str) -> str:
    """Return the one spelling of a name.

    Raises:
        LoginNameError: it is empty, too long, has spaces or invisible characters, or reads like no admin in the audit log.
    """
    name = unicodedata.normalize("NFKC", login).strip().casefold()
    if name.partition(":")[0] in NO_ADMINS:
        raise LoginNameError
    if not 1 <= len(name) <= MAX_LOGIN or not name.isprintable() or any(c.isspace() for c in name):
        raise LoginNameError
    return name


def check_password(password: str, login: str) -> None:
    """Refuse a password that is easily guessed.

    Raises:
        PasswordError: it is.
    """
    least_different = 5
    tired = len(set(password)) < least_different or login in password.casefold()
    if not MIN_PASSWORD <= len(password) <= MAX_PASSWORD or tired:
        raise PasswordError


async def create_admin_link(store: Store, purpose: LinkPurpose) -> str:
    """Return the token of a new one-time link (`/admin/link/<token>`), good for `LINK_LIFETIME`; older ones die."""
    token = secrets.token_urlsafe(32)
    async with store.begin() as tx:
        await admins.create_link(tx, purpose, digest(token), LINK_LIFETIME)
        act = audit.Act("system:cli", "admin:link:create", f"link:{purpose}")
        await audit.record(tx, act)
    return token


async def use_link(store: Store, passwords: Passwords, token: str, login: str, password: str) -> str:
    """Spend a one-time link: create the admin, or reset their password. Return the clean login.

    Raises:
        LinkSpentError: the link does not work any more.
        LoginNameError, PasswordError: the input is refused; the link is still good.
    """
    name = clean_login(login)
    check_password(password, name)
    hashed = await passwords.hash(password)
    async with store.begin() as tx:
        purpose = await admins.spend_link(tx, digest(token))
        if purpose is None:
            raise LinkSpentError
        admin_id = await admins.put_admin(tx, name, hashed, "owner")
        act = audit.Act(name, "admin:password:set", f"admin:{admin_id}", detail={"by": purpose})
        await audit.record(tx, act)
    return name


class Door:
    """Lets people in: counts attempts, verifies, opens the session."""

    def __init__(self, store: Store, passwords: Passwords, key: bytes) -> None:
        """Take the `key` under which names and addresses are kept while attempts are counted."""
        self._store = store
        self._passwords = passwords
        self._key = key

    async def sign_in(self, login: str, password: str, *, address: str, user_agent: str, old_token: str | None) -> str:
        """Return the token of a new session; the one that the browser had before ends.

        Raises:
            LoginRefusedError: the name or the password is wrong; which one is not said.
            TooManyAttemptsError: the name, the address or everybody together tried too often.
        """
        try:
            name = clean_login(login)
        except LoginNameError:
            name = ""
        subjects = [self._subject("name", name), self._subject("address", address)]
        await self._count(subjects, name)
        async with self._store.begin() as tx:
            account = await admins.find_account(tx, name)
        stored = account.password_hash if account and account.active else None
        if not await self._passwords.matches(stored, password[: MAX_PASSWORD + 1]) or account is None:
            await self._refused(name)
            raise LoginRefusedError
        return await self._open(account, password, user_agent, old_token, subjects)

    def _subject(self, kind: str, value: str) -> bytes:
        return hmac.new(self._key, f"{kind}:{value}".encode(), hashlib.sha256).digest()

    async def _count(self, subjects: list[bytes], name: str) -> None:
        everybody = self._subject("all", "")
        async with self._store.begin() as tx:
            counts = await admins.count_attempt(tx, [*subjects, everybody], ATTEMPT_WINDOW)
        over = max(counts[s] for s in subjects) > ATTEMPTS_PER_SUBJECT or counts[everybody] > ATTEMPTS_IN_ALL
        if over:
            await self._note("admin:login:limited", name)
            raise TooManyAttemptsError

    async def _refused(self, name: str) -> None:
        await self._note("admin:login:refused", name)

    async def _note(self, event: str, name: str) -> None:
        # A name that was tried may be a password typed into the wrong field: only its keyed digest is kept.
        async with self._store.begin() as tx:
            subject = f"login:{self._subject('name', name).hex()[:16]}"
            await audit.record(tx, audit.Act("anonymous", event, subject))

    async def _open(
        self, account: Account, password: str, user_agent: str, old_token: str | None, subjects: list[bytes]
    ) -> str:
        renewed = await self._passwords.hash(password) if self._passwords.outdated(account.password_hash) else None
        token = secrets.token_urlsafe(32)
        async with self._store.begin() as tx:
            if renewed:
                await admins.renew_hash(tx, account.id, renewed)
            if old_token:
                await admins.end_session(tx, digest(old_token))
            await admins.clear_attempts(tx, subjects)
            await admins.drop_old(tx)
            await _open_session(tx, account, token, user_agent)
        return token


async def _open_session(tx: Tx, account: Account, token: str, user_agent: str) -> None:
    await admins.open_session(tx, account.id, digest(token), digest(csrf_token(token)), user_agent, ABSOLUTE)
    await audit.record(tx, audit.Act(account.login, "admin:login:done", f"admin:{account.id}"))


async def sign_out(store: Store, token: str, login: str) -> None:
    """End a session at once."""
    async with store.begin() as tx:
        await admins.end_session(tx, digest(token))
        await audit.record(tx, audit.Act(login, "admin:logout:done"))
