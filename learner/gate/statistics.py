"""Exact statistics for few samples. Pure Python; every figure that a gate or the demonstration decides on.

Paired results are counted as wins (only the candidate right) and losses (only the other right); ties say nothing.
"""

import math

_Z_ONE_SIDED_95 = 1.6448536269514722
_Z_TWO_SIDED_95 = 1.959963984540054
_Z_POWER_80 = 0.8416212335729143
_BISECTIONS = 60


def mcnemar_one_sided(wins: int, losses: int) -> float:
    """Return P(at least `wins` of the discordant pairs) if neither were better: the exact one-sided McNemar test.

    Five of five is the least that reaches 0.05; no discordant pair gives 1.
    """
    return binomial_at_least(wins, wins + losses, 0.5)


def binomial_at_least(successes: int, n: int, rate: float) -> float:
    """Return P(X >= successes) for X ~ Binomial(n, rate); the exact one-sided test against a known rate."""
    return min(1.0, math.fsum(_binomial(k, n, rate) for k in range(max(0, successes), n + 1)))


def fisher_one_sided(successes: int, n: int, other_successes: int, other_n: int) -> float:
    """Return P of at least `successes` in the first of two independent samples, margins fixed: Fisher's exact test."""
    total, population = successes + other_successes, n + other_n
    ways = math.comb(population, total)
    top = min(n, total)
    return min(
        1.0, math.fsum(math.comb(n, k) * math.comb(other_n, total - k) / ways for k in range(successes, top + 1))
    )


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval of a rate; (0, 1) without samples."""
    if n == 0:
        return 0.0, 1.0
    z2 = _Z_TWO_SIDED_95**2
    centre = (successes + z2 / 2) / (n + z2)
    half = _Z_TWO_SIDED_95 * math.sqrt(successes * (n - successes) / n + z2 / 4) / (n + z2)
    return max(0.0, centre - half), min(1.0, centre + half)


def failure_upper_bound(failures: int, n: int, alpha: float = 0.05) -> float:
    """Return the exact upper bound (Clopper-Pearson, one-sided) of a failure rate; 1 - alpha^(1/n) without failures."""
    if n == 0 or failures >= n:
        return 1.0
    if failures == 0:
        return 1 - math.pow(alpha, 1 / n)
    low, high = failures / n, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if 1 - binomial_at_least(failures + 1, n, middle) > alpha else (low, middle)
    return high


def loss_upper_bound(wins: int, losses: int, n: int) -> float:
    """Return the one-sided 95 % upper bound of (losses - wins) / n: Agresti and Min 2005, half a pair in each cell."""
    if n == 0:
        return 1.0
    size = n + 2
    difference = (losses - wins) / size
    spread = (wins + losses + 1) / size - difference**2
    return min(1.0, difference + _Z_ONE_SIDED_95 * math.sqrt(spread / size))


def supported_margin(n: int, discordant: float = 0.15) -> float:
    """Return the least non-inferiority margin that n pairs can decide: an equal candidate passes 8 times in 10.

    (z_.95 + z_.80)·sqrt(discordant / n), with the share of discordant pairs that greedy replies usually show.
    """
    return 1.0 if n == 0 else min(1.0, (_Z_ONE_SIDED_95 + _Z_POWER_80) * math.sqrt(discordant / n))


def _binomial(k: int, n: int, rate: float) -> float:
    if rate in {0.0, 1.0}:
        return float(k == n * rate)
    log = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(log + k * math.log(rate) + (n - k) * math.log1p(-rate))
