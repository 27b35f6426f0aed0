"""Base profiles: what can be chosen, and that a wrong choice names the right ones."""

import pytest

from app.domain.profiles import DEFAULT_PROFILE, LINEAR_TARGETS, PROFILES, BaseProfile, ModelIdentity, profile
from app.embedded import vllm
from app.errors import ConfigError


def test_the_default_needs_no_download() -> None:
    assert profile(DEFAULT_PROFILE).bundled
    assert profile(DEFAULT_PROFILE).download_gb == 0


def test_a_wrong_name_is_answered_with_the_choices() -> None:
    with pytest.raises(ConfigError, match="choose one of smollm2-135m"):
        profile("gpt-9")


@pytest.mark.parametrize("entry", PROFILES.values(), ids=list(PROFILES))
def test_every_profile_can_be_served_and_taught(entry: BaseProfile) -> None:
    assert entry.lora.rank <= vllm.MAX_RANK
    assert entry.lora.targets == LINEAR_TARGETS
    assert 1e-5 <= entry.lora.learning_rate <= 2e-3
    assert entry.licence
    assert entry.languages


def test_one_profile_answers_in_korean_first() -> None:
    assert [entry.key for entry in PROFILES.values() if entry.languages[0] == "ko"] == ["kanana-2.1b"]


def test_an_identity_survives_its_file() -> None:
    identity = ModelIdentity("smollm2-135m", "SmolLM2", "ab" * 32, "cd" * 32, "ef" * 32, "wheel 1")
    assert ModelIdentity.parse(identity.dump()) == identity


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"profile": 1, "more": 2}'])
def test_a_damaged_identity_is_a_sentence(text: str) -> None:
    with pytest.raises(ConfigError, match="damaged"):
        ModelIdentity.parse(text)
