"""Two bad adapters before the same gate: one that does nothing, one that answers everything with a word.

The plan, the measuring, the suite, the scorer and the decision are those of the worker that measured the real candidate.
Greedy replies of the base do not change between the two, so the second run takes them from the first.
"""

import asyncio
import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

from app.clients.vllm import VllmClient
from app.demo.installation import ROOT, DemoError, Installation
from app.domain.profiles import MAX_RANK, profile
from app.store import lineage, memory
from learner.dataset.admit import admit
from learner.gate.decide import decide
from learner.gate.measure import Measurer, Messages, Reply
from learner.gate.report import GateReport
from learner.gate.server import ProcessScorer, ServedGateModel
from learner.gate.suite import Probe, load_suite
from learner.serve.bring_up import load, served_base
from learner.tasks.context import identity
from learner.tasks.evaluate import HELD_OUT
from learner.tasks.gate_plan import Subject, plan

MAKE_TIMEOUT_S = 1800.0
SEATS = 8


class _Remembering:
    """A gate model that asks for each long reply of the base once. Isolation and retention are always asked anew."""

    def __init__(self, model: ServedGateModel, base: str, always_anew: int) -> None:
        self._model = model
        self._base = base
        self._always_anew = always_anew
        self._known: dict[tuple[Messages, int, float], Reply] = {}

    async def generate(self, messages: Messages, model_name: str, max_tokens: int, temperature: float = 0.0) -> Reply:
        if model_name != self._base or max_tokens == self._always_anew:
            return await self._model.generate(messages, model_name, max_tokens, temperature)
        key = (messages, max_tokens, temperature)
        if key not in self._known:
            self._known[key] = await self._model.generate(messages, model_name, max_tokens, temperature)
        return self._known[key]


async def refused(
    installation: Installation, model: VllmClient, person_id: UUID, checkpoint_id: UUID
) -> Mapping[str, GateReport]:
    """Return how the gates decided on each bad adapter, as if it had been trained for this person."""
    folder = installation.home / "demo-bad"
    names = await _make(installation.model_dir, folder)
    chosen = profile(installation.settings.model)
    subject = await _subject(installation, person_id, checkpoint_id)
    suite, salt = load_suite(chosen.languages), f"demo-{uuid4().hex}"
    first = plan(subject, chosen.key, lambda _stage: None)
    asked = _Remembering(ServedGateModel(model, salt), chosen.key, first.regression_tokens)
    found = {}
    try:
        for kind, name in names.items():
            bad = replace(subject.checkpoint, id=uuid4(), name=name, path=str(folder / kind))
            gate = replace(plan(replace(subject, checkpoint=bad), chosen.key, lambda _stage: None), concurrency=SEATS)
            scorer = ProcessScorer(installation.model_dir, folder / kind, folder / f"score-{kind}", timeout_s=1800.0)
            base = served_base(list(await model.models()), chosen.key, installation.model_dir)
            await load(model, bad, base, identity(installation.model_dir), folder / "serving", MAX_RANK)
            try:
                found[kind] = decide(await Measurer(asked, scorer, suite, gate).run())
            finally:
                await model.unload_adapter(name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return found


async def _subject(installation: Installation, person_id: UUID, checkpoint_id: UUID) -> Subject:
    async with installation.store.begin() as tx:
        checkpoint = await lineage.checkpoint(tx, checkpoint_id)
        admitted = await admit(tx, person_id, installation.settings.ladder)
        lines = await memory.lines(tx, person_id, "active", "graduated")
    return Subject(
        checkpoint=checkpoint,
        person_id=person_id,
        lines=tuple(line for line in lines if line.id in checkpoint.memory_ids),
        held_out=tuple(Probe(str(p.turn_id), "own", p.text) for p in admitted.gate[:HELD_OUT]),
        system=admitted.system,
        taught=admitted.taught,
        parent=None,
        others=(checkpoint.name,),
    )


async def _make(model_dir: Path, folder: Path) -> Mapping[str, str]:
    folder.mkdir(parents=True, exist_ok=True)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app.demo.make_bad", str(model_dir), str(folder)),
        cwd=ROOT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, error = await asyncio.wait_for(process.communicate(), MAKE_TIMEOUT_S)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        last = error.decode("utf-8", "replace").strip().splitlines()
        raise DemoError(f"the bad adapters could not be made: {last[-1] if last else process.returncode}")
    names: dict[str, str] = json.loads(out.decode().strip().splitlines()[-1])
    return names
