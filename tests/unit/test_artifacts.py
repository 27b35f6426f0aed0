"""Adapter files: what a whole one is, and every way a foreign or broken one is turned away."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
from safetensors.numpy import save_file

from app.errors import ArtifactError
from learner.artifacts import (
    CONFIG,
    STABLE,
    WEIGHTS,
    adapter_name,
    checked_name,
    dematerialise,
    materialise,
    served_path,
    verify,
    write_adapter,
)
from learner.dataset.manifest import canonical
from learner.types import BaseIdentity
from tests.fakes.adapters import TINY_BASE, key, lineage, tiny_adapter, tiny_tensors

MAX_RANK = 16
Break = Callable[[Path], object]


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return tiny_adapter(tmp_path / "checkpoint").directory


def test_a_whole_adapter_verifies_and_says_where_it_comes_from(whole: Path) -> None:
    info = verify(whole, TINY_BASE, MAX_RANK)
    assert info.name == adapter_name("person", info.content_sha256)
    assert (info.rank, info.alpha, len(info.targets)) == (4, 8, 7)
    assert info.lineage == lineage()
    assert json.loads((whole / CONFIG).read_text())["base_model_name_or_path"] == "tiny@r1"
    assert info.size_bytes == (whole / WEIGHTS).stat().st_size


def test_the_name_is_the_content_and_not_the_run(tmp_path: Path) -> None:
    one = write_adapter(tmp_path / "a", tiny_tensors(), 4, 8, lineage(run_id="one"))
    same = write_adapter(tmp_path / "b", tiny_tensors(), 4, 8, lineage(run_id="two"))
    other = write_adapter(tmp_path / "c", tiny_tensors(seed=1), 4, 8, lineage())
    scaled = write_adapter(tmp_path / "d", tiny_tensors(), 4, 16, lineage())
    assert one.name == same.name
    assert len({one.name, other.name, scaled.name}) == 3


def test_a_checkpoint_is_never_written_over_another(whole: Path) -> None:
    with pytest.raises(ArtifactError, match="never written over"):
        tiny_adapter(whole)


def reheader(directory: Path, change: Callable[[dict[str, object]], object]) -> None:
    """Change the tensor file's header and sign the directory anew, as someone with write access could."""
    raw = (directory / WEIGHTS).read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    change(header)
    packed = json.dumps(header).encode()
    (directory / WEIGHTS).write_bytes(len(packed).to_bytes(8, "little") + packed + raw[8 + length :])
    sign(directory)


def sign(directory: Path) -> None:
    import hashlib

    marker = json.loads((directory / STABLE).read_bytes())
    marker["files"] = {n: hashlib.sha256((directory / n).read_bytes()).hexdigest() for n in (CONFIG, WEIGHTS)}
    (directory / STABLE).write_bytes(canonical(marker))


def reconfigure(**changes: object) -> Break:
    def apply(directory: Path) -> None:
        config = json.loads((directory / CONFIG).read_text())
        (directory / CONFIG).write_text(json.dumps({**config, **changes}))
        sign(directory)

    return apply


def retensor(change: Callable[[dict[str, np.ndarray]], object]) -> Break:
    def apply(directory: Path) -> None:
        tensors = tiny_tensors()
        change(tensors)
        save_file(tensors, directory / WEIGHTS, metadata=lineage().as_header())
        sign(directory)

    return apply


def entry(name: str) -> Callable[[dict[str, object]], dict[str, object]]:
    return lambda header: header[name]  # type: ignore[return-value]


FIRST = key(0, "q_proj", "A")

BROKEN: dict[str, Break] = {
    "no marker": lambda d: (d / STABLE).unlink(),
    "no weights": lambda d: (d / WEIGHTS).unlink(),
    "weights cut": lambda d: os.truncate(d / WEIGHTS, 5000),
    "weights cut in the header": lambda d: os.truncate(d / WEIGHTS, 20),
    "weights empty": lambda d: os.truncate(d / WEIGHTS, 0),
    "weights cut and signed": lambda d: (os.truncate(d / WEIGHTS, 5000), sign(d)),
    "a byte changed": lambda d: (d / WEIGHTS).write_bytes((d / WEIGHTS).read_bytes()[:-1] + b"\x01"),
    "a byte added": lambda d: ((d / WEIGHTS).write_bytes((d / WEIGHTS).read_bytes() + b"\0"), sign(d)),
    "header too large": lambda d: (
        (d / WEIGHTS).write_bytes((2**40).to_bytes(8, "little") + (d / WEIGHTS).read_bytes()[8:]),
        sign(d),
    ),
    "header of a megabyte": lambda d: reheader(d, lambda h: h["__metadata__"].update(format="x" * 2_000_000)),
    "header not JSON": lambda d: ((d / WEIGHTS).write_bytes((4).to_bytes(8, "little") + b"oops" * 4), sign(d)),
    "offsets overlap": lambda d: reheader(
        d, lambda h: entry(FIRST)(h).update(data_offsets=h[key(0, "q_proj", "B")]["data_offsets"])
    ),
    "offset negative": lambda d: reheader(d, lambda h: entry(FIRST)(h).update(data_offsets=[-128, 0])),
    "shape lies": lambda d: reheader(d, lambda h: entry(FIRST)(h).update(shape=[4, 4])),
    "wrong number type": lambda d: reheader(d, lambda h: entry(FIRST)(h).update(dtype="F16", shape=[8, 8])),
    "no lineage": lambda d: reheader(d, lambda h: h.pop("__metadata__")),
    "lineage with more": lambda d: reheader(d, lambda h: h["__metadata__"].update(person="x")),
    "lineage of no scope": lambda d: reheader(d, lambda h: h["__metadata__"].update(scope="team")),
    "not a number": retensor(lambda t: t[FIRST].__setitem__((0, 0), np.nan)),
    "infinite": retensor(lambda t: t[FIRST].__setitem__((0, 0), np.inf)),
    "content not the marker's": retensor(lambda t: t[FIRST].__setitem__((0, 0), 5.0)),
    "half a pair": retensor(lambda t: t.pop(FIRST)),
    "rank of one pair differs": retensor(lambda t: t.update({FIRST: np.zeros((2, 8), np.float32)})),
    "lm_head": retensor(lambda t: t.update({"base_model.model.lm_head.lora_A.weight": np.zeros((4, 8), np.float32)})),
    "embeddings": retensor(
        lambda t: t.update({"base_model.model.model.embed_tokens.lora_embedding_A": np.zeros((4, 8), np.float32)})
    ),
    "a magnitude vector": retensor(
        lambda t: t.update({FIRST.replace("lora_A.weight", "lora_magnitude_vector"): np.zeros(8, np.float32)})
    ),
    "a whole module": retensor(lambda t: t.update({"base_model.model.model.norm.weight": np.zeros(8, np.float32)})),
    "nothing": retensor(lambda t: t.clear()),
    "rank above the tensors'": reconfigure(r=8),
    "rank true": reconfigure(r=True),
    "DoRA": reconfigure(use_dora=True),
    "bias": reconfigure(bias="all"),
    "modules to save": reconfigure(modules_to_save=["lm_head"]),
    "per-layer ranks": reconfigure(rank_pattern={"q_proj": 2}),
    "targets lm_head": reconfigure(target_modules=["q_proj", "lm_head"]),
    "targets unlike tensors": reconfigure(target_modules=["q_proj"]),
    "another base": reconfigure(base_model_name_or_path="/models/other"),
    "a new option": reconfigure(auto_mapping={"x": "evil"}),
    "config not JSON": lambda d: ((d / CONFIG).write_text("{"), sign(d)),
    "config a list": lambda d: ((d / CONFIG).write_text("[]"), sign(d)),
    "a pickle beside": lambda d: (d / "adapter_model.bin").write_bytes(b"\x80\x04."),
    "a torch file beside": lambda d: (d / "x.pt").write_bytes(b"x"),
    "a folder beside": lambda d: (d / "sub").mkdir(),
    "a link to the weights": lambda d: ((d / WEIGHTS).rename(d.parent / "w"), (d / WEIGHTS).symlink_to(d.parent / "w")),
    "marker of nothing": lambda d: (d / STABLE).write_text('{"content_sha256": "x", "files": null}'),
    "targets of objects": reconfigure(target_modules=[{}]),
    "targets a word": reconfigure(target_modules="all-linear"),
    "marker malformed": lambda d: (d / STABLE).write_text('{"content_sha256": 1}'),
    "marker of a list": lambda d: (d / STABLE).write_text('{"content_sha256": "x", "files": ["adapter_config.json"]}'),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_a_broken_adapter_is_turned_away(whole: Path, name: str) -> None:
    BROKEN[name](whole)
    with pytest.raises(ArtifactError):
        verify(whole, TINY_BASE, MAX_RANK)


@pytest.mark.parametrize(
    "base",
    [
        BaseIdentity("other", "r1", "t" * 64, "c" * 64),
        BaseIdentity("tiny", "r2", "t" * 64, "c" * 64),
        BaseIdentity("tiny", "r1", "u" * 64, "c" * 64),
        BaseIdentity("tiny", "r1", "t" * 64, "d" * 64),
    ],
)
def test_an_adapter_of_another_base_is_turned_away(whole: Path, base: BaseIdentity) -> None:
    with pytest.raises(ArtifactError):
        verify(whole, base, MAX_RANK)


def test_a_rank_above_the_servers_is_turned_away(whole: Path) -> None:
    with pytest.raises(ArtifactError, match="rank"):
        verify(whole, TINY_BASE, max_rank=2)


def test_a_linked_or_absent_directory_is_turned_away(whole: Path) -> None:
    link = whole.parent / "link"
    link.symlink_to(whole)
    for path in (link, whole.parent / "nothing"):
        with pytest.raises(ArtifactError):
            verify(path, TINY_BASE, MAX_RANK)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "../x",
        "person-",
        "person-12345678901G",
        "person-1234567890123",
        "team-123456789012",
        "/etc",
        "person-123456789012/..",
        "person-123456789012\n",
        "PERSON-123456789012",
        "person-123456789012 ",
    ],
)
def test_a_name_that_is_none(name: str, tmp_path: Path) -> None:
    for use in (checked_name, lambda n: served_path(tmp_path, n), lambda n: dematerialise(tmp_path, n)):
        with pytest.raises(ArtifactError):
            use(name)


def test_materialised_copies_name_the_bases_path_and_share_the_weights(whole: Path, tmp_path: Path) -> None:
    served, model = tmp_path / "serve", tmp_path / "models" / "tiny"
    path = materialise(whole, served, model, TINY_BASE, MAX_RANK)
    info = verify(whole, TINY_BASE, MAX_RANK)
    assert path == served / info.name
    assert json.loads((path / CONFIG).read_text())["base_model_name_or_path"] == str(model)
    assert (path / WEIGHTS).samefile(whole / WEIGHTS)
    assert verify(path, TINY_BASE, MAX_RANK, model).content_sha256 == info.content_sha256
    assert materialise(whole, served, model, TINY_BASE, MAX_RANK) == path
    assert [p.name for p in served.iterdir()] == [info.name]
    with pytest.raises(ArtifactError):
        verify(path, TINY_BASE, MAX_RANK)
    dematerialise(served, info.name)
    dematerialise(served, info.name)
    assert not path.exists()
    assert verify(whole, TINY_BASE, MAX_RANK)


def test_a_broken_checkpoint_is_never_materialised(whole: Path, tmp_path: Path) -> None:
    (whole / STABLE).unlink()
    with pytest.raises(ArtifactError):
        materialise(whole, tmp_path / "serve", tmp_path, TINY_BASE, MAX_RANK)
    assert not (tmp_path / "serve").exists()


def test_two_workers_that_make_the_same_copy_at_once_both_have_it(whole: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as workers:
        for number in range(25):
            served, together = tmp_path / f"serve-{number}", Barrier(4)

            def make(served: Path = served, together: Barrier = together) -> Path:
                together.wait()
                return materialise(whole, served, tmp_path, TINY_BASE, MAX_RANK)

            made = {future.result() for future in [workers.submit(make) for _ in range(4)]}
            assert list(served.iterdir()) == list(made)


def test_a_link_where_the_copy_belongs_is_turned_away(whole: Path, tmp_path: Path) -> None:
    served = tmp_path / "serve"
    served.mkdir()
    (served / verify(whole, TINY_BASE, MAX_RANK).name).symlink_to(tmp_path)
    with pytest.raises(ArtifactError):
        materialise(whole, served, tmp_path, TINY_BASE, MAX_RANK)


_SHORT_FILES = """
import resource, sys
from pathlib import Path
from app.errors import ArtifactError
from tests.fakes.adapters import tiny_adapter
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    tiny_adapter(Path(sys.argv[1]))
except ArtifactError as error:
    print(error)
"""


@pytest.mark.parametrize("limit", [100, 3000])
def test_a_file_that_cannot_be_written_whole_leaves_a_sentence_and_nothing_else(tmp_path: Path, limit: int) -> None:
    target = tmp_path / "checkpoint"
    done = subprocess.run(
        [sys.executable, "-c", _SHORT_FILES, str(target), str(limit)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "could not be saved: File too large" in done.stdout
    assert list(tmp_path.iterdir()) == []
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
