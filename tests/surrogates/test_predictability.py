"""Predictability on a table small enough to count by hand.

         A  B  C
    s0   1  1  0
    s1   1  0  1
    s2   0  1  1
    s3   1  1  1
    s4   0  0  ?

Prevalence: A 3 of 5, B 3 of 5, C 3 of the 4 that are known.
"""

from typing import Any

import numpy as np
import pytest
import torch

from adaptive_vtt.surrogates import Predictability

TRUTHS = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1], [0, 0, -1]], np.int8)
A, B, C = 0, 1, 2
PREVALENCE = [3 / 5, 3 / 5, 3 / 4]


def made(**options: Any) -> Predictability:
    return Predictability(np.arange(5), TRUTHS, **options)


def p(belief: Predictability, image: int) -> list[float]:
    """p(yes) of the three questions about ``image``."""
    return belief.probability(torch.tensor([image] * 3), torch.arange(3)).tolist()


def test_before_any_answer_it_is_the_prevalence() -> None:
    assert p(made(), image=0) == pytest.approx(PREVALENCE)


def test_history_of_true_answers_step_by_step() -> None:
    belief = made()
    belief.observe(image=10, sample=0, concept=A, truth=1, answer=0.2)
    # A = 1, without s0 itself: s1, s3. B: s3 of 2. C: both.
    assert p(belief, 10) == pytest.approx([1, 1 / 2, 1])
    belief.observe(image=10, sample=0, concept=B, truth=1, answer=0.9)
    # A = B = 1: s3 alone.
    assert p(belief, 10) == pytest.approx([1, 1, 1])
    belief.observe(image=10, sample=0, concept=C, truth=0, answer=0.9)
    # A = B = 1, C = 0: s0 alone, which does not count; nothing matches.
    assert p(belief, 10) == pytest.approx(PREVALENCE)


def test_history_of_the_models_answers_follows_what_it_said() -> None:
    belief = made(history="answer")
    belief.observe(image=10, sample=0, concept=A, truth=1, answer=0.2)
    # It said no: A = 0 holds for s2, s4. B: s2 of 2. C: s2 of the one that is known.
    assert p(belief, 10) == pytest.approx([0, 1 / 2, 1])
    belief.observe(image=10, sample=0, concept=B, truth=1, answer=0.5)
    # 0.5 counts as yes: A = 0, B = 1: s2 alone.
    assert p(belief, 10) == pytest.approx([0, 1, 1])


def test_images_of_the_same_sample_have_histories_of_their_own() -> None:
    belief = made()
    belief.observe(image=10, sample=0, concept=A, truth=1, answer=0.2)
    belief.observe(image=11, sample=0, concept=B, truth=1, answer=0.2)
    # Image 11: B = 1 without s0: s2, s3. A: s3 of 2.
    assert p(belief, 10) == pytest.approx([1, 1 / 2, 1])
    assert p(belief, 11) == pytest.approx([1 / 2, 1, 1])
    assert p(belief, 12) == pytest.approx(PREVALENCE)


def test_concept_nobody_knows_is_even() -> None:
    belief = Predictability(np.arange(2), np.array([[1, -1], [0, -1]], np.int8))
    assert belief.probability(torch.tensor([0]), torch.tensor([1])).tolist() == [0.5]
