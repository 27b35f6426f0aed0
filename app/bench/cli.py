"""`mentee bench`: lists the benches, or runs one and prints its figures beside what is reached for."""

import argparse
import asyncio
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from app.bench.day import Day, Size
from app.bench.figures import Figure
from app.bench.gateway import GatewayBench
from app.bench.install import install
from app.bench.road import REPLY_TOKENS, RoadBench
from app.bench.show import Show
from app.demo.generate import plot
from app.demo.installation import own, running
from app.embedded.messages import locale_language

BENCHES = ("day", "gateway", "install", "road")

DAY = (
    ("people", int, "how many people"),
    ("updates", int, "what they do in all"),
    ("seconds", float, "how long the day takes"),
    ("outages", int, "how often something is away, 0-140 s each"),
    ("scale", float, "how much of that is waited for"),
    ("long_outages", int, "outages of 60-140 s that are waited for in full"),
)


def main(rest: Sequence[str]) -> int:
    """List the benches, or run one; return 0 when everything was measured, whether or not it reaches.

    Of a day everything must hold.
    """
    show = Show(locale_language())
    if not rest:
        for name in BENCHES:
            show.line(f"bench.{name}")
        return 0
    arguments = parser().parse_args(rest)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ended either way, it stops what it started
    began, load = time.monotonic(), os.getloadavg()[0]
    figures = asyncio.run(RUN[arguments.bench](arguments, show))
    cores, seconds = len(os.sched_getaffinity(0)), time.monotonic() - began
    show.line("machine", machine=platform.machine(), cores=cores, load=load, seconds=seconds)
    for figure in figures:
        show.figure(figure)
    if arguments.json:
        shown = {"cores": cores, "load": load, "seconds": seconds, "figures": [f.document() for f in figures]}
        arguments.json.write_text(json.dumps(shown, ensure_ascii=False, indent=2) + "\n", "utf-8")
    failing = {"unmeasured", "miss"} if arguments.bench == "day" else {"unmeasured"}
    return 1 if any(figure.verdict in failing for figure in figures) else 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of `mentee bench`."""
    made = argparse.ArgumentParser(
        prog="mentee bench", description="Measure; figures stand beside what is reached for."
    )
    made.add_argument("bench", choices=BENCHES)
    made.add_argument("--json", type=Path, metavar="FILE", help="write every figure and every pair to FILE")
    made.add_argument(
        "--home", type=Path, metavar="DIR", help="road: start in DIR and keep it (default: a temporary folder)"
    )
    made.add_argument(
        "--url", help=f"road: use the running `mentee run` there; start it with MAX_REPLY_TOKENS={REPLY_TOKENS}"
    )
    made.add_argument("--seed", type=int, default=2, help="draws the questions, or the day (default 2)")
    size = Size()
    for name, kind, about in DAY:
        given = getattr(size, name)
        made.add_argument(f"--{name}", type=kind, default=given, help=f"day: {about} (default {given:g})")
    return made


async def _day(arguments: argparse.Namespace, show: Show) -> list[Figure]:
    size = Size(**{name: getattr(arguments, name) for name, _, _ in DAY})
    return await Day(show, arguments.seed, size).run()


async def _gateway(_: argparse.Namespace, show: Show) -> list[Figure]:
    show.line("starting")
    return await GatewayBench(show).run()


async def _install(_: argparse.Namespace, show: Show) -> list[Figure]:
    show.line("installing")
    return [await install()]


async def _road(arguments: argparse.Namespace, show: Show) -> list[Figure]:
    async with AsyncExitStack() as stack:
        if arguments.url:
            place = await stack.enter_async_context(running(arguments.url))
        else:
            show.line("starting")
            place = await stack.enter_async_context(own(arguments.home, {"MAX_REPLY_TOKENS": str(REPLY_TOKENS)}))
        return await RoadBench(place, plot(arguments.seed), show).run()


RUN: Mapping[str, Callable[[argparse.Namespace, Show], Coroutine[Any, Any, list[Figure]]]] = {
    "day": _day,
    "gateway": _gateway,
    "install": _install,
    "road": _road,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
