"""Kind `reconcile`: one round of desired against loaded, at once. The worker does the same every few seconds anyway."""

from app.store import jobs
from app.store.jobs import Job
from learner.tasks.context import Learner


async def run(learner: Learner, job: Job) -> None:
    """Reconcile now."""
    await learner.reconciler.once()
    async with learner.store.begin() as tx:
        await jobs.finish(tx, job)
