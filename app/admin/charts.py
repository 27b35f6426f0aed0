"""Small charts drawn on the server as SVG: no script, testable, readable without colour. Pure functions."""

from collections.abc import Sequence
from math import sqrt

from markupsafe import Markup

Z95 = 1.959963984540054
WIDTH, HEIGHT = 200, 18
SPARK_WIDTH, SPARK_HEIGHT = 240, 56
BAR, GAP, BARS_HEIGHT, BARS_MIDDLE, BARS_SPAN = 9, 9, 84, 35, 22
LEAST_SCALE = 3  # a single vote is a small bar, not a tower


def wilson(successes: int, n: int, z: float = Z95) -> tuple[float, float]:
    """Return the Wilson score interval of a proportion (E. B. Wilson, 1927); (0, 1) when nothing was observed."""
    if n == 0:
        return 0.0, 1.0
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def interval(successes: int, n: int, label: str) -> Markup:
    """Return a whisker for the interval and a dot for the share on a scale from 0 to 1; `label` says it in words."""
    low, high = wilson(successes, n)
    share = successes / n if n else 0.5
    pad, span = 6, WIDTH - 12

    def at(value: float) -> str:
        return f"{pad + span * value:.1f}"

    grid = Markup("").join(
        Markup('<line class="grid" x1="{0}" x2="{0}" y1="1" y2="17"/>').format(at(v)) for v in (0, 0.25, 0.5, 0.75, 1)
    )
    dot = Markup('<circle class="dot" cx="{}" cy="9" r="4.5"/>').format(at(share)) if n else Markup("")
    return Markup(
        '<svg class="interval" role="img" aria-label="{}" viewBox="0 0 {} {}" width="{}" height="{}">{}'
        '<rect class="whisker" x="{}" y="6.5" width="{:.1f}" height="5" rx="2.5"/>{}</svg>'
    ).format(label, WIDTH, HEIGHT, WIDTH, HEIGHT, grid, at(low), span * (high - low), dot)


def vote_bars(days: Sequence[tuple[str, int, int]], label: str) -> Markup:
    """Return one column per (day, up, down): up above the line, down below it, to the same scale, with their counts."""
    scale = BARS_SPAN / max([LEAST_SCALE, *(max(up, down) for _, up, down in days)])
    width = max(len(days) * (BAR + GAP) - GAP, 1)
    dates = Markup("").join(
        Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>').format(x, BARS_HEIGHT - 3, anchor, day)
        for x, anchor, (day, _, _) in zip((0, width), ("start", "end"), (*days[:1], *days[1:][-1:]), strict=False)
    )
    columns = Markup("").join(_column(i * (BAR + GAP), scale, day) for i, day in enumerate(days))
    return Markup(
        '<svg class="bars" role="img" aria-label="{}" viewBox="0 0 {w} {h}" width="{w}" height="{h}">'
        '<line class="grid" x1="0" x2="{w}" y1="{m}" y2="{m}"/>{c}{dates}</svg>'
    ).format(label, w=width, h=BARS_HEIGHT, m=BARS_MIDDLE, c=columns, dates=dates)


def _column(x: int, scale: float, votes: tuple[str, int, int]) -> Markup:
    day, up, down = votes
    top, bottom = BARS_MIDDLE - 1 - up * scale, BARS_MIDDLE + 1 + down * scale
    count = Markup('<text x="{}" y="{:.1f}" text-anchor="middle">{}</text>')
    counts = (count.format(x + BAR / 2, top - 2, up) if up else Markup("")) + (
        count.format(x + BAR / 2, bottom + 9, down) if down else Markup("")
    )
    return Markup(
        '<g><title>{}: 👍 {} · 👎 {}</title><rect class="up" x="{x}" y="{y:.1f}" width="{w}" height="{u:.1f}" rx="2"/>'
        '<rect class="down" x="{x}" y="{m}" width="{w}" height="{d:.1f}" rx="2"/>{counts}</g>'
    ).format(*(day, up, down), x=x, w=BAR, y=top, u=up * scale, m=BARS_MIDDLE + 1, d=down * scale, counts=counts)


def sparkline(values: Sequence[float], label: str) -> Markup:
    """Return a line through `values` with a dot at the last; nothing for fewer than two."""
    if len(values) <= 1:
        return Markup("")
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    pad = 5
    points = [
        (
            pad + (SPARK_WIDTH - 2 * pad) * i / (len(values) - 1),
            SPARK_HEIGHT - pad - (SPARK_HEIGHT - 2 * pad) * (v - low) / span,
        )
        for i, v in enumerate(values)
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    x, y = points[-1]
    return Markup(
        '<svg class="spark" role="img" aria-label="{}" viewBox="0 0 {w} {h}" width="{w}" height="{h}">'
        '<polyline points="{}"/><circle class="dot" cx="{:.1f}" cy="{:.1f}" r="3.5"/></svg>'
    ).format(label, path, x, y, w=SPARK_WIDTH, h=SPARK_HEIGHT)
