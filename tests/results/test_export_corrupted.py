"""The archives of MedMNIST-C: written from an audit, read back as MedMNIST is, and by NumPy."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.config import read_spec
from adaptive_vtt.config.building import build_space
from adaptive_vtt.datasets import from_medmnist, from_table
from adaptive_vtt.errors import InputError
from adaptive_vtt.models.local.python import PythonModel
from adaptive_vtt.relations import FollowUp, LabelPreserving, get
from adaptive_vtt.results.export import corrupted
from adaptive_vtt.results.export.corrupted import export_corrupted
from adaptive_vtt.types import Sample
from adaptive_vtt.utils.random_streams import generator
from tests.helpers.command_line import refused, run, shown

SPEC = """
[dataset]
path = "bloodmnist.npz"
kind = "medmnist"
classes = "own"
[model]
target = "model.py:predict"
[space]
relations = ["identity", "medmnistc/bloodmnist"]
severities = [1, 3]
[oracle]
kind = "top-class"
[audit]
budget = 6
"""


class Darkening(LabelPreserving):
    """Takes the severity and a random grey level from every pixel."""

    name, severities = "odd/darkening", (2, 1)

    def transform(self, image: Any, severity: int, rng: np.random.Generator) -> Any:
        return image - np.uint8(10 * severity) - rng.integers(0, 5, (1, 1, 1), dtype=np.uint8)


class Odd(Darkening):
    """One of the relations whose names differ in what file names cannot hold."""

    name = "ODD/dark: ening"


class Odder(Darkening):
    name = "odd/dark? ening"


class Turning(LabelPreserving):
    name, severities = "turning", (1,)

    def transform(self, image: Any, severity: int, rng: np.random.Generator) -> Any:
        return image.copy()

    def expect(self, truth: int, follow_up: FollowUp) -> int:
        return 1 - truth


def audited(labels: Any, relations: list[Any], images: Any = None) -> tuple[Any, Any]:
    greys = [np.full((5, 4, 1), 100 + place, np.uint8) for place in range(len(labels))]
    space = QuestionSpace(from_table(greys if images is None else images, labels), relations)
    model = PythonModel(lambda images: [[0.25] * labels.shape[1]] * len(images))
    audit = Audit(space, model, seed=5, budget=2)
    audit.run()
    return audit.journal, space


MANY = pd.DataFrame({"a": [1, 1, 0], "b": [0, 1, 0]})
WIDE = pd.DataFrame(np.eye(2, 257, dtype=int))
UNEVEN = [np.full((height, 4, 1), 99, np.uint8) for height in (4, 4, 5)]


def test_severities_follow_each_other_and_images_keep_their_order(tmp_path: Path) -> None:
    journal, space = audited(MANY, ["identity", Darkening()])
    assert export_corrupted(journal, space, tmp_path / "out") == {"odd/darkening.npz": 6}
    with np.load(tmp_path / "out" / "odd" / "darkening.npz", allow_pickle=False) as arrays:
        images, labels = arrays["test_images"], arrays["test_labels"]
    assert (images.shape, images.dtype, labels.dtype) == ((6, 5, 4), np.uint8, np.uint8)
    assert labels.tolist() == MANY.to_numpy().tolist() * 2
    by_variant = {v.severity: place for place, v in enumerate(space.variants)}
    for severity in (1, 2):
        for index in range(3):
            image = space.follow_up(index * len(space.variants) + by_variant[severity]).image
            assert image is not None
            assert np.array_equal(images[3 * (severity - 1) + index], image[:, :, 0])


@pytest.mark.parametrize(("kept", "decoded"), [(2**20, 1), (2 * 20, 2)])
def test_sources_are_decoded_once_as_far_as_memory_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int, decoded: int
) -> None:
    monkeypatch.setattr(corrupted, "KEPT_BYTES", kept)
    journal, space = audited(MANY, [Darkening()])  # 3 images of 20 bytes at 2 severities
    seen: Counter[int] = Counter()
    sample = space.dataset.sample
    monkeypatch.setattr(space.dataset, "sample", lambda k: seen.update([k]) or sample(k))
    export_corrupted(journal, space, tmp_path / "out")
    assert seen == {0: 2, 1: 1, 2: decoded}  # the first once more, for its size


def test_one_class_each_is_told_by_its_number(tmp_path: Path) -> None:
    labels = pd.DataFrame({"a": [1, 0, np.nan], "b": [np.nan, 0, 1], "c": [0, 1, 0]})
    export_corrupted(*audited(labels, [Darkening()]), tmp_path / "out")
    with np.load(tmp_path / "out" / "odd" / "darkening.npz") as arrays:
        assert arrays["test_labels"].tolist() == [[0], [2], [1]] * 2


@pytest.mark.parametrize(
    ("labels", "relations", "images", "message"),
    [
        (MANY, ["identity"], None, r"expected a relation other than identity, got none"),
        (MANY, [Odd(), Odder()], None, r"and 'odd/dark\? ening', both odd/dark-ening\.npz; leave"),
        (MANY, [Turning()], None, r"'turning' changes what is right about sample '0'"),
        (MANY.replace(1, np.nan), [Darkening()], None, r"sample '0' with unknown 'a'"),
        (WIDE, [Darkening()], None, r"expected at most 256 classes, .* number, got 257"),
        (MANY, [Darkening()], UNEVEN, r"expected an image of \(4, 4\), .* got \(5, 4\)"),
    ],
)
def test_what_an_archive_cannot_hold_is_named_and_nothing_written(
    labels: Any, relations: Any, images: Any, message: str, tmp_path: Path
) -> None:
    journal, space = audited(labels, relations, images)
    with pytest.raises(InputError, match=message):
        export_corrupted(journal, space, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_archives_that_would_fill_the_disk_are_refused_before_any_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage(NamedTuple):
        free: int

    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(119))
    journal, space = audited(MANY, [Darkening()])  # 6 images of 20 bytes
    with pytest.raises(InputError, match=r"expected 0\.0 GB free for the archives at .*out'"):
        export_corrupted(journal, space, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_command_writes_what_medmnist_reads(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)
    labels = np.array([[3], [0], [7], [3]], np.uint8)
    np.savez(tmp_path / "bloodmnist.npz", test_images=images, test_labels=labels)
    model = "def predict(images):\n    return [[0.1] * 8] * len(images)\n"
    (tmp_path / "model.py").write_text(model)
    (tmp_path / "SPEC.toml").write_text(SPEC)
    folder, out = tmp_path / "run", tmp_path / "blood-c"
    assert run("audit", str(tmp_path / "SPEC.toml"), "--out", str(folder)) == 0
    assert run("export", str(folder), "--corrupted", str(out)) == 0
    dataset = from_medmnist(out / "bloodmnist" / "pixelate.npz", "bloodmnist")
    assert len(dataset) == 8
    assert dataset.metadata_values("label").tolist() == [3, 0, 7, 3] * 2
    first = dataset.sample(4).require_image()  # the first image at the second severity
    assert not np.array_equal(first, dataset.sample(0).require_image())
    assert len(np.unique(first.reshape(-1, 3), axis=0)) < 300  # coarse pixels
    assert "exists already" in refused("export", str(folder), "--corrupted", str(out))


def test_archives_come_straight_from_a_spec_or_from_data_to_the_byte(tmp_path: Path) -> None:
    """No model.py is there: nothing is asked, and no image differs from one made by hand."""
    images = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
    labels = np.array([[3], [0], [7]], np.uint8)
    np.savez(tmp_path / "bloodmnist.npz", test_images=images, test_labels=labels)
    spec = SPEC.replace('"medmnistc/bloodmnist"', '"medmnistc/bloodmnist/contrast_up", "rotation"')
    (tmp_path / "SPEC.toml").write_text(spec)
    assert run("export", str(tmp_path / "SPEC.toml"), "--corrupted", str(tmp_path / "a")) == 0
    relation = "medmnistc/bloodmnist/contrast_up"
    given = ["--data", str(tmp_path / "bloodmnist.npz"), "--relations", relation]
    written = json.loads(
        shown("export", *given, "--corrupted", str(tmp_path / "b"), "--json").splitlines()[-1]
    )
    assert written == {"archives": {"bloodmnist/contrast_up.npz": 15}}
    for folder, severities in {"a": (1, 3), "b": (1, 2, 3, 4, 5)}.items():
        with np.load(tmp_path / folder / "bloodmnist" / "contrast_up.npz") as arrays:
            assert arrays["test_labels"].tolist() == labels.tolist() * len(severities)
            by_hand = [
                get(relation).apply(Sample("", image, {}), severity, generator(0, "")).image
                for severity in severities
                for image in images
            ]
            assert arrays["test_images"].tobytes() == np.stack(by_hand).tobytes()
    with np.load(tmp_path / "a" / "rotation.npz") as arrays:  # this one's angle is drawn
        space = build_space(read_spec(tmp_path / "SPEC.toml"), tmp_path)
        by_severity = {
            v.severity: k for k, v in enumerate(space.variants) if v.relation.name == "rotation"
        }
        last = space.follow_up(2 * len(space.variants) + by_severity[3]).require_image()
        assert arrays["test_images"][-1].tobytes() == last.tobytes()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--corrupted", "OUT"], "expected the folder of an audit, or for --corrupted a SPEC.toml"),
        (["--corrupted", "OUT", "--data", "DIR"], "expected --data PATH and --relations NAMES"),
        (["D", "--corrupted", "OUT", "--data", "D", "--relations", "rotation"], "without DIR"),
        (["DIR", "--corrupted", "OUT", "--relations", "rotation"], "expected --data PATH with it"),
        (["--failures", "OUT", "--data", "D", "--relations", "rotation"], "OUT alone"),
    ],
)
def test_what_images_are_exported_from_is_one_thing(given: list[str], message: str) -> None:
    assert message in refused("export", *given)
