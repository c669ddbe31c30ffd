"""Nets taught with the sources' masks: learn, never by heart, and audits use what they expect."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from audits import content, finished

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.datasets import TableDataset, from_table
from adaptive_vtt.engine.mask_hints import MaskHints
from adaptive_vtt.engine.tensors import array, tensor
from adaptive_vtt.errors import InputError
from adaptive_vtt.models import PythonModel, SelfTaughtMasks
from adaptive_vtt.models.local import self_taught_masks
from adaptive_vtt.models.local.self_taught_masks import FOLDS, GRID, coarse
from adaptive_vtt.oracles import MaskConsistency, MaskDrop
from adaptive_vtt.relations import LabelPreserving
from adaptive_vtt.relations.base import RelationDefaults
from adaptive_vtt.types import FollowUp

COUNT = 60
OPTIONS = {"half_width": 0.05, "targets": ["overall"], "seed": 1, "self_taught": True}


def disks() -> tuple[np.ndarray, np.ndarray]:
    """COUNT noisy pictures 48 x 48 x 1 with a bright disk each, and where it is."""
    rng = np.random.default_rng(5)
    rows, columns = np.mgrid[:48, :48]
    centres = rng.uniform(8, 40, (COUNT, 2, 1, 1))
    masks = (rows - centres[:, 0]) ** 2 + (columns - centres[:, 1]) ** 2 < 7**2
    images = rng.integers(0, 120, masks.shape) + 120 * masks
    return images.astype(np.uint8)[..., None], masks


IMAGES, MASKS = disks()


def dataset(masks: np.ndarray = MASKS, known: int = COUNT) -> TableDataset:
    """Disks, whose masks are known of the first images alone."""
    given = [mask if k < known else None for k, mask in enumerate(masks)]
    return from_table(IMAGES, pd.DataFrame({"disk": [1] * COUNT}), masks={"disk": given})


def space(known: int = COUNT, **options: object) -> QuestionSpace:
    options = {"oracle": MaskDrop("dice", (0.25,)), **options}
    relations = options.pop("relations", ["gaussian_noise"])
    return QuestionSpace(dataset(known=known), relations, **{"severities": [3, 5], **options})


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few steps, for tests that are not about what is learnt."""
    monkeypatch.setattr(self_taught_masks, "STEPS", 3)


# -- what it learns ------------------------------------------------------------------------


def test_it_finds_in_images_that_no_net_learnt_what_the_masks_show(monkeypatch):
    monkeypatch.setattr(self_taught_masks, "STEPS", 45)
    net = SelfTaughtMasks.of(dataset(known=40), ["disk"])
    looks = np.repeat(IMAGES, 3, axis=3)
    for samples in (range(40), range(40, COUNT)):  # the first 40 by those that learnt others
        seen = np.stack([net.expected(k, looks[[k]])[0, 0] for k in samples])
        wanted = np.stack([coarse(MASKS[k]) for k in samples]) / 255
        always = np.broadcast_to(wanted.mean(0), wanted.shape)
        assert dice(seen, wanted) > dice(always, wanted) + 0.3


def dice(one: np.ndarray, other: np.ndarray) -> float:
    both, each = (one * other).sum((1, 2)), (one + other).sum((1, 2))
    return float(np.mean(2 * both / each))


@pytest.mark.usefixtures("quick")
def test_the_net_that_looks_at_an_image_never_heard_of_its_mask():
    masks = MASKS.copy()
    masks[7] = ~masks[7]
    one, other = (SelfTaughtMasks.of(dataset(m), ["disk"]) for m in (MASKS, masks))
    changed = [
        any(not a.equal(b) for a, b in zip(*nets, strict=True))
        for nets in zip(one._nets, other._nets, strict=True)
    ]
    assert changed == [number != one._fold[7] for number in range(FOLDS)]
    assert one.lessons != other.lessons


@pytest.mark.usefixtures("quick")
def test_the_same_masks_and_seed_teach_the_same_to_the_last_bit():
    one, same = (SelfTaughtMasks.of(dataset(), ["disk"], seed="a") for _ in range(2))
    assert one.describe() == same.describe()
    assert one.describe() == {
        "name": "self-taught masks",
        "version": "1",
        "seed": "a",
        "images": COUNT,
        "weights": one.content(),
    }
    assert one.content() != SelfTaughtMasks.of(dataset(), ["disk"], seed="b").content()
    assert one.content() != SelfTaughtMasks.of(dataset(known=59), ["disk"], seed="a").content()


# -- what it tells -------------------------------------------------------------------------


class Sees:
    """In place of nets: takes what is bright for the disk."""

    known = np.array([True])

    def expected(self, sample: int, looks: np.ndarray) -> np.ndarray:
        return np.stack([coarse(look.mean(2) > 115) for look in looks])[:, None] / 255


class Changed(LabelPreserving):
    """Severity 1: nothing; 2: all is dark but the upper half; 3: all is dark."""

    name, severities = "changed", (1, 2, 3)

    def transform(self, image: np.ndarray, severity: int, rng: np.random.Generator) -> np.ndarray:
        made = image.copy()
        made[{1: 48, 2: 24, 3: 0}[severity] :] = 0
        return made


class Turned(RelationDefaults):
    """Upside down, and so should masks be."""

    name, severities = "turned", (1,)

    def apply(self, sample, severity, rng) -> FollowUp:
        return FollowUp(np.ascontiguousarray(sample.require_image()[::-1]))

    def expect_mask(self, mask, follow_up) -> np.ndarray:
        return np.ascontiguousarray(mask[::-1])


@pytest.mark.parametrize("known", [COUNT, 0])
def test_hints_are_what_the_nets_miss(known: int):
    """Where there is no mask (``known`` = 0), what the net sees in the source stands for it."""
    here = space(known, relations=[Changed(), Turned()], severities=None, oracle=MaskConsistency())
    told = MaskHints(Sees(), here)
    hints = np.stack([told.of(k, *here.pair(k)) for k in range(len(here.variants) * COUNT)])
    same, half, dark, turned = hints.reshape(COUNT, 4).T / 255
    assert same.max() < 0.45  # cells on the edge are seen in part
    assert (dark == 1).all()
    assert turned == pytest.approx(same, abs=0.01)
    upper = MASKS[:, :24].any((1, 2)) & ~MASKS[:, 24:].any((1, 2))
    assert half[upper].max() < 0.45
    assert half[~MASKS[:, :24].any((1, 2))] == pytest.approx(1)


@pytest.mark.usefixtures("quick")
def test_an_audit_hears_the_hints_of_the_follow_ups_asked_about():
    here = space(oracle=MaskDrop("dice", (0.25, 0.5)))  # two questions, one mask
    proxies = Audit(here, PythonModel(bright), **OPTIONS)._parts.proxies
    questions = np.array([0, 1, 6, 7, 6])
    parts = [tensor(np.asarray(part)) for part in here.parts(questions)]
    found = array(proxies(*parts, tensor(np.ones(5, np.int64))))
    told = MaskHints(proxies.taught, here)
    hints = np.stack([told.of(k, *here.pair(k)) for k in here.image_of(questions).tolist()])
    np.testing.assert_allclose(found, hints / 255, atol=1e-6)
    assert found[0] == found[1] != found[2]


# -- when audits use it --------------------------------------------------------------------


def bright(images: list[np.ndarray]) -> list[np.ndarray]:
    """A model under test that noise confuses."""
    return [(image.mean(axis=2) > 115)[None] for image in images]


def proxies(space: QuestionSpace, **options: object) -> list[str]:
    return Audit(space, PythonModel(bright), **{**OPTIONS, **options})._parts.proxies.names


@pytest.mark.usefixtures("quick")
def test_audits_teach_themselves_with_masks_where_they_are_told_to_and_masks_are_enough():
    assert proxies(space(), self_taught="auto") == []  # it saves no calls
    assert proxies(space()) == proxies(space(30)) == ["self-taught masks"]
    assert proxies(space(oracle=MaskConsistency())) == ["self-taught masks"]
    assert proxies(space(), half_width=None) == proxies(space(), surrogate=False) == []
    assert proxies(space(), self_taught=False) == []
    with pytest.raises(InputError, match=r"a concept with 30 masks, got .* with fewer masks"):
        proxies(space(29))


@pytest.mark.usefixtures("quick")
def test_of_concepts_with_fewer_than_30_masks_it_tells_nothing():
    masks = {"disk": list(MASKS), "rare": [*MASKS[:29], *[None] * 31]}
    table = from_table(IMAGES, pd.DataFrame({"disk": 1, "rare": 1}, range(COUNT)), masks=masks)
    here = QuestionSpace(table, ["gaussian_noise"], severities=[3], oracle=MaskDrop())
    told = MaskHints(SelfTaughtMasks.of(table, here.asked), here)
    disk, rare = told.of(3, *here.pair(3))
    assert disk != rare == 128


@pytest.mark.usefixtures("quick")
def test_a_killed_audit_goes_on_with_the_draws_of_an_undisturbed_one(tmp_path: Path):
    whole = finished(space(), model=PythonModel(bright), budget=20, **OPTIONS)
    path = tmp_path / "journal.db"
    with Audit(space(), PythonModel(bright), budget=20, journal=path, **OPTIONS) as first:
        for _ in range(9):
            (call,) = first.ask()
            first.tell(call, first.model.ask([call.prompt])[0])
        first.ask()
    with Audit(space(), PythonModel(bright), budget=20, journal=path, **OPTIONS) as second:
        second.run()
        assert content(second.journal) == content(whole.journal)
        facts = second.journal.facts()
        assert not facts["self_taught_changed"]
        assert facts["self_taught"] == whole._parts.proxies.taught.describe()
        assert "learnt masks of 1 concepts from 60 source images in " in second.prepared


@pytest.mark.usefixtures("quick")
def test_the_same_audit_on_other_masks_is_another():
    """No dataset's fingerprint covers the pixels of masks."""
    keys = []
    for masks in (MASKS, ~MASKS):
        here = QuestionSpace(dataset(masks), ["gaussian_noise"], oracle=MaskDrop())
        keys.append(Audit(here, PythonModel(bright), **OPTIONS).journal.facts()["key"])
    assert keys[0] != keys[1]


def test_coarse_masks_are_shares_of_cells():
    mask = np.zeros((24, 36), bool)
    mask[:2, :3] = True  # one cell of 12 x 12
    mask[2:4, :1] = True  # a third of the next
    found = coarse(mask)
    assert found.shape == (GRID, GRID)
    assert (found[0, 0], found[1, 0], found.sum()) == (255, 85, 340)


@pytest.mark.slow
def test_on_the_phantom_it_explains_more_of_the_losses():
    from adaptive_vtt.experiments import coarse_masks

    table = coarse_masks.main(["--frames", "160", "--seeds", "2", "--answers", "300"])
    assert table["misses"][0] > table["none"][0] + 0.02
