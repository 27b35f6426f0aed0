"""What the model server's answers say, checked field by field: a foreign server's JSON may have any shape.

Every function raises `ModelBadAnswerError` for what the API does not promise. Knows no HTTP.
"""

import json
import math
from typing import Any, cast

from app.domain.text import storable
from app.errors import ModelBadAnswerError, ModelUnavailableError
from app.ports import Completion, ServedModel

Json = dict[str, Any]  # the parsing edge: values are looked at before they are used
_REASON_CHARS = 32
_IDS = range(2**31)  # what a column of token ids holds


def read(payload: bytes) -> Json:
    """Return the JSON object of an answer or an event."""
    try:
        return an_object(json.loads(payload))
    except (ValueError, RecursionError) as error:
        raise ModelBadAnswerError from error


def an_object(value: object) -> Json:
    """Return a JSON object."""
    if not isinstance(value, dict):
        raise ModelBadAnswerError
    return cast("Json", value)


def a_list(value: object) -> list[Any]:
    """Return a JSON list."""
    if not isinstance(value, list):
        raise ModelBadAnswerError
    return value


def maybe_text(value: object) -> str | None:
    """Return a text that can be stored, or None where there is none."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise ModelBadAnswerError
    return storable(value)


def logprob(value: object) -> float:
    """Return a log-probability: a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ModelBadAnswerError
    try:
        found = float(value)
    except OverflowError as error:
        raise ModelBadAnswerError from error
    if not math.isfinite(found):
        raise ModelBadAnswerError
    return found


def token_ids(value: object) -> tuple[int, ...]:
    """Return token ids; none where they were left out."""
    found = a_list([] if value is None else value)
    if not all(type(token) is int and token in _IDS for token in found):
        raise ModelBadAnswerError
    return tuple(found)


def logprobs(value: object) -> tuple[float, ...]:
    """Return the log-probabilities in a choice's `logprobs`; none where they were left out."""
    given = {} if value is None else an_object(value)
    entries = given.get("content")
    return tuple(logprob(an_object(entry).get("logprob")) for entry in a_list([] if entries is None else entries))


def first_choice(answer: Json) -> Json:
    """Return the first choice of an answer."""
    choices = a_list(answer.get("choices"))
    return an_object(choices[0] if choices else None)


def served(answer: Json) -> list[ServedModel]:
    """Return what a list of models names."""
    cards = [an_object(card) for card in a_list(answer.get("data"))]
    names = [(maybe_text(card.get("id")), card) for card in cards]
    return [
        ServedModel(name, maybe_text(card.get("parent")), maybe_text(card.get("root"))) for name, card in names if name
    ]


def whole(answer: Json, model: str) -> Completion:
    """Return the completion of an answer that came in one piece."""
    pieces = Pieces(maybe_text(answer.get("model")) or model)
    choice = first_choice(answer)
    message = an_object(choice.get("message"))
    finish = maybe_text(choice.get("finish_reason")) or "stop"
    pieces.take(answer | {"choices": [choice | {"delta": message, "finish_reason": finish}]})
    return pieces.completion()


class Pieces:
    """The pieces of one stream until they make a completion."""

    def __init__(self, model: str) -> None:
        """Take the name of the model that was asked."""
        self._model = model
        self._text: list[str] = []
        self._prompt: tuple[int, ...] = ()
        self._tokens: list[int] = []
        self._logprobs: list[float] = []
        self._finish: str | None = None

    def take(self, data: Json) -> str:
        """Keep one event; return its text."""
        if "error" in data:
            raise ModelUnavailableError
        self._prompt = self._prompt or token_ids(data.get("prompt_token_ids"))
        if not a_list(data.get("choices")):
            return ""
        choice = first_choice(data)
        self._tokens += token_ids(choice.get("token_ids"))
        self._logprobs += logprobs(choice.get("logprobs"))
        finish = maybe_text(choice.get("finish_reason"))
        self._finish = finish[:_REASON_CHARS] if finish else self._finish
        delta = choice.get("delta")
        text = maybe_text(an_object({} if delta is None else delta).get("content")) or ""
        self._text.append(text)
        return text

    def completion(self) -> Completion:
        """Return the whole. Ids with logprobs of another length are dropped: such a turn cannot be learnt from."""
        if self._finish is None:
            raise ModelUnavailableError("the model server's answer ended in the middle")
        fit = len(self._logprobs) in {0, len(self._tokens)}
        return Completion(
            text="".join(self._text),
            finish_reason=self._finish,
            model=self._model,
            prompt_token_ids=self._prompt,
            token_ids=tuple(self._tokens) if fit else (),
            logprobs=tuple(self._logprobs) if fit else (),
        )
