"""How many inputs are generated: as many as a change can wait for, or MENTEE_TEST_SCALE times that (`make nightly`)."""

import os

SCALE = int(os.environ.get("MENTEE_TEST_SCALE", "1"))
