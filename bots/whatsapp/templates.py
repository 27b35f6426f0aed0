"""What stands at Twilio beforehand, in each language: the question how a reply was with its quick replies, and the word that
there is news, which Meta has to approve because it goes out after the 24 hours. Nothing in them is about a person.

    ask    three buttons; what each sends back is a variable, filled in for every question
    news   plain words, sent once while something waits for a person's next word
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.domain.messages import LANGUAGES, Language
from app.domain.messages import text as say

Json = dict[str, Any]
ASK, NEWS = "ask", "news"
BUTTONS = ("up", "down", "correct")
# Of Twilio and Meta: https://www.twilio.com/docs/content/twilio-quick-reply
MAX_BODY, MAX_TITLE, MAX_BUTTONS = 1024, 20, 3
_SAMPLE = "v:AAAAAAAAAAAAAAAAAAAAAA:u"


@dataclass(frozen=True, slots=True)
class Definition:
    """A template as it should stand at Twilio; `category`: what Meta is to approve it as, None where nothing is asked."""

    name: str
    language: Language
    types: Json
    variables: Mapping[str, str] = field(default_factory=dict)
    category: str | None = None

    @property
    def digest(self) -> bytes:
        """The SHA-256 of all that it says."""
        said = [self.name, self.language, self.types, dict(self.variables), self.category]
        return hashlib.sha256(json.dumps(said, sort_keys=True, ensure_ascii=False).encode()).digest()

    @property
    def full_name(self) -> str:
        """A name for Twilio and Meta that no other text ever had: Meta gives none away twice."""
        return f"mentee_{self.name}_{self.language}_{self.digest.hex()[:8]}"

    def body(self) -> Json:
        """The request that makes it."""
        asked: Json = {"friendly_name": self.full_name, "language": self.language, "types": self.types}
        return asked | ({"variables": dict(self.variables)} if self.variables else {})


def definitions() -> Sequence[Definition]:
    """Return every template in every language."""
    return [make(language) for make in (_ask, _news) for language in LANGUAGES]


def without_approval() -> Sequence[Definition]:
    """Return the templates that nobody has to approve: all that Twilio's sandbox can send."""
    return [one for one in definitions() if one.category is None]


def _ask(language: Language) -> Definition:
    buttons = [
        {"type": "QUICK_REPLY", "title": say(language, f"template.ask.{name}"), "id": f"{{{{{number}}}}}"}
        for number, name in enumerate(BUTTONS, 1)
    ]
    types = {
        "twilio/quick-reply": {"body": say(language, "template.ask.body"), "actions": buttons},
        "twilio/text": {"body": say(language, "ask_how_in_words")},  # for whatever shows no buttons
    }
    return Definition(ASK, language, types, {str(number): _SAMPLE for number, _ in enumerate(BUTTONS, 1)})


def _news(language: Language) -> Definition:
    return Definition(
        NEWS, language, {"twilio/text": {"body": say(language, "template.news.body")}}, category="UTILITY"
    )
