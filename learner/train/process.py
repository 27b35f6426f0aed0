"""`python -m learner.train.process RUN_DIR`: one training in its own process, at low priority.

    read job ─► load base ─► check positions ─► steps ─► checkpoint ─► STABLE ─► result.json

Stops between two steps on SIGTERM, without a checkpoint. Exit codes follow `job.EXIT_CODES`. Knows files only:
no database, no broker, no network.
"""

import logging
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import FrameType

from app.errors import MenteeError
from learner.artifacts import AdapterInfo, Lineage, Tensors, verify, write_adapter
from learner.durable import discard, unwritten
from learner.train import job
from learner.types import TrainSettings

# must stand before torch starts its threads and its CUDA libraries
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ["HF_HUB_OFFLINE"] = "1"

_log = logging.getLogger(__name__)


class _Interrupted(Exception):  # noqa: N818  # no error: the parent asked
    """The parent asked the run to stop."""


class _Stop:
    """Set by SIGTERM; looked at between steps."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, _signal: int, _frame: FrameType | None) -> None:
        self.asked = True

    def check(self) -> None:
        if self.asked:
            raise _Interrupted


class _Reporter:
    """Keeps the heartbeat file and the counts that the result needs."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._start = time.monotonic()
        self.progress = job.Progress("loading", 0, 0, 0.0)

    @property
    def seconds(self) -> float:
        return round(time.monotonic() - self._start, 3)

    def enter(self, stage: job.Stage, step: int, stop: _Stop) -> None:
        """Begin a stage, unless the parent asked to stop; the figures of the last step stay readable."""
        stop.check()
        self.report(replace(self.progress, stage=stage, step=step, seconds=self.seconds))

    def measured(self, step: int, loss: float, opd: float, anchor: float, kl: float, tokens: int) -> None:
        of = self.progress.of
        self.report(job.Progress("updating", step, of, self.seconds, loss, opd, anchor, kl, tokens))

    def report(self, progress: job.Progress) -> None:
        self.progress = progress
        try:
            job.write_progress(self._run_dir, progress)
        except OSError as error:
            raise unwritten(error, "the progress could not be written") from error


def main(arguments: list[str]) -> int:
    """Run the training in the directory given and return the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
    if len(arguments) != 1:
        _log.error("usage: python -m learner.train.process RUN_DIR")
        return job.EXIT_CODES["InvalidInputError"]
    run_dir = Path(arguments[0]).resolve()
    stop, reporter = _Stop(), _Reporter(run_dir)
    try:
        result = _guarded(run_dir, stop, reporter)
    finally:
        (run_dir / job.BODIES).unlink(missing_ok=True)
    return _finish(run_dir, result)


def _guarded(run_dir: Path, stop: _Stop, reporter: _Reporter) -> job.Result:
    """Run, and turn every ending into a result."""
    try:
        return _train(run_dir, stop, reporter)
    except _Interrupted:
        return job.Result("stopped", reporter.progress.step, reporter.seconds)
    except MenteeError as error:
        name = type(error).__name__ if type(error).__name__ in job.EXIT_CODES else "MenteeError"
        return job.Result("failed", reporter.progress.step, reporter.seconds, name, str(error))
    except Exception as error:  # noqa: BLE001  # the process's last-resort boundary: the parent must learn how it ended, without texts
        _log.error("training:run:failed kind=%s", type(error).__name__)  # a traceback may quote texts
        message = f"the training failed unexpectedly ({type(error).__name__})"
        return job.Result("failed", reporter.progress.step, reporter.seconds, "MenteeError", message)


def _train(run_dir: Path, stop: _Stop, reporter: _Reporter) -> job.Result:
    spec, bodies = job.read_job(run_dir)
    manifest, settings = spec.snapshot.manifest, spec.snapshot.manifest.settings
    reporter.report(job.Progress("loading", 0, settings.steps, reporter.seconds))
    _prepare(settings)
    from learner.train.model import Policy  # noqa: PLC0415  # torch only after threads and priority are set
    from learner.train.opd_run import OpdRun  # noqa: PLC0415
    from learner.train.positions import check_serving_positions  # noqa: PLC0415
    from learner.train.rollouts import RolloutFile  # noqa: PLC0415

    policy = Policy.load(
        spec.model_dir, settings.rank, settings.alpha, manifest.seed, settings.device, spec.template_args
    )
    reporter.enter("checking", 0, stop)
    check_serving_positions(policy, bodies.served_turns, settings.position_tolerance)
    rollouts = RolloutFile.open(run_dir / job.ROLLOUTS, replay=spec.resume)
    run = OpdRun(policy, bodies, settings, manifest.seed)
    if run.trimmed or run.left_out:
        _log.warning("training:prompts:too_long trimmed=%d left_out=%d", run.trimmed, run.left_out)
    for m in run.steps(rollouts, lambda stage, step: reporter.enter(stage, step, stop)):
        reporter.measured(m.step + 1, m.loss, m.opd, m.anchor, m.kl, m.tokens)
    reporter.enter("saving", settings.steps, stop)
    info = _save(run_dir / job.CHECKPOINT, policy.adapter_tensors(), spec)
    return job.Result(
        "done",
        settings.steps,
        reporter.seconds,
        adapter_name=info.name,
        content_sha256=info.content_sha256,
        rollouts_sha256=rollouts.digest(),
        rollouts=len(rollouts),
        prompts_trimmed=run.trimmed,
        prompts_left_out=run.left_out,
    )


def _prepare(settings: TrainSettings) -> None:
    """Lower the priority, so that chats stay quick, and make torch repeat itself."""
    os.setpriority(os.PRIO_PROCESS, 0, settings.niceness)
    import torch  # noqa: PLC0415  # only the training process pays for it
    import transformers  # noqa: PLC0415

    torch.set_num_threads(settings.threads)
    torch.use_deterministic_algorithms(mode=True)
    torch.manual_seed(0)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def _save(directory: Path, tensors: Tensors, spec: job.RunSpec) -> AdapterInfo:
    """Write the checkpoint and read it back as a stranger would.

    Raises:
        StorageFullError: the disk is full.
        ArtifactError: what was written does not verify.
    """
    manifest = spec.snapshot.manifest
    lineage = Lineage(
        manifest.scope, spec.run_id, spec.snapshot.digest, manifest.base, manifest.seed, manifest.code_revision
    )
    discard(directory)  # of an earlier attempt of this very run
    written = write_adapter(directory, tensors, manifest.settings.rank, manifest.settings.alpha, lineage)
    return verify(written.directory, manifest.base, manifest.settings.rank)


def _finish(run_dir: Path, result: job.Result) -> int:
    try:
        job.write_result(run_dir, result)
    except OSError as error:
        _log.error("training:result:unwritten outcome=%s", result.outcome)  # the parent sees the exit code
        return job.EXIT_CODES[type(unwritten(error, "the result could not be written")).__name__]
    _log.info("training:run:%s steps=%d seconds=%.1f", result.outcome, result.steps, result.seconds)
    if result.outcome == "stopped":
        return job.EXIT_STOPPED
    return job.EXIT_CODES[result.error] if result.error else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
