"""Chat messages to token ids, for student and teacher. The teacher's context is the lesson: hint and examples.

Knows the tokenizer, not the model.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.domain.text import without_markers
from app.errors import TrainingStoppedError
from learner.types import ChatMessage, Example, Lesson, Role

MAX_EXAMPLES_PER_LESSON = 3


@dataclass(frozen=True, slots=True)
class TeacherPrompt:
    """The ids of a prompt as the teacher sees it; `trimmed` where it had to do with fewer examples than there are."""

    ids: tuple[int, ...]
    trimmed: bool = False


def fit_teacher(
    messages: Sequence[ChatMessage],
    lessons: Sequence[Lesson],
    render: Callable[[Sequence[ChatMessage]], tuple[int, ...]],
    most_tokens: int,
) -> TeacherPrompt | None:
    """Return the teacher's prompt with as many examples a lesson as fit, the newest of them; at last the shortest one.

    None where not even that fits: without an example the teacher would not follow its own hint.
    """
    for shown in _ever_fewer(lessons):
        ids = render(teacher_messages(messages, shown))
        if len(ids) <= most_tokens:
            return TeacherPrompt(ids, any(_shows_fewer(s, lesson) for s, lesson in zip(shown, lessons, strict=True)))
    return None


def _shows_fewer(shown: Lesson, lesson: Lesson) -> bool:
    return len(shown.examples) < min(len(lesson.examples), MAX_EXAMPLES_PER_LESSON)


def _ever_fewer(lessons: Sequence[Lesson]) -> Iterator[tuple[Lesson, ...]]:
    # An only example stands there twice where there is room: once is not yet a pattern.
    yield tuple(replace(lesson, examples=lesson.examples * (3 - min(len(lesson.examples), 2))) for lesson in lessons)
    for count in range(MAX_EXAMPLES_PER_LESSON - 1, 0, -1):
        yield tuple(replace(lesson, examples=lesson.examples[-count:]) for lesson in lessons)
    yield tuple(replace(lesson, examples=_shortest_first(lesson)[:1]) for lesson in lessons)


def _shortest_first(lesson: Lesson) -> tuple[Example, ...]:
    return tuple(sorted(lesson.examples, key=lambda example: len(example.user) + len(example.good)))


def teacher_messages(messages: Sequence[ChatMessage], lessons: Sequence[Lesson]) -> tuple[ChatMessage, ...]:
    """Return the prompt as the teacher sees it: hints in the system message, examples as turns before the request, and
    beneath each of these requests, the last one included, the hint that its answer follows.

    A small model does not follow a bare hint, and examples alone only where they are short and alike; `app.domain.prompt`
    has the figures, and memory the same form. A teacher that does not do what it teaches teaches nothing.
    """
    own = "".join(m.content + "\n\n" for m in messages if m.role == "system")
    hints = "\n".join(f"- {lesson.hint}" for lesson in lessons)
    system = _message("system", f"{own}Always answer this way:\n{hints}")
    turns = [
        turn
        for lesson in lessons
        for example in lesson.examples[-MAX_EXAMPLES_PER_LESSON:]
        for turn in (_reminded(example.user, (lesson,)), _message("assistant", example.good))
    ]
    rest = [m for m in messages if m.role != "system"]
    return (system, *turns, *rest[:-1], *(_reminded(m.content, lessons) for m in rest[-1:]))


def _reminded(request: str, lessons: Sequence[Lesson]) -> ChatMessage:
    return _message("user", "\n\n".join([request, *(lesson.hint for lesson in lessons if lesson.examples)]))


def _message(role: Role, text: str) -> ChatMessage:
    """Return a message in the form that `app.domain.prompt` gives it: a hint cannot begin another one either."""
    return ChatMessage(role, without_markers(text))


class Renderer:
    """Renders prompts with the base's own chat template."""

    def __init__(
        self,
        tokenizer: Any,  # noqa: ANN401  # transformers is untyped here
        end_ids: tuple[int, ...],
        template_args: Mapping[str, bool] | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._template_args = dict(template_args or {})
        self.end_ids = end_ids

    def prompt(self, messages: Sequence[ChatMessage]) -> tuple[int, ...]:
        """Return the ids of the prompt up to where the assistant starts."""
        encoded = self._tokenizer.apply_chat_template(
            [m.as_dict() for m in messages],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            **self._template_args,
        )
        return tuple(int(i) for i in encoded["input_ids"])

    def reply(self, text: str) -> tuple[int, ...]:
        """Return the ids of a whole reply, its end of turn included, and no other mark of the base.

        Raises:
            TrainingStoppedError: the reply is empty.
        """
        ids = tuple(int(i) for i in self._tokenizer(without_markers(text), add_special_tokens=False)["input_ids"])
        if not ids:
            raise TrainingStoppedError("an approved reply is empty, so there is nothing to anchor to")
        return (*ids, self.end_ids[0])
