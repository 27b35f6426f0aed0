"""Bots and their identities, people, accounts, chats, consent. Access by (bot, external id) only.

Statements that every message runs are put together once, here, and not at each use: building one costs more than
PostgreSQL needs to run it.
"""

import hashlib
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, bindparam, case, func, select, update
from sqlalchemy.dialects.postgresql import distinct_on, insert
from sqlalchemy.sql.dml import ReturningInsert

from app import clock
from app.domain.consent import NOTICE_VERSION, ConsentEvent, Consents, Purpose
from app.domain.event import ChatAddress, Sender
from app.domain.person import Account, Awaiting, Chat, Identity, Person
from app.store.consents import latest_first
from app.store.engine import Tx
from app.store.tables import people as t

OPTED_OUT = "opted_out"


async def ensure_bot(tx: Tx, channel: str, external_id: str) -> UUID:
    """Return the id of a configured bot account, made when it is new."""
    made = insert(t.bots).values(channel=channel, external_id=external_id)
    made = made.on_conflict_do_update(index_elements=["channel", "external_id"], set_={"channel": channel})
    return UUID(str(await tx.scalar(made.returning(t.bots.c.id))))


async def bot_born(tx: Tx, bot_id: UUID) -> datetime:
    """Return since when there is a bot."""
    found: datetime = (await tx.execute(select(t.bots.c.created_at).where(t.bots.c.id == bot_id))).scalar_one()
    return found


async def identity(tx: Tx, bot_id: UUID) -> Identity | None:
    """Return the newest version of a bot's identity, or None when nobody wrote one yet."""
    row = (await tx.execute(_IDENTITY, {"bot": bot_id})).one_or_none()
    return identity_of(row) if row else None


def newest_identity(bot: ColumnElement[UUID]) -> Select[tuple[object, ...]]:
    """Return the query of a bot's newest identity, its columns named `identity_…`."""
    columns = [column.label(f"identity_{column.name}") for column in t.bot_identities.c]
    newest_first = t.bot_identities.c.version.desc()
    return select(*columns).where(t.bot_identities.c.bot_id == bot).order_by(newest_first).limit(1)


_IDENTITY = newest_identity(bindparam("bot"))


def identity_of(row: Row[tuple[object, ...]]) -> Identity:
    """Return the identity in a row of `newest_identity`."""
    return Identity(
        row.identity_id,
        row.identity_bot_id,
        row.identity_version,
        row.identity_name,
        row.identity_system_prompt,
        row.identity_contact,
        row.identity_privacy_notice,
        row.identity_facts,
    )


async def add_identity(
    tx: Tx, bot_id: UUID, *, name: str, system_prompt: str, privacy_notice: str, created_by: str
) -> None:
    """Add the next version of a bot's identity."""
    newest = select(func.coalesce(func.max(t.bot_identities.c.version), 0) + 1).where(
        t.bot_identities.c.bot_id == bot_id
    )
    await tx.execute(
        insert(t.bot_identities).values(
            bot_id=bot_id,
            version=newest.scalar_subquery(),
            name=name,
            system_prompt=system_prompt,
            privacy_notice=privacy_notice,
            created_by=created_by,
        )
    )


async def account_of(tx: Tx, bot_id: UUID, sender: Sender) -> Account:
    """Return the account of a sender with an id; person and account are made at the first word."""
    assert sender.external_id is not None  # noqa: S101 - anonymous senders never come this far
    found = await find_account(tx, bot_id, sender.external_id) or await _known_otherwise(tx, bot_id, sender)
    if found:
        return found
    person_id = await add_person(tx, language=sender.language, name=sender.name)
    made = insert(t.accounts).values(
        bot_id=bot_id, external_id=sender.external_id, alias=sender.alias, person_id=person_id
    )
    made = made.on_conflict_do_nothing(index_elements=["bot_id", "external_id"])
    if (await tx.execute(made)).rowcount == 0:
        # Two first messages at once: the other one made it, and our empty person goes again.
        await tx.execute(t.people.delete().where(t.people.c.id == person_id))
    account = await find_account(tx, bot_id, sender.external_id)
    assert account is not None  # noqa: S101 - just made
    return account


async def _known_otherwise(tx: Tx, bot_id: UUID, sender: Sender) -> Account | None:
    """Return the account of a sender who was known by what is now an alias, or is named by their alias alone."""
    accounts = update(t.accounts).where(t.accounts.c.bot_id == bot_id)
    if sender.alias is None:
        named = select(t.accounts.c.external_id).where(
            t.accounts.c.bot_id == bot_id, t.accounts.c.alias == sender.external_id
        )
        external_id = await tx.scalar(named)
        return await find_account(tx, bot_id, external_id) if external_id else None
    # A name or number that changed hands belongs to who uses it now.
    await tx.execute(accounts.where(t.accounts.c.alias == sender.alias).values(alias=None))
    known = accounts.where(t.accounts.c.external_id == sender.alias)
    await tx.execute(known.values(external_id=sender.external_id, alias=sender.alias))
    return await find_account(tx, bot_id, str(sender.external_id))


async def find_account(tx: Tx, bot_id: UUID, external_id: str) -> Account | None:
    """Return an account by the platform's id."""
    row = (await tx.execute(_ACCOUNT, {"bot": bot_id, "external": external_id})).one_or_none()
    return Account(row.id, row.person_id, row.bot_id, row.external_id, row.status == OPTED_OUT) if row else None


_ACCOUNT = select(t.accounts).where(
    t.accounts.c.bot_id == bindparam("bot"), t.accounts.c.external_id == bindparam("external")
)


async def add_person(tx: Tx, *, language: str | None, name: str | None = None) -> UUID:
    """Make a person who has answered nothing yet."""
    made = insert(t.people).values(language=language, display_name=name).returning(t.people.c.id)
    return UUID(str(await tx.scalar(made)))


async def person(tx: Tx, person_id: UUID) -> Person | None:
    """Return a person."""
    row = (await tx.execute(select(t.people).where(t.people.c.id == person_id))).one_or_none()
    return _person(row) if row else None


async def arrived(tx: Tx, bot_id: UUID, sender: Sender, *, newcomers: bool = True) -> tuple[Account, Person] | None:
    """Note that a sender with an id is here now; person and account are made at the first word, where there are `newcomers`.

    Their person's row is held until `tx` ends: whoever forgets them waits, and takes all of it. None when they were
    forgotten meanwhile.
    """
    named = {"bot": bot_id, "external": sender.external_id}
    row = (await tx.execute(_ARRIVED, named)).one_or_none()
    if row is None and newcomers:
        account = await account_of(tx, bot_id, sender)
        row = (await tx.execute(_ARRIVED, named | {"external": account.external_id})).one_or_none()
    if row is None:
        return None
    left = row.account_status == OPTED_OUT
    return Account(row.account_id, row.id, bot_id, row.account_external_id, left), _person(row)


_ARRIVED = (
    update(t.people)
    .where(
        t.people.c.id == t.accounts.c.person_id,
        t.accounts.c.bot_id == bindparam("bot"),
        t.accounts.c.external_id == bindparam("external"),
    )
    .values(last_seen_at=func.now())
    .returning(t.people, *(t.accounts.c[name].label(f"account_{name}") for name in ("id", "external_id", "status")))
)


def _person(row: Row[tuple[object, ...]]) -> Person:
    return Person(row.id, row.language, row.status, row.memory_version, row.asked_consent)


async def set_language(tx: Tx, person_id: UUID, language: str) -> None:
    """Keep the language a person chose."""
    await tx.execute(update(t.people).where(t.people.c.id == person_id).values(language=language))


async def set_asked_consent(tx: Tx, person_id: UUID) -> bool:
    """Note that the consent notice was shown; return whether this was the first time."""
    done = (
        update(t.people)
        .where(t.people.c.id == person_id, t.people.c.asked_consent.is_(False))
        .values(asked_consent=True)
    )
    return (await tx.execute(done)).rowcount == 1


async def chat_of(tx: Tx, bot_id: UUID, address: ChatAddress, person_id: UUID | None) -> Chat:
    """Return the chat at `address`, made when it is new and locked until the transaction ends."""
    return chat_in((await tx.execute(_CHAT_MADE_OR_KNOWN, placed(bot_id, address, person_id))).one())


def placed(bot_id: UUID, address: ChatAddress, person_id: UUID | None) -> dict[str, object]:
    """Return what `chat_made_or_known` is run with; a group belongs to nobody."""
    owner = person_id if address.kind == "private" else None
    chat = {"bot_id": bot_id, "external_id": address.external_id, "thread": address.thread, "chat_kind": address.kind}
    return chat | {"person_id": owner}


def chat_made_or_known(heard_at: ColumnElement[datetime] | None = None) -> ReturningInsert[tuple[object, ...]]:
    """Return the statement that finds a chat, or makes it, and locks it; `heard_at` is when somebody wrote or tapped in it."""
    # Written out, because inside another statement nothing is filled in from what that is run with. The kind by a name of
    # its own: an update of the outbox, which has such a column, would take it for its own there.
    columns = [t.chats.c[name] for name in ("bot_id", "external_id", "thread", "kind", "person_id")]
    names = {"kind": "chat_kind"}
    values: dict[ColumnElement[Any], object] = {
        column: bindparam(names.get(column.name, column.name), type_=column.type) for column in columns
    }
    made = insert(t.chats).values(values | {t.chats.c.heard_at: heard_at})
    # A chat that was left without a person (they were forgotten, or only blocked the bot) belongs to who writes in it now.
    known = {"kind": made.excluded.kind, "person_id": func.coalesce(t.chats.c.person_id, made.excluded.person_id)}
    # Whoever writes is not gone, whatever the platform said when we wrote.
    known["status"] = case((t.chats.c.status == "gone", "active"), else_=t.chats.c.status)
    if heard_at is not None:
        known["heard_at"] = func.greatest(t.chats.c.heard_at, made.excluded.heard_at)
    made = made.on_conflict_do_update(index_elements=["bot_id", "external_id", "thread"], set_=known)
    return made.returning(t.chats)


def latest_answers() -> Select[tuple[object, ...]]:
    """Return the query of a person's latest answer to each purpose."""
    answers = t.consent_events.c
    return (
        select(answers.purpose, answers.event, answers.at, answers.notice_version)
        .where(answers.person_id == bindparam("person_id"))
        .ext(distinct_on(answers.purpose))
        .order_by(answers.purpose, *latest_first())
    )


_CHAT_MADE_OR_KNOWN = chat_made_or_known()


async def chat(tx: Tx, chat_id: UUID) -> Chat | None:
    """Return a chat by its id."""
    row = (await tx.execute(_CHAT_OF_ID, {"chat": chat_id})).one_or_none()
    return chat_in(row) if row else None


_CHAT_OF_ID = select(t.chats).where(t.chats.c.id == bindparam("chat"))


async def set_awaiting(tx: Tx, chat_id: UUID, awaiting: Awaiting | None) -> None:
    """Keep what the dialogue waits for in a chat, from now on."""
    state = {"awaiting": replace(awaiting, since=clock.now().isoformat()).document()} if awaiting else {}
    await tx.execute(update(t.chats).where(t.chats.c.id == chat_id).values(state=state))


async def stop_awaiting(tx: Tx, chat_id: UUID, turn_id: UUID) -> None:
    """Wait no more for words about this turn; what is awaited about another one stays."""
    about = t.chats.c.state["awaiting"]["turn_id"].astext == str(turn_id)
    await tx.execute(update(t.chats).where(t.chats.c.id == chat_id, about).values(state={}))


async def set_chat_status(tx: Tx, chat_id: UUID, status: str) -> None:
    """Keep whether a chat can be written to."""
    await tx.execute(update(t.chats).where(t.chats.c.id == chat_id).values(status=status))


async def move_chat(tx: Tx, bot_id: UUID, old: str, new: str) -> None:
    """Follow a group that became a supergroup; where the new one is known already, the old one is only closed."""
    known = await tx.scalar(
        select(t.chats.c.id).where(t.chats.c.bot_id == bot_id, t.chats.c.external_id == new).limit(1)
    )
    moved = {"status": "gone"} if known else {"external_id": new}
    await tx.execute(update(t.chats).where(t.chats.c.bot_id == bot_id, t.chats.c.external_id == old).values(moved))


async def consents(tx: Tx, person_id: UUID) -> Consents:
    """Return what a person allows at this moment."""
    rows = await tx.execute(_CONSENTS, {"person_id": person_id})
    return Consents.of(ConsentEvent(Purpose(r.purpose), r.event, r.at, r.notice_version) for r in rows)


_CONSENTS = latest_answers()


async def record_consent(
    tx: Tx, person_id: UUID, purpose: Purpose, event: str, *, notice: str, language: str, channel: str, evidence: str
) -> None:
    """Add one answer to the consent log, with the digest of the words that were shown."""
    await tx.execute(
        insert(t.consent_events).values(
            person_id=person_id,
            purpose=purpose.value,
            event=event,
            notice_version=NOTICE_VERSION,
            notice_language=language,
            notice_digest=hashlib.sha256(notice.encode()).digest(),
            channel=channel,
            evidence=evidence,
            at=func.clock_timestamp(),
        )
    )


def chat_in(row: Row[tuple[object, ...]]) -> Chat:
    """Return the chat in a row of `chats`."""
    waiting = row.state.get("awaiting")
    address = ChatAddress(row.external_id, row.thread, row.kind)
    return Chat(row.id, row.bot_id, address, row.person_id, row.status, Awaiting(**waiting) if waiting else None)
