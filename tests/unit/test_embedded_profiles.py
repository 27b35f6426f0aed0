"""Base profiles: what can be chosen, and that a wrong choice names the right ones."""

import pytest

from app.config import Settings
from app.domain.profiles import (
    DEFAULT_PROFILE,
    LINEAR_TARGETS,
    MAX_RANK,
    PROFILES,
    BaseProfile,
    ModelIdentity,
    profile,
    served,
)
from app.errors import ConfigError


def test_the_default_needs_no_download() -> None:
    assert profile(DEFAULT_PROFILE).bundled
    assert profile(DEFAULT_PROFILE).download_gb == 0


def test_a_wrong_name_is_answered_with_the_choices() -> None:
    with pytest.raises(ConfigError, match="choose one of smollm2-135m"):
        profile("gpt-9")


@pytest.mark.parametrize("entry", PROFILES.values(), ids=list(PROFILES))
def test_every_profile_can_be_served_and_taught(entry: BaseProfile) -> None:
    assert entry.lora.rank <= MAX_RANK
    assert entry.lora.targets == LINEAR_TARGETS
    assert 1e-5 <= entry.lora.learning_rate <= 2e-3
    assert entry.licence
    assert entry.languages


def test_one_profile_answers_in_korean_first() -> None:
    assert [entry.key for entry in PROFILES.values() if entry.languages[0] == "ko"] == ["kanana-2.1b"]


def test_one_profile_sees() -> None:
    assert [entry.key for entry in PROFILES.values() if entry.sees] == ["qwen3-vl-4b"]
    assert profile("qwen3-vl-4b").needs_gpu


def test_an_identity_survives_its_file() -> None:
    identity = ModelIdentity("smollm2-135m", "SmolLM2", "ab" * 32, "cd" * 32, "ef" * 32, "wheel 1")
    assert ModelIdentity.parse(identity.dump()) == identity


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"profile": 1, "more": 2}'])
def test_a_damaged_identity_is_a_sentence(text: str) -> None:
    with pytest.raises(ConfigError, match="damaged"):
        ModelIdentity.parse(text)


@pytest.mark.parametrize(
    ("model", "address", "said", "expected"),
    [
        ("smollm2-135m", None, None, "float32"),
        ("qwen3-0.6b", None, None, "float32"),  # the embedded server knows nothing else
        ("qwen3-0.6b", "http://gpu:8000", None, "bfloat16"),
        ("qwen3-0.6b", "http://gpu:8000", "float32", "float32"),
        ("smollm2-135m", "http://gpu:8000", None, "float32"),
        ("smollm2-135m", "http://gpu:8000", "bfloat16", "bfloat16"),
    ],
)
def test_a_base_has_the_precision_that_its_server_serves(
    model: str, address: str | None, said: str | None, expected: str
) -> None:
    settings = Settings(_env_file=None, model=model, vllm_base_url=address, vllm_dtype=said)
    assert served(settings).dtype == expected
    assert served(settings).key == model
