"""What Twilio's refusals mean for a delivery: later, never, perhaps already done, nobody there.

429, 20429 and the codes of rates and queues   DeliveryRetryError(seconds)
21610 and others that name the person           RecipientGoneError
no connection                                   DeliveryRetryError
answer lost, 5xx                                DeliveryUncertainError
63016: the 24 hours since their word are over   WindowClosedError
every other refusal                             DeliveryError

Source: https://www.twilio.com/docs/api/errors
"""

import random

import aiohttp
from twilio.base.exceptions import TwilioException, TwilioRestException, TwilioServiceException

from app.errors import DeliveryError, DeliveryRetryError, DeliveryUncertainError, RecipientGoneError, WindowClosedError

WINDOW_CLOSED = 63016
_UNAUTHENTIC = 20003
_NOT_THERE = 20404
_TOO_MANY = 429
_SERVER = 500
# Too many requests; the sender's or the account's rate; a full queue; the cap of the day.
_WAIT_S = {429: 2.0, 20429: 2.0, 14107: 30.0, 63018: 5.0, 63017: 5.0, 30001: 30.0, 63038: 3600.0}
# Opted out; not a number, not a mobile one; not on WhatsApp; not in the sandbox.
_GONE = frozenset({21610, 21211, 21614, 63024, 63015})
_WORDS = {
    WINDOW_CLOSED: "the 24 hours since this person's last message are over (63016): WhatsApp takes only templates now",
    _UNAUTHENTIC: "Twilio refuses TWILIO_ACCOUNT_SID or TWILIO_AUTH_TOKEN",
    21617: "the message is longer than Twilio takes",
    63013: "Meta holds that the message breaks its policy",
}
_RETRY_NETWORK_S = 2.0


def is_too_late(code: str) -> bool:
    """Whether an error code says that only a person's next word lets a message through."""
    return code == str(WINDOW_CLOSED)


def is_gone(code: str) -> bool:
    """Whether an error code says that nothing will ever reach this person."""
    return code.isdecimal() and int(code) in _GONE


def is_not_there(error: DeliveryError) -> bool:
    """Whether Twilio knows nothing under the id that it was asked about."""
    return error.code == f"twilio_{_NOT_THERE}"


def meaning(error: TwilioException | aiohttp.ClientError | TimeoutError | ValueError) -> DeliveryError:
    """Return what an error of a send means. Twilio's own words are left out: they can hold addresses and texts."""
    if isinstance(error, TwilioRestException | TwilioServiceException):
        return _refusal(int(error.code or error.status), int(error.status))
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return DeliveryRetryError("Twilio cannot be reached", _RETRY_NETWORK_S)
    return DeliveryUncertainError()  # the answer was lost, late, or not in the form of the API


def _refusal(code: int, status: int) -> DeliveryError:
    if code in _WAIT_S or status == _TOO_MANY:
        wait = _WAIT_S.get(code, _WAIT_S[_TOO_MANY]) * random.uniform(0.75, 1.25)  # noqa: S311 - spreads load, guards nothing
        return DeliveryRetryError("Twilio asks to wait", wait)
    if status >= _SERVER:
        return DeliveryUncertainError()
    if code in _GONE:
        return RecipientGoneError()
    if code == WINDOW_CLOSED:
        return WindowClosedError(_WORDS[code], f"twilio_{code}")
    return DeliveryError(_WORDS.get(code, f"Twilio refuses it ({code})"), f"twilio_{code}")
