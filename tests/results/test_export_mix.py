"""The training mix: every image as it is and once changed, with what is expected then."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import QuestionSpace
from adaptive_vtt.datasets import from_table
from adaptive_vtt.errors import InputError
from adaptive_vtt.journal import read_journal
from adaptive_vtt.relations import FollowUp, LabelPreserving
from adaptive_vtt.results.export.mix import weights_of, write_mix
from adaptive_vtt.types import UNKNOWN
from adaptive_vtt.utils.image_files import read_image
from adaptive_vtt.utils.mask_values import read_mask
from tests.helpers.command_line import plain_start, refused, run, shown


class Turning(LabelPreserving):
    """Upside down, which makes what is there absent."""

    name, severities = "turning", (1,)

    def transform(self, image: Any, severity: int, rng: np.random.Generator) -> Any:
        return image[::-1].copy()

    def expect(self, truth: int, follow_up: FollowUp) -> int:
        return UNKNOWN if truth == UNKNOWN else 1 - truth

    def expect_mask(self, mask: Any, follow_up: FollowUp) -> Any:
        return mask[::-1]


class Darkening(LabelPreserving):
    name, severities = "darkening", (1, 2)

    def transform(self, image: Any, severity: int, rng: np.random.Generator) -> Any:
        return image // (1 + severity)


def space_of(count: int, masks: bool = False, relations: Any = None) -> QuestionSpace:
    greys = [np.arange(20, dtype=np.uint8).reshape(5, 4, 1) + place for place in range(count)]
    labels = pd.DataFrame({"a": [1, 0] * (count // 2), "b": [np.nan, 1] * (count // 2)})
    shown = {"a": [np.arange(20).reshape(5, 4) < 6 if k % 2 == 0 else None for k in range(count)]}
    dataset = from_table(greys, labels, masks=shown if masks else None)
    return QuestionSpace(dataset, relations or ["identity", Turning(), Darkening()], seed=4)


def test_images_labels_and_masks_are_those_that_the_relations_expect(tmp_path: Path) -> None:
    space = space_of(6, masks=True)
    counts = write_mix(space, tmp_path / "mix", seed=2)
    assert counts == {"identity": 6, "turning": 3, "darkening": 3}
    rows = pd.read_csv(tmp_path / "mix" / "mix.csv", dtype={"sample": str})
    labels = pd.read_csv(tmp_path / "mix" / "labels.csv", index_col="id")
    assert rows["sample"].value_counts().tolist() == [2] * 6
    for row in rows.itertuples():
        index = int(row.sample)
        source = space.dataset.sample(index).require_image()
        turned = row.relation == "turning"
        by_hand = {
            "identity": source,
            "turning": source[::-1],
            "darkening": source // (1 + int(row.severity)),
        }[row.relation]
        image = read_image(tmp_path / "mix" / "images" / f"{row.id}.png", "")
        assert np.array_equal(image[:, :, 0], by_hand[:, :, 0])
        there = (index % 2 == 0) != turned
        assert labels.loc[row.id, "a"] == int(there)
        assert (
            labels.loc[row.id, "b"].item() == (1 - turned)
            if index % 2
            else np.isnan(labels.loc[row.id, "b"])
        )
        if row.relation != "turning":
            mask = read_mask(tmp_path / "mix" / "masks" / "a" / f"{row.id}.png", "")
            assert mask.sum() == (6 if there else 0)


@pytest.mark.parametrize(
    ("weights", "turned"), [(None, 50), ({"turning": 0.3, "darkening": 0.1}, 75)]
)
def test_shares_are_met_exactly_and_severities_evenly(
    tmp_path: Path, weights: Any, turned: int
) -> None:
    counts = write_mix(space_of(100), tmp_path / "mix", weights)
    assert counts == {"identity": 100, "turning": turned, "darkening": 100 - turned}
    rows = pd.read_csv(tmp_path / "mix" / "mix.csv")
    severe = rows[rows["relation"] == "darkening"]["severity"]
    assert 0.3 < (severe == 2).mean() < 0.7


def test_what_cannot_be_trained_on_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="weights: unknown relation 'turn'"):
        write_mix(space_of(2), tmp_path / "mix", {"turn": 1.0})
    labels = pd.DataFrame({"a": [1, 0]})
    bare = QuestionSpace(from_table(None, labels), ["identity"])
    with pytest.raises(InputError, match="mix: expected images with labels or masks, got samples"):
        write_mix(bare, tmp_path / "mix")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_command_takes_shares_from_an_audit_and_equal_ones_from_a_spec(tmp_path: Path) -> None:
    spec, out = str(plain_start(tmp_path)), str(tmp_path / "run")
    (tmp_path / "model.py").write_text(
        "def predict(images):\n    return [[0.9 if i.std() > 60 else 0.1] * 2 for i in images]\n"
    )
    assert run("audit", spec, "--budget", "30", "--seed", "1", "--out", out) == 0
    with closing(read_journal(Path(out) / "journal.db")) as journal:
        rates = weights_of(journal, ["gaussian_noise", "brightness_down", "rotation"], out)
    counts = json.loads(shown("export", out, "--mix", str(tmp_path / "found"), "--json"))["mix"]
    equal = json.loads(
        shown("export", spec, "--mix", str(tmp_path / "equal"), "--seed", "2", "--json")
    )["mix"]
    assert counts["identity"] == equal["identity"] == 60
    assert equal == {"identity": 60, "gaussian_noise": 20, "brightness_down": 20, "rotation": 20}
    assert {name: counts[name] for name in rates} == {
        name: pytest.approx(60 * rate / sum(rates.values()), abs=1) for name, rate in rates.items()
    }
    assert len(set(rates.values())) == 3
    assert "--mix: expected no other output with it, got --failures OUT" in refused(
        "export", out, "--mix", str(tmp_path / "m"), "--failures", str(tmp_path / "f")
    )
    alone = ["--data", str(tmp_path / "labels.csv"), "--relations", "rotation"]
    assert run("export", *alone, "--mix", str(tmp_path / "m")) == 2


def test_a_spec_without_changes_has_no_mix(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a relation other than identity"):
        write_mix(space_of(4, relations=["identity"]), tmp_path / "mix")
