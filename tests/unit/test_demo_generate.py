"""What a demonstration is about: drawn from a seed, disjoint, and checked apart from the product's own checkers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.demo.generate import LEAST_HELD_OUT, Wish, normal, overlaps, plot, sentences
from app.demo.show import FOLDER
from app.domain.checker import check, derive
from app.domain.feedback import TO_MEMORY, classify_by_rule
from app.embedded.messages import catalogue
from learner.dataset.scrub import findings
from learner.gate.suite import load_suite

RAMBLING = "Well, there is a lot to say here. It depends on many things! Some people like it. Others do not. " * 3
SEEDS = range(1, 9)


def _gate_prompts() -> list[str]:
    suite = load_suite(("en", "ko"))
    return [item.prompt for part in (suite.regression, suite.safety, suite.probes, suite.drift) for item in part]


def _wishes() -> list[Wish]:
    return list({wish.words: wish for seed in range(40) for wish in plot(seed).wishes}.values())


def test_a_seed_gives_the_same_story_and_another_gives_another() -> None:
    one, again, other = plot(3), plot(3), plot(4)
    assert one.prompts == {**again.prompts, "talk": one.prompts["talk"]}
    assert one.talk == again.talk
    assert [w.words for w in one.wishes] == [w.words for w in again.wishes]
    assert one.held_out != other.held_out


def test_the_planted_word_is_new_each_time() -> None:
    words = {plot(1).planted for _ in range(20)}
    assert len(words) == 20
    assert all(word.isalpha() and len(word) == 12 for word in words)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**9), n=st.integers(LEAST_HELD_OUT, 30))
def test_training_held_out_and_gate_prompts_share_nothing(seed: int, n: int) -> None:
    drawn = plot(seed, n, _gate_prompts())
    assert overlaps({**drawn.prompts, "gates": _gate_prompts()}) == []
    assert len(drawn.held_out) == n
    assert len({normal(p) for p in drawn.held_out}) == n


def test_too_few_or_too_many_held_out_prompts_are_refused() -> None:
    with pytest.raises(ValueError, match="16"):
        plot(1, 15)
    with pytest.raises(ValueError, match="held-out"):
        plot(1, 500)


def test_overlaps_sees_the_same_words_in_another_dress() -> None:
    found = overlaps({"a": ["What is rain?", "x"], "b": ["what is RAIN"], "c": ["y"]})
    assert found == [("a", "b", 1)]


@pytest.mark.parametrize("wish", _wishes(), ids=lambda wish: wish.words)
def test_a_wish_is_kept_by_its_own_example_and_broken_by_rambling(wish: Wish) -> None:
    taught = plot(1).planted_taught
    written = wish.write(taught.facts)
    assert wish.holds(written)
    assert not wish.holds(RAMBLING)
    assert not wish.holds("")
    assert findings(written) == ()
    assert plot(1).planted[:3]


@pytest.mark.parametrize("wish", _wishes(), ids=lambda wish: wish.words)
def test_the_product_reads_the_wish_as_a_preference_with_a_checker(wish: Wish) -> None:
    """Not a favour to the demonstration: these are words people use, and the rules must sort them."""
    said = classify_by_rule(wish.words)
    assert said.kind in TO_MEMORY
    assert said.confidence >= 0.6
    drawn = plot(1)
    examples = [wish.write(drawn.taught.facts), wish.write(drawn.planted_taught.facts)]
    spec = derive(wish.words, examples, [RAMBLING])
    assert spec is not None
    assert all(check(spec, example) for example in examples)


def test_sentences_are_counted_as_read() -> None:
    assert [sentences(t) for t in ("", "One.", "One. Two!", "One\nTwo", "3.5 is a number.", "What? Yes.")] == [
        0,
        1,
        2,
        2,
        1,
        2,
    ]


def test_both_languages_say_the_same() -> None:
    english, korean = catalogue("en", FOLDER), catalogue("ko", FOLDER)
    assert english.keys() == korean.keys()
    for key, sentence in english.items():
        fields = {part.partition("}")[0] for part in sentence.split("{")[1:]}
        assert fields == {part.partition("}")[0] for part in korean[key].split("{")[1:]}, key
