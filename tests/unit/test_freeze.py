"""How a base learns: settings that follow from its profile."""

import pytest

from app.domain.profiles import PROFILES, profile
from learner.dataset.freeze import train_settings


@pytest.mark.parametrize(("name", "tolerance"), [("smollm2-135m", 1e-4), ("qwen3-0.6b", 0.15), ("qwen3-4b", 0.15)])
def test_positions_are_compared_as_closely_as_the_servers_precision_allows(name: str, tolerance: float) -> None:
    assert train_settings(profile(name), (), threads=1, device="cpu").position_tolerance == tolerance


def test_every_base_has_settings() -> None:
    for chosen in PROFILES.values():
        assert train_settings(chosen, (), threads=1, device="cpu").rank == chosen.lora.rank
