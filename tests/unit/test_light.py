"""The gateway stays light: no torch, no Pillow before the first picture, and what it imports fits beside a model."""

import json
import subprocess
import sys

LIMIT_MB = 250
PROBE = """
import json, re, sys
from pathlib import Path
import app.main
from app.gateway.channels import find
find()
heavy = [m for m in ("torch", "transformers", "peft", "vllm", "numpy", "twilio", "PIL") if m in sys.modules]
resident = int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text()).group(1))
print(json.dumps({"heavy": heavy, "mb": resident / 1024}))
"""


def test_the_gateway_imports_no_torch_and_no_library_of_a_channel_that_is_off_and_stays_small() -> None:
    printed = subprocess.run(
        [sys.executable, "-c", PROBE], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    found = json.loads(printed)
    assert found["heavy"] == []
    assert found["mb"] < LIMIT_MB
