"""One measurement that stands alone: where it fails, the others are still made and this one says that it was not measured."""

from collections.abc import Awaitable, Callable, Sequence

import psutil

from app.bench.figures import Figure, Wanted
from app.bench.show import Show
from app.errors import MenteeError


async def tried(show: Show, wanted: Sequence[Wanted], measured: Callable[[], Awaitable[list[Figure]]]) -> list[Figure]:
    """Measure, show and return the figures; those that were `wanted` without a value, with the reason, where it fails."""
    try:
        figures = await measured()
    except (MenteeError, OSError, TimeoutError, psutil.Error) as error:
        reason = f"{type(error).__name__}: {error}"
        figures = [one.figure(None, 0, {"error": reason}) for one in wanted]
    for figure in figures:
        show.figure(figure)
    return figures
