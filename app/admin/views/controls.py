"""Switches, bot identity and the audit log."""

from itertools import pairwise
from urllib.parse import urlencode

from aiohttp import web

from app.admin.forms import PREFIX, ChoiceError, Fields
from app.admin.visit import Visit
from app.domain.diff import word_diff
from app.domain.messages import LANGUAGES
from app.errors import ConflictError, InvalidInputError, NotFoundError
from app.store import audit
from app.store.audit import Act, AuditFilter
from app.store.panel import controls
from app.store.panel.controls import Identity, NewIdentity, Switch

_AUDIT_PAGE, _VERSIONS = 50, 10
_MAX_FACTS = 50
# Whose vocabulary the values of an entry's details are.
_DETAIL_ROOMS = {"by": "detail_by", "from": "review", "to": "review", "class": "class", "scope": "detail_scope"}


class FactsError(InvalidInputError):
    """Each fact is a line of the form `name: value`; at most 50."""


class LanguagesMissingError(InvalidInputError):
    """Choose at least one language."""


async def switches(visit: Visit) -> web.StreamResponse:
    """Show the four switches."""
    async with visit.store.begin() as tx:
        return visit.page("switches.html", switches=await controls.all_switches(tx))


async def turn_switch(visit: Visit) -> web.StreamResponse:
    """Pause or resume a step of the road."""
    name = visit.request.match_info["name"]
    if name not in controls.NAMES:
        raise NotFoundError
    position = visit.fields.choice("position", ("paused", "running"))
    if not position:
        raise ChoiceError
    wanted = Switch(name, position == "paused", visit.fields.reason(), visit.actor)
    async with visit.store.begin() as tx:
        before = await controls.turn_switch(tx, wanted)
        event = f"switch:{name}:{'pause' if wanted.paused else 'resume'}"
        states = {"before": {"paused": before.paused}, "after": {"paused": wanted.paused}}
        await audit.record(tx, Act(visit.actor, event, f"switch:{name}", wanted.reason, **states))
    return visit.to(f"{PREFIX}/switches")


async def bots(visit: Visit) -> web.StreamResponse:
    """List the bots."""
    async with visit.store.begin() as tx:
        found = await controls.all_bots(tx)
    return visit.to(f"{PREFIX}/identity/{found[0].id}") if len(found) == 1 else visit.page("bots.html", bots=found)


async def identity(visit: Visit) -> web.StreamResponse:
    """Show a bot's identity as a form, with its earlier versions."""
    async with visit.store.begin() as tx:
        bot = await controls.bot(tx, visit.id())
        versions = await controls.identities(tx, bot.id, limit=_VERSIONS)
        alone = len(await controls.all_bots(tx)) == 1
    changes = [(new, word_diff(old.system_prompt, new.system_prompt)) for new, old in pairwise(versions)]
    current = versions[0] if versions else None
    facts = "\n".join(f"{name}: {value}" for name, value in current.facts.items()) if current else ""
    return visit.page(
        "identity.html",
        bot=bot,
        current=current,
        facts=facts,
        changes=changes,
        first=versions[-1] if versions and len(versions) < _VERSIONS else None,
        languages=LANGUAGES,
        alone=alone,
    )


async def change_identity(visit: Visit) -> web.StreamResponse:
    """Store a new version of a bot's identity."""
    wanted, reason = _identity(visit.fields), visit.fields.reason()
    async with visit.store.begin() as tx:
        bot = await controls.bot(tx, visit.id())
        if (bot.version or 0) != wanted.seen_version:
            raise ConflictError
        before = next(iter(await controls.identities(tx, bot.id, limit=1)), None)
        made = await controls.add_identity(tx, bot.id, wanted, visit.actor)
        act = Act(
            visit.actor,
            "bot:identity:change",
            f"bot:{bot.id}",
            reason,
            before=_state(before) if before else None,
            after=_state(made),
            detail={"version": made.version},
        )
        await audit.record(tx, act)
    return visit.to(f"{PREFIX}/identity/{bot.id}")


def _state(shown: Identity) -> dict[str, object]:
    names = ("version", "name", "system_prompt", "facts", "contact", "privacy_notice", "languages")
    return {name: getattr(shown, name) for name in names}


def _identity(fields: Fields) -> NewIdentity:
    languages = fields.several("languages", LANGUAGES)
    if not languages:
        raise LanguagesMissingError
    return NewIdentity(
        seen_version=fields.whole("seen_version", 0, 2**31),
        name=fields.needed("name"),
        system_prompt=fields.needed("system_prompt"),
        facts=_facts(fields.text("facts")),
        contact=fields.text("contact") or None,
        privacy_notice=fields.needed("privacy_notice"),
        languages=languages,
    )


def _facts(text: str) -> dict[str, str]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    pairs = [line.partition(":") for line in lines]
    if len(lines) > _MAX_FACTS or not all(name.strip() and value.strip() for name, _, value in pairs):
        raise FactsError
    return {name.strip(): value.strip() for name, _, value in pairs}


async def audit_log(visit: Visit) -> web.StreamResponse:
    """Show the audit log, the newest first."""
    wanted = AuditFilter(*(visit.fields.text(name) for name in ("actor", "event", "subject")))
    older_than = visit.fields.whole("before", 0) or None
    async with visit.store.begin() as tx:
        rows = await audit.page(tx, wanted, older_than=older_than, limit=_AUDIT_PAGE + 1)
    chosen = {name: value for name in ("actor", "event", "subject") if (value := getattr(wanted, name))}
    return visit.page(
        "audit.html",
        rows=rows[:_AUDIT_PAGE],
        rooms=_DETAIL_ROOMS,
        wanted=wanted,
        older=urlencode(chosen | {"before": rows[_AUDIT_PAGE - 1].id}) if len(rows) > _AUDIT_PAGE else None,
        newest=urlencode(chosen) if older_than else None,
    )
