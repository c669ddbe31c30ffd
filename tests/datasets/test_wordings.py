"""How questions are worded, and whether the size of a box tells which one is right."""

from collections import Counter

import numpy as np

from adaptive_vtt.datasets.vqa.question_making import distractors


def test_the_size_of_a_box_does_not_tell_that_it_is_right():
    """Of four boxes the right one is smallest, second, third or largest equally often."""
    image = np.full((200, 200, 1), 200, np.uint8)
    ranks: Counter[int] = Counter()
    for seed in range(200):
        rng = np.random.default_rng(seed)
        wrong = distractors(image, (75, 75, 105, 105), 3, (0.5, 2), 0.1, rng)
        assert wrong is not None
        widths = [x2 - x1 for x1, _, x2, _ in wrong]
        assert all(15 <= width <= 60 for width in widths)
        ranks[sum(width < 30 for width in widths)] += 1
    assert all(30 < ranks[k] < 70 for k in range(4)), ranks  # 50 of each, but for chance
