"""Places kept free for what a statement may claim, and the doubt where nobody was told whether it did.

Both ends of the road rest on it: who stores an update, or a reply, may claim it by the same statement for a loop in this
process. Where the answer of such a statement was lost, the loop gives back what it holds without knowing it.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class Places:
    """The places of one loop."""

    def __init__(self) -> None:
        self.kept = 0
        self._doubtful = False

    @contextmanager
    def keep(self, count: int) -> Iterator[None]:
        """Keep so many places for what is claimed inside the block; one that ends with an error leaves a doubt."""
        self.kept += count
        told = False
        try:
            yield
            told = True
        finally:
            self.kept -= count
            if count and not told:
                self.doubt()

    def doubt(self) -> None:
        """Something may have been claimed that nobody was told of."""
        self._doubtful = True

    @property
    def unsettled(self) -> bool:
        """Whether there is a doubt that can be settled: while something is being stored, that would look the same."""
        return self._doubtful and not self.kept

    def settle(self) -> None:
        """What nobody was told of is given back."""
        self._doubtful = False
