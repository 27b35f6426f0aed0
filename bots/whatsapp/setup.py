"""Makes the content templates at Twilio and asks Meta to approve what needs it. Run again, it makes nothing that stands.

    not there, or says something else ──► made, kept at once ──► approval asked for ──► received … approved, rejected

Knows nothing of the terminal; `app/embedded/whatsapp_setup.py` says what was done.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from uuid import UUID

import aiohttp
from twilio.base.exceptions import TwilioException
from twilio.rest import Client

from app.errors import DeliveryUncertainError
from app.store import Store, templates
from app.store.templates import APPROVALS, UNDECIDED, Made
from bots.whatsapp.faults import meaning
from bots.whatsapp.templates import Definition, Json

UNSUBMITTED = "unsubmitted"
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A template after a run: `new` where it was made now."""

    template: Made
    new: bool
    needs_approval: bool


class _Body:
    """A request as it is written here: the library's own class adds a null for each kind of template that there is."""

    def __init__(self, body: Json) -> None:
        self._body = body

    def to_dict(self) -> Json:
        """Return what is sent."""
        return self._body


async def set_up(client: Client, store: Store, bot_id: UUID, wanted: Sequence[Definition]) -> list[Outcome]:
    """Make what is missing of the templates that are `wanted`, and learn how approvals stand.

    Raises:
        DeliveryError: Twilio refused, or did not answer; what was made until then is kept.
        StoreUnavailableError: the database is away.
    """
    async with store.begin() as tx:
        known = {(one.name, one.language): one for one in await templates.made(tx, bot_id)}
    outcomes = []
    for one in wanted:
        stands = known.get((one.name, one.language))
        new = stands is None or stands.digest != one.digest
        template = await _make(client, store, bot_id, one) if new or stands is None else stands
        if one.category and not new:
            template = await _keep(store, bot_id, template, await _status(client, template.content_sid))
        if one.category and template.approval == UNSUBMITTED:
            template = await _submitted(client, store, bot_id, one, template)
        outcomes.append(Outcome(template, new, one.category is not None))
    return outcomes


async def check_approvals(client: Client, store: Store, bot_id: UUID) -> None:
    """Learn what Meta decided about templates that wait for it.

    Raises:
        DeliveryError: Twilio did not say.
        StoreUnavailableError: the database is away.
    """
    async with store.begin() as tx:
        known = await templates.made(tx, bot_id)
    for one in known:
        if one.approval in UNDECIDED:
            await _keep(store, bot_id, one, await _status(client, one.content_sid))


async def _make(client: Client, store: Store, bot_id: UUID, wanted: Definition) -> Made:
    made = await _asked(client.content.v1.contents.create_async(content_create_request=_Body(wanted.body())))
    template = Made(wanted.name, wanted.language, str(made.sid), wanted.digest, UNSUBMITTED)
    async with store.begin() as tx:
        await templates.keep(tx, bot_id, template)
    return template


async def _submitted(client: Client, store: Store, bot_id: UUID, wanted: Definition, template: Made) -> Made:
    """Ask for approval; return the template with how that stands."""
    body = _Body({"name": wanted.full_name, "category": wanted.category})
    content = client.content.v1.contents(template.content_sid)
    asked = await _asked(content.approval_create.create_async(content_approval_request=body))
    return await _keep(store, bot_id, template, str(asked.status))


async def _status(client: Client, content_sid: str) -> str:
    found = await _asked(client.content.v1.contents(content_sid).approval_fetch().fetch_async())
    return str((found.whatsapp or {}).get("status") or UNSUBMITTED)


async def _keep(store: Store, bot_id: UUID, template: Made, status: str) -> Made:
    approval = status if status in APPROVALS else UNDECIDED[-1]  # a word that Twilio did not use before
    async with store.begin() as tx:
        await templates.decided(tx, bot_id, template.content_sid, approval)
    return replace(template, approval=approval)


async def _asked(call: Awaitable[Answer]) -> Answer:
    try:
        return await call
    except (TwilioException, aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise meaning(error) from error
    except (KeyError, TypeError, AttributeError) as error:
        raise DeliveryUncertainError from error  # an answer in another form than the API's
