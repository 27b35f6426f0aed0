"""Kind `release`: a checkpoint that passed its gates, loaded, warmed, checked, and then live in one transaction.

consent, switch, gates ─► load · warm · sentinel on each proven server ─► live, lines leave the prompt, audit
"""

from uuid import UUID

from app.errors import ArtifactError, GateError, ModelBadAnswerError, ModelRequestError
from app.store import Tx, admission, audit, jobs, lineage, memory, releases, servers
from app.store.audit import Act
from app.store.jobs import Job
from app.store.lineage import Checkpoint
from app.telemetry import Log
from learner.serve.bring_up import load, sentinel, served_base
from learner.tasks.context import Learner
from learner.tasks.evaluate import NO_SERVER_S, proven_server
from learner.tasks.stop import NotAllowedError, check_consent, check_switch, hold_consent

ACTOR = "system:releaser"

_log = Log(__name__)


async def run(learner: Learner, job: Job) -> None:
    """Release one checkpoint."""
    checkpoint, person_id = await _fit(learner, job)
    url = await proven_server(learner, job)
    try:
        await _bring_up(learner, url, checkpoint)
    except (ArtifactError, GateError, ModelRequestError) as error:
        await learner.fleet.models[url].unload_adapter(checkpoint.name)
        await _refuse(learner, job, checkpoint, str(error))
        return
    except ModelBadAnswerError as error:
        await learner.fleet.models[url].unload_adapter(checkpoint.name)
        async with learner.store.begin() as tx:
            await jobs.postpone(tx, job, "server_unfit", NO_SERVER_S, str(error))
        return
    async with learner.store.begin() as tx:
        await check_switch(tx, "release")
        await hold_consent(tx, person_id)
        if await _undone(tx, person_id, checkpoint):
            raise NotAllowedError("a lesson of this checkpoint was taken back")
        release_id = await releases.go_live(tx, person_id, checkpoint.id, ACTOR)
        for line_id in await releases.graduate(tx, person_id, checkpoint.memory_ids, checkpoint.id):
            await memory.changed(tx, person_id, line_id, "graduated")
        detail = {"checkpoint": checkpoint.name}
        act = Act(ACTOR, "release:checkpoint:live", f"release:{release_id}", after={"state": "live"}, detail=detail)
        await audit.record(tx, act)
        await jobs.finish(tx, job)
    _log.info("release:checkpoint:live", checkpoint=checkpoint.name, release=release_id)


async def _fit(learner: Learner, job: Job) -> tuple[Checkpoint, UUID]:
    """Return the checkpoint if it may be released at this moment."""
    async with learner.store.begin() as tx:
        await check_switch(tx, "release")
        checkpoint = await lineage.checkpoint(tx, UUID(str(job.payload["checkpoint_id"])))
        if checkpoint.person_id is None or checkpoint.state != "passed":
            raise NotAllowedError("only a checkpoint that passed its gates may go live")
        await check_consent(tx, checkpoint.person_id)
    if checkpoint.base != learner.stored_base:
        raise NotAllowedError("the base was changed since; the checkpoint is parked")
    return checkpoint, checkpoint.person_id


async def _undone(tx: Tx, person_id: UUID, checkpoint: Checkpoint) -> bool:
    """Whether a line it was taught may not train any more: undone, gone back on, or refused by a reviewer."""
    return not set(checkpoint.memory_ids) <= {line.line.id for line in await admission.lines(tx, person_id)}


async def _bring_up(learner: Learner, url: str, checkpoint: Checkpoint) -> None:
    """Load and check on the first proven server; the others follow within one round of the reconciler."""
    model, key = learner.fleet.models[url], learner.profile.key
    base = served_base(list(await model.models()), key, learner.model_dir)
    await load(model, checkpoint, base, learner.base, learner.places.serving, learner.fleet.max_rank)
    shift = await sentinel(model, checkpoint.name, base.name)
    async with learner.store.begin() as tx:
        server = await servers.ensure(tx, url, key)
        await servers.set_loaded(tx, server.id, checkpoint.id, "ready")
    _log.info("release:sentinel:moved", checkpoint=checkpoint.name, shift=round(shift, 4))


async def _refuse(learner: Learner, job: Job, checkpoint: Checkpoint, reason: str) -> None:
    async with learner.store.begin() as tx:
        await lineage.set_state(tx, checkpoint.id, "refused", among=("passed",))
        await jobs.fail(tx, job, reason)
    _log.warning("release:checkpoint:refused", checkpoint=checkpoint.name)
