"""Measure MedTest's nine relations in images per second, at 512 x 512 on one core, in a minute.

    python -m adaptive_vtt.experiments.medtest.medtest_speed

Source frames are those of the endoscopy phantom and drawn beforehand. Times are CPU times of
``Relation.apply``, which includes detecting the black frame and finding a free place.
"""

import time
from collections.abc import Sequence

import numpy as np

from adaptive_vtt.relations import Relation, medtest
from adaptive_vtt.types import Sample
from adaptive_vtt.utils.random_streams import generator

from ..program import options, save_table
from . import phantoms

SIZE = 512


def measure(relation: Relation, samples: Sequence[Sample], repeats: int) -> list[float]:
    """Return the CPU seconds of each application, ``repeats`` times per sample and severity."""
    seconds = []
    for number in range(repeats):
        for index, sample in enumerate(samples):
            for severity in relation.severities:
                rng = generator(0, relation.name, index, severity, number)
                start = time.process_time()
                relation.apply(sample, severity, rng)
                seconds.append(time.process_time() - start)
    return seconds


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, arguments, quick={"frames": 2, "repeats": 1}, frames=12, repeats=4)
    dataset = phantoms.frames(
        chosen.frames, size=SIZE, polyps="always", instrument=0, blood=0, text=0
    )
    samples = [dataset.sample(index) for index in range(chosen.frames)]
    rows = []
    for relation in medtest.relations():
        seconds = measure(relation, samples, chosen.repeats)
        rows.append(
            {
                "relation": relation.name,
                "images per second": round(1 / float(np.mean(seconds)), 1),
                "ms, median": round(1000 * float(np.median(seconds)), 2),
                "ms, 95 per cent": round(1000 * float(np.quantile(seconds, 0.95)), 2),
                "images": len(seconds),
            }
        )
    save_table(rows, chosen.out / "medtest_speed.csv")


if __name__ == "__main__":
    main()
