"""`python -m app.gateway.check`: whether the channels and their settings can be used; if not, a sentence and exit code 1.

A process of its own, for `mentee run`: what is imported here would stay in the one that watches over all others.
"""

import sys

from app import config
from app.errors import MenteeError
from app.gateway.channels import find, read


def main() -> int:
    """Read what the gateway will read."""
    try:
        read(find(), config.load())
    except MenteeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
