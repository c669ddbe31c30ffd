"""The candidates of draws near the end of a space that is not held as arrays."""

import numpy as np
import pytest

from adaptive_vtt import QuestionSpace
from adaptive_vtt.engine.candidates import CandidatePool, _Unseen
from adaptive_vtt.testing import tiny_dataset


def test_near_the_end_what_is_left_is_not_worked_out_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A draw costs no more where most was asked, and is from exactly what was not."""
    space = QuestionSpace(tiny_dataset(60, 2), ["identity", "gaussian_noise"])
    pool = CandidatePool(space, seed=1, limit=50)
    every = np.sort(space.nth(np.arange(space.size)))
    order = np.random.default_rng(0).permutation(every)
    cut = int(0.7 * len(order))
    pool.remove(order[:cut])
    made = []
    whole = _Unseen.__init__
    monkeypatch.setattr(_Unseen, "__init__", lambda *given: made.append(1) or whole(*given))
    for draw, question in enumerate(order[cut:-1].tolist()):
        found = np.asarray(pool.candidates(draw).question)
        left = set(order[cut + draw :].tolist())
        assert len(found) == min(50, len(left))
        assert set(found.tolist()) <= left
        pool.remove(np.array([question]))
    assert made == [1]
