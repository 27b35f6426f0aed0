"""`mentee bench`: lists the benches, or runs one and prints its figures beside what is reached for."""

import argparse
import asyncio
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from app.bench.figures import Figure
from app.bench.road import REPLY_TOKENS, RoadBench
from app.demo.generate import plot
from app.demo.installation import own, running

BENCHES = {
    "road": "the whole road: first token, tokens per second, webhooks, memory, training beside chats, resident size"
}


def main(rest: Sequence[str]) -> int:
    """List the benches, or run one; return 0 when everything was measured, whether or not it reaches."""
    if not rest:
        for name, about in BENCHES.items():
            print(f"mentee bench {name}   {about}")
        return 0
    arguments = parser().parse_args(rest)
    began = time.monotonic()
    figures = asyncio.run(_road(arguments))
    print(f"\n{platform.machine()}, {len(os.sched_getaffinity(0))} cores, {time.monotonic() - began:.0f} s")
    for figure in figures:
        print(figure.line())
    if arguments.json:
        arguments.json.write_text(json.dumps(_document(figures), ensure_ascii=False, indent=2) + "\n", "utf-8")
    return 1 if any(figure.verdict == "unmeasured" for figure in figures) else 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of `mentee bench`."""
    made = argparse.ArgumentParser(
        prog="mentee bench", description="Measure; figures stand beside what is reached for."
    )
    made.add_argument("bench", choices=sorted(BENCHES))
    made.add_argument("--json", type=Path, metavar="FILE", help="write every figure and every pair to FILE")
    made.add_argument("--home", type=Path, metavar="DIR", help="start in DIR and keep it (default: a temporary folder)")
    made.add_argument(
        "--url", help=f"use the running `mentee run` there; start it with MAX_REPLY_TOKENS={REPLY_TOKENS}"
    )
    made.add_argument("--seed", type=int, default=2, help="draws the questions (default 2)")
    return made


async def _road(arguments: argparse.Namespace) -> list[Figure]:
    async with AsyncExitStack() as stack:
        if arguments.url:
            place = await stack.enter_async_context(running(arguments.url))
        else:
            print("starting …", flush=True)
            place = await stack.enter_async_context(own(arguments.home, {"MAX_REPLY_TOKENS": str(REPLY_TOKENS)}))
        return await RoadBench(place, plot(arguments.seed), lambda text: print(text, flush=True)).run()


def _document(figures: Sequence[Figure]) -> dict[str, object]:
    load = os.getloadavg()
    return {"cores": len(os.sched_getaffinity(0)), "load": load, "figures": [figure.document() for figure in figures]}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
