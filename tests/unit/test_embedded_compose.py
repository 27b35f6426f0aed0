"""`docker/compose.yaml` is a compose file, and runs what `mentee run` runs.

No engine runs where this is tested, so the structure is held against the rules of the compose specification that this
file uses: allowed keys, forms of values, and references between services and volumes.
"""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.config import Settings
from app.domain.profiles import profile
from app.embedded import commands, compose, vllm, workers

ROOT = Path(__file__).parents[2]
FILE: dict[str, Any] = yaml.safe_load(compose.FILE.read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
OURS = ("migrate", "gateway", *(worker.name for worker in commands.WORKERS))

# Keys of a service in the compose specification that this file may use.
KEYS = {
    "build", "cap_drop", "command", "depends_on", "deploy", "entrypoint", "env_file", "environment", "healthcheck",
    "image", "init", "ports", "restart", "security_opt", "volumes",
}  # fmt: skip
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}
RESTARTS = re.compile(r"no|always|on-failure(:\d+)?|unless-stopped")
DURATION = re.compile(r"(\d+h)?(\d+m)?(\d+s)?")
PORT = re.compile(r"127\.0\.0\.1:(\d+|\$\{\w+:-\d+\}):\d+")


@pytest.mark.parametrize("name", SERVICES)
class TestEachService:
    def test_uses_known_keys_in_their_forms(self, name: str) -> None:
        service = SERVICES[name]
        assert service.keys() <= KEYS
        assert ("image" in service) != ("build" in service)
        assert RESTARTS.fullmatch(service["restart"])
        for key in ("command", "entrypoint"):
            assert all(isinstance(word, str) for word in service.get(key, []))
        assert all(isinstance(value, str) for value in service.get("environment", {}).values())

    def test_waits_for_services_that_can_fulfil_the_condition(self, name: str) -> None:
        for other, waiting in SERVICES[name].get("depends_on", {}).items():
            assert waiting["condition"] in CONDITIONS
            if waiting["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[other]
            if waiting["condition"] == "service_completed_successfully":
                assert SERVICES[other]["restart"] == "no"

    def test_mounts_volumes_that_are_declared(self, name: str) -> None:
        for mount in SERVICES[name].get("volumes", []):
            source = mount.rsplit(":/", 1)[0]
            assert source in FILE["volumes"] or source.startswith(("${", ".", "/"))

    def test_has_a_health_check_that_can_be_run(self, name: str) -> None:
        check = SERVICES[name].get("healthcheck")
        if check:
            assert check["test"][0] in {"CMD", "CMD-SHELL"}
            assert all(DURATION.fullmatch(check[key]) for key in ("interval", "timeout"))

    def test_is_reachable_from_this_machine_only(self, name: str) -> None:
        assert all(PORT.fullmatch(port) for port in SERVICES[name].get("ports", []))

    def test_holds_no_secret(self, name: str) -> None:
        for key, value in SERVICES[name].get("environment", {}).items():
            if "PASSWORD" in key or "SECRET" in key or ("://" in value and "@" in value):
                assert "${" in value


def test_the_file_has_only_top_level_keys_of_the_specification() -> None:
    assert all(
        key in {"services", "volumes", "networks", "secrets", "configs", "name"} or key.startswith("x-") for key in FILE
    )


def test_the_commands_are_those_of_the_one_table() -> None:
    text = compose.FILE.read_text(encoding="utf-8")
    assert compose.rewrite(text) == text


def test_the_workers_commands_are_those_that_the_supervisor_starts() -> None:
    env = {"BROKER_URL": "redis://x", "DATABASE_URL": "postgresql://x"}
    started = {part.name: part.command().argv for part in [workers.gateway("http://x", 1, env), *workers.workers(env)]}
    for name, argv in started.items():
        assert list(argv) == _with(argv, SERVICES[name]["command"])


def _with(argv: tuple[str, ...], command: list[str]) -> list[str]:
    """Return compose's command with this machine's interpreter in the place of `python`."""
    interpreter = next(word for word in argv if "python" in word)
    return [interpreter if word == "python" else word for word in command]


def test_the_model_server_is_told_the_same_but_for_device_and_address() -> None:
    here = vllm.options(profile(compose.SERVED), compose.MODEL_DIR, compose.PORT, vllm.LORA_SLOTS, "0.0.0.0")  # noqa: S104 - compared with
    there = SERVICES["vllm"]["command"]
    different = {option for option, a, b in zip(here, here[1:], there[1:], strict=False) if a != b}
    assert different == {"--dtype", "--served-model-name", "--max-model-len"}
    assert SERVICES["vllm"]["environment"] == vllm.common_environment()


@pytest.mark.parametrize("name", OURS)
def test_our_services_are_not_root_and_are_told_what_settings_know(name: str) -> None:
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert {key.lower() for key in service["environment"]} <= set(Settings.model_fields)
    dockerfile = (ROOT / service["build"]["dockerfile"]).read_text(encoding="utf-8")
    assert re.search(r"^USER mentee$", dockerfile, re.MULTILINE)


def test_the_gateway_image_is_free_of_torch() -> None:
    dockerfile = (ROOT / "docker" / "gateway.Dockerfile").read_text(encoding="utf-8")
    assert "torch" not in dockerfile.replace("no torch", "")
    assert "cpu.txt" not in dockerfile


def _dockerfile(name: str) -> list[str]:
    return (ROOT / "docker" / f"{name}.Dockerfile").read_text(encoding="utf-8").splitlines()


def _sent() -> set[str]:
    """Return the top-level names that `.dockerignore` lets through to the builder."""
    first, *others = [line for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line[:1] != "#"]
    assert first == "*"
    return {line.removeprefix("!") for line in others if line.startswith("!")}


@pytest.mark.parametrize("name", ["gateway", "learner"])
def test_what_an_image_copies_is_there_and_is_sent_to_the_builder(name: str) -> None:
    copied = {source for line in _dockerfile(name) if line.startswith("COPY") for source in shlex.split(line)[1:-1]}
    assert all((ROOT / source).exists() for source in copied)
    assert {Path(source).parts[0] for source in copied} <= _sent()


def test_nothing_is_sent_to_the_builder_that_no_image_copies() -> None:
    copied = {
        Path(source).parts[0]
        for name in ("gateway", "learner")
        for line in _dockerfile(name)
        if line.startswith("COPY")
        for source in shlex.split(line)[1:-1]
    }
    assert _sent() == copied
    assert not copied & {".env", ".venv", ".git", "var"}


@pytest.mark.parametrize(("name", "service"), [("gateway", "gateway"), ("learner", "score")])
def test_an_image_started_by_itself_runs_what_compose_runs(name: str, service: str) -> None:
    command = next(line.removeprefix("CMD ") for line in _dockerfile(name) if line.startswith("CMD "))
    assert json.loads(command) == SERVICES[service]["command"]


def test_the_learner_is_told_the_precision_that_vllm_serves_in() -> None:
    options = SERVICES["vllm"]["command"]
    served = options[options.index("--dtype") + 1]
    assert {SERVICES[worker.name]["environment"]["VLLM_DTYPE"] for worker in commands.WORKERS} == {served}


def test_a_gpu_for_trainings_is_another_one_than_vllms() -> None:
    over = yaml.safe_load(compose.FILE.with_name("compose.train-gpu.yaml").read_text("utf-8"))
    assert over.keys() == {"services"}
    assert over["services"].keys() == {"train"}
    train = over["services"]["train"]
    assert train["environment"] == {"TRAIN_DEVICE": "cuda"}
    (mine,), (vllms,) = (s["deploy"]["resources"]["reservations"]["devices"] for s in (train, SERVICES["vllm"]))
    assert mine.keys() == vllms.keys()
    assert mine["device_ids"] != vllms["device_ids"]
