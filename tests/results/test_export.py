"""Failing follow-ups as a dataset folder: what is in it, and that it reads back."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.audit.versus import Versus
from adaptive_vtt.config import parse_spec
from adaptive_vtt.config.building import build_space
from adaptive_vtt.datasets import from_masks, from_table, read_table
from adaptive_vtt.errors import InputError, JournalError
from adaptive_vtt.models.local.python import PythonModel
from adaptive_vtt.oracles import Correctness
from adaptive_vtt.relations import FollowUp, LabelPreserving
from adaptive_vtt.results.export import failures as exporting
from adaptive_vtt.results.export.failures import Exported, export_disagreements, export_failures
from adaptive_vtt.testing import ScriptedModel
from adaptive_vtt.types import Image, Mask, Outcome
from adaptive_vtt.utils.tables import restored
from tests.helpers.command_line import plain_start, refused, run, shown

RNG = np.random.default_rng(0)
IMAGES = [RNG.integers(0, 256, (12, 10, 3), dtype=np.uint8) for _ in range(4)]
MASK = np.zeros((12, 10), np.bool_)
MASK[2:6, 3:7] = True


class Swapping(LabelPreserving):
    """Turns the image upside down and every answer about "polyp" round; says nothing of "text"."""

    name, severities = "odd/swapping", (1, 2)

    def transform(self, image: Image, severity: int, rng: np.random.Generator) -> Image:
        return image[::-1].copy()

    def expect(self, truth: int, follow_up: FollowUp) -> int:
        return 1 - truth

    def applies(self, concept: str) -> bool:
        return concept != "text"


class Sinking(LabelPreserving):
    """Moves everything one row down, with some noise."""

    name, severities = "sinking", (1,)

    def transform(self, image: Image, severity: int, rng: np.random.Generator) -> Image:
        noise = rng.integers(0, 2, image.shape, dtype=np.uint8)
        return np.roll(image, 1, axis=0) ^ noise

    def expect_mask(self, mask: Mask, follow_up: FollowUp) -> Mask:
        return np.roll(mask, 1, axis=0)


def labels(**columns: list[Any]) -> pd.DataFrame:
    return pd.DataFrame(columns, index=["a", "b", "c", "d"])


def audited(space: QuestionSpace, answer: Callable[[list[Image]], Any]) -> Audit:
    """Run an audit of every question."""
    audit = Audit(space, PythonModel(answer), seed=5, surrogate=False)
    audit.run()
    return audit


def exported(audit: Audit, out: Path, **options: Any) -> Exported:
    return export_failures(audit.journal, audit.space, out, **options)


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


# -- what is in the folder ----------------------------------------------------------------


def test_table_reads_back_with_the_images_and_truths_that_were_judged(tmp_path: Path) -> None:
    table = labels(polyp=[1, 0, 1, None], text=[0, 1, None, 1])
    space = QuestionSpace(from_table(IMAGES, table), ["identity", Sinking()])
    audit = audited(space, lambda images: [[0.2, 0.2]] * len(images))  # misses all that is there
    written = exported(audit, tmp_path / "out")
    rows = pd.read_csv(tmp_path / "out/failures.csv")
    draws = {d.draw: d for d in audit.journal.draws()}
    assert [*rows["draw"]] == sorted(rows["draw"])
    for row in rows.itertuples():
        assert (row.sample, row.truth, row.answer) == (draws[row.draw].sample, 1, 0.2)
        assert row.id == f"{row.sample}--{row.relation}-{row.severity}"
    loaded = read_table(tmp_path / "out/labels.csv", tmp_path / "out/images")
    assert written == Exported(8, 8, {})
    assert loaded.concepts == ("polyp", "text")
    truths = {loaded.sample_id(i): loaded.sample(i).truth for i in range(len(loaded))}
    expected = {
        "a": {"polyp": 1, "text": 0},
        "b": {"polyp": 0, "text": 1},
        "c": {"polyp": 1},
        "d": {"text": 1},
    }
    assert truths == {
        f"{sample}--{change}": truth
        for sample, truth in expected.items()
        for change in ("identity-0", "sinking-1")
    }
    for i in range(len(loaded)):
        sample, _, change = loaded.sample_id(i).partition("--")
        number = 2 * "abcd".index(sample) + (change == "sinking-1")
        seen = space.follow_up(number).image
        assert np.array_equal(loaded.sample(i).image, seen)


def test_truths_are_those_the_relation_expects_and_empty_where_it_does_not_apply(
    tmp_path: Path,
) -> None:
    space = QuestionSpace(
        from_table(IMAGES, labels(polyp=[1, 0, 1, 0], text=[1, 1, 1, 1])), [Swapping()]
    )
    audit = audited(space, lambda images: [[0.8, 0.8]] * len(images))
    exported(audit, tmp_path / "out")
    lines = (tmp_path / "out/labels.csv").read_text().splitlines()
    assert lines[0] == "id,polyp,text"
    assert sorted(lines[1:]) == [
        f"{sample}--odd-swapping-{severity},0," for sample in "ac" for severity in (1, 2)
    ]


def test_masks_move_with_the_image_and_read_back_as_a_mask_folder(tmp_path: Path) -> None:
    masks = {"polyp": [MASK, None, MASK[::-1], None]}
    dataset = from_table(IMAGES, labels(polyp=[1, 0, 1, 0]), masks=masks)
    sources = [(image >> 1).tobytes() for image in IMAGES]

    def contrary(images: list[Image]) -> list[list[float]]:
        """Return the opposite of what is there at even places."""
        moved = [np.roll(image >> 1, -1, axis=0).tobytes() for image in images]
        return [[float(sources.index(source) % 2)] for source in moved]

    audit = audited(QuestionSpace(dataset, [Sinking()]), contrary)
    assert exported(audit, tmp_path / "out") == Exported(4, 4, {"polyp": 4})
    loaded = from_masks(
        tmp_path / "out", "polyp", images="images", masks="masks/polyp", empty="absent"
    )
    truths = {loaded.sample_id(i): loaded.sample(i).truth["polyp"] for i in range(4)}
    assert truths == {f"{s}--sinking-1": t for s, t in zip("abcd", (1, 0, 1, 0), strict=True)}
    for i, mask in ((0, MASK), (2, MASK[::-1])):
        assert np.array_equal(loaded.sample(i).masks["polyp"], np.roll(mask, 1, axis=0))


def test_dataset_toml_reads_the_folder_back_both_ways(tmp_path: Path) -> None:
    dataset = from_table(
        IMAGES,
        pd.DataFrame({"säge": [1, 0, 1, 0]}, index=[*"abcd"]),
        masks={"säge": [MASK, None, MASK, None]},
    )
    audit = audited(QuestionSpace(dataset), lambda images: [[0.0]] * len(images))
    exported(audit, tmp_path / "out")
    text = (tmp_path / "out/dataset.toml").read_text(encoding="utf-8")
    commented = text[text.index("# [dataset]") :].replace("# ", "")
    for section, kind in ((text, "table"), (commented, "masks")):
        table = tomllib.loads(section)
        assert table["dataset"]["kind"] == kind
        space = build_space(
            parse_spec({**table, "model": {"target": "model.py:predict"}}, "test"), tmp_path / "out"
        )
        assert space.concepts == ("säge",)
        assert len(space.dataset) == 2


def test_metadata_goes_with_answers_and_labels_and_reads_back(tmp_path: Path) -> None:
    sites = labels(site=["north", "south", "=1+1", "north"], sample=[1, 2, 3, 4])
    data = from_table(IMAGES, labels(polyp=[1, 0, 1, 1]), metadata=sites)
    audit = audited(QuestionSpace(data, ["identity", Sinking()]), lambda i: [[0.0]] * len(i))
    exported(audit, tmp_path / "out")
    loaded = restored(pd.read_csv(tmp_path / "out/failures.csv"))
    known = {"a": ("north", 1), "c": ("=1+1", 3), "d": ("north", 4)}
    here = [*zip(loaded["site"], loaded["sample (metadata)"], strict=True)]
    assert here == [known[name] for name in loaded["sample"]]
    table = tomllib.loads((tmp_path / "out/dataset.toml").read_text(encoding="utf-8"))
    spec = parse_spec({**table, "model": {"target": "model.py:predict"}}, "test")
    again = build_space(spec, tmp_path / "out").dataset
    assert again.concepts == ("polyp",)
    assert again.metadata_columns == ("site", "sample")
    for i in range(len(again)):
        assert again.sample(i).metadata["site"] == known[again.sample_id(i)[0]][0]
    rows = audit.result().failures()
    assert [*zip(rows["site"], rows["sample (metadata)"], strict=True)] == [
        known[name] for name in rows["sample"]
    ]


def test_names_are_safe_and_apart(tmp_path: Path) -> None:
    ids = ["../p 1", "..-p-1", "..-P-1", "x" * 300]
    table = pd.DataFrame({"a/b": [1] * 4, "a-b": [1] * 4}, index=ids)
    dataset = from_table(IMAGES, table, masks={"a/b": [MASK] * 4, "a-b": [MASK] * 4})
    audit = audited(QuestionSpace(dataset), lambda images: [[0.0, 0.0]] * len(images))
    exported(audit, tmp_path / "out")
    loaded = names(tmp_path / "out")
    assert len({n.lower() for n in loaded if n.startswith("images/")}) == 4
    assert all(len(Path(n).name) < 255 for n in loaded)
    assert {Path(n).parts[1] for n in loaded if n.startswith("masks/")} == {"a-b", "a-b-2"}
    assert {path.name for path in tmp_path.iterdir()} == {"out"}
    assert set(pd.read_csv(tmp_path / "out/failures.csv")["sample"]) == set(ids)
    read_table(tmp_path / "out/labels.csv", tmp_path / "out/images")


def test_least_loss_is_what_counts_as_a_failure(tmp_path: Path) -> None:
    class Graded:
        needs_source = False

        def judge(self, question: Any, answer: Any, expected: Any, source_answer: Any) -> Any:
            from adaptive_vtt.oracles import Outcome

            return Outcome({"a": 0.4, "b": 0.5, "c": 0.6, "d": 1.0}[question.sample_id], 0.5)

    space = QuestionSpace(from_table(IMAGES, labels(polyp=[1] * 4)), oracle=Graded())
    audit = audited(space, lambda images: [[0.0]] * len(images))
    for least, images in ((0.3, 4), (0.5, 3), (1.0, 1)):
        assert exported(audit, tmp_path / str(least), least_loss=least).images == images


# -- what is refused, and what a mishap leaves ------------------------------------------------


@pytest.fixture(scope="module")
def audit() -> Audit:
    space = QuestionSpace(from_table(IMAGES, labels(polyp=[1, 1, 1, 0])))
    return audited(space, lambda images: [[0.3]] * len(images))


def test_folder_in_use_is_left_alone_and_an_empty_one_taken(audit: Audit, tmp_path: Path) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used/mine.txt").write_text("mine")
    with pytest.raises(InputError, match=r"used: exists already; nothing was written"):
        exported(audit, tmp_path / "used")
    assert names(tmp_path) == {"used/mine.txt"}
    (tmp_path / "empty").mkdir()
    assert exported(audit, tmp_path / "empty").images == 3
    assert (tmp_path / "empty/labels.csv").is_file()


def test_mishap_leaves_nothing(
    audit: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []

    def full(path: Path, data: bytes) -> None:
        if len(written) == 2:
            raise OSError(28, "No space left on device")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        written.append(path)

    monkeypatch.setattr(exporting, "write_bytes", full)
    with pytest.raises(InputError, match=r"out: cannot be written: No space left on device"):
        exported(audit, tmp_path / "out")
    assert len(written) == 2
    assert not [*tmp_path.iterdir()]


def test_what_an_earlier_export_left_is_named_and_not_touched(audit: Audit, tmp_path: Path) -> None:
    (tmp_path / "out.partial").mkdir()
    with pytest.raises(InputError, match=r"out\.partial: left by an export that did not end"):
        exported(audit, tmp_path / "out")
    assert (tmp_path / "out.partial").is_dir()


def test_what_cannot_be_exported_is_said_and_nothing_written(audit: Audit, tmp_path: Path) -> None:
    for least in (0, 1.5, float("nan")):
        with pytest.raises(InputError, match=r"least loss: expected a number above 0, up to 1"):
            exported(audit, tmp_path / "out", least_loss=least)
    other = QuestionSpace(from_table(IMAGES, labels(polyp=[0] * 4)))
    with pytest.raises(JournalError, match=r"journal: belongs to another space"):
        export_failures(audit.journal, other, tmp_path / "out")
    bare = QuestionSpace(from_table(None, labels(polyp=[1] * 4)))
    with pytest.raises(InputError, match=r"export: dataset 'table' has no images"):
        export_failures(Audit(bare, ScriptedModel()).journal, bare, tmp_path / "out")
    there = QuestionSpace(from_table(IMAGES, labels(polyp=[1] * 4)))
    right = audited(there, lambda images: [[0.9]] * len(images))
    with pytest.raises(InputError, match=r"export: no answer has a loss of 0\.5 or more"):
        exported(right, tmp_path / "out")
    assert not [*tmp_path.iterdir()]


# -- where two models differ ------------------------------------------------------------------


class Spoilt(Correctness):
    """Lets no answer below 0.05 count."""

    def judge(
        self, question: Any, answer: Any, expected: int, source_answer: Any = None
    ) -> Outcome:
        if answer < 0.05:
            return Outcome(0.0, excluded="spoilt")
        return super().judge(question, answer, expected, source_answer)


def compared(new: list[float], folder: Path) -> Versus:
    """All questions about "polyp" in four images, asked of a model that never sees one, and of one
    that says ``new`` of the images."""
    data = from_table(IMAGES, labels(polyp=[1, 0, 1, 0]))
    space = QuestionSpace(data, ["identity"], oracle=Spoilt())

    def says(images: list[Image]) -> Any:
        return [[new[i]] for image in images for i in range(4) if np.array_equal(image, IMAGES[i])]

    models = PythonModel(lambda images: [[0.2]] * len(images), name="old"), PythonModel(says)
    versus = Versus(space, *models, budget=100, journal=folder / "journal.db")
    versus.run()
    return versus


def test_disagreements_are_those_of_which_one_model_lost_more(tmp_path: Path) -> None:
    with compared([0.9, 0.8, 0.01, 0.1], tmp_path) as versus:  # the third does not count
        journal = versus.audit.journal
        written = export_disagreements(journal, versus.space, tmp_path / "out")
    assert (written.images, written.answers, written.masks) == (2, 2, {})
    assert (written.better_a, written.better_b) == (1, 1)  # "b" has none, and "a" has one
    loaded = pd.read_csv(tmp_path / "out/disagreements.csv").sort_values("sample")
    rows = loaded[["id", "truth", "loss_a", "loss_b", "answer_a", "answer_b"]]
    assert rows.to_numpy().tolist() == [
        ["a--identity-0", 1, 1, 0, 0.2, 0.9],
        ["b--identity-0", 0, 0, 1, 0.2, 0.8],
    ]
    assert loaded.columns[-1] == "draw"
    assert not {"loss", "answer"} & {*loaded.columns}
    again = read_table(tmp_path / "out/labels.csv", tmp_path / "out/images")
    assert {again.sample_id(i): again.sample(i).truth["polyp"] for i in range(2)} == {
        "a--identity-0": 1,
        "b--identity-0": 0,
    }


# -- the command ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short audit, as the command line leaves it."""
    root = tmp_path_factory.mktemp("export")
    spec = str(plain_start(root / "start"))
    assert run("audit", spec, "--budget", "10", "--out", str(root / "run")) == 0
    return root


def test_command_writes_counts_and_says_where(folder: Path, tmp_path: Path) -> None:
    counts = json.loads(
        shown("export", str(folder / "run"), "--failures", str(tmp_path / "a"), "--json")
    )
    assert counts["images"] == len([*(tmp_path / "a/images").iterdir()]) > 0
    assert counts["answers"] == len(pd.read_csv(tmp_path / "a/failures.csv"))
    output = shown("export", str(folder / "run"), "--failures", str(tmp_path / "b"))
    assert output.startswith(f"wrote {tmp_path / 'b'}: {counts['images']} images with ")
    assert names(tmp_path / "a") == names(tmp_path / "b")


def test_command_wants_an_audit_that_it_began(folder: Path, audit: Audit, tmp_path: Path) -> None:
    Audit(audit.space, audit.model, journal=tmp_path / "journal.db").close()
    sentence = refused("export", str(tmp_path), "--failures", str(tmp_path / "out"))
    assert "its data are in the Python that began it; repeat that Python" in sentence
    sentence = refused("export", str(tmp_path / "none"), "--failures", str(tmp_path / "out"))
    assert "does not exist" in sentence
