"""From a wake-up to a finished job: claim, hold the lease, run the kind's handler, write down how it ended.

    wake(id) ─► claim ─► handler ─► done in the handler's own transaction
                  │         └─► paused, disk full: postponed · retryable: later · else: failed, with a sentence
                  └─► every few seconds: lease held; cancelled or lost ─► the handler is cancelled

A wake-up for a job that is done, or that another worker has, does nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from uuid import UUID

from app.errors import MenteeError, PausedError, StorageFullError, StoreUnavailableError
from app.store import jobs
from app.store.jobs import Job, JobLostError
from app.telemetry import Log
from learner.tasks import evaluate, forget, reconcile, release, train
from learner.tasks.context import Learner
from learner.tasks.stop import NotAllowedError

BEAT_S = 2.0
RETRY_S = 10.0
PAUSED_S = 3.0
FULL_S = 60.0

Handler = Callable[[Learner, Job], Awaitable[None]]
HANDLERS: Mapping[str, Handler] = {
    "train": train.run,
    "evaluate": evaluate.run,
    "release": release.run,
    "reconcile": reconcile.run,
    "forget": forget.run,
}

_log = Log(__name__)


async def handle(learner: Learner, job_id: UUID) -> None:
    """Do a job if it is due and free."""
    async with learner.store.begin() as tx:
        job = await jobs.claim(tx, job_id, learner.owner)
    if job is None:
        return
    _log.info("job:claimed", job=job.id, kind=job.kind, attempt=job.attempts)
    try:
        await _guarded(learner, job)
    except JobLostError:
        _log.warning("job:lost", job=job.id, kind=job.kind)
    except StoreUnavailableError as error:
        # The lease runs out by itself and the sweeper gives the job to whoever is alive then.
        _log.failure("job:store:away", error, job=job.id)


async def _guarded(learner: Learner, job: Job) -> None:
    """Run the handler beside its heartbeat and write down every ending but success, which the handler writes itself."""
    work = asyncio.ensure_future(_work(learner, job))
    beat = asyncio.create_task(_beat(learner, job, work))
    try:
        await work
    except asyncio.CancelledError:
        await beat  # tells whether the job was lost
        await _cancelled(learner, job, "cancelled")
    except NotAllowedError as error:
        await _cancelled(learner, job, str(error))
    except PausedError:
        async with learner.store.begin() as tx:
            await jobs.postpone(tx, job, "paused", PAUSED_S)
    except StorageFullError as error:
        _log.failure("job:storage:full", error, job=job.id, kind=job.kind)
        async with learner.store.begin() as tx:
            await jobs.postpone(tx, job, "storage_full", FULL_S, str(error))
    except (JobLostError, StoreUnavailableError):
        raise
    except MenteeError as error:
        await _failed(learner, job, error)
    except Exception as error:  # noqa: BLE001  # the last resort of a worker: the job must not stay running
        _log.failure("job:crashed", error, job=job.id, kind=job.kind)
        async with learner.store.begin() as tx:
            await jobs.retry(tx, job, f"unexpected: {type(error).__name__}", RETRY_S)
    finally:
        beat.cancel()


async def _work(learner: Learner, job: Job) -> None:
    if job.cancel_requested:
        raise NotAllowedError(job.error or "cancelled")
    await HANDLERS[job.kind](learner, job)


async def _beat(learner: Learner, job: Job, work: "asyncio.Future[None]") -> None:
    """Hold the lease until the work ends; cancel the work when the job was cancelled or lost.

    Raises:
        JobLostError: somebody else has the job.
    """
    while not work.done():
        await asyncio.sleep(BEAT_S)
        try:
            async with learner.store.begin() as tx:
                asked = await jobs.heartbeat(tx, job)
        except JobLostError:
            if work.done():
                return
            work.cancel()
            raise
        except StoreUnavailableError:
            continue
        if asked:
            work.cancel()
            return


async def _failed(learner: Learner, job: Job, error: MenteeError) -> None:
    _log.failure("job:failed", error, job=job.id, kind=job.kind, retryable=error.retryable)
    async with learner.store.begin() as tx:
        if error.retryable:
            await jobs.retry(tx, job, str(error), RETRY_S * job.attempts)
        else:
            await jobs.fail(tx, job, str(error))


async def _cancelled(learner: Learner, job: Job, reason: str) -> None:
    _log.info("job:cancelled", job=job.id, kind=job.kind)
    async with learner.store.begin() as tx:
        await jobs.cancelled(tx, job, job.error or reason)
