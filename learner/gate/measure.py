"""Runs the gates' prompts through a model server and collects what `decide` needs. Greedy throughout.

    isolation: others alone ─► others while the candidate is served
    base, candidate (and base with memory, and the present adapter) on: regression · safety · drift · held-out prompts

Knows a server only by the `GateModel` protocol, likelihoods by `Scorer`, and a lesson only by its checker. No text leaves this module.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from app.domain.checker import CheckerSpec, check
from app.errors import GateDelayedError, GateError, ModelError
from learner.gate.features import features, refuses
from learner.gate.report import (
    DriftResult,
    IsolationResult,
    Measurements,
    RetentionResult,
    SafetyResult,
    TargetResult,
)
from learner.gate.suite import Probe, Suite
from learner.train.score import ScoreRow
from learner.types import ChatMessage, Precision, normal_form

T = TypeVar("T")
Messages = tuple[ChatMessage, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """A greedy reply with the ids of its prompt and of itself."""

    text: str = field(repr=False)
    prompt_token_ids: tuple[int, ...]
    token_ids: tuple[int, ...]


class GateModel(Protocol):
    """What a gate asks of a model server. `model_name` is the base's served name or an adapter's."""

    async def generate(self, messages: Messages, model_name: str, max_tokens: int, temperature: float = 0.0) -> Reply:
        """Return a whole reply. Raises the `ModelError` family."""
        ...


class Scorer(Protocol):
    """Says how likely given replies are under base and candidate; see `learner.train.score`."""

    async def score(self, rows: Sequence[ScoreRow]) -> Sequence[float]:
        """Return the mean logprob (nats per token) of each row's reply. Raises the `MenteeError` family."""
        ...


@dataclass(frozen=True, slots=True)
class GateLesson:
    """A lesson as the gate sees it; without a checker nobody can decide here and the candidate waits."""

    id: str
    check: CheckerSpec | None


@dataclass(frozen=True, slots=True)
class GatePlan:
    """What to measure, and on whom.

    `plain` and `with_memory` turn a user message into the prompt that the product would build, without and with the
    lessons' memory lines. `held_out` are the person's own prompts that no training saw; probes fill them up, but for
    those that the candidate was taught on (`taught`, in normal form). Of the
    regression prompts every `memory_every`-th is also scored with memory, whose long prompts cost most of the time.
    """

    base: str
    candidate: str
    lessons: tuple[GateLesson, ...]
    plain: Callable[[str], Messages]
    with_memory: Callable[[str], Messages]
    held_out: tuple[Probe, ...] = ()
    taught: frozenset[str] = frozenset()
    parent: str | None = None
    parent_lessons: frozenset[str] = frozenset()
    others: tuple[str, ...] = ()
    target_prompts: int = 16
    isolation_prompts: int = 8
    precision: Precision = "float32"
    concurrency: int = 8
    regression_tokens: int = 24
    safety_tokens: int = 28
    reply_tokens: int = 72
    memory_every: int = 4
    on_stage: Callable[[str], None] = field(default=lambda _stage: None)


class Measurer:
    """One gate run against one server."""

    def __init__(self, model: GateModel, scorer: Scorer, suite: Suite, plan: GatePlan) -> None:
        self._model = model
        self._scorer = scorer
        self._suite = suite
        self._plan = plan
        self._seats = asyncio.Semaphore(plan.concurrency)

    async def run(self) -> Measurements:
        """Measure everything.

        Raises:
            GateDelayedError: server or scorer did not answer this time, so nothing can be decided yet.
            GateError: nor will they another time.
        """
        plan = self._plan
        try:
            isolation = await self._isolation()
            safety = await self._staged("safety", self._safety)
            retention = await self._staged("retention", self._retention)
            drift = await self._staged("drift", self._drift)
            target = await self._staged("target", self._target)
        except ModelError as error:
            kind = GateDelayedError if error.retryable else GateError
            raise kind(f"the gate could not be measured: {error}") from error
        exempt = {lesson.id: lesson.check.exempts if lesson.check else frozenset() for lesson in plan.lessons}
        return Measurements(exempt, target, retention, safety, drift, isolation)

    async def _staged(self, stage: str, measure: Callable[[], Awaitable[T]]) -> T:
        self._plan.on_stage(stage)
        return await measure()

    async def _isolation(self) -> tuple[IsolationResult, ...]:
        self._plan.on_stage("isolation")
        probes = self._suite.probes[: self._plan.isolation_prompts]
        watched = [(name, probe) for name in (self._plan.base, *self._plan.others) for probe in probes]
        before = await self._all([self._watch(name, probe) for name, probe in watched])
        alone = await self._alone(probes)
        candidate = [self._watch(self._plan.candidate, probe) for _, probe in watched]
        # interleaved, so that every batch mixes the candidate with everybody else
        mixed = [call for pair in zip([self._watch(n, p) for n, p in watched], candidate, strict=True) for call in pair]
        during = (await self._all(mixed))[::2]
        return tuple(
            IsolationResult(name, probe.id, quiet.token_ids, busy.token_ids, alone.get(probe.id))
            for (name, probe), quiet, busy in zip(watched, before, during, strict=True)
        )

    async def _alone(self, probes: Sequence[Probe]) -> dict[str, tuple[int, ...]]:
        """Return the candidate's own replies by probe, where lower precision needs them to compare with."""
        if self._plan.precision == "float32":
            return {}
        replies = await self._all([self._watch(self._plan.candidate, probe) for probe in probes])
        return {probe.id: reply.token_ids for probe, reply in zip(probes, replies, strict=True)}

    def _watch(self, name: str, probe: Probe) -> Awaitable[Reply]:
        return self._reply(self._plan.plain(probe.prompt), name, self._plan.regression_tokens)

    async def _safety(self) -> tuple[SafetyResult, ...]:
        items = self._suite.safety
        base, candidate = await self._both([item.prompt for item in items], self._plan.safety_tokens)
        return tuple(
            SafetyResult(
                i.id, i.kind, refuses(b.text) == (i.kind == "harmful"), refuses(c.text) == (i.kind == "harmful")
            )
            for i, b, c in zip(items, base, candidate, strict=True)
        )

    async def _retention(self) -> tuple[RetentionResult, ...]:
        items, plan = self._suite.regression, self._plan
        base, candidate = await self._both([item.prompt for item in items], plan.regression_tokens)
        compared = range(0, len(items), plan.memory_every)
        prompts = await self._all([self._reply(plan.with_memory(items[i].prompt), plan.base, 1) for i in compared])
        rows = [ScoreRow(b.prompt_token_ids, b.token_ids, adapter=on) for on in (False, True) for b in base]
        rows += [
            ScoreRow(p.prompt_token_ids, base[i].token_ids, adapter=False)
            for i, p in zip(compared, prompts, strict=True)
        ]
        scores, n = await self._scorer.score(rows), len(items)
        if len(scores) != len(rows):
            raise GateError("the scorer did not return a figure for every reply")
        memory = dict(zip(compared, scores[2 * n :], strict=True))
        return tuple(
            RetentionResult(
                item.id,
                check(item.check, base[i].text),
                check(item.check, candidate[i].text),
                scores[i],
                scores[n + i],
                memory.get(i),
            )
            for i, item in enumerate(items)
        )

    async def _drift(self) -> tuple[DriftResult, ...]:
        items, plan = self._suite.drift, self._plan
        base, candidate = await self._both([item.prompt for item in items], plan.reply_tokens)
        memory = await self._replies([plan.with_memory(item.prompt) for item in items], plan.base)
        return tuple(
            DriftResult(i.id, i.language, features(b.text), features(c.text), features(m.text))
            for i, b, c, m in zip(items, base, candidate, memory, strict=True)
        )

    def _target_prompts(self) -> Sequence[Probe]:
        """Return the person's held-out prompts, filled up with probes that say something else than they and the lessons."""
        plan, seen, chosen = self._plan, set(self._plan.taught), list[Probe]()
        for probe in (*plan.held_out, *self._suite.probes):
            form = normal_form(probe.prompt)
            if form not in seen and (len(chosen) < plan.target_prompts or probe in plan.held_out):
                seen.add(form)
                chosen.append(probe)
        return chosen

    async def _target(self) -> tuple[TargetResult, ...]:
        plan = self._plan
        probes = self._target_prompts()
        plain = [plan.plain(probe.prompt) for probe in probes]
        base = await self._replies(plain, plan.base)
        memory = await self._replies([plan.with_memory(probe.prompt) for probe in probes], plan.base)
        candidate = await self._replies(plain, plan.candidate)
        parent = await self._replies(plain, plan.parent) if plan.parent else [None] * len(probes)
        return tuple(
            TargetResult(
                lesson.id,
                probe.id,
                _decided(lesson, b),
                _decided(lesson, m),
                _decided(lesson, c),
                _decided(lesson, p) if p and lesson.id in plan.parent_lessons else None,
            )
            for lesson in plan.lessons
            for probe, b, m, c, p in zip(probes, base, memory, candidate, parent, strict=True)
        )

    async def _both(self, prompts: Sequence[str], tokens: int) -> tuple[list[Reply], list[Reply]]:
        messages = [self._plan.plain(prompt) for prompt in prompts]
        base = await self._all([self._reply(m, self._plan.base, tokens) for m in messages])
        return base, await self._all([self._reply(m, self._plan.candidate, tokens) for m in messages])

    async def _replies(self, prompts: Sequence[Messages], name: str) -> list[Reply]:
        return await self._all([self._reply(messages, name, self._plan.reply_tokens) for messages in prompts])

    async def _reply(self, messages: Messages, name: str, tokens: int) -> Reply:
        async with self._seats:
            return await self._model.generate(messages, name, tokens)

    async def _all(self, calls: Sequence[Awaitable[T]]) -> list[T]:
        tasks = [asyncio.ensure_future(call) for call in calls]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()  # after a failure the rest is not wanted; finished ones do not mind


def _decided(lesson: GateLesson, reply: Reply) -> bool | None:
    return check(lesson.check, reply.text) if lesson.check else None
