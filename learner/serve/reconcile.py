"""What should be loaded against what is loaded, for each model server, until both agree.

    server answers? ─► restarted or never probed? ─► isolation probe ─► load what is missing ─► unload what left routing

Runs every few seconds in the worker that serves the release queue, and at once after a release. One process at a time,
by a lock in the database. A server that was restarted has lost everything, the marker that follows a probe included:
that is how it is noticed.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from app.domain.places import Places
from app.domain.turn import BaseIdentity as StoredIdentity
from app.errors import ArtifactError, GateError, ModelError, ModelUnavailableError, StorageFullError
from app.ports import Model, ServedModel
from app.store import Store, Tx, servers
from app.store.lineage import Checkpoint
from app.store.servers import Server
from app.telemetry import Log
from learner.serve.bring_up import ServedBase, load, load_folder, sentinel, served_base
from learner.serve.probe import ProbeBase, ProbeReport, marker_name, probe_names, probe_server
from learner.types import BaseIdentity

EVERY_S = 5.0
GRACE_S = 60.0
FAILED_AGAIN_S = 60.0

_log = Log(__name__)


@dataclass(frozen=True, slots=True)
class Fleet:
    """The model servers by address, and the base they all serve."""

    models: Mapping[str, Model]
    base: ProbeBase
    identity: BaseIdentity
    max_rank: int


@dataclass(slots=True)
class Reconciler:
    """Brings every server to what is desired; `run()` until cancelled.

    `base_served` holds the checkpoints against the base in each round, and says how many it moved.
    """

    store: Store
    fleet: Fleet
    places: Places
    base_served: Callable[[Tx, StoredIdentity], Awaitable[int]]
    _not_before: dict[tuple[str, str], float] = field(default_factory=dict)

    async def run(self) -> None:
        """Reconcile for ever; what fails is tried again in the next round."""
        while True:
            try:
                await self.once()
            except Exception as error:  # noqa: BLE001  # the last resort of this loop: without it nothing is routed any more
                _log.failure("serve:reconcile:failed", error)
            await asyncio.sleep(EVERY_S)

    async def once(self) -> bool:
        """Do one round; False when another process is at it."""
        async with self.store.around() as lock:
            if not await servers.try_lock(lock):
                return False
            await self._park()
            for url, model in self.fleet.models.items():
                try:
                    await self._server(url, model)
                except ModelUnavailableError:
                    _log.warning("serve:server:away", url=url)
                except (ModelError, ArtifactError, StorageFullError) as error:
                    # The other servers do not wait for this one.
                    _log.failure("serve:server:failed", error, url=url)
        return True

    async def _park(self) -> None:
        """Notice a changed base: adapters of another are parked, their people told and trained anew."""
        b = self.fleet.identity
        async with self.store.begin() as tx:
            base = StoredIdentity(b.base_id, b.revision, b.tokenizer_digest, b.template_digest)
            if moved := await self.base_served(tx, base):
                _log.warning("serve:base:changed", checkpoints=moved)

    async def _server(self, url: str, model: Model) -> None:
        listed = list(await model.models())
        base = served_base(listed, self.fleet.base.served_name, self.fleet.base.model_dir)
        server = await self._proven(url, model, listed)
        if server is None:
            return
        async with self.store.begin() as tx:
            await servers.seen(tx, server.id)
            wanted = await servers.desired(tx)
            ready = await servers.ready(tx, server.id)
            ours, recent = await servers.names(tx, GRACE_S)
            await servers.not_loaded(tx, server.id, [c.id for c in wanted])
        loaded = {m.name for m in listed}
        for checkpoint in wanted:
            if checkpoint.id not in ready or checkpoint.name not in loaded:
                await self._bring_up(server, model, base, checkpoint)
        for name in (loaded & ours) - recent - {c.name for c in wanted}:
            await model.unload_adapter(name)
            _log.info("serve:adapter:unloaded", adapter=name, url=url)

    async def _proven(self, url: str, model: Model, listed: Sequence[ServedModel]) -> Server | None:
        """Return the server's row once its isolation is proven since its start; None while it is not."""
        names = {m.name for m in listed}
        restarted = marker_name(self.fleet.base) not in names
        async with self.store.begin() as tx:
            server = await servers.ensure(tx, url, self.fleet.base.served_name)
            if restarted and server.probe_state == "passed":
                await servers.probe_unknown(tx, server.id)
        if not restarted and server.probe_state == "passed":
            return server
        if not restarted and server.probe_state == "failed":
            return None
        if self._waits(url, "probe"):
            return None
        report = await self._probe(url, model)
        async with self.store.begin() as tx:
            await servers.set_probe(tx, server.id, "passed" if report.passed else "failed", report.document())
        return server if report.passed else None

    async def _probe(self, url: str, model: Model) -> ProbeReport:
        report = await probe_server(model, self.fleet.base, self.places.probes)
        if report.reason != "cannot_load":
            folder = self.places.probes / probe_names(self.fleet.base)[0]
            await load_folder(model, marker_name(self.fleet.base), folder)
        if report.passed:
            _log.info("serve:probe:passed", url=url, compared=report.compared)
        else:
            _log.warning("serve:probe:failed", url=url, reason=report.reason, different=report.different)
            self._put_off(url, "probe")
        return report

    async def _bring_up(self, server: Server, model: Model, base: ServedBase, checkpoint: Checkpoint) -> None:
        if self._waits(server.url, checkpoint.name):
            return
        state, failure = "ready", None
        try:
            await load(model, checkpoint, base, self.fleet.identity, self.places.serving, self.fleet.max_rank)
            if checkpoint.state == "passed":
                await sentinel(model, checkpoint.name, base.name)
        except ModelUnavailableError:
            raise
        except (ArtifactError, GateError, ModelError, StorageFullError) as error:
            state, failure = "failed", str(error)
            self._put_off(server.url, checkpoint.name)
            _log.failure("serve:adapter:refused", error, adapter=checkpoint.name)
            await model.unload_adapter(checkpoint.name)
        async with self.store.begin() as tx:
            await servers.set_loaded(tx, server.id, checkpoint.id, state, failure)

    def _waits(self, url: str, what: str) -> bool:
        return time.monotonic() < self._not_before.get((url, what), 0.0)

    def _put_off(self, url: str, what: str) -> None:
        self._not_before[url, what] = time.monotonic() + FAILED_AGAIN_S
