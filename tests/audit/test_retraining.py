"""Tables of a model before and after it was trained again."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, cohen_kappa_score, f1_score

from adaptive_vtt import QuestionSpace
from adaptive_vtt.audit.census import Census
from adaptive_vtt.audit.retraining import by_relation, halves, table_of
from adaptive_vtt.audit.shortcut import misclassified_under
from adaptive_vtt.datasets import from_table
from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles import MaskDrop, TopClass
from adaptive_vtt.testing import tiny_dataset

SCORES = ["accuracy before", "accuracy after"]


def figures(relations: list[str], **columns: list[float]) -> pd.DataFrame:
    named = {name.replace("_", " "): values for name, values in columns.items()}
    return pd.DataFrame(named, index=pd.Index(relations, name="relation"))


def verdict(names: list[str], deltas: list[float], relations: list[str] | None = None) -> Any:
    """As a comparison gives it; delta is what the old model errs more."""
    told = pd.DataFrame({"target": names, "delta": deltas})
    told = told.assign(lower=told["delta"] - 0.1, upper=told["delta"] + 0.2, decision="open")
    kinds = pd.DataFrame({"target": names, "relation": relations or [None] * len(names)})
    kinds = kinds.assign(kind="filter" if relations is None else "relation")
    return SimpleNamespace(targets=told, result=SimpleNamespace(targets=kinds))


def test_differences_are_after_less_before_and_means_those_of_the_papers() -> None:
    relations = ["identity", "medtest/blur", "medtest/text"]
    before = figures(relations, accuracy=[0.9, 0.6, 0.7], error=[0.1, 0.4, 0.3])
    after = figures(relations, accuracy=[0.8, 0.8, 0.9], error=[0.2, 0.2, 0.1])
    where: Any = {f"under {name}": {"relation": [name], "truth": [1]} for name in relations}
    table = table_of([before, after], verdict([*where], [-0.1, 0.2, 0.2]), where)
    means = ["average", "average of changed images"]
    assert list(table.index) == ["original", *relations[1:], *means]
    assert table.loc["average", SCORES].tolist() == pytest.approx([2.2 / 3, 2.5 / 3])
    assert table.loc[means[1], SCORES].tolist() == pytest.approx([0.65, 0.85])
    told = table.loc["medtest/blur", ["difference", "lower", "upper"]].tolist()
    assert told == pytest.approx([-0.2, -0.4, -0.1])
    assert table.loc["original", "difference"] == pytest.approx(0.1)


def test_without_exact_figures_the_certified_differences_are_left() -> None:
    told = verdict(["relation a: error", "overall"], [0.3, 0.1], ["a", None])  # type: ignore[list-item]
    told.result.targets.loc[1, "kind"] = "overall"
    table = table_of([], told, {})
    assert list(table) == ["difference", "lower", "upper", "decision"]
    assert table.loc["a", "difference"] == pytest.approx(-0.3)


def test_figures_of_classes_are_those_of_scikit_learn() -> None:
    """One class per image; means over severities."""
    rng = np.random.default_rng(0)
    labels = pd.DataFrame(np.eye(3, dtype=int)[rng.integers(0, 3, 30)], columns=list("abc"))
    images = rng.integers(0, 256, (30, 8, 8, 3), dtype=np.uint8)
    space = QuestionSpace(from_table(images, labels), ["identity", "rotation"], oracle=TopClass())

    def says(several: Any) -> Any:
        return np.array([image[:3, 0, 0] / 255 for image in several], float)

    with Census(space, says) as census:
        found = by_relation(census.run(), census.model)
    true, guess = labels.to_numpy().argmax(axis=1), says(images).argmax(axis=1)
    by_hand = {
        "accuracy": accuracy_score(true, guess),
        "balanced accuracy": balanced_accuracy_score(true, guess),
        "f1": f1_score(true, guess, average="macro"),
        "kappa": cohen_kappa_score(true, guess),
    }
    for name, value in by_hand.items():
        assert found.loc["identity", name] == pytest.approx(value, abs=1e-9)
    assert list(found.index) == ["identity", "rotation"]
    assert list(misclassified_under(space)) == [
        "misclassified under identity",
        "misclassified under rotation",
    ]


def test_masks_are_told_by_their_mean_score_that_of_images_as_they_are_too() -> None:
    """One image is told whole however it looks, the other once it is as it is."""
    images = np.stack([np.full((8, 8, 1), grey, np.uint8) for grey in (100, 200)])
    half = np.arange(64).reshape(8, 8) < 32
    dataset = from_table(images, pd.DataFrame({"polyp": [1, 1]}), masks={"polyp": [half, half]})
    relations = ["identity", "brightness_down"]
    space = QuestionSpace(dataset, relations, severities=[5], oracle=MaskDrop("dice", (0.25,)))

    def says(several: Any) -> Any:
        return np.stack([half if image.max() > 150 else half | True for image in several])[:, None]

    with Census(space, says) as census:
        found = by_relation(census.run(), census.model)
    assert found["dice"].to_dict() == pytest.approx(
        {"identity": (2 / 3 + 1) / 2, "brightness_down": 2 / 3}
    )
    assert found.loc["brightness_down", "error"] == 0.5


def test_halves_share_nothing_and_miss_nothing() -> None:
    dataset = tiny_dataset(9, 2)
    one, other = halves(dataset, 5)
    ids = [[part.sample_id(k) for k in range(len(part))] for part in (one, other)]
    assert (len(ids[0]), len(ids[1])) == (4, 5)
    assert sorted(ids[0] + ids[1]) == sorted(dataset.sample_id(k) for k in range(9))
    assert ids[0] != [part.sample_id(k) for part in (halves(dataset, 6)[0],) for k in range(4)]
    with pytest.raises(InputError, match="expected two images at least"):
        halves(one.__class__(dataset, np.array([0])), 1)
