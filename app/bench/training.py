"""A real training process that can be held and let go, so that its effect is measured in interleaved pairs.

The same program at the same priority as the product starts it, on prompts of its own, long enough not to end meanwhile.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from app.demo.generate import Plot
from app.demo.installation import ROOT, DemoError
from learner.dataset.manifest import Manifest, Snapshot, manifest_item
from learner.tasks.context import code_revision, identity
from learner.tasks.trainer import Trainer, trainer
from learner.train import job
from learner.types import Anchor, ChatMessage, Example, Lesson, TrainingItem, TrainSettings

STEPS = 400
BEGIN_TIMEOUT_S = 600.0
WORKING = frozenset({"rollouts", "updating"})


class Held:
    """A training that runs only while it is let go."""

    def __init__(self, running: Trainer) -> None:
        self._running = running

    def hold(self) -> None:
        """Stop it where it is."""
        os.killpg(self._running.pid, signal.SIGSTOP)

    def let_go(self) -> None:
        """Let it run on."""
        os.killpg(self._running.pid, signal.SIGCONT)


@asynccontextmanager
async def training(model_dir: Path, folder: Path, plot: Plot) -> AsyncIterator[Held]:
    """Start a training and yield it once it is past loading.

    Raises:
        DemoError: it did not begin.
    """
    run_dir = folder / f"bench-run-{uuid4().hex[:8]}"
    _write(run_dir, model_dir, plot)
    async with trainer(run_dir, ROOT) as running:
        deadline = time.monotonic() + BEGIN_TIMEOUT_S
        while (now := running.progress()) is None or now.stage not in WORKING:
            if await running.ended(0.5) is not None or time.monotonic() > deadline:
                raise DemoError("the training did not begin")
        held = Held(running)
        try:
            yield held
        finally:
            held.let_go()
            await asyncio.sleep(0)


def _write(run_dir: Path, model_dir: Path, plot: Plot) -> None:
    wish, taught = plot.wishes[0], plot.taught
    example = wish.write(taught.facts)
    items = tuple(TrainingItem(f"p{n}", (ChatMessage("user", text),)) for n, text in enumerate(plot.talk[:8]))
    lessons = (Lesson("l1", wish.words, (Example(taught.question, None, example),)),)
    anchors = (Anchor("a1", (ChatMessage("user", taught.question),), example),)
    salt = os.urandom(32)
    bodies: tuple[TrainingItem | Lesson | Anchor, ...] = (*items, *lessons, *anchors)
    named = tuple(manifest_item(salt, body) for body in bodies)
    settings = replace(TrainSettings(), steps=STEPS)
    manifest = Manifest("person", identity(model_dir), named, settings, code_revision(), plot.seed)
    spec = job.RunSpec(run_dir.name, model_dir, Snapshot(manifest))
    job.write_job(run_dir, spec, job.Bodies(salt, items, lessons, anchors))
