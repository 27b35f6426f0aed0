"""Figures: what reaches, what misses, what was not measured; and an open load that does not hide a stall."""

import io
import json
import math

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from app.bench import cli, gateway, road
from app.bench.figures import Figure, median, quantile, ratio
from app.bench.install import INSTALL
from app.bench.load import Load, send
from app.bench.show import FOLDER, Show
from app.embedded.messages import catalogue

FIGURES = (*road.FIGURES, *gateway.FIGURES, INSTALL)


@pytest.mark.parametrize(
    ("value", "at_most", "verdict"),
    [(1.0, True, "pass"), (1.1, True, "pass"), (1.11, True, "miss"), (1.2, False, "pass"), (1.0, False, "miss")],
)
def test_a_figure_is_judged_by_its_own_direction(value: float, at_most: bool, verdict: str) -> None:
    assert Figure("f", value, 1.1, at_most).verdict == verdict


@pytest.mark.parametrize("value", [None, math.nan])
def test_what_was_not_measured_never_reaches(value: float | None) -> None:
    figure = Figure("f", value, 10, at_most=True)
    assert figure.verdict == "unmeasured"


def test_a_figure_is_json() -> None:
    shown = Figure("f", 2.0, 1.0, at_most=True, detail={"pairs": [(1.0, 2.0)]}).document()
    assert json.loads(json.dumps(shown))["verdict"] == "miss"


def test_quantiles_lie_between_neighbours() -> None:
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert quantile([1.0, 2.0], 0.5) == 1.5
    assert quantile(list(map(float, range(101))), 0.99) == 99.0
    assert quantile([5.0], 0.99) == 5.0
    assert math.isnan(median([]))


def test_a_ratio_is_the_median_of_pairs_and_not_of_their_parts() -> None:
    # A slow spell that hits both of a pair changes nothing.
    assert ratio([(1.0, 1.0), (10.0, 10.0), (1.2, 1.0)]) == 1.0
    assert math.isnan(ratio([]))


async def test_an_update_counts_from_its_own_moment() -> None:
    """Answers come one at a time, each after 30 ms: at 100 a second the queue grows, and the times must show it."""

    async def slow(_request: web.Request) -> web.Response:
        async with lock:
            await asyncio.sleep(0.03)
        return web.Response()

    import asyncio

    lock = asyncio.Lock()
    app = web.Application()
    app.router.add_post("/", slow)
    async with TestServer(app, host="127.0.0.1") as server, ClientSession() as session:
        seen = await send(session, str(server.make_url("/")), Load(1, [1, 2], 30, rate=100))
    assert (len(seen.ms), seen.refused) == (30, 0)
    assert max(seen.ms) > 30 * (30 - 1000 / 100) * 0.8


@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_figure_has_its_line_in_both_languages(language: str) -> None:
    out = io.StringIO()
    show = Show(language, out)
    for wanted in FIGURES:
        for value in (wanted.reach, None):
            show.figure(wanted.figure(value, 3, {}))
    lines = out.getvalue().splitlines()
    assert len(lines) == 2 * len(FIGURES)
    assert lines[0].count("≤ 1.15") == 1
    assert sum(catalogue(language, FOLDER)["verdict.unmeasured"] in line for line in lines) == len(FIGURES)
    assert catalogue("en", FOLDER).keys() == catalogue("ko", FOLDER).keys()


def test_benches_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    said = capsys.readouterr().out
    assert [f"mentee bench {name} " in said for name in cli.BENCHES] == [True] * len(cli.BENCHES)
