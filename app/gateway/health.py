"""How the gateway's parts are, for `/readyz` and the panel."""

from collections.abc import Mapping, Sequence

from app.clients.vllm import VllmClient
from app.errors import StoreUnavailableError
from app.ports import PartHealth
from app.services.relay import Relay
from app.store import Store
from app.telemetry import Log
from bots.package import Part

log = Log(__name__)


class GatewayParts:
    """Asks each part."""

    def __init__(
        self,
        store: Store,
        model: VllmClient,
        relay: Relay,
        channels: Mapping[str, Part | None],
        troubles: Mapping[str, str],
    ) -> None:
        """Take the parts; a channel without one is switched off. `troubles` names the channels that are broken now."""
        self._store = store
        self._model = model
        self._relay = relay
        self._channels = channels
        self._troubles = troubles

    async def health(self) -> Sequence[PartHealth]:
        """Return every part's state. Only what the gateway cannot take messages without is required."""
        found = [await self._database(), self._broker(), await self._model_server()]
        for name, part in self._channels.items():
            if trouble := self._troubles.get(name):
                found.append(PartHealth(name, "down", trouble))
            else:
                found.append(await _of(name, part) if part else PartHealth(name, "off"))
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


async def _of(name: str, part: Part) -> PartHealth:
    try:
        return await part.health()
    except Exception as error:  # noqa: BLE001 - somebody else's package, which must not hide how the others are
        log.failure("channel:health:failed", error, channel=name)
        return PartHealth(name, "down", type(error).__name__)
