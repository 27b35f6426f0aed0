"""The panel's sentences and figures in the reader's language: vocabulary, ages, numbers. Knows no page."""

from datetime import datetime
from typing import TypeVar

from markupsafe import Markup

from app.clock import now
from app.domain import messages

_AGES = ((60, "seconds", 1), (3600, "minutes", 60), (86_400, "hours", 3600), (86_400 * 60, "days", 86_400))
_MIB = 1024 * 1024
T = TypeVar("T")


class Words:
    """Everything a template says."""

    def __init__(self, language: messages.Language) -> None:
        self.language = language

    def t(self, key: str, **values: object) -> str:
        """Return the sentence `admin.<key>`."""
        return messages.text(self.language, f"admin.{key}", **values)

    def word(self, room: str, value: str | None) -> str:
        """Return the name of a vocabulary word, such as `word("class", "style")`; one that we do not know as it is."""
        if not value:
            return self.t("none")
        key = f"admin.{room}.{value}"
        return messages.text(self.language, key) if key in messages.catalogue("en") else value

    def sentence(self, key: str) -> str:
        """Return the sentence `admin.<key>`, or the general one where there is none."""
        return self.t(key if self.knows(key) else "error.other")

    def knows(self, key: str) -> bool:
        """Whether there is a sentence `admin.<key>`."""
        return f"admin.{key}" in messages.catalogue("en")

    def gate(self, name: str) -> str:
        """Return the name of a gate such as `drift/length`, or `target/<lesson>` with the lesson's id cut short."""
        family, _, part = name.partition("/")
        title = self.word("gate", family)
        if not part:
            return title
        return f"{title} · {self.word('gate_part', part) if self.knows(f'gate_part.{part}') else short(part)}"

    def span(self, seconds: float | None) -> str:
        """Return a length of time in the largest fitting unit."""
        if seconds is None:
            return self.t("none")
        seconds = max(0.0, seconds)
        for limit, unit, size in _AGES:
            if seconds < limit:
                return self.t(f"span.{unit}", n=int(seconds // size))
        return self.t("span.months", n=int(seconds // (86_400 * 30)))

    def ago(self, moment: datetime | None) -> Markup:
        """Return how long ago `moment` was, with the exact time (UTC) on hover and for machines."""
        if moment is None:
            return Markup("{}").format(self.t("never"))
        text = self.t("ago", span=self.span((now() - moment).total_seconds()))
        exact = moment.strftime("%Y-%m-%d %H:%M:%S UTC")
        return Markup('<time datetime="{}" title="{}">{}</time>').format(moment.isoformat(), exact, text)

    def moment(self, moment: datetime | None) -> Markup:
        """Return a moment to the minute (UTC)."""
        if moment is None:
            return Markup("{}").format(self.t("none"))
        shown = moment.strftime("%Y-%m-%d %H:%M")
        return Markup('<time datetime="{}" title="UTC">{}</time>').format(moment.isoformat(), shown)


def percent(value: float | None) -> str:
    """Return a share without decimals."""
    return "–" if value is None else f"{100 * value:.0f} %"


def number(value: float | None) -> str:
    """Return a figure with three significant digits."""
    return "–" if value is None else f"{value:.3g}"


def mebibytes(value: int) -> str:
    """Return a size in MiB."""
    return f"{value / _MIB:.1f} MiB"


def short(value: object) -> str:
    """Return the first eight characters of an id or digest."""
    return str(value)[:8]
