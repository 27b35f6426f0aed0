"""How the trainer lays out tokens, and which LoRA forms it refuses."""

import pytest

from app.errors import InvalidInputError
from learner.train.render import teacher_messages
from learner.types import ChatMessage, Example, Lesson, TrainSettings

pytestmark = pytest.mark.slow
pytest.importorskip("torch")


@pytest.mark.parametrize("targets", [["lm_head"], ["q_proj", "embed_tokens"], [], ["norm"]])
def test_lora_on_head_or_embeddings_is_forbidden(targets: list[str]) -> None:
    from learner.train.model import lora_config

    with pytest.raises(InvalidInputError):
        lora_config(8, 16, targets)


def test_prompts_are_padded_left_with_zero_and_responses_start_together() -> None:
    from learner.train.batch import collate

    batch = collate([[5, 6, 7], [8]], [[1, 2], [3]])
    assert batch.ids_BS.tolist() == [[5, 6, 7, 1, 2], [0, 0, 8, 3, 0]]
    assert batch.attention_BS.tolist() == [[1, 1, 1, 1, 1], [0, 0, 1, 1, 0]]
    assert batch.positions_BS.tolist() == [[0, 1, 2, 3, 4], [0, 0, 0, 1, 1]]
    assert batch.response_mask_BT.tolist() == [[1, 1], [1, 0]]


def test_every_prompt_is_used_equally_often() -> None:
    from learner.train.opd_run import _rotation

    drawn = [thing for step in range(6) for thing in _rotation("abc", 4, step, seed=3)]
    assert [drawn.count(c) for c in "abc"] == [8, 8, 8]
    assert drawn == [thing for step in range(6) for thing in _rotation("abc", 4, step, seed=3)]
    assert drawn != [thing for step in range(6) for thing in _rotation("abc", 4, step, seed=4)]


def test_the_teacher_sees_hint_and_examples_and_the_student_does_not() -> None:
    prompt = (ChatMessage("system", "You are Bo."), ChatMessage("user", "What is rain?"))
    lesson = Lesson("l", "End with 'Bye.'", (Example("Hi", "Hello.", "Hello. Bye."),))
    seen = teacher_messages(prompt, [lesson])
    assert [m.role for m in seen] == ["system", "user", "assistant", "user"]
    assert seen[0].content.startswith("You are Bo.")
    assert "End with 'Bye.'" in seen[0].content
    assert seen[2].content == "Hello. Bye."
    assert all(m.content != "Hello." for m in seen)
    assert seen[1].content.endswith("End with 'Bye.'")
    assert seen[-1].content == f"{prompt[-1].content}\n\nEnd with 'Bye.'"


@pytest.mark.parametrize(
    "bad",
    [
        {"steps": 0},
        {"learning_rate": 0.0},
        {"anchor_weight": -1.0},
        {"rank": 0},
        {"kl_abort": float("nan")},
    ],
)
def test_settings_that_cannot_train_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        TrainSettings.from_json(bad)


@pytest.mark.parametrize("bad", [{"wings": 2}, {"steps": "many"}])
def test_settings_that_are_none_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        TrainSettings.from_json(bad)
