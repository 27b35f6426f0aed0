"""Kind `evaluate`: a candidate on a model server, measured against all gates, and what follows from the verdict.

load ─► measure ─► decide ─► passed: a job to release it · refused · inconclusive: it waits, unserved
"""

import asyncio
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import UUID

from app.errors import ArtifactError, GateError, ModelError, ModelRequestError
from app.ports import Model
from app.store import jobs, lineage, memory, releases, servers
from app.store.jobs import Job, Work
from app.telemetry import Log
from learner.dataset.admit import admit
from learner.durable import discard
from learner.gate.decide import DEFAULT_THRESHOLDS, decide
from learner.gate.measure import Measurer
from learner.gate.report import GateReport, Measurements, Verdict
from learner.gate.server import ServedGateModel
from learner.gate.suite import Probe, load_suite
from learner.serve.bring_up import load, served_base
from learner.serve.probe import marker_name
from learner.tasks.context import Learner
from learner.tasks.gate_plan import Subject, figures, plan
from learner.tasks.stop import NotAllowedError, check_consent, check_job, hold_consent

POLL_S = 2.0
HELD_OUT = 16
OTHERS = 2
NO_SERVER_S = 10.0

_log = Log(__name__)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """A verdict, with the report it rests on or the sentence that says why there is none."""

    verdict: Verdict
    report: GateReport | None = None
    failure: str | None = None


async def run(learner: Learner, job: Job) -> None:
    """Measure one candidate."""
    url = await proven_server(learner, job)
    model = learner.fleet.models[url]
    subject = await _subject(learner, job, url)
    async with learner.store.begin() as tx:
        suite = load_suite(learner.profile.languages)
        cut_off = await lineage.cut_off_gates(tx, subject.checkpoint.id)
        gates = await lineage.begin_gates(tx, subject.checkpoint.id, job.id, asdict(DEFAULT_THRESHOLDS), suite.digest)
    for gone in cut_off:
        discard(learner.places.gate(gone))
    verdict = "unknown"
    try:
        outcome = await _measured(learner, job, subject, model, gates)
        verdict = await _settle(learner, job, subject, gates, outcome)
    finally:
        if verdict != "passed":
            await asyncio.shield(model.unload_adapter(subject.checkpoint.name))


async def proven_server(learner: Learner, job: Job) -> str:
    """Return the address of a server that proved its isolation since its start, and answers.

    Raises:
        JobLostError: there is none; the job was given back, untried, and waits.
    """
    async with learner.store.begin() as tx:
        known = await servers.proven(tx)
    for url in known:
        if url in learner.fleet.models and await _still_proven(learner, url):
            return url
    async with learner.store.begin() as tx:
        await jobs.postpone(tx, job, "no_server", NO_SERVER_S)
    raise jobs.JobLostError("no model server has proved its isolation yet")


async def _still_proven(learner: Learner, url: str) -> bool:
    """Whether a server answers and has kept the marker of its probe: without it, it was restarted since."""
    try:
        return marker_name(learner.fleet.base) in {m.name for m in await learner.fleet.models[url].models()}
    except ModelError:
        return False


async def _subject(learner: Learner, job: Job, url: str) -> Subject:
    """Read what is measured."""
    async with learner.store.begin() as tx:
        checkpoint = await lineage.checkpoint(tx, UUID(str(job.payload["checkpoint_id"])))
        if checkpoint.person_id is None or checkpoint.state != "candidate":
            raise NotAllowedError("this checkpoint is no candidate any more")
        await check_consent(tx, checkpoint.person_id)
        admitted = await admit(tx, checkpoint.person_id, learner.settings.ladder)
        lines = await memory.lines(tx, checkpoint.person_id, "active", "graduated")
        live = await releases.live(tx, checkpoint.person_id)
        parent = await lineage.checkpoint(tx, live.checkpoint_id) if live else None
        others = await servers.others(tx, url, checkpoint.person_id, OTHERS)
    return Subject(
        checkpoint=checkpoint,
        person_id=checkpoint.person_id,
        lines=tuple(line for line in lines if line.id in checkpoint.memory_ids),
        held_out=tuple(Probe(str(p.turn_id), "own", p.text) for p in admitted.gate[:HELD_OUT]),
        system=admitted.system,
        taught=admitted.taught,
        parent=parent,
        others=tuple(others),
    )


async def _measured(learner: Learner, job: Job, subject: Subject, model: Model, gates: UUID) -> _Outcome:
    """Load and measure; what cannot be loaded is refused, what cannot be measured is inconclusive."""
    if len(subject.lines) != len(subject.checkpoint.memory_ids):
        return _Outcome("refused", failure="a lesson of this checkpoint was taken back")
    if subject.checkpoint.base != learner.stored_base:
        return _Outcome("refused", failure="the checkpoint belongs to another base")
    stages: list[str] = []
    work_dir = learner.places.gate(gates)
    try:
        base = served_base(list(await model.models()), learner.profile.key, learner.model_dir)
        await load(model, subject.checkpoint, base, learner.base, learner.places.serving, learner.fleet.max_rank)
        suite = load_suite(learner.profile.languages)
        gate_plan = plan(subject, learner.profile.key, stages.append, learner.fleet.base.precision)
        scorer = learner.scorer(learner.model_dir, Path(subject.checkpoint.path), work_dir)
        measurer = Measurer(ServedGateModel(model, work_dir.name), scorer, suite, gate_plan)
        measured = await _watched(learner, job, subject, measurer, stages)
    except (ArtifactError, ModelRequestError) as error:
        return _Outcome("refused", failure=str(error))
    except GateError as error:
        if error.retryable:
            raise  # busy or away, not wrong: tried again, and not decided when that fails too
        return _Outcome("inconclusive", failure=str(error))
    finally:
        discard(work_dir)
    report = decide(measured)
    return _Outcome(report.verdict, report)


async def _watched(learner: Learner, job: Job, subject: Subject, measurer: Measurer, stages: list[str]) -> Measurements:
    """Measure, with the stage shown and the consent asked again meanwhile."""
    measuring = asyncio.create_task(measurer.run())
    try:
        while not (await asyncio.wait({measuring}, timeout=POLL_S))[0]:
            async with learner.store.begin() as tx:
                await check_consent(tx, subject.person_id)
                await jobs.report(tx, job, {"stage": stages[-1] if stages else "loading"})
    finally:
        measuring.cancel()
    return await measuring


async def _settle(learner: Learner, job: Job, subject: Subject, gates: UUID, outcome: _Outcome) -> str:
    """Write figures, verdict and consequence in one transaction; return the verdict."""
    verdict = outcome.verdict
    rows = figures(outcome.report) if outcome.report else ()
    async with learner.store.begin() as tx:
        await hold_consent(tx, subject.person_id)
        await check_job(tx, job)
        await lineage.end_gates(tx, gates, verdict, rows, outcome.failure)
        if verdict != "inconclusive":
            await lineage.set_state(tx, subject.checkpoint.id, verdict, among=("candidate",))
        if verdict == "passed":
            await jobs.enqueue(tx, release_of(subject.checkpoint.id, subject.person_id))
        await jobs.finish(tx, job)
    _log.info("gate:checkpoint:measured", checkpoint=subject.checkpoint.name, verdict=verdict)
    return verdict


def release_of(checkpoint_id: UUID, person_id: UUID) -> Work:
    """Return the job that releases a checkpoint."""
    return Work("release", "release", f"release:{checkpoint_id}", {"checkpoint_id": str(checkpoint_id)}, person_id)
