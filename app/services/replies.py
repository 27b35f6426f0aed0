"""What a finished turn shows: its parts, the vote buttons on the last one, an honest sentence where there is no reply."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from app.domain.messages import text as say
from app.domain.outgoing import Button, Content
from app.domain.press import Press, short_id
from app.domain.text import literal
from app.domain.turn import Outcome
from app.ports import Channel
from bots.plain import plain


def reply_parts(channel: Channel, language: str, turn_id: UUID, outcome: Outcome) -> Sequence[Content]:
    """Return the parts of a reply."""
    text = outcome.reply_text or say(language, "stopped_before_start")
    if outcome.finish_reason == "length":
        text += "\n\n" + say(language, "cut_by_length")
    if outcome.state == "stopped" and outcome.reply_text:
        text += "\n\n" + say(language, "stopped")
    parts = list(channel.split(worded(channel, text)))
    last = Content(parts[-1], vote_buttons(language, turn_id, 0))
    return [*(Content(part) for part in parts[:-1]), last]


def as_shown(channel: Channel, content: Content) -> Sequence[Content]:
    """Return the messages that show `content` on `channel`: choices in words where there are no buttons, none too long."""
    if content.file_name is not None:
        return [content]
    whole = content if channel.capabilities.buttons else content.spelled_out()
    *first, last = channel.split(worded(channel, whole.text))
    return [*(Content(part) for part in first), replace(whole, text=last)]


def worded(channel: Channel, text: str) -> str:
    """Return a Markdown text as `channel` takes it: without its marks where it shows no formats."""
    return text if channel.capabilities.formatting else plain(text)


def vote_buttons(language: str, turn_id: UUID, vote: int) -> tuple[tuple[Button, ...], ...]:
    """Return the buttons under a reply, the vote in force marked."""
    turn = short_id(turn_id)
    up = Button("👍 ✓" if vote > 0 else "👍", Press("v", turn, "0" if vote > 0 else "u").data())
    down = Button("👎 ✓" if vote < 0 else "👎", Press("v", turn, "0" if vote < 0 else "d").data())
    again = Button(say(language, "button_again"), Press("t", turn).data())
    correct = Button(say(language, "button_correct"), Press("c", turn).data())
    return ((up, down, correct, again),)


def failure_content(language: str, turn_id: UUID, failure: str | None) -> Content:
    """Return the honest sentence for a reply that could not be made, with a button to try again."""
    again = Button(say(language, "button_try_again"), Press("t", short_id(turn_id)).data())
    key = {"empty": "reply_empty", "unavailable": "model_away", "refused": "model_refused"}.get(
        failure or "", "model_bad_answer"
    )
    return Content(say(language, key), ((again,),))


def release_news(language: str, release_id: UUID, learnt: Sequence[str]) -> Content:
    """Return what a new adapter has learnt, with the choice to keep it or to go back."""
    release = short_id(release_id)
    keep = Button(say(language, "button_keep"), Press("k", release, "keep").data())
    back = Button(say(language, "button_go_back"), Press("k", release, "back").data())
    lines = "\n".join(f"- {literal(line)}" for line in learnt)
    return Content(say(language, "release_news", lines=lines), ((keep, back),))
