"""Personal data and secrets leave a text before it trains; ordinary numbers stay."""

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learner.dataset.scrub import MAX_CHARS, find, scrub


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("메일은 a.b@example.co.kr로 보내 줘", "메일은 [EMAIL]로 보내 줘"),
        ("카드는4111111111111111이야", "카드는[CARD]이야"),
        ("card 4111 1111 1111 1111, thanks", "card [CARD], thanks"),
        ("카드 5500-0000-0000-0004입니다", "카드 [CARD]입니다"),
        ("서버는 192.168.0.1입니다", "서버는 [IP]입니다"),
        ("at 2001:db8::8a2e:370:7334 now", "at [IP] now"),
        ("주민번호 900101-1234568이에요", "주민번호 [RRN]이에요"),
        ("번호는 010-1234-5678이고", "번호는 [PHONE]이고"),
        ("전화는 02-312-3456번", "전화는 [PHONE]번"),
        ("call +82 10 1234 5678 please", "call [PHONE] please"),
        ("call (415) 555-2671", "call [PHONE]"),
        ("계좌 110-234-567890으로 보내", "계좌 [ACCOUNT]으로 보내"),
        ("여권 M12345678요", "여권 [PASSPORT]요"),
        ("면허 11-22-333333-44", "면허 [LICENCE]"),
        ("비밀번호는 hunter2 야", "비밀번호는 [SECRET] 야"),
        ("my password is s3cr3t!", "my password is [SECRET]"),
        ("https://x.org/a?token=abcd1234&b=1", "https://x.org/a?token=[SECRET]&b=1"),
        ("postgresql://me:pw@host/db", "postgresql://[SECRET]@host/db"),
        ("key AKIAIOSFODNN7EXAMPLE는", "key [SECRET]는"),
        ("use sk-abcdefghijklmnop1234", "use [SECRET]"),
        ("bot 123456789:AAabcdefghijklmnopqrstuvwxyz0123456을", "bot [SECRET]을"),
        ("eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSMeK", "[SECRET]"),
        ("Authorization: Bearer abcdefghijklmnop0123", "Authorization: Bearer [SECRET]"),
        ("d41d8cd98f00b204e9800998ecf8427e", "[SECRET]"),
    ],
)
def test_found_and_replaced(text: str, clean: str) -> None:
    assert scrub(text).text == clean


@pytest.mark.parametrize(
    "text",
    [
        "2024년 11월 29일에 만나요",
        "order 1234567890123 has shipped",
        "the answer is 65,960",
        "version 1.2.3 and 10.4",
        "주문번호 4111111111111112",
        "901301-1234567 is no date",
        "I forgot my password again",
        "비밀번호를 잊어버렸어요",
        "a @ b, me@home",
        "between 10:30 and 11:45",
        "supercalifragilisticexpialidocious-and-more-words",
        "it costs 1000000 won",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert find(text) == ()


def test_registration_number_without_a_dash_needs_its_checksum() -> None:
    assert find("9001011234568")[0].kind == "RRN"
    assert not [s for s in find("9001011234561") if s.kind == "RRN"]


def test_spans_point_into_the_original() -> None:
    text = "가나다 a@b.co 와 010-1234-5678"
    spans = find(text)
    assert [(s.kind, text[s.start : s.end]) for s in spans] == [("EMAIL", "a@b.co"), ("PHONE", "010-1234-5678")]


def test_a_text_too_long_to_search_is_not_trusted() -> None:
    result = scrub("word " * MAX_CHARS)
    assert result.text.endswith("[UNSEARCHED]")
    assert len(result.text) <= MAX_CHARS + 12


@pytest.mark.parametrize(
    "unit", ["a", "1", "a.", "1-", "@", "a@a", "password ", "-----BEGIN PRIVATE KEY-----", ":", "계좌 1-"]
)
def test_hostile_repetition_is_quick(unit: str) -> None:
    start = time.monotonic()
    find((unit * MAX_CHARS)[:MAX_CHARS])
    assert time.monotonic() - start < 5


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=400))
def test_never_breaks_and_is_stable(text: str) -> None:
    spans = find(text)
    assert all(0 <= s.start < s.end <= len(text) for s in spans)
    assert all(one.end <= other.start for one, other in pairwise(spans))
