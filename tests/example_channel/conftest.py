"""The example is imported as a package of its own, as whoever installs it imports it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
