"""MedTest's nine relations: images per second at 512 x 512 on one core.

Source frames come from the endoscopy phantom (synthetic) and are drawn beforehand; what is
timed is the processor time of ``Relation.apply``, with the detection of the black frame and
the search for a free place.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from adaptive_vtt.demo.phantom_frames import phantom
from adaptive_vtt.relations import Relation, medtest
from adaptive_vtt.types import Sample
from adaptive_vtt.utils.files import write_text
from adaptive_vtt.utils.random_streams import generator

SIZE = 512


def measure(relation: Relation, samples: Sequence[Sample], repeats: int) -> list[float]:
    """Seconds of each application: every sample at every severity, ``repeats`` times."""
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
    import cv2

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("bench"))
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    count, repeats = (2, 1) if options.quick else (12, 4)
    dataset = phantom(count, size=SIZE, polyps="always", instrument=0, blood=0, text=0)
    samples = [dataset.sample(index) for index in range(count)]
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    rows = []
    for relation in medtest.relations():
        seconds = measure(relation, samples, repeats)
        rows.append(
            {
                "relation": relation.name,
                "images per second": round(1 / float(np.mean(seconds)), 1),
                "ms, median": round(1000 * float(np.median(seconds)), 2),
                "ms, 95 per cent": round(1000 * float(np.quantile(seconds, 0.95)), 2),
                "images": len(seconds),
            }
        )
    cv2.setNumThreads(threads)
    frame = pd.DataFrame(rows)
    print(frame.to_string(index=False))
    write_text(options.out / "medtest_speed.csv", frame.to_csv(index=False))


if __name__ == "__main__":
    main()
