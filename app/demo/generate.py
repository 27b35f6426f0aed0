"""What a demonstration is about, drawn from a seed: the wish of a person, and prompts for each use, disjoint by subject.

Nothing in the product knows these wishes; each brings its own check, written apart from the product's checkers, so that
the demonstration does not grade with the hand that taught. Pure.
"""

import random
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

CALIBRATION, TALK, OTHER, LEAST_HELD_OUT = 8, 36, 4, 16

_PHRASES = {
    "end": ("Stay curious!", "Keep smiling!", "Take good care!", "Have a bright day!", "See you soon!"),
    "begin": ("Good question!", "Happy to help!", "Here we go!", "My pleasure!", "Listen closely!"),
}
_WORD_LIMITS = (12, 15, 18)
_THINGS = (
    "a kettle", "an anchor", "a lantern", "a harbour", "a violin", "a canoe", "a chimney", "a ladder", "a magnet",
    "a mirror", "a windmill", "an umbrella", "a telescope", "a hammock", "a typewriter", "a thermometer", "a waterfall",
    "a volcano", "an island", "a glacier", "a carpet", "a whistle", "a saddle", "a candle", "a barrel", "a greenhouse",
    "a submarine", "a drum", "a passport", "a microscope", "a railway", "a tunnel", "a meadow", "a castle", "a puppet",
    "a backpack", "a calendar", "a pillow", "a blanket", "a flute", "a sled", "a fountain",
)  # fmt: skip
_DEEDS = (
    "sharpen a pencil", "polish my shoes", "wrap a present", "paint a fence", "grow tomatoes", "tidy my desk",
    "wash a window", "sew on a button", "iron a skirt", "bake a cake", "train a puppy", "cut a melon", "peel an orange",
    "set the table", "make a bed", "clean a carpet", "store apples", "repair a chair", "draw a horse", "pack a suitcase",
    "light a campfire", "fly a kite", "build a sandcastle", "feed a goldfish", "brush a cat", "hang a curtain",
    "read a timetable", "save electricity", "learn to whistle", "juggle three balls", "tie a scarf", "mix green paint",
    "choose a hat", "dry wet boots", "remember a list", "find a lost key", "greet a neighbour", "cook rice",
    "mend a sock", "plant a hedge", "cool down in summer", "keep warm in winter",
)  # fmt: skip
_ASKED = {"thing": ("What is {}?", "What is {} good for?"), "deed": ("How do I {}?", "What is a good way to {}?")}
_ANSWERED = (
    ("What is rain?", ("Rain is water that falls from clouds", "It fills rivers and lakes", "Plants need it to grow")),
    ("What is honey?", ("Honey is a sweet food that bees make", "It keeps for years", "People eat it on bread")),
    ("What is snow?", ("Snow is frozen water that falls from clouds", "It covers the ground", "It melts when it is warm")),
    ("What is a lemon?", ("A lemon is a sour yellow fruit", "It grows on trees", "People put it in tea")),
)  # fmt: skip
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"


@dataclass(frozen=True, slots=True)
class Wish:
    """How a person wants to be answered: in their own words, as a check, and as they would write it themself."""

    family: str
    words: str
    holds: Callable[[str], bool]
    write: Callable[[Sequence[str]], str]


@dataclass(frozen=True, slots=True)
class Taught:
    """A question that the person answers themself, with the facts of the answer."""

    question: str = field(repr=False)
    facts: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Plot:
    """Everything a demonstration needs. `planted` is a made-up word that forgetting must remove from everywhere."""

    seed: int
    wishes: tuple[Wish, ...]
    calibration: tuple[str, ...]
    talk: tuple[str, ...]
    held_out: tuple[str, ...]
    other: tuple[str, ...]
    taught: Taught
    planted: str
    planted_taught: Taught

    @property
    def prompts(self) -> Mapping[str, tuple[str, ...]]:
        """Every set of prompts by its use."""
        shown = (*self.talk, self.taught.question, self.planted_taught.question)
        return {"calibration": self.calibration, "talk": shown, "held out": self.held_out, "other": self.other}


def plot(seed: int, held_out: int = 24, taken: Sequence[str] = ()) -> Plot:
    """Return the demonstration of a seed.

    Args:
        seed: the same seed gives the same wishes and prompts; the planted word is new each time.
        held_out: prompts of the four cells.
        taken: prompts that belong to somebody else (the gates' own) and are left out.

    Raises:
        ValueError: there are not that many prompts.
    """
    draw = random.Random(seed)  # noqa: S311  # no secret
    wishes = _wishes(draw)
    known = {normal(text) for text in taken}
    pool = [text for text in _pool(draw) if normal(text) not in known]
    sizes = (CALIBRATION, TALK, OTHER, held_out)
    if held_out < LEAST_HELD_OUT or sum(sizes) > len(pool):
        message = f"between {LEAST_HELD_OUT} and {len(pool) - sum(sizes[:3])} held-out prompts"
        raise ValueError(message)
    cuts = [sum(sizes[:n]) for n in range(len(sizes) + 1)]
    calibration, talk, other, cells = (tuple(pool[a:b]) for a, b in pairwise(cuts))
    question, facts = draw.choice(_ANSWERED)
    planted = invented_word()
    return Plot(seed, wishes, calibration, talk, cells, other, Taught(question, facts), planted, _about(planted))


def normal(text: str) -> str:
    """Return the form by which two prompts count as the same: letters and digits, no case."""
    return "".join(c for c in text.casefold() if c.isalnum())


def overlaps(sets: Mapping[str, Sequence[str]]) -> list[tuple[str, str, int]]:
    """Return each pair of sets that share a prompt, and how many."""
    named = [(name, {normal(text) for text in texts}) for name, texts in sets.items()]
    pairs = [(a, b) for i, a in enumerate(named) for b in named[i + 1 :]]
    return [(a[0], b[0], len(a[1] & b[1])) for a, b in pairs if a[1] & b[1]]


def invented_word() -> str:
    """Return a new word that nobody has written before, speakable and without digits."""
    return "".join(secrets.choice(_CONSONANTS) + secrets.choice(_VOWELS) for _ in range(6)).capitalize()


def sentences(text: str) -> int:
    """Return how many sentences a text has; lines of their own count."""
    return sum(1 for part in re.split(r"[.!?]+(?:\s+|$)|\n+", text.strip()) if any(c.isalnum() for c in part))


def _about(word: str) -> Taught:
    facts = (
        f"Give {word} a little water every morning",
        f"Keep {word} out of strong sun",
        f"Turn {word} around once a week",
    )
    return Taught(f"How do I look after my fern {word}?", facts)


def _pool(draw: random.Random) -> list[str]:
    subjects = [*(("thing", t) for t in _THINGS), *(("deed", d) for d in _DEEDS)]
    draw.shuffle(subjects)
    return [draw.choice(_ASKED[kind]).format(subject) for kind, subject in subjects]


def _wishes(draw: random.Random) -> tuple[Wish, ...]:
    found = [
        _ending(draw.choice(_PHRASES["end"])),
        _beginning(draw.choice(_PHRASES["begin"])),
        _bullets(),
        _one_sentence(),
        _short(draw.choice(_WORD_LIMITS)),
    ]
    draw.shuffle(found)
    return tuple(found)


def _ending(phrase: str) -> Wish:
    wanted = phrase.casefold()
    return Wish(
        "ending",
        f'Please end every answer with "{phrase}"',
        lambda text: text.strip().strip('"').casefold().endswith(wanted),
        lambda facts: f"{facts[0]}. {phrase}",
    )


def _beginning(phrase: str) -> Wish:
    wanted = phrase.casefold()
    return Wish(
        "beginning",
        f'Please start every answer with "{phrase}"',
        lambda text: text.strip().strip('"').casefold().startswith(wanted),
        lambda facts: f"{phrase} {facts[0]}.",
    )


def _bullets() -> Wish:
    return Wish(
        "bullets",
        "Please answer with bullet points.",
        lambda text: len(re.findall(r"^\s*[-*•] \S", text, re.MULTILINE)) >= 2,  # noqa: PLR2004  # a list has two
        lambda facts: "\n".join(f"- {fact}." for fact in facts),
    )


def _one_sentence() -> Wish:
    return Wish(
        "one sentence",
        "Please answer in one sentence.",
        lambda text: sentences(text) == 1,
        lambda facts: f"{facts[0]}.",
    )


def _short(limit: int) -> Wish:
    return Wish(
        "few words",
        f"Please use at most {limit} words.",
        lambda text: 0 < len(text.split()) <= limit,
        lambda facts: f"{facts[0]}.",
    )
