"""What a foreign model server may send inside well-formed JSON."""

from app.clients.vllm_answer import Pieces


def test_texts_are_made_storable_where_they_come_in() -> None:
    pieces = Pieces("base")
    assert pieces.take({"choices": [{"delta": {"content": "a\x00b\ud800c"}}]}) == "a\ufffdb\ufffdc"
    pieces.take({"choices": [{"delta": {}, "finish_reason": "stop\x00" + "x" * 99}]})
    made = pieces.completion()
    assert made.text == "a\ufffdb\ufffdc"
    assert made.finish_reason == "stop\ufffd" + "x" * 27
