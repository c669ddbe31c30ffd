"""A space in which one group of questions fails, and audits of it that look for slices."""

from typing import Any

import numpy as np
import pandas as pd

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.datasets import from_table
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.models import Recorded

SLICED: dict[str, Any] = {"half_width": 0.08, "targets": ["overall"], "seed": 6, "discover": 2}


def world(
    seed: int = 0, samples: int = 240, planted: float = 0.9, per_call: Any = "all"
) -> tuple[QuestionSpace, Recorded]:
    """Return a space of two concepts, and a model.

    The model is wrong about "x" with probability ``planted`` in samples of site "north" and device
    "b".
    """
    rng = np.random.default_rng(seed)
    metadata = pd.DataFrame(
        {
            "site": rng.choice(["north", "south"], samples),
            "device": rng.choice(["a", "b", "c"], samples),
            "age": rng.integers(20, 90, samples),
        }
    )
    labels = pd.DataFrame(rng.integers(0, 2, (samples, 2)), columns=["x", "y"])
    labels.index = pd.Index([str(k) for k in range(samples)])
    chance = np.full((samples, 2), 0.06)
    bad = (metadata["site"] == "north") & (metadata["device"] == "b")
    chance[bad.to_numpy(), 0] = planted
    wrong = rng.random((samples, 2)) < chance
    answers = pd.DataFrame(np.where(wrong, 1 - labels, labels), labels.index, ["x", "y"])
    space = QuestionSpace(from_table(None, labels, metadata=metadata))
    return space, Recorded(answers, per_call=per_call)


def audited(journal: Any = None, seed: int = 0, per_call: Any = "all", **options: Any) -> Any:
    space, model = world(seed, per_call=per_call)
    journal = journal or MemoryJournal()
    chosen = {**SLICED, "surrogate": False, **options}
    Audit(space, model, journal=journal, **chosen).run()
    return journal
