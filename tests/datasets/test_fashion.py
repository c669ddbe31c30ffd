"""The bundled Fashion-MNIST set and the model shipped to be audited on it."""

import numpy as np
import pytest

from adaptive_vtt.datasets.formats.fashion_mnist import (
    CONCEPT_NAMES,
    DATA_FILE,
    GARMENTS,
    concept_answers,
    fashion,
    load_arrays,
)
from adaptive_vtt.demo.fashion_cnn import WEIGHTS_FILE, predict
from adaptive_vtt.types import UNKNOWN

CARD = WEIGHTS_FILE.with_suffix(".md")


@pytest.fixture(scope="module")
def dataset():
    return fashion()


@pytest.fixture(scope="module")
def p_yes():
    return predict(list(load_arrays()[0]))


def test_files_are_small_and_carry_the_licence():
    assert DATA_FILE.stat().st_size < 1_500_000
    assert WEIGHTS_FILE.stat().st_size < 1_000_000
    licence = (DATA_FILE.parent / "LICENSE-fashion-mnist.txt").read_text(encoding="utf-8")
    assert "Copyright (c) 2017 Zalando SE" in licence


def test_samples_are_grey_images_with_a_garment(dataset):
    assert dataset.name == "fashion-mnist-longtail"
    images, garment, _ = load_arrays()
    for i in (0, 999, 1999):
        sample = dataset.sample(i)
        assert sample.image is not None
        assert sample.image.shape == (28, 28, 1)
        assert np.array_equal(sample.image[:, :, 0], images[i])
        assert sample.metadata["garment"] == GARMENTS[garment[i]]


# Written out again on purpose, so that a slip in CONCEPTS does not confirm itself.
EXPECTED = {
    "footwear": ({"sandal", "sneaker", "ankle boot"}, set()),
    "upper body": ({"t-shirt", "pullover", "coat", "shirt"}, set()),
    "long sleeves": ({"pullover", "coat"}, {"dress", "shirt"}),
    "covers legs": ({"trouser", "dress"}, set()),
    **{garment: ({garment}, set()) for garment in GARMENTS},
}


def test_truths_follow_from_the_garment(dataset):
    garments = np.array(GARMENTS)[load_arrays()[1]]
    for concept, (yes, unknown) in EXPECTED.items():
        column = dataset.truth(np.arange(len(dataset)), dataset.concepts.index(concept))
        for garment in GARMENTS:
            expected = UNKNOWN if garment in unknown else int(garment in yes)
            assert set(column[garments == garment]) == {expected}, (concept, garment)


@pytest.mark.parametrize("shape", [(32, 32), (28, 28, 4), (28,)])
def test_predict_refuses_other_sizes(shape):
    with pytest.raises(ValueError, match="expected 28 x 28"):
        predict([np.zeros(shape, dtype=np.uint8)])


def card_rows():
    """The card's table: concept to its five cells."""
    rows = {}
    for line in CARD.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0] in CONCEPT_NAMES:
            assert cells[0] not in rows
            rows[cells[0]] = cells[1:]
    return rows


@pytest.mark.slow
def test_card_states_the_recomputed_scores(p_yes):
    rows = card_rows()
    assert tuple(rows) == CONCEPT_NAMES
    answers = concept_answers(load_arrays()[1])
    for column, name in enumerate(CONCEPT_NAMES):
        says_yes = p_yes[:, column] >= 0.5
        positive, negative = answers[:, column] == 1, answers[:, column] == 0
        sensitivity, specificity = says_yes[positive].mean(), (~says_yes[negative]).mean()
        expected = [(sensitivity + specificity) / 2, sensitivity, specificity]
        # The card rounds to four decimals.
        assert [float(cell) for cell in rows[name][:3]] == pytest.approx(expected, abs=6e-5), name
        assert [int(cell) for cell in rows[name][3:]] == [positive.sum(), negative.sum()], name
