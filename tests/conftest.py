"""What all tests share: one thread, repeatable examples, and small spaces to ask about."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import settings

from adaptive_vtt import QuestionSpace
from adaptive_vtt.testing import tiny_dataset

pytest_plugins = ["pytester"]  # the fixture avtt_gate is tried by it

# The same examples every time: a failure is a change in the code, never bad luck.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")
# The tensors are tiny, and a forked child must not inherit a pool of threads.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def repeatable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits of tests repeat where they give no seed; those of users do not."""
    monkeypatch.setattr("adaptive_vtt.engine.audit_key.fresh_seed", lambda: 0)


@pytest.fixture
def space() -> QuestionSpace:
    """6 samples x 6 variants x 2 concepts, with images: 72 questions, 36 calls of "all"."""
    return QuestionSpace(tiny_dataset(6, 2), ["identity", "brightness_up"])


@pytest.fixture
def labels() -> pd.DataFrame:
    """Four samples, three concepts, one truth unknown."""
    return pd.DataFrame(
        [[0, 1, 0], [1, 0, np.nan], [1, 1, 0], [0, 0, 1]],
        index=["a", "b", "c", "d"],
        columns=["drusen", "cyst", "fluid"],
    )
