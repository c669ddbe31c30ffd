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


def test_unknown_truth_matches_no_answer() -> None:
    belief = made()
    belief.observe(image=10, sample=1, concept=C, truth=1, answer=0.9)
    # C = 1, without s1: s2, s3; s4 is unknown there and does not match.
    assert p(belief, 10) == pytest.approx([1 / 2, 1, 1])
    belief = made()
    belief.observe(image=10, sample=1, concept=C, truth=0, answer=0.9)
    # C = 0: s0 alone.
    assert p(belief, 10) == pytest.approx([1, 1, 0])


def test_images_of_the_same_sample_have_histories_of_their_own() -> None:
    belief = made()
    belief.observe(image=10, sample=0, concept=A, truth=1, answer=0.2)
    belief.observe(image=11, sample=0, concept=B, truth=1, answer=0.2)
    # Image 11: B = 1 without s0: s2, s3. A: s3 of 2.
    assert p(belief, 10) == pytest.approx([1, 1 / 2, 1])
    assert p(belief, 11) == pytest.approx([1 / 2, 1, 1])
    assert p(belief, 12) == pytest.approx(PREVALENCE)


def test_sample_outside_the_reference_leaves_nobody_out() -> None:
    belief = Predictability(np.array([0, 2, 3]), TRUTHS[[0, 2, 3]])
    belief.observe(image=10, sample=1, concept=A, truth=1, answer=0.2)
    # A = 1 within the reference: s0, s3.
    assert p(belief, 10) == pytest.approx([1, 1, 1 / 2])


def test_order_of_answers_is_irrelevant() -> None:
    answers = [(A, 1), (C, 1), (B, 0)]
    beliefs = made(), made()
    for belief, order in zip(beliefs, (answers, answers[::-1]), strict=True):
        for concept, truth in order:
            belief.observe(image=3, sample=4, concept=concept, truth=truth, answer=0.5)
    # A = C = 1, B = 0: s1.
    assert p(beliefs[0], 3) == p(beliefs[1], 3) == pytest.approx([1, 0, 1])


def test_many_images_are_told_apart() -> None:
    # Asked about in no order.
    belief = made()
    images = np.random.default_rng(0).permutation(1000)[:200].tolist()
    for image in images:
        belief.observe(image, sample=0, concept=A, truth=image % 2, answer=0.5)
    for image in images:
        # odd: A = 1 as above; even: A = 0: s2, s4
        assert p(belief, image) == pytest.approx([1, 0.5, 1] if image % 2 else [0, 0.5, 1])
    fresh = next(i for i in range(1000) if i not in images)
    assert p(belief, fresh) == pytest.approx(PREVALENCE)


def test_concept_nobody_knows_is_even() -> None:
    belief = Predictability(np.arange(2), np.array([[1, -1], [0, -1]], np.int8))
    assert belief.probability(torch.tensor([0]), torch.tensor([1])).tolist() == [0.5]
