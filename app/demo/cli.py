"""`mentee demo`: reads its arguments, starts what is needed, goes the road, prints and writes what was found."""

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from app.demo import talk_telegram
from app.demo.generate import Plot, plot
from app.demo.installation import COOLDOWN, DemoError, Installation, own, running
from app.demo.report import Report, problems
from app.demo.road import Road, stage
from app.demo.show import Show
from app.demo.talk import Talker
from app.demo.talk_web import WebTalker
from app.domain.profiles import DEFAULT_PROFILE, profile
from app.embedded.messages import locale_language
from app.errors import InvalidInputError, MenteeError
from learner.gate.suite import load_suite

if TYPE_CHECKING:
    from tests.fakes.telegram import TelegramServer

LIMIT_MINUTES = 40.0
MINUTE_S = 60
PARTS = 7


def main(rest: Sequence[str]) -> int:
    """Run a demonstration; return 0 only if it proves what it should.

    Raises:
        MenteeError: it could not even begin.
    """
    arguments = parser().parse_args(rest)
    show = Show(locale_language())
    # Asked to end by either signal, it stops what it started and removes its home.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    report = Report(arguments.seed)
    try:
        asyncio.run(_demonstrate(arguments, report, show))
    except KeyboardInterrupt:
        report.error = "interrupted"
    show.report(report)
    if arguments.json:
        arguments.json.write_text(
            json.dumps(report.document(), ensure_ascii=False, indent=2, default=str) + "\n", "utf-8"
        )
        show.line("written", path=arguments.json)
    if arguments.home and not arguments.url:
        show.line("kept", home=arguments.home)
    return 1 if problems(report) or report.error else 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of `mentee demo`."""
    made = argparse.ArgumentParser(
        prog="mentee demo", description="Show that it learns: four cells on held-out prompts."
    )
    made.add_argument("--seed", type=int, default=1, help="draws the wish and the prompts (default 1)")
    made.add_argument("--prompts", type=int, default=24, help="held-out prompts of the cells, at least 16 (default 24)")
    made.add_argument("--channel", choices=("web", "telegram", "both"), default="both")
    made.add_argument("--json", type=Path, metavar="FILE", help="write everything found to FILE")
    made.add_argument("--home", type=Path, metavar="DIR", help="start in DIR and keep it (default: a temporary folder)")
    made.add_argument("--url", help="use the `mentee run` of this folder that answers there (web only)")
    made.add_argument(
        "--limit", type=float, default=LIMIT_MINUTES, metavar="MINUTES", help="give up after (default 40)"
    )
    return made


async def _demonstrate(arguments: argparse.Namespace, report: Report, show: Show) -> None:
    """Fill the report, also when the road ends early."""
    drawn = _plot(arguments)
    os.environ.setdefault("TQDM_DISABLE", "1")  # processes of the gates would draw bars into the table
    began = time.monotonic()
    try:
        async with asyncio.timeout(arguments.limit * MINUTE_S):
            await _go(arguments, drawn, report, show)
    except MenteeError as error:
        report.error = str(error)
    except TimeoutError:
        report.error = f"not done within {arguments.limit:g} minutes"
    finally:
        report.seconds = time.monotonic() - began


def _plot(arguments: argparse.Namespace) -> Plot:
    suite = load_suite(profile(DEFAULT_PROFILE).languages)
    taken = [item.prompt for part in (suite.regression, suite.safety, suite.probes, suite.drift) for item in part]
    try:
        return plot(arguments.seed, arguments.prompts, taken)
    except ValueError as error:
        raise InvalidInputError(f"--prompts: {error}") from error


async def _go(arguments: argparse.Namespace, drawn: Plot, report: Report, show: Show) -> None:
    async with AsyncExitStack() as stack:
        channel = "web" if arguments.url else arguments.channel
        server = await stack.enter_async_context(talk_telegram.platform()) if channel != "web" else None
        async with stage(report, show, "start") as now:
            if arguments.url:
                place = await stack.enter_async_context(running(arguments.url))
            else:
                reach = talk_telegram.settings(server) if server else {}
                place = await stack.enter_async_context(own(arguments.home, reach))
                report.changed = dict(COOLDOWN)
            now.n = PARTS
        learner = await stack.enter_async_context(
            _talker("telegram" if channel == "telegram" else "web", place, server, "Ann")
        )
        other = await stack.enter_async_context(_talker("web" if channel == "web" else "telegram", place, server, "Bo"))
        await Road(place, drawn, report, show).run(learner, other)


@asynccontextmanager
async def _talker(
    channel: str, place: Installation, server: "TelegramServer | None", name: str
) -> AsyncIterator[Talker]:
    if channel == "telegram":
        if server is None:
            raise DemoError("there is no Telegram platform")
        yield talk_telegram.TelegramTalker(server, name)
        return
    talker = WebTalker(place.url)
    try:
        yield talker
    finally:
        await talker.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
