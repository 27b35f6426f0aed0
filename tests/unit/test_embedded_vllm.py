"""How the model server is started: the settings whose absence costs isolation, memory or speed."""

import itertools
import os
from pathlib import Path

import pytest

from app.domain.profiles import profile
from app.embedded import vllm

BASE = profile("smollm2-135m")


def _options(max_loras: int = vllm.LORA_SLOTS) -> dict[str, str]:
    argv = vllm.command_line(BASE, Path("/models/base"), 8100, max_loras)
    return {name: value for name, value in itertools.pairwise(argv) if name.startswith("--")}


def test_adapters_never_share_a_single_slot_by_default() -> None:
    assert int(_options()["--max-loras"]) >= 2
    assert _options(max_loras=1)["--max-loras"] == "1"


def test_it_listens_on_loopback_only() -> None:
    assert _options()["--host"] == "127.0.0.1"


def test_it_serves_the_profile_under_its_key_with_what_learning_needs() -> None:
    options = _options()
    assert options["--served-model-name"] == BASE.key
    assert options["--max-model-len"] == "2048"
    assert options["--dtype"] == "float32"
    assert options["--logprobs-mode"] == "processed_logprobs"
    assert options["--scheduling-policy"] == "priority"


def test_the_environment_bounds_memory_and_tells_nobody() -> None:
    env = vllm.environment()
    assert env["VLLM_CPU_KVCACHE_SPACE"] == "1"
    assert env["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] == "True"
    assert {env["VLLM_NO_USAGE_STATS"], env["DO_NOT_TRACK"], env["HF_HUB_OFFLINE"]} == {"1"}


@pytest.mark.parametrize(("cores", "bound"), [({0}, "0"), ({0, 1}, "0,1"), ({0, 1, 2, 5}, "0,1,2")])
def test_a_larger_machine_keeps_a_core_for_the_others(
    monkeypatch: pytest.MonkeyPatch, cores: set[int], bound: str
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: cores)
    assert vllm.environment()["VLLM_CPU_OMP_THREADS_BIND"] == bound


async def test_nobody_answers_on_a_closed_port() -> None:
    assert not await vllm.answers("http://127.0.0.1:9", BASE.key)
