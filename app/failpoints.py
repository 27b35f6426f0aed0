"""Places where a test may have this process killed, to prove that nothing is lost there. Inert unless a test names one.

`MENTEE_KILL_AT=<point>` in the environment kills the process (SIGKILL) the first time it reaches the point.
"""

import os
import signal
from typing import Literal

Point = Literal[
    "intake:stored",
    "lane:claimed",
    "attachments:taken",
    "converse:asked",
    "converse:streaming",
    "converse:stored",
    "press:stored",
    "deliver:sent",
    "respond:taken",
    "respond:given",
    "folder:filled",
    "train:placed",
]
_armed = os.environ.get("MENTEE_KILL_AT")


def reach(point: Point) -> None:
    """Die here if a test asked for it."""
    if _armed == point:
        os.kill(os.getpid(), signal.SIGKILL)
