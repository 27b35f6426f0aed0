"""A server that speaks Twilio's API for WhatsApp, with programmable people behind it."""

from tests.fakes.twilio.people import Person, Sent
from tests.fakes.twilio.server import Call, TwilioServer
from tests.fakes.twilio.webhook import Hook, signature

__all__ = ["Call", "Hook", "Person", "Sent", "TwilioServer", "signature"]
