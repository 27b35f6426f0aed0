"""People with WhatsApp on their phones: what they do becomes a post to the webhook, what they get is kept here."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tests.fakes.twilio.sids import new_sid
from tests.support.media import PICTURE, VOICE

if TYPE_CHECKING:
    from tests.fakes.twilio.server import TwilioServer

PATH = "/webhooks/whatsapp"


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that a person got; `buttons` are its quick replies: the payload of each, by label."""

    sid: str
    body: str
    status_callback: str | None = None
    buttons: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Inbound:
    """A message from somebody, as Twilio keeps it."""

    at: datetime
    fields: dict[str, str]


@dataclass(slots=True)
class Person:
    """Somebody at an address. `refusal` is the error code that every message to them meets, at once or `later`; what they
    say while `unheard` reaches Twilio but no webhook, and was said `earlier`.
    """

    server: "TwilioServer"
    address: str
    name: str = "Ann"
    external_id: str | None = None
    got: list[Sent] = field(default_factory=list)
    refusal: int | None = None
    later: int | None = None
    unheard: bool = False
    earlier: timedelta = timedelta(0)

    @property
    def texts(self) -> list[str]:
        """What they read, oldest first."""
        return [message.body for message in self.got]

    async def say(self, body: str, *, reply_to: Sent | None = None, sid: str | None = None, **more: str) -> str:
        """Send a message, perhaps as a swipe reply; return its sid."""
        number = sid or new_sid()
        fields = self._fields(number, body) | {"MessageType": "text"} | more
        if reply_to:
            fields |= {"OriginalRepliedMessageSid": reply_to.sid, "OriginalRepliedMessageSender": self.server.sender}
        await self._post(fields)
        return number

    async def send_picture(self, body: str = "", data: bytes = PICTURE, content_type: str = "image/jpeg") -> str:
        """Send a picture, with or without words."""
        return await self._send_media("image", body, data, content_type)

    async def send_voice(self, data: bytes = VOICE, *, reply_to: Sent | None = None) -> str:
        """Send a voice note, perhaps as a swipe reply."""
        return await self._send_media("audio", "", data, "audio/ogg", reply_to)

    async def _send_media(
        self, kind: str, body: str, data: bytes, content_type: str, reply_to: Sent | None = None
    ) -> str:
        number = new_sid("MM")
        media = self.server.keep_media(number, data, content_type)
        more = {"MessageType": kind, "NumMedia": "1", "MediaUrl0": media, "MediaContentType0": content_type}
        return await self.say(body, reply_to=reply_to, sid=number, **more)

    async def tap(self, payload: str, label: str, message: Sent) -> str:
        """Tap a quick reply."""
        return await self.say(
            label, reply_to=message, MessageType="interactive", ButtonPayload=payload, ButtonText=label
        )

    async def tap_label(self, label: str, message: Sent) -> str:
        """Tap the quick reply that says `label`."""
        return await self.tap(message.buttons[label], label, message)

    def _fields(self, sid: str, body: str) -> dict[str, str]:
        number = self.address.removeprefix("whatsapp:").removeprefix("+")
        known = {"ExternalUserId": self.external_id} if self.external_id else {}
        return {
            "SmsMessageSid": sid,
            "NumMedia": "0",
            "ProfileName": self.name,
            "SmsSid": sid,
            "WaId": number,
            "SmsStatus": "received",
            "Body": body,
            "To": self.server.sender,
            "NumSegments": "1",
            "ReferralNumMedia": "0",
            "MessageSid": sid,
            "AccountSid": self.server.account_sid,
            "From": self.address,
            "ApiVersion": "2010-04-01",
            **known,
        }

    async def _post(self, fields: dict[str, str]) -> None:
        self.server.heard.add(fields["MessageSid"])
        self.server.inbound.append(Inbound(datetime.now(UTC) - self.earlier, fields))
        if self.unheard:
            return
        headers = {"I-Twilio-Idempotency-Token": new_sid("")}
        await self.server.hook.post(PATH, list(fields.items()), headers)
