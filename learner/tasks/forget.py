"""Kind `forget`: what a person was forgotten with outside the database. Repeated until nothing is left.

stopped trainings ─► weights out of the model servers ─► folders ─► chats without a person ─► receipt done
"""

from uuid import UUID

from app.errors import ArtifactError, MenteeError, ModelError, StorageFullError
from app.services.forget import remains_of, remove_files
from app.store import forget as rows
from app.store import jobs
from app.store.jobs import Job
from app.telemetry import Log
from learner.serve.evict import evict
from learner.tasks.background import tidy
from learner.tasks.context import Learner

AGAIN_S = 10.0

_log = Log(__name__)


async def run(learner: Learner, job: Job) -> None:
    """Remove what the job names."""
    remains = remains_of(job.payload)
    hindered = [error for url in learner.fleet.models if (error := await _evict(learner, url, remains.adapters))]
    if not remove_files(learner.places, remains):
        raise ArtifactError("a folder could not be removed; check its owner and the disk")
    await tidy(learner)
    async with learner.store.begin() as tx:
        waiting = await rows.orphan_chats(tx)
        if hindered:
            await jobs.postpone(tx, job, "server_away", AGAIN_S, str(hindered[0]))
            return
        if waiting:
            await jobs.postpone(tx, job, "goodbye_unsent", AGAIN_S)
            return
        if receipt := job.payload.get("receipt_id"):
            await rows.finish_receipt(tx, UUID(str(receipt)), weights_evicted=len(remains.adapters))
        await jobs.finish(tx, job)
    _log.info("person:remains:removed", adapters=len(remains.adapters), runs=len(remains.runs))


async def _evict(learner: Learner, url: str, names: tuple[str, ...]) -> MenteeError | None:
    """Push weights out of one server; return what hinders it for now. Folders go all the same, and may make room."""
    try:
        await evict(learner.fleet.models[url], names, learner.model_dir, learner.places.probes)
    except (ModelError, StorageFullError, ArtifactError) as error:
        _log.failure("person:weights:waiting", error, url=url)
        return error
    return None
