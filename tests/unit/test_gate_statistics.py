"""Exact statistics against tables and textbook values."""

import pytest

from learner.gate import statistics as s


@pytest.mark.parametrize(
    ("n", "wins"), [(5, 5), (6, 6), (8, 7), (10, 9), (12, 10), (15, 12), (20, 15), (25, 18), (30, 20)]
)
def test_wins_needed(n: int, wins: int) -> None:
    assert s.mcnemar_one_sided(wins, n - wins) <= 0.05
    assert s.mcnemar_one_sided(wins - 1, n - wins + 1) > 0.05


@pytest.mark.parametrize("n", [0, 1, 4])
def test_four_pairs_prove_nothing(n: int) -> None:
    assert s.mcnemar_one_sided(n, 0) > 0.05


@pytest.mark.parametrize(("n", "bound"), [(20, 0.139), (50, 0.058), (60, 0.049), (100, 0.030), (300, 0.010)])
def test_no_failure_in_n(n: int, bound: float) -> None:
    assert s.failure_upper_bound(0, n) == pytest.approx(bound, abs=0.0006)


def test_failure_bound_with_failures() -> None:
    assert s.failure_upper_bound(1, 20) == pytest.approx(0.2161, abs=1e-3)
    assert s.failure_upper_bound(5, 5) == 1.0
    assert s.failure_upper_bound(0, 0) == 1.0


def test_wilson() -> None:
    assert s.wilson(8, 10) == pytest.approx((0.490, 0.943), abs=1e-3)
    assert s.wilson(0, 10)[0] == 0.0
    assert s.wilson(0, 0) == (0.0, 1.0)


def test_fisher() -> None:
    assert s.fisher_one_sided(3, 4, 1, 4) == pytest.approx(17 / 70)  # the lady tasting tea
    assert s.fisher_one_sided(16, 16, 0, 16) == pytest.approx(1 / 601080390)
    assert s.fisher_one_sided(0, 8, 8, 8) == pytest.approx(1.0)


def test_binomial() -> None:
    assert s.binomial_at_least(8, 10, 0.5) == pytest.approx(56 / 1024)
    assert s.binomial_at_least(0, 10, 0.2) == pytest.approx(1.0)
    assert s.binomial_at_least(1, 10, 0.0) == 0.0
    assert s.binomial_at_least(10, 10, 1.0) == 1.0


def test_loss_bound_and_the_margin_that_n_supports() -> None:
    assert s.loss_upper_bound(0, 0, 8) == pytest.approx(1.6449 * (1 / 10 / 10) ** 0.5, abs=1e-4)
    assert s.loss_upper_bound(0, 0, 8) <= s.supported_margin(8)
    assert s.loss_upper_bound(1, 8, 16) > s.supported_margin(16)
    assert s.supported_margin(100) < s.supported_margin(16) < s.supported_margin(8)
    assert s.supported_margin(0) == s.loss_upper_bound(0, 0, 0) == 1.0
