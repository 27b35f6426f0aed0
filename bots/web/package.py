"""The web chat as a channel package: always on, its platform is our own page."""

from collections.abc import Mapping, Sequence

from aiohttp import web

from app.config import ChannelSettings, Settings
from app.domain.consent import EVERY_PURPOSE
from app.ports import PartHealth
from app.store.webchat import BOT_EXTERNAL_ID, CHANNEL
from bots.package import ChannelContext, ChannelPackage, Finding, Handler, Part
from bots.web import PREFIX, WebChannel, create_web_chat


class WebSettings(ChannelSettings):
    """Nothing is set for it that is not the house's."""

    @property
    def on(self) -> bool:
        return True


class WebPart:
    """The web chat of this gateway. Nothing of it connects to anywhere."""

    def __init__(self, context: ChannelContext[WebSettings]) -> None:
        """Take the database and the streams for the pages."""
        self._pages, self._channel = create_web_chat(
            context.store, context.pool, context.streams, context.accept, context.house
        )

    @property
    def channel(self) -> WebChannel:
        """What the dialogue speaks through."""
        return self._channel

    @property
    def routes(self) -> Mapping[str, Handler | web.Application]:
        """The chat's pages."""
        return {PREFIX: self._pages}

    async def start(self) -> None:
        """Do nothing: pages are asked for."""

    async def run(self) -> None:
        """End at once."""

    async def close(self) -> None:
        """Close nothing."""

    async def health(self) -> PartHealth:
        """Return that it is well: it is this process."""
        return PartHealth(CHANNEL, "ok")


def build(context: ChannelContext[WebSettings]) -> Part:
    """Return the part."""
    return WebPart(context)


async def doctor(settings: WebSettings, house: Settings, language: str) -> Sequence[Finding]:  # noqa: ARG001
    """Find nothing: whoever asks the gateway has asked the web chat."""
    return []


PACKAGE = ChannelPackage(
    name=CHANNEL,
    settings=WebSettings,
    account=lambda _: BOT_EXTERNAL_ID,
    identity=None,
    build=build,
    doctor=doctor,
    data_use=EVERY_PURPOSE,
)
