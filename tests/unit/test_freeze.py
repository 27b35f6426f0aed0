"""How a base learns: settings that follow from its profile."""

import pytest

from app.config import Settings
from app.domain.profiles import PROFILES, profile, served
from learner.dataset.freeze import train_settings


@pytest.mark.parametrize(("name", "tolerance"), [("smollm2-135m", 1e-4), ("qwen3-0.6b", 0.15), ("qwen3-4b", 0.15)])
def test_positions_are_compared_as_closely_as_the_servers_precision_allows(name: str, tolerance: float) -> None:
    assert train_settings(profile(name), (), threads=1, device="cpu").position_tolerance == tolerance


def test_a_large_base_on_the_embedded_server_is_compared_as_closely_as_the_small_one() -> None:
    embedded = served(Settings(_env_file=None, model="qwen3-0.6b"))
    assert train_settings(embedded, (), threads=1, device="cpu").position_tolerance == 1e-4


def test_every_base_has_settings() -> None:
    for chosen in PROFILES.values():
        assert train_settings(chosen, (), threads=1, device="cpu").rank == chosen.lora.rank
