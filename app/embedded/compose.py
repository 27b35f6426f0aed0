"""The commands of `docker/compose.yaml`, from the same table as the supervisor's: `python -m app.embedded.compose`.

Writes the `command:` lines of our services in place and leaves every other line alone, comments included.
"""

import json
import re
from pathlib import Path

from app.domain.profiles import BaseProfile, profile
from app.embedded import commands, vllm

FILE = Path(__file__).parents[2] / "docker" / "compose.yaml"
PYTHON = "python"
MODEL_DIR = Path("/models/base")
PORT = 8000
SERVED = "qwen3-0.6b"
COMMAND = re.compile(r"^    command: .*$")
SERVICE = re.compile(r"^  (?P<name>[a-z]+):$")


def service_commands() -> dict[str, tuple[str, ...]]:
    """Return the command of each service that is ours to say."""
    return {
        "migrate": (PYTHON, *commands.MIGRATE),
        "gateway": (PYTHON, *commands.GATEWAY),
        "vllm": _vllm(profile(SERVED)),
        **{worker.name: worker.argv(PYTHON) for worker in commands.WORKERS},
    }


def rewrite(text: str) -> str:
    """Return the compose file's text with our services' commands brought up to date."""
    wanted, service, lines = service_commands(), "", []
    for line in text.splitlines():
        if found := SERVICE.match(line):
            service = found["name"]
        if COMMAND.match(line) and service in wanted:
            lines.append(f"    command: {json.dumps(list(wanted[service]))}")
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _vllm(base: BaseProfile) -> tuple[str, ...]:
    """Return the server's options on a GPU: the profile's precision, and the name and context that `.env` chooses."""
    options = list(vllm.options(base, MODEL_DIR, PORT, vllm.LORA_SLOTS, "0.0.0.0"))  # noqa: S104 - inside its container
    options[options.index("--dtype") + 1] = "${VLLM_DTYPE:-" + base.dtype + "}"
    options[options.index("--served-model-name") + 1] = "${MODEL:-" + base.key + "}"
    options[options.index("--max-model-len") + 1] = "${VLLM_CONTEXT:-" + str(base.context) + "}"
    return tuple(options)


def main() -> None:
    """Bring the file up to date."""
    FILE.write_text(rewrite(FILE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
