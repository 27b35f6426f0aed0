"""Makes the content templates at Twilio and asks Meta to approve what needs it. Run again, it makes nothing that stands.

    never made, deleted at Twilio, or says something else ──► made, kept at once ──► approval asked for ──► received …
                                                                                                     approved, rejected

Knows nothing of the terminal; `app/embedded/whatsapp_setup.py` says what was done.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from uuid import UUID

import aiohttp
from twilio.base.exceptions import TwilioException
from twilio.rest import Client

from app.errors import DeliveryError, DeliveryUncertainError
from app.store import Store, Tx, templates
from app.store.templates import APPROVALS, UNDECIDED, Made
from bots.whatsapp.faults import is_not_there, meaning
from bots.whatsapp.templates import Definition, Json

UNSUBMITTED = "unsubmitted"
DELETED = "deleted"
SID_CHARS = 8
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
    outcomes = []
    for one in wanted:
        outcome = await _made(client, store, bot_id, one)
        if outcome.needs_approval:
            outcome = replace(outcome, template=await _approved(client, store, bot_id, one))
        outcomes.append(outcome)
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
            try:
                status = await _status(client, one.content_sid)
            except DeliveryError as error:
                if not is_not_there(error):
                    raise
                status = DELETED  # nothing waits for it any more; a new run makes another
            async with store.begin() as tx:
                await _keep(tx, bot_id, one, status)


async def _made(client: Client, store: Store, bot_id: UUID, wanted: Definition) -> Outcome:
    """Return a template as it stands, made where it does not. Who sets up at the same time waits, and finds it standing."""
    needs_approval = wanted.category is not None
    async with store.begin() as tx:
        await templates.alone(tx)
        stands = await _standing(tx, bot_id, wanted)
        if stands and stands.digest == wanted.digest and await _is_there(client, stands.content_sid):
            return Outcome(stands, new=False, needs_approval=needs_approval)
        made = await _asked(client.content.v1.contents.create_async(content_create_request=_Body(wanted.body())))
        template = Made(wanted.name, wanted.language, str(made.sid), wanted.digest, UNSUBMITTED)
        await templates.keep(tx, bot_id, template)
    return Outcome(template, new=True, needs_approval=needs_approval)


async def _approved(client: Client, store: Store, bot_id: UUID, wanted: Definition) -> Made:
    """Return a template with how its approval stands, which is asked for where nobody did.

    Twilio is asked first: where an earlier run never had its answer, the name is given away already.
    """
    async with store.begin() as tx:
        await templates.alone(tx)
        template = await _standing(tx, bot_id, wanted)
        if template is None:
            raise DeliveryUncertainError  # the bot was taken away meanwhile
        status = await _status(client, template.content_sid)
        if status == UNSUBMITTED:
            # Meta gives no name away twice, not even to the same words after they were deleted.
            name = f"{wanted.full_name}_{template.content_sid[-SID_CHARS:].lower()}"
            body = _Body({"name": name, "category": wanted.category})
            content = client.content.v1.contents(template.content_sid)
            asked = await _asked(content.approval_create.create_async(content_approval_request=body))
            status = str(asked.status)
        return await _keep(tx, bot_id, template, status)


async def _is_there(client: Client, content_sid: str) -> bool:
    """Whether a template stands at Twilio: somebody may have deleted it in the console."""
    try:
        await _asked(client.content.v1.contents(content_sid).fetch_async())
    except DeliveryError as error:
        if is_not_there(error):
            return False
        raise
    return True


async def _standing(tx: Tx, bot_id: UUID, wanted: Definition) -> Made | None:
    known = await templates.made(tx, bot_id)
    return next((one for one in known if (one.name, one.language) == (wanted.name, wanted.language)), None)


async def _status(client: Client, content_sid: str) -> str:
    found = await _asked(client.content.v1.contents(content_sid).approval_fetch().fetch_async())
    return str((found.whatsapp or {}).get("status") or UNSUBMITTED)


async def _keep(tx: Tx, bot_id: UUID, template: Made, status: str) -> Made:
    approval = status if status in APPROVALS else UNDECIDED[-1]  # a word that Twilio did not use before
    await templates.decided(tx, bot_id, template.content_sid, approval)
    return replace(template, approval=approval)


async def _asked(call: Awaitable[Answer]) -> Answer:
    try:
        return await call
    except (TwilioException, aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise meaning(error) from error
    except (KeyError, TypeError, AttributeError) as error:
        raise DeliveryUncertainError from error  # an answer in another form than the API's
