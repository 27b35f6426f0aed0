"""Who and what may train: the consent join of the store, the ladder's verdict on each line, and the scrub.

    rows allowed now ─► lines that earned it ─► scrubbed ─► training prompts | held-out prompts, disjoint

Held-out prompts come from conversations that were held out when they began, and share no text with what trains.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from app.config import LadderSettings
from app.domain.consent import Consents
from app.domain.ladder import Rung, decide_graduation
from app.store import Tx, admission, people
from app.store.admission import AdmittedExample, AdmittedLine, AdmittedPrompt
from learner.dataset.scrub import findings
from learner.types import normal_form


@dataclass(frozen=True, slots=True)
class Admission:
    """What may be learnt of one person at one moment.

    `taught` are the normal forms of all that trains, prompts and examples; `left_out` counts what was not admitted, by
    reason.
    """

    person_id: UUID
    lines: tuple[AdmittedLine, ...] = field(repr=False)
    train: tuple[AdmittedPrompt, ...] = field(repr=False)
    gate: tuple[AdmittedPrompt, ...] = field(repr=False)
    taught: frozenset[str] = field(default=frozenset(), repr=False)
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def system(self) -> str:
        """The bot's system prompt as the person last met it."""
        known = (*self.train, *self.gate)
        return known[0].system if known else ""


async def admit(tx: Tx, person_id: UUID, ladder: LadderSettings) -> Admission:
    """Return what may be learnt of this person now; nothing at all without both consents."""
    if not await admission.allowed(tx, person_id):
        return Admission(person_id, (), (), (), left_out={"no_consent": 1})
    consents = await people.consents(tx, person_id)
    left_out: Counter[str] = Counter()
    found = await admission.lines(tx, person_id)
    lines = tuple(kept for line in found if (kept := _line(line, consents, ladder, left_out)))
    prompts = _scrubbed(await admission.prompts(tx, person_id), left_out)
    train = tuple(_distinct(p for p in prompts if p.split == "train"))
    taught = {normal_form(p.text) for p in train} | {
        normal_form(e.example.prompt) for line in lines for e in line.examples
    }
    gate = tuple(_distinct(p for p in prompts if p.split == "heldout" and normal_form(p.text) not in taught))
    return Admission(person_id, lines, train, gate, frozenset(taught), dict(left_out))


def _line(
    line: AdmittedLine, consents: Consents, ladder: LadderSettings, left_out: Counter[str]
) -> AdmittedLine | None:
    """Return the line with its usable examples, if it has earned its place or has it already."""
    if findings(line.line.text):
        left_out["line_scrubbed"] += 1
        return None
    if not line.line.checker:  # also one that an adapter holds: back in the prompt, it holds up no other lesson
        left_out["line_unchecked"] += 1
        return None
    examples = tuple(e for e in line.examples if not _example_findings(e))
    left_out["example_scrubbed"] += len(line.examples) - len(examples)
    if line.line.state == "active" and decide_graduation(line.line, consents, ladder).rung is not Rung.ADAPTER:
        return None
    return AdmittedLine(line.line, examples) if examples else None


def _example_findings(example: AdmittedExample) -> bool:
    shown = example.example
    return any(findings(text) for text in (shown.prompt, shown.good, shown.bad or ""))


def _scrubbed(prompts: Iterable[AdmittedPrompt], left_out: Counter[str]) -> list[AdmittedPrompt]:
    kept: list[AdmittedPrompt] = []
    for prompt in prompts:
        if found := findings(prompt.text):
            left_out[found[0]] += 1
        elif normal_form(prompt.text):
            kept.append(prompt)
    return kept


def _distinct(prompts: Iterable[AdmittedPrompt]) -> list[AdmittedPrompt]:
    """Keep the newest of prompts that say the same."""
    kept: dict[str, AdmittedPrompt] = {}
    for prompt in prompts:
        kept.setdefault(normal_form(prompt.text), prompt)
    return list(kept.values())
