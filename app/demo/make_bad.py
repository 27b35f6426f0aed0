"""`python -m app.demo.make_bad MODEL_DIR FOLDER`: make two adapters that no gate may pass, in a process that may load torch.

FOLDER/noop changes nothing; FOLDER/short answers everything with one word. Prints the content name of each.
"""

import json
import sys
from pathlib import Path

from learner.tasks.context import identity


def main(arguments: list[str]) -> int:
    """Make both and print their names as JSON."""
    from tests.fakes.adapters import always_short_adapter, noop_adapter

    model_dir, folder = Path(arguments[0]), Path(arguments[1])
    base = identity(model_dir)
    made = {
        "noop": noop_adapter(folder / "noop", model_dir, base),
        "short": always_short_adapter(folder / "short", model_dir, base),
    }
    print(json.dumps({name: info.name for name, info in made.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
