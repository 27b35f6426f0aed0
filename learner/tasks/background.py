"""What the worker of the release queue does besides its jobs: keeps model servers as desired, and tidies up.

On the worker's own loop, so it goes on while a job runs, and needs no broker.
"""

import asyncio
import time
from pathlib import Path

from app.store import jobs, lineage
from app.telemetry import Log
from learner.durable import discard
from learner.tasks.context import Learner
from learner.tasks.train import evaluation
from learner.train import job as files

TIDY_EVERY_S = 300.0
ORPHAN_AGE_S = 900.0
MOST_MEASUREMENTS = 5
"""Jobs, each with its attempts, that may end on one candidate without a verdict."""

_log = Log(__name__)


async def background(learner: Learner) -> None:
    """Reconcile and tidy until cancelled."""
    await asyncio.gather(learner.reconciler.run(), _keep_tidy(learner))


async def _keep_tidy(learner: Learner) -> None:
    while True:
        try:
            await tidy(learner)
        except Exception as error:  # noqa: BLE001  # the last resort of this loop: without it nothing is tidied any more
            _log.failure("learner:tidy:failed", error)
        await asyncio.sleep(TIDY_EVERY_S)


async def tidy(learner: Learner) -> None:
    """End runs whose job is over, with their texts, remove folders that no row names, and have candidates measured that
    nobody decided on.

    All are left by a worker that was killed at the wrong moment, the last also by a machine that was too busy to measure.
    """
    async with learner.store.begin() as tx:
        abandoned = await lineage.end_abandoned(tx)
        for checkpoint_id, person_id in await lineage.unmeasured(tx, MOST_MEASUREMENTS):
            await jobs.enqueue(tx, evaluation(checkpoint_id, person_id))
        known = await lineage.known_files(tx)
    places = learner.places
    for run_id in abandoned:
        (places.runs / str(run_id) / files.BODIES).unlink(missing_ok=True)
    for parent, names in (
        (places.checkpoints, known.adapters),
        (places.serving, known.adapters),
        (places.runs, known.trainings | {places.gate(gate).name for gate in known.gates}),
    ):
        _clear([folder for folder in _old_folders(parent) if folder.name not in names], parent.name)
    _clear([folder for folder in _old_folders(places.probes) if folder.name.startswith(".")], places.probes.name)


def _clear(folders: list[Path], kind: str) -> None:
    for folder in folders:
        try:
            discard(folder)
            _log.warning("learner:folder:orphaned", kind=kind)
        except OSError as error:  # the others can go
            _log.failure("learner:folder:stuck", error, kind=kind)


def _old_folders(parent: Path) -> list[Path]:
    if not parent.is_dir():
        return []
    return [f for f in parent.iterdir() if f.is_dir() and time.time() - f.stat().st_mtime > ORPHAN_AGE_S]
