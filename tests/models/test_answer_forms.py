"""What a model is told that answers in another form than it is asked in."""

import numpy as np
import pytest

from adaptive_vtt.errors import ModelError
from adaptive_vtt.models.checking import to_answers
from adaptive_vtt.types import Ask, Prompt


def test_numbers_where_words_are_asked_for_are_told_so() -> None:
    """A captioner that gives P(yes) is not told to return other columns."""
    prompts = [
        Prompt(np.zeros((4, 4, 3), np.uint8), ("caption",), "a", "identity", 0, asks=(Ask("?"),))
    ]
    said = (
        r"expected a list of texts, one per image \(1\), got an array of shape \(1, 3\); return in"
    )
    with pytest.raises(ModelError, match=said):
        to_answers(np.zeros((1, 3)), prompts, "model 'm'")
