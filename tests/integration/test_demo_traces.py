"""The search for a planted word finds it in every form in which it could have stayed."""

import pathlib

import asyncpg
import pytest

from app.demo import traces
from app.demo.person import rewrite_in
from app.demo.talk import Heard
from app.domain.messages import text as say

WORD, IDS = "Morelezikono", (411, 17, 9023, 5)


class _Broker:
    """Stands for an empty broker where only tables and files are looked at."""

    @classmethod
    async def none(cls, _url: str, _needles: object) -> tuple[int, int]:
        return 0, 0


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.setattr(traces, "_broker", _Broker.none)
    return traces.forms(WORD, IDS)


@pytest.mark.parametrize(
    "value",
    [
        "insert into inbox_of_test values (null, 'about {w}', null)",
        "insert into inbox_of_test values (convert_to('so {w}!', 'UTF8'), null, null)",
        "insert into inbox_of_test values (null, lower('{w}'), null)",
        "insert into inbox_of_test values (null, null, array[1, 411, 17, 9023, 5, 2])",
    ],
)
async def test_a_row_that_holds_it_is_found(
    database_url: str, tmp_path: pathlib.Path, wanted: tuple[str, ...], value: str
) -> None:
    connection = await asyncpg.connect(database_url)
    await connection.execute("create table inbox_of_test (body bytea, words text, ids int[])")
    before = await traces.search(database_url, "", tmp_path, wanted)
    assert before.found == 0
    assert before.tables_seen > 30
    await connection.execute(value.format(w=WORD))
    await connection.close()
    after = await traces.search(database_url, "", tmp_path, wanted)
    assert after.tables == {"public.inbox_of_test": 1}


async def test_a_file_that_holds_it_is_found_wherever_it_lies(
    database_url: str, tmp_path: pathlib.Path, wanted: tuple[str, ...]
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "runs" / "r1").mkdir(parents=True)
    (tmp_path / "models").mkdir()
    (tmp_path / "logs" / "gateway.log").write_text(f"x {WORD.lower()} y")
    (tmp_path / "runs" / "r1" / "rollouts.json").write_text('{"prompt_token_ids":[1,411,17,9023,5]}')
    (tmp_path / "runs" / "r1" / "job.json").write_text("{}")
    (tmp_path / "models" / "tokenizer.json").write_text(WORD)
    found = await traces.search(database_url, "", tmp_path, wanted)
    assert found.files == ("logs/gateway.log", "runs/r1/rollouts.json")
    assert found.files_seen == 3


def test_few_token_ids_are_not_searched_for_they_would_be_anywhere() -> None:
    assert "411,17" not in traces.forms(WORD, (411, 17))
    assert "411,17,9023,5" in traces.forms(WORD, IDS)


def test_a_rewrite_is_read_out_of_its_offer() -> None:
    offered = say("en", "offer_rewrite", rewrite="- one\n- two\n\nthree")
    assert rewrite_in(Heard(1, "1", offered)) == "- one\n- two\n\nthree"


def test_buttons_are_found_by_verb_and_choice() -> None:
    heard = Heard(1, "1", "", ("k:abc:keep", "k:abc:back", "f::all", "r:abc:style"))
    assert heard.button("k", "back") == "k:abc:back"
    assert heard.button("r") == "r:abc:style"
    assert heard.button("f", "all") == "f::all"
    assert heard.button("w", "y") is None
