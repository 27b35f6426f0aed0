"""What the panel draws: figures, charts, other people's text, addresses, static files."""

import inspect
import re
from pathlib import Path
from typing import get_args

import pytest
from markupsafe import Markup
from sqlalchemy import CheckConstraint, Column

from app.admin import charts
from app.admin.assets import HTMX, HTMX_SRI, integrity_of, load_assets
from app.admin.forms import own_path
from app.admin.hostile import said_diff, shown
from app.admin.words import Words
from app.domain import ladder
from app.domain.diff import word_diff
from app.domain.feedback import FeedbackClass
from app.store.tables import admin, feedback, learning, people
from learner.serve.probe import Reason


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [(0, 0, 0.0, 1.0), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (81, 263, 0.2553, 0.3662)],
)
def test_wilson_intervals_as_published(k: int, n: int, low: float, high: float) -> None:
    assert charts.wilson(k, n) == pytest.approx((low, high), abs=5e-4)


def test_charts_hold_hostile_labels() -> None:
    hostile = '"><script>alert(1)</script>'
    for drawn in (
        charts.interval(1, 2, hostile),
        charts.vote_bars([(hostile, 1, 2)], hostile),
        charts.sparkline([1, 2], hostile),
    ):
        assert "<script>" not in drawn
        assert "style=" not in drawn


def test_a_single_vote_is_a_small_bar_with_its_count_and_the_days_it_is_among() -> None:
    days = [(f"11-{day:02}", 0, int(day == 30)) for day in range(17, 31)]
    drawn = charts.vote_bars(days, "votes per day")
    heights = [float(height) for height in re.findall(r'height="([\d.]+)" rx', drawn)]
    assert 0 < max(heights) < charts.BARS_SPAN / 2
    assert re.findall(r"<text[^>]*>([^<]+)</text>", drawn) == ["1", "11-17", "11-30"]
    assert charts.vote_bars([], "votes per day").count("<text") == 0


def test_one_value_is_no_line() -> None:
    assert charts.sparkline([1.0], "loss") == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain 한국어\nline", "plain 한국어\nline"),
        ("<b>&", "&lt;b&gt;&amp;"),
        ("a\u202eb", "U+202E"),
        ("a\u2066b", "U+2066"),
        ("a\x00b\x1bc", "U+001B"),
        ("a\u200bb", "U+200B"),
        ("a\u3164b", "U+3164"),
        ("a\ufeffb", "U+FEFF"),
        ("a\U000e0041b", "U+E0041"),
        ("a\ud800b", "U+D800"),
    ],
)
def test_nothing_in_it_is_invisible(text: str, expected: str) -> None:
    drawn = shown(text)
    assert expected in drawn
    assert not any(c in drawn for c in "\u202e\u2066\x00\x1b\u200b\u3164\ufeff\U000e0041\ud800")


def test_emoji_stay_pictures() -> None:
    family = "👩\u200d👩\u200d👧"
    assert shown(family) == family
    assert "U+200D" in shown("a\u200db")


def test_diffs_are_escaped_too() -> None:
    drawn = said_diff(word_diff("<i>one</i>", "<i>two</i>"))
    assert isinstance(drawn, Markup)
    assert "<i>" not in drawn
    assert "<del>one</del><ins>two</ins>" in drawn


def test_the_vendored_script_is_as_published() -> None:
    assets = load_assets()
    assert integrity_of(assets[HTMX].body) == HTMX_SRI == assets[HTMX].integrity


def test_every_class_has_a_name_in_both_languages() -> None:
    for language in ("en", "ko"):
        words = Words(language)  # type: ignore[arg-type]
        assert all(words.knows(f"class.{value}") for value in FeedbackClass)


@pytest.mark.parametrize("target", ["/admin", "/admin/", "/admin/feedback?state=new&item=1"])
def test_own_paths_are_kept(target: str) -> None:
    assert own_path(target) == target


@pytest.mark.parametrize(
    "target",
    ["", "/", "/administrator", "//x/admin/", "/admin/../x", "http://x/admin/", "/admin/\n", "/admin/\\x", "http://["],
)
def test_other_paths_are_not(target: str) -> None:
    assert own_path(target) == "/admin/"


VOCABULARIES = {
    "review": feedback.feedback.c.review_state,
    "class": feedback.feedback.c["class"],
    "kind": feedback.feedback.c.kind,
    "scope": feedback.feedback.c.scope,
    "duration": feedback.feedback.c.duration,
    "by": feedback.feedback.c.classified_by,
    "rung": feedback.ladder_decisions.c.rung,
    "memory": feedback.memory_lines.c.kind,
    "memory_state": feedback.memory_lines.c.state,
    "rewrite": feedback.rewrites.c.state,
    "score": feedback.scores.c.state,
    "queue": learning.jobs.c.queue,
    "item": learning.snapshot_items.c.kind,
    "run": learning.training_runs.c.state,
    "checkpoint": learning.checkpoints.c.state,
    "verdict": learning.gate_runs.c.verdict,
    "outcome": learning.gate_results.c.outcome,
    "release": learning.releases.c.state,
    "probe": learning.model_servers.c.probe_state,
    "person": people.people.c.status,
    "purpose": people.consent_events.c.purpose,
    "consent": people.consent_events.c.event,
    "switch": admin.switches.c.name,
    "switch_says": admin.switches.c.name,
    "role": admin.admins.c.role,
}


def vocabulary(column: Column[str]) -> set[str]:
    """The words that the schema allows in a column."""
    checks = [c for c in column.table.constraints if isinstance(c, CheckConstraint)]
    own = [str(c.sqltext) for c in checks if str(c.sqltext).startswith(f"{column.name} in (")]
    return {word for listed in own for word in re.findall(r"'(\w+)'", listed)}


@pytest.mark.parametrize("room", VOCABULARIES)
def test_every_word_of_the_schema_has_a_name(room: str) -> None:
    words = vocabulary(VOCABULARIES[room])
    assert words
    assert [word for word in words if not Words("en").knows(f"{room}.{word}")] == []


def test_every_finding_of_the_learner_has_a_sentence() -> None:
    spoken = Words("ko")
    assert all(spoken.knows(f"probe_reason.{reason}") for reason in get_args(Reason) if reason != "ok")
    source = "".join(path.read_text("utf-8") for path in Path("learner/gate").glob("*.py"))
    keys = set(re.findall(r'"(gate\.[a-z_.]+[a-z])"', source))
    keys |= {
        f"{stem}{outcome}"
        for stem in re.findall(r'f"(gate\.[a-z_.]+\.)\{outcome\}"', source)
        for outcome in ("passed", "failed")
    }
    assert len(keys) > 15
    assert [key for key in keys if not spoken.knows(key)] == []


def test_every_act_that_is_recorded_has_a_name() -> None:
    written = "".join(path.read_text("utf-8") for folder in ("app", "learner") for path in Path(folder).rglob("*.py"))
    acts = set(re.findall(r'\bAct\(\s*[^,()]+,\s*"([a-z_:]+)"', written))
    acts |= {f"feedback:review:{name}" for name in ("approve", "reject", "quarantine", "relabel", "reopen")}
    acts |= {f"switch:{name}:{turn}" for name in vocabulary(admin.switches.c.name) for turn in ("pause", "resume")}
    acts |= set(re.findall(r'"(admin:login:\w+)"', written))
    assert len(acts) > 20
    for language in ("en", "ko"):
        assert [act for act in acts if Words(language).word("event", act) == act] == []
    assert Words("ko").word("event", "some:new:act") == "some:new:act"


def test_every_rule_of_the_ladder_has_words() -> None:
    rules = set(re.findall(r'Rung\.\w+(?: if allowed else Rung\.NOTHING)?, "(\w+)"', inspect.getsource(ladder)))
    rules |= set(re.findall(r'"(\w+)" if .+? else "(\w+)"', inspect.getsource(ladder.decide_feedback))[0])
    rules |= {"fact_needs_several_people", "no_shared_consent", "one_sentence_says_it", "no_memory_consent"}
    rules |= {ladder.NEEDS_A_CHECK, *(f"class_{kind}" for kind in ("one_off", "topic_change", "abuse", "praise"))}
    assert len(rules) == 18
    for language in ("en", "ko"):
        for rule in rules:
            assert Words(language).word("rule", rule) != rule
