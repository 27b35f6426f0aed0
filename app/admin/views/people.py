"""People: consents with their history, memory where it may be read, what forgetting takes, and forgetting."""

from aiohttp import web

from app.admin.forms import PREFIX
from app.admin.visit import Visit
from app.domain.consent import ConsentEvent, Consents, Purpose
from app.errors import ConflictError, InvalidInputError
from app.store import audit, leaving
from app.store.audit import Act
from app.store.panel import people

PAGE = 40
STATUSES = ("active", "blocked", "opted_out", "forgotten")
CONFIRM_CHARS = 8


class NotConfirmedError(InvalidInputError):
    """Type the first eight characters of the id to confirm."""


async def index(visit: Visit) -> web.StreamResponse:
    """List people, the last seen first."""
    search, page = visit.fields.text("search"), visit.fields.whole("page", 0, 10_000)
    status = visit.fields.choice("status", STATUSES)
    async with visit.store.begin() as tx:
        rows = await people.page(tx, search=search, status=status, limit=PAGE + 1, offset=page * PAGE)
    return visit.page(
        "people.html",
        rows=rows[:PAGE],
        more=len(rows) > PAGE,
        page=page,
        search=search,
        status=status,
        statuses=STATUSES,
        purposes=[p.value for p in Purpose if p is not Purpose.SERVICE],
    )


async def show(visit: Visit) -> web.StreamResponse:
    """Show one person."""
    async with visit.store.begin() as tx:
        found = await people.person(tx, visit.id())
        log = await people.consents(tx, found.id)
        memory = await people.memory(tx, found.id)
        adapters = await people.adapters(tx, found.id)
        waiting = await people.waiting(tx, found.id)
    latest = {c.purpose: c for c in reversed(log)}
    now = Consents.of(ConsentEvent(Purpose(c.purpose), c.event, c.at) for c in reversed(log))
    return visit.page(
        "person.html",
        person=found,
        purposes=[(p.value, now.allows(p), latest.get(p.value)) for p in Purpose],
        log=log,
        memory=memory,
        adapters=adapters,
        waiting=waiting,
        readable=now.allows(Purpose.HUMAN_REVIEW),
    )


async def resume(visit: Visit) -> web.StreamResponse:
    """Let the bot answer somebody again who had asked for a human."""
    person_id, reason = visit.id(), visit.fields.reason()
    async with visit.store.begin() as tx:
        await people.person(tx, person_id)
        if not await leaving.resume_chats(tx, person_id):
            raise ConflictError
        await audit.record(tx, Act(visit.actor, "person:bot:resumed", audit.person(person_id), reason))
    return visit.to(f"{PREFIX}/people/{person_id}")


async def forget_form(visit: Visit) -> web.StreamResponse:
    """Show what forgetting takes, and ask."""
    async with visit.store.begin() as tx:
        found = await people.person(tx, visit.id())
        preview = await people.forget_preview(tx, found.id)
    return visit.page("forget.html", person=found, preview=preview, confirm_chars=CONFIRM_CHARS, receipt=None)


async def forget(visit: Visit) -> web.StreamResponse:
    """Forget the person and show the receipt code, once."""
    reason = visit.fields.reason()
    person_id = visit.id()
    if visit.fields.text("confirm") != str(person_id)[:CONFIRM_CHARS]:
        raise NotConfirmedError
    receipt = await visit.panel.actions.forget_person(person_id, actor=visit.actor, reason=reason)
    return visit.page("forgotten.html", receipt=receipt, back=f"{PREFIX}/people")
