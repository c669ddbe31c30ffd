"""MedMNIST-C's Table 3 in our setting: what is trained on, what is tested, and what is written."""

from collections.abc import Callable

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
