"""Messages that Twilio could not hand over, because nobody listened: asked for by listing, stored as if they had come.

A webhook that fails is not sent again. What is known already is known by its sid, so listing too much does no harm. But a
list tells less than a webhook (no button, no quoted message, no sticker among pictures), so a message whose webhook may still be
on its way is left to that.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from urllib.parse import urlencode

import aiohttp
from twilio.base.exceptions import TwilioException
from twilio.http.response import Response
from twilio.rest import Client
from twilio.rest.api.v2010.account.message import MessageInstance

from app.errors import DeliveryUncertainError
from app.telemetry import Log
from bots.base import RawUpdate
from bots.whatsapp.faults import meaning
from bots.whatsapp.form import ME
from bots.whatsapp.keys import raw_message
from bots.whatsapp.parse import MAX_MEDIA

log = Log(__name__)
MOST = 5000
PAGE = 100
_REFUSED = range(400, 500)
_FOR_NOW = frozenset({401, 408, 429})
Address = Callable[[str, str], str]


async def missed(
    client: Client, account_sid: str, sender: str, since: datetime, until: datetime, address: Address
) -> Sequence[RawUpdate]:
    """Return what people sent to `sender` in that time, the oldest first; `address` tells where media of a message are.

    Raises:
        DeliveryError: Twilio did not say.
    """
    try:
        found = await client.messages.list_async(to=sender, date_sent_after=since, limit=MOST, page_size=PAGE)
    except (TwilioException, aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise meaning(error) from error
    except (KeyError, TypeError, AttributeError) as error:
        raise DeliveryUncertainError from error  # an answer that is no list of messages
    if len(found) == MOST:
        log.warning("whatsapp:list:cut", most=MOST)  # what is older than these was said to nobody
    inbound = (one for one in found if one.direction == "inbound" and one.sid and (one.from_ or "").startswith(ME))
    heard = [one for one in inbound if _sent_at(one) < until]
    heard.reverse()  # the list begins with the newest, and knows seconds only
    heard.sort(key=_sent_at)
    return [raw_message(_form(one, account_sid, sender) + await _media(one, address), None) for one in heard]


def _sent_at(message: MessageInstance) -> datetime:
    return message.date_sent or message.date_created or datetime.fromtimestamp(0, UTC)


async def _media(message: MessageInstance, address: Address) -> bytes:
    """Return the fields that name a message's media, which a list of messages only counts.

    Raises:
        DeliveryError: Twilio did not say.
    """
    if not (message.num_media or "").isdecimal() or not int(message.num_media):
        return b""
    try:
        found = await message.media.list_async(limit=MAX_MEDIA)
    except (TwilioException, aiohttp.ClientError, TimeoutError, ValueError) as error:
        if _refused(error):
            return b""  # deleted since, as a rule: the person hears so, and nobody else's message waits for it
        raise meaning(error) from error
    except (KeyError, TypeError, AttributeError) as error:
        raise DeliveryUncertainError from error
    fields: dict[str, str] = {}
    for place, one in enumerate(found):
        where = address(str(message.sid), str(one.sid))
        fields |= {f"MediaUrl{place}": where, f"MediaContentType{place}": one.content_type or ""}
    return b"&" + urlencode(fields).encode() if fields else b""


def _refused(error: Exception) -> bool:
    """Whether Twilio will not give out a list, whenever it is asked: what the library raises for one bears the response alone."""
    response = error.args[1] if isinstance(error, TwilioException) and len(error.args) > 1 else None
    status = response.status_code if isinstance(response, Response) else 0
    return status in _REFUSED and status not in _FOR_NOW


def _form(message: MessageInstance, account_sid: str, sender: str) -> bytes:
    """Return the form that a webhook would have brought, as far as the list tells it."""
    fields = {
        "MessageSid": message.sid,
        "AccountSid": account_sid,
        "From": message.from_,
        "To": sender,
        "Body": message.body or "",
        "NumMedia": message.num_media or "0",
        "DateSent": _sent_at(message).astimezone(UTC).isoformat(),
    }
    return urlencode(fields).encode()
