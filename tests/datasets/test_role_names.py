"""Roles guessed from the names of labels, and what questions follow from them."""

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt.datasets import from_table
from adaptive_vtt.datasets.vqa.question_making import choose
from adaptive_vtt.datasets.vqa.taxonomy import _ROLE_WORDS, ROLES, role_of


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("text", "artefact"),
        ("poor preparation", "preparation"),
        ("ClipApplier", "instrument"),
        ("CalotTriangleDissection", "phase"),
        ("ulcerative-colitis-grade-2", "grade"),
        ("retroflex-rectum", "landmark"),
        ("z-line", "landmark"),
        ("colon polyp", "lesion"),
        ("esophagitis", "lesion"),  # no oesophagus: words are whole ones
        ("texture", "lesion"),
    ],
)
def test_words_tell_of_a_role(name, role):
    assert role_of(name) == role


def test_every_role_of_the_words_is_one_that_there_is():
    assert {*_ROLE_WORDS} <= {*ROLES}


def test_nothing_is_asked_about_artefacts_unless_they_are_said_to_be_more():
    images = [np.full((16, 16, 3), 40 * k, np.uint8) for k in range(4)]
    labels = pd.DataFrame({"text": [1, 0, 1, 0], "polyp": [0, 1, 0, 1]})
    dataset = from_table(images, labels)
    chosen = choose(dataset, ["presence", "type"])
    assert chosen.roles == {"text": "artefact", "polyp": "lesion"}
    assert {about for _, _, about in chosen.places} == {"polyp, answer Yes", "polyp, answer No"}
    chosen = choose(dataset, ["presence", "type"], roles={"text": "lesion"})
    assert {kind for _, kind, about in chosen.places if about == "text"} == {"type"}
    named = choose(dataset, ["presence"], words={"polyp": "poor preparation"})
    assert named.roles["polyp"] == "preparation"  # what a question calls it tells more
    assert not named.places
