"""Snapshot manifests: an address that content alone decides, and no body in it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import ArtifactError, InvalidInputError
from learner.dataset.manifest import Manifest, Snapshot, manifest_item, snapshot_hash
from learner.train.job import BODIES, JOB, Bodies, RunSpec, read_job, write_job
from learner.types import Anchor, BaseIdentity, ChatMessage, Example, Lesson, ServedTurn, TrainingItem, TrainSettings

SALT = b"s" * 16
BASE = BaseIdentity("tiny", "r1", "t", "c")
ITEM = TrainingItem("p1", (ChatMessage("user", "secret words"),))
LESSON = Lesson("l1", "end with 'Bye.'", (Example("hi", None, "Hello. Bye."),))
ANCHOR = Anchor("a1", (ChatMessage("user", "hi"),), "Hello. Bye.")
TURN = ServedTurn((1, 2), (3,), (-0.5,), 0.7, (ChatMessage("user", "hi"),))
BODY = Bodies(SALT, (ITEM,), (LESSON,), (ANCHOR,), (TURN,))


def manifest(**changes: object) -> Manifest:
    items = tuple(manifest_item(SALT, body) for body in (ITEM, LESSON, ANCHOR))
    return replace(Manifest("person", BASE, items, TrainSettings(), "rev", 1), **changes)  # type: ignore[arg-type]


def test_the_address_ignores_order_and_sees_everything_else() -> None:
    same = manifest(items=tuple(reversed(manifest().items)))
    assert snapshot_hash(same) == snapshot_hash(manifest())
    others = [
        manifest(seed=2),
        manifest(code_revision="x"),
        manifest(scope="global"),
        manifest(settings=TrainSettings(steps=3)),
        manifest(base=replace(BASE, revision="r2")),
        manifest(items=manifest().items[1:]),
    ]
    assert len({snapshot_hash(m) for m in [*others, manifest()]}) == 7


def test_no_body_and_no_salt_is_in_a_manifest() -> None:
    text = json.dumps(manifest().as_json())
    assert "secret" not in text
    assert "Bye" not in text
    assert SALT.hex() not in text


def test_the_salt_decides_the_digest() -> None:
    assert manifest_item(SALT, ITEM).digest != manifest_item(b"other" * 4, ITEM).digest


def test_loading_recomputes_the_address() -> None:
    data = json.loads(json.dumps(manifest().as_json()))
    assert Snapshot.load(data, snapshot_hash(manifest())).manifest == manifest()
    with pytest.raises(ArtifactError):
        Snapshot.load({**data, "seed": 2}, snapshot_hash(manifest()))


@pytest.mark.parametrize(
    "change", [{"format": 2}, {"items": [{"id": "x"}]}, {"items": [{"id": "x", "kind": "song", "digest": ""}]}]
)
def test_a_malformed_manifest_is_turned_away(change: dict[str, object]) -> None:
    with pytest.raises(ArtifactError):
        Manifest.from_json({**manifest().as_json(), **change})


def test_a_job_round_trip(tmp_path: Path) -> None:
    spec = RunSpec("run", Path("/models/tiny"), Snapshot(manifest()))
    write_job(tmp_path, spec, BODY)
    assert read_job(tmp_path) == (spec, BODY)
    assert "secret" not in (tmp_path / JOB).read_text()
    assert (tmp_path / BODIES).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "bodies",
    [
        replace(BODY, items=()),
        replace(BODY, items=(ITEM, replace(ITEM, id="p2"))),
        replace(BODY, items=(replace(ITEM, messages=(ChatMessage("user", "other words"),)),)),
        replace(BODY, salt=b"x" * 16),
    ],
)
def test_bodies_that_are_not_the_snapshots_are_turned_away(tmp_path: Path, bodies: Bodies) -> None:
    with pytest.raises(ArtifactError):
        write_job(tmp_path, RunSpec("run", Path("/m"), Snapshot(manifest())), bodies)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text"), [(JOB, "{"), (JOB, "[]"), (JOB, "{}"), (BODIES, '{"salt": "zz"}'), (BODIES, "")]
)
def test_a_malformed_job_is_turned_away(tmp_path: Path, name: str, text: str) -> None:
    write_job(tmp_path, RunSpec("run", Path("/m"), Snapshot(manifest())), BODY)
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInputError):
        read_job(tmp_path)


def test_items_do_not_print_their_text() -> None:
    assert "secret" not in repr(BODY.items)
    assert "Bye" not in repr((LESSON, ANCHOR))
