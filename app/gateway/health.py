"""How the gateway's parts are, for `/readyz` and the panel."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.clients.vllm import VllmClient
from app.errors import StoreUnavailableError
from app.gateway.telegram import TelegramPart
from app.services.relay import Relay
from app.store import Store
from app.web.health import PartHealth

if TYPE_CHECKING:
    from app.gateway.whatsapp import WhatsAppPart


class GatewayParts:
    """Asks each part."""

    def __init__(
        self,
        store: Store,
        model: VllmClient,
        relay: Relay,
        telegram: TelegramPart | None,
        whatsapp: "WhatsAppPart | None" = None,
    ) -> None:
        """Take the parts."""
        self._store = store
        self._model = model
        self._relay = relay
        self._telegram = telegram
        self._whatsapp = whatsapp

    async def health(self) -> Sequence[PartHealth]:
        """Return every part's state. Only what the gateway cannot take messages without is required."""
        found = [await self._database(), self._broker(), await self._model_server()]
        found.append(PartHealth("web", "ok"))
        found.append(await self._telegram.health() if self._telegram else PartHealth("telegram", "off"))
        if self._whatsapp:
            found.append(await self._whatsapp.health())
        return found

    async def _database(self) -> PartHealth:
        try:
            await self._store.ping()
        except StoreUnavailableError as error:
            return PartHealth("database", "down", str(error), required=True)
        return PartHealth("database", "ok", required=True)

    def _broker(self) -> PartHealth:
        return PartHealth("broker", "degraded" if self._relay.broker_away else "ok")

    async def _model_server(self) -> PartHealth:
        return PartHealth("model_server", "ok" if await self._model.healthy() else "down")
