"""What the bench of the road measures beside the clock, against a gateway whose model server is scripted."""

import io
import os
from dataclasses import replace
from pathlib import Path

import pytest

from app.bench.road import MEMORY_PROMPTS, RESIDENT, TORCH, RoadBench
from app.bench.show import Show
from app.demo.cells import Cells, first_unmet
from app.demo.generate import plot
from app.demo.installation import DemoError, Installation
from app.embedded.parts import Home
from tests.fakes.model import ModelServer
from tests.fakes.model.replies import Call
from tests.support.road import Road

PLOT = plot(2)
MET, TAUGHT = PLOT.wishes[0], PLOT.wishes[1]
SAID = ("There is a lot to say about this", "It helps to look closely", "Many people like it")


@pytest.fixture
def place(running: Road, tmp_path: Path) -> Installation:
    return Installation(running.url, running.settings, tmp_path, running.store)


def by_itself(call: Call) -> str:
    """Answer at length, and as the first wish wants it without being asked."""
    return MET.write([f"{line}, {_topic(call)}, and so on and so forth, as one says" for line in SAID])


def with_memory(call: Call) -> str:
    """The same, but for who has a line about the second wish, with its example."""
    told = TAUGHT.words in call.system and len(call.messages) > 2
    return TAUGHT.write([f"{SAID[0]}, {_topic(call)}"]) if told else by_itself(call)


def _topic(call: Call) -> str:
    return call.last_user.partition("\n")[0].rstrip("?.!")


@pytest.mark.timeout(180)
async def test_memory_is_measured_by_a_wish_that_the_base_does_not_meet_by_itself(
    place: Installation, model: ModelServer
) -> None:
    model.reply_with(with_memory)
    out = io.StringIO()
    (figure,) = await RoadBench(place, PLOT, Show("en", out))._memory()
    assert figure.detail["wish"] == TAUGHT.words
    assert figure.detail["base_rate"] == 0.0
    assert figure.detail["base_rates"][MET.family] == 1.0
    assert (figure.value, figure.n) == (1.0, MEMORY_PROMPTS)
    assert f"{TAUGHT.words} (the base meets it in 0.00" in out.getvalue()


async def test_a_base_that_meets_every_wish_measures_nothing(place: Installation, model: ModelServer) -> None:
    model.reply_with(by_itself)
    cells = Cells(place)
    try:
        with pytest.raises(DemoError, match="take another seed"):
            await first_unmet(cells, "Be helpful.", replace(PLOT, wishes=(MET,)))
    finally:
        await cells.close()


async def test_the_gateways_size_is_read_from_its_own_process(place: Installation) -> None:
    home = Home(place.home)
    home.create()
    (home.run / "gateway.pid").write_text(f'{{"pid": {os.getpid()}, "born": 0}}', "utf-8")
    resident, torch = await RoadBench(place, PLOT, Show("en", io.StringIO()))._gateway()
    assert (resident.key, torch.key) == (RESIDENT.key, TORCH.key)
    assert resident.value is not None
    assert 10 < resident.value < 4000
    assert torch.unit == ""
