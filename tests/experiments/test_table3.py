"""MedMNIST-C's Table 3 in our setting: what is trained on, what is tested, and what is written."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from adaptive_vtt.experiments.medmnistc import table3
from adaptive_vtt.experiments.medmnistc.augmentations import (
    OPERATIONS,
    Batch,
    cutmix,
    mixup,
    rand_augment,
)
from adaptive_vtt.experiments.tables.layout import tables_of
from adaptive_vtt.relations import medmnistc
from tests.experiments.test_bccd import photograph

RNG = np.random.default_rng(0)


def batch() -> Batch:
    """Eight flat images, each of its own grey and its own class."""
    grey = torch.linspace(0, 1, 8)
    return grey[:, None, None, None].expand(8, 1, 10, 12).clone(), torch.eye(8)


@pytest.mark.parametrize("mix", [mixup, cutmix])
def test_targets_are_mixed_as_the_pixels_are(mix: Callable[..., Batch]) -> None:
    """A flat image's grey is its class, so that mixed greys and mixed targets must agree."""
    whole = batch()
    for seed in range(20):
        images, targets = mix(whole, np.random.default_rng(seed))
        assert torch.allclose(targets.sum(dim=1), torch.ones(8), atol=1e-5)
        greys = targets @ torch.linspace(0, 1, 8)
        assert torch.allclose(images.mean(dim=(1, 2, 3)), greys, atol=1e-5)
    assert all(map(torch.equal, whole, batch()))  # what was given is left alone


def test_mixup_blends_and_cutmix_pastes() -> None:
    blended = [mixup(batch(), np.random.default_rng(s))[0] for s in range(9)]
    pasted = [cutmix(batch(), np.random.default_rng(s))[0] for s in range(9)]
    assert all(len(torch.unique(image)) == 1 for images in blended for image in images)
    assert max(len(torch.unique(image)) for images in pasted for image in images) == 2


@pytest.mark.parametrize("shape", [(12, 14, 1), (12, 14, 3)])
def test_rand_augment_is_one_of_fourteen_operations(shape: tuple[int, ...]) -> None:
    image = RNG.integers(0, 256, shape, dtype=np.uint8)
    before, seen = image.copy(), set()
    for seed in range(200):
        changed = rand_augment(image, np.random.default_rng(seed))
        assert (changed.shape, changed.dtype) == (shape, np.uint8)
        assert not np.shares_memory(changed, image)
        seen.add(changed.tobytes())
    assert np.array_equal(image, before)
    assert len(OPERATIONS) == 14
    assert len(seen) > 14  # most go two ways
    assert image.tobytes() in seen


def test_folds_are_the_papers_categories() -> None:
    found = table3.folds(medmnistc.relations("bloodmnist"))
    assert list(found) == ["digital", "blur", "color", "task-specific"]
    assert sum(map(len, found.values())) == 11
    assert [r.name.rpartition("/")[2] for r in found["blur"]] == ["defocus_blur", "motion_blur"]


def test_the_honest_row_never_trains_on_what_it_is_tested_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trained: list[set[str]] = []
    real = table3.ours

    def ours(relations: list[table3.Corruption], seed: int) -> table3.How:
        trained.append({r.name.rpartition("/")[2] for r in relations})
        return real(relations, seed)

    monkeypatch.setattr(table3, "ours", ours)
    monkeypatch.setattr(table3, "corrupted", lambda images, relation: [images])
    monkeypatch.setattr(table3, "trained", lambda *_: None)
    monkeypatch.setattr(table3, "scores", lambda *_: (50.0, 50.0))
    task = table3.fashion_task(table3.QUICK)
    rows = pd.DataFrame(table3.measured(task, table3.QUICK, 0))
    honest = rows[(rows["augmentation"] == table3.FOLDS) & (rows["corruption"] != "clean")]
    assert sorted(honest["corruption"]) == sorted(trained[0])  # each once; [0] trains on all
    tested = iter(honest["corruption"])
    for others in trained[1:]:
        held_out = trained[0] - others
        assert {next(tested) for _ in held_out} == held_out


def test_photographs_are_trained_on_or_tested(tmp_path: Path) -> None:
    for name, radius in (("a", 16), ("b", 20)):  # a cell of each kind in each of two photographs
        places = zip(table3.CELLS, (30, 80, 130), strict=True)
        photograph(tmp_path, name, [(kind, x, 60, radius) for kind, x in places])
    task = table3.bccd_task(tmp_path, table3.QUICK)
    assert task.images.shape == task.tested.shape == (3, table3.SIDE, table3.SIDE, 3)
    assert task.labels.tolist() == task.wanted.tolist() == [0, 1, 2]
    assert not np.array_equal(task.images, task.tested)


def test_gains_are_over_none_and_p_is_wilcoxons() -> None:
    rows = [
        {"task": "BCCD", "augmentation": how, "seed": 0, "corruption": f"c{k}", "AUC": v, "bACC": v}
        for how, more in (("none", 0), ("MixUp", 1), (table3.FOLDS, 3))
        for k in range(6)
        for v in [50.0 + k + more * (1 + k / 10)]
    ]
    rows += [{**row, "corruption": "clean", "AUC": 90.0} for row in rows if row["AUC"] == 50]
    clean = [{**rows[-1], "augmentation": how} for how in ("MixUp", table3.FOLDS)]
    frame = pd.DataFrame(rows + clean)
    table = table3.summary(frame).set_index("augmentation")
    assert table.loc["MixUp", "AUC gain"] == pytest.approx(1.25)
    assert table.loc[table3.FOLDS, "AUC gain"] == pytest.approx(3.75)
    assert table.loc["none", "AUC clean"] == 90
    assert table.loc["MixUp", "AUC p"] == pytest.approx(2 / 2**6)  # six of six the same way
    assert table.loc["MixUp", ["paper: set", "paper: mean"]].tolist() == [0.2, 2.7]
    over = table3.over_tasks(frame).set_index(["metric", "over"])
    assert over.loc[("AUC", "MixUp"), "gain"] == pytest.approx(2.5)


def test_the_published_means_are_those_of_the_published_rows() -> None:
    stored = tables_of("medmnistc")["3"].published()
    assert set(stored.drop(columns="AVG")) == set(medmnistc.flags())
    means = stored.drop(columns="AVG").mean(axis=1)
    assert stored["AVG"].tolist() == pytest.approx(means.tolist(), abs=0.051)


def test_without_data_it_says_where_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table3, "tables", lambda *_: {})
    table3.main(["--quick", "--out", str(tmp_path)])
    said = capsys.readouterr().out
    assert "BCCD: skipped; --data FOLDER reads it" in said
    assert "github.com/Shenggan/BCCD_Dataset" in said


@pytest.mark.slow
def test_a_network_learns_and_is_scored() -> None:
    """Dark and light images, told apart after a few epochs; the same seed, the same network."""
    kinds = np.arange(128) % 2
    images = RNG.integers(0, 100, (128, 28, 28, 1), dtype=np.uint8)
    images += (kinds * 120).astype(np.uint8)[:, None, None, None]
    task = table3.Task("t", images, kinds, images[:40], kinds[:40])
    one, other = (table3.trained(task, table3.How(batch=mixup), 20, 0) for _ in range(2))
    assert min(table3.scores(one, task.tested, task.wanted)) > 95
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
