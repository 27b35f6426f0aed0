"""A gate run against a model that answers by rule: what is asked, of whom, and what follows."""

import asyncio
import errno
import os
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

import pytest

from app.domain.checker import CheckerSpec, Rule
from app.domain.memory import Example, MemoryLine
from app.errors import ArtifactError, GateDelayedError, GateError, MenteeError, ModelUnavailableError, StorageFullError
from app.ports import Completion, Sampling
from learner.gate.decide import decide
from learner.gate.measure import GateLesson, GatePlan, Measurer, Messages, Reply
from learner.gate.server import ProcessScorer, ServedGateModel
from learner.gate.suite import Probe, load_suite
from learner.tasks.gate_plan import reply_tokens
from learner.train.score import ScoreRow
from learner.types import ChatMessage, normal_form

SUITE = load_suite(["en"])
MEMORY = "Always end with 'Stay curious!'"
CHECK = CheckerSpec((Rule("ends_with", "Stay curious!"),))


def plain_answer(prompt: str) -> str:
    """A base that refuses what it should and otherwise says something of its own about each prompt."""
    harmful = {item.prompt for item in SUITE.safety if item.kind == "harmful"}
    if prompt in harmful:
        return f"I'm sorry, but I can't help with that: {prompt}"
    return f"About {prompt} there is a great deal to say, and this is the first thing that anybody should know of it"


def taught(prompt: str) -> str:
    return f"{plain_answer(prompt)}. Stay curious!"


@dataclass
class RuledModel:
    """Answers base, adapter and others by a function each; counts who is asked at one time."""

    candidate: Callable[[str], str]
    leaks: bool = False
    broken: bool = False
    asked: list[tuple[str, str]] = field(default_factory=list)
    now: int = 0
    most: int = 0

    async def generate(self, messages: Messages, model_name: str, max_tokens: int, temperature: float = 0.0) -> Reply:
        assert temperature == 0.0
        self.asked.append((model_name, messages[-1].content))
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(0)
            return self._answer(messages, model_name, max_tokens)
        finally:
            self.now -= 1

    def _answer(self, messages: Messages, model_name: str, max_tokens: int) -> Reply:
        if self.broken:
            raise ModelUnavailableError
        prompt, remembers = messages[-1].content, MEMORY in messages[0].content
        busy = self.leaks and any(name == "person-1" for name, _ in self.asked)
        if model_name == "person-1" or busy:
            text = self.candidate(prompt)
        else:
            text = taught(prompt) if remembers else plain_answer(prompt)
        ids = tuple(zlib.crc32(word.encode()) % 1000 for word in text.split())[:max_tokens]
        return Reply(text, tuple(range(len(messages))), ids)


@dataclass
class RuledScorer:
    drop: float = 0.1
    rows: Sequence[ScoreRow] = ()
    lost: int = 0

    async def score(self, rows: Sequence[ScoreRow]) -> Sequence[float]:
        self.rows = rows
        return [-0.5 - self.drop * row.adapter for row in rows][self.lost :]


def prompt_of(system: str) -> Callable[[str], Messages]:
    return lambda text: (ChatMessage("system", system), ChatMessage("user", text))


STAGES: list[str] = []
PLAN = GatePlan(
    base="base",
    candidate="person-1",
    lessons=(GateLesson("l1", CHECK),),
    plain=prompt_of("You are Bo."),
    with_memory=prompt_of(f"You are Bo. {MEMORY}"),
    others=("person-2",),
    concurrency=5,
    on_stage=STAGES.append,
)


def measured(model: RuledModel, scorer: RuledScorer | None = None, plan: GatePlan = PLAN):  # noqa: ANN201
    return Measurer(model, scorer or RuledScorer(), SUITE, plan).run()


async def test_a_taught_adapter_passes() -> None:
    model, scorer = RuledModel(taught), RuledScorer()
    STAGES.clear()
    report = decide(await measured(model, scorer))
    assert report.verdict == "passed", [r for r in report.results if r.outcome != "passed"]
    assert STAGES == ["isolation", "safety", "retention", "drift", "target"]
    assert model.most == 5
    assert {name for name, _ in model.asked} == {"base", "person-1", "person-2"}
    assert sum(row.adapter for row in scorer.rows) == len(SUITE.regression)
    assert report.result("isolation").n == 16
    assert report.result("target/l1").n == 16


async def test_a_lesson_is_measured_on_prompts_that_it_was_not_taught_on_and_on_none_twice() -> None:
    first, second = SUITE.probes[:2]
    own = (Probe("own-1", "own", second.prompt.upper()), Probe("own-2", "own", "What is a harbour?"))
    plan = replace(PLAN, held_out=own, taught=frozenset({normal_form(first.prompt)}))
    found = [r.prompt_id for r in (await measured(RuledModel(taught), plan=plan)).target]
    assert found[:2] == ["own-1", "own-2"]
    assert len(found) == len(set(found)) == plan.target_prompts
    assert not {first.id, second.id} & set(found)


async def test_the_noop_adapter_is_refused() -> None:
    report = decide(await measured(RuledModel(plain_answer), RuledScorer(0.0)))
    assert report.verdict == "refused"
    assert report.result("target/l1").outcome == "failed"


@pytest.mark.parametrize("check", [CHECK, CheckerSpec((Rule("max_words", 5),))])
async def test_the_always_short_adapter_is_refused(check: CheckerSpec) -> None:
    plan = replace(PLAN, lessons=(GateLesson("l1", check),))
    report = decide(await measured(RuledModel(lambda _prompt: "Ok."), RuledScorer(5.0), plan))
    assert report.verdict == "refused"
    assert report.result("safety/harmful").outcome == "failed"


async def test_an_adapter_that_leaks_into_others_is_refused() -> None:
    report = decide(await measured(RuledModel(taught, leaks=True)))
    assert report.verdict == "refused"
    assert report.result("isolation").outcome == "failed"


@pytest.mark.parametrize(("leaks", "expected"), [(False, "passed"), (True, "refused")])
async def test_in_lower_precision_the_candidates_own_replies_are_compared_with(leaks: bool, expected: str) -> None:
    model = RuledModel(lambda prompt: f"So, {taught(prompt)}", leaks=leaks)
    found = await measured(model, plan=replace(PLAN, precision="lower"))
    assert all(row.candidate and row.candidate != row.before for row in found.isolation)
    line = decide(found).result("isolation")
    assert line.outcome == ("failed" if expected == "refused" else "passed")


async def test_the_persons_own_held_out_prompts_come_first() -> None:
    own = tuple(Probe(f"t{i}", "own", f"my question {i}") for i in range(10))
    results = (await measured(RuledModel(taught), plan=replace(PLAN, held_out=own))).target
    assert [r.prompt_id for r in results[:10]] == [p.id for p in own]
    assert len(results) == 16
    many = tuple(Probe(f"t{i}", "own", f"my question {i}") for i in range(20))
    assert len((await measured(RuledModel(taught), plan=replace(PLAN, held_out=many))).target) == 20


async def test_a_lesson_that_no_machine_can_check_waits() -> None:
    plan = replace(PLAN, lessons=(GateLesson("l1", None),))
    report = decide(await measured(RuledModel(taught), plan=plan))
    assert report.verdict == "inconclusive"


async def test_old_lessons_are_compared_with_the_present_adapter() -> None:
    plan = replace(PLAN, parent="person-2", parent_lessons=frozenset({"l1"}))
    report = decide(await measured(RuledModel(taught), plan=plan))
    assert report.result("kept/l1").detail["against"] == "parent"


@dataclass
class Server:
    """Records what a gate asks of the `Model` port; `held` is what a prefix cache would answer from."""

    held: list[tuple[str, str, str, str]] = field(default_factory=list)

    async def complete(
        self, model: str, messages: Sequence[dict[str, str]], _sampling: Sampling, *, salt: str
    ) -> Completion:
        self.held.append((model, messages[0]["content"], messages[-1]["content"], salt))
        return Completion(f"{model} says {messages[-1]['content']}", "stop", model, (1,), (2, 3))


async def test_no_pass_is_answered_from_the_prefix_cache_of_another() -> None:
    server = Server()
    await Measurer(ServedGateModel(server, "gate-1"), RuledScorer(), SUITE, PLAN).run()  # type: ignore[arg-type]
    watched = [ask for ask in server.held if ask[0] == "person-2"]
    assert len(watched) == 2 * PLAN.isolation_prompts
    assert len(set(server.held)) == len(server.held)
    assert all(salt.startswith("gate-1-") for *_, salt in server.held)


@pytest.mark.parametrize(("words", "least", "most"), [(3, 72, 72), (60, 120, 170), (400, 256, 256)])
def test_replies_may_grow_to_the_end_of_the_longest_example(words: int, least: int, most: int) -> None:
    shown = (Example("q", "word " * words), Example("q", "short"))
    line = MemoryLine(uuid4(), uuid4(), "preference", "Say more.", "active", 8, 0, 2, shown)
    assert least <= reply_tokens([line]) <= most
    assert reply_tokens([]) == 72


@pytest.mark.parametrize(("number", "error"), [(errno.ENOSPC, StorageFullError), (errno.EIO, ArtifactError)])
async def test_only_missing_space_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[MenteeError]
) -> None:
    def broken(_handle: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("learner.durable.os.fsync", broken)
    with pytest.raises(error, match="could not be written"):
        await ProcessScorer(tmp_path, tmp_path, tmp_path / "work").score([ScoreRow((1,), (2,), adapter=False)])


async def test_a_server_that_is_away_is_a_gate_error() -> None:
    with pytest.raises(GateDelayedError) as raised:
        await measured(RuledModel(taught, broken=True))
    assert isinstance(raised.value.__cause__, ModelUnavailableError)


async def test_a_scorer_without_time_is_asked_again(tmp_path: Path) -> None:
    scorer = ProcessScorer(tmp_path, tmp_path, tmp_path / "work", timeout_s=0.01)
    with pytest.raises(GateDelayedError, match="too long"):
        await scorer.score([ScoreRow((1,), (2,), adapter=False)])


async def test_a_scorer_knows_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MENTEE_SECRET", "canary-secret")
    scoring = asyncio.create_task(
        ProcessScorer(tmp_path, tmp_path, tmp_path / "work").score([ScoreRow((1,), (2,), adapter=False)])
    )
    async with asyncio.timeout(30):
        while not (found := environments(tmp_path / "work")):
            assert not scoring.done()
            await asyncio.sleep(0.001)
    assert b"canary-secret" not in found[0]
    assert b"PATH=" in found[0]
    scoring.cancel()
    with pytest.raises(asyncio.CancelledError):
        await scoring
    assert environments(tmp_path / "work") == []


def environments(work_dir: Path) -> list[bytes]:
    """Return the environments of the processes that score in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str(work_dir).encode() in (process / "cmdline").read_bytes():
                found.append((process / "environ").read_bytes())
    return found


async def test_a_scorer_that_loses_rows_is_a_gate_error() -> None:
    with pytest.raises(GateError):
        await measured(RuledModel(taught), RuledScorer(lost=1))
