"""Compare MedMNIST-C's corruptions with those of the PyPI package medmnistc 0.1.0, and their time.

    python -m adaptive_vtt.experiments.medmnistc.corruption_speed

Each of the 21 corruptions changes a 224 x 224 colour image at severity 3, in the profile of the
first data set that has it. Our calls and the package's alternate in one process on one core, and
times are medians of its CPU time. ``medmnistc_reference`` lists the packages to install. Without
them, the table has our times only.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import cv2
import numpy as np
import pandas as pd

from adaptive_vtt.relations import medmnistc
from adaptive_vtt.relations.corruptions import Corruption, motion_blur_at
from adaptive_vtt.types import Image

from ..program import Row, options, save_table, show
from . import medmnistc_reference as reference

SEVERITY = 3
ANGLES = (-31.0, 12.0)


def picture(seed: int) -> Image:
    """Return a 224 x 224 colour image of blobs and fine texture, with flat and extreme parts."""
    rng = np.random.default_rng(seed)
    blobs = cv2.GaussianBlur(rng.random((224, 224, 3)), (0, 0), 2 + 4 * seed)
    blobs = 255 * (blobs - blobs.min()) / (blobs.max() - blobs.min())
    image = np.clip(blobs + rng.normal(0, 6, blobs.shape), 0, 255).astype(np.uint8)
    image[:30, :30], image[40:60, 20:90], image[70:90, 20:90] = (90, 160, 200), 0, 255
    return image


def corruptions() -> dict[str, tuple[str, Corruption]]:
    """Return each corruption's first data set, and its relation there."""
    first: dict[str, tuple[str, Corruption]] = {}
    for flag in medmnistc.flags():
        for relation in medmnistc.relations(flag):
            first.setdefault(relation.name.rsplit("/", 1)[-1], (flag, relation))
    return first


def alternate(calls: Sequence[Callable[[], Any]], rounds: int) -> list[float]:
    """Return the median CPU time of each call in milliseconds; a round makes each call once."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds + 1):
        for call, taken in zip(calls, times, strict=True):
            start = time.process_time()
            call()
            taken.append(time.process_time() - start)
    return [1000 * float(np.median(taken[1:])) for taken in times]  # the first call fills tables


def apart(name: str, relation: Corruption, theirs: Any, images: Sequence[Image]) -> Any:
    """Return how much two corruptions differ over images and all five severities, in grey levels.

    Returns:
        The largest and the mean difference. For random corruptions, the difference of the means
        over all images (the tests have their deviations). Other entries are "". Motion blur is
        compared at fixed angles.
    """
    rng, differences = np.random.default_rng(0), []
    for severity in relation.severities:
        for image in images:
            if name == "motion_blur":
                radius, sigma = relation.ladder[severity - 1]
                pairs = [
                    (
                        motion_blur_at(image, radius, sigma, angle),
                        reference.motion_at(theirs, image, severity, angle),
                    )
                    for angle in ANGLES
                ]
            else:
                pairs = [
                    (
                        relation.transform(image, severity, rng),
                        reference.apply(theirs, image, severity),
                    )
                ]
            differences += [ours.astype(float) - other for ours, other in pairs]
    if name in ("stain_deposit", "bubble", "characters") or name.endswith("noise"):
        return "", "", abs(float(np.mean(differences)))
    return float(np.abs(differences).max()), float(np.abs(differences).mean()), ""


def compare(rounds: int, images: Sequence[Image]) -> pd.DataFrame:
    """Return a row per corruption, and their sum."""
    try:
        table = reference.registry()
    except ImportError as error:
        show(f"without the package: {error}")
        table = {}
    rng, rows = np.random.default_rng(0), []
    for name, (flag, relation) in corruptions().items():
        calls: list[Callable[[], Any]] = [
            lambda r=relation: r.transform(images[0], SEVERITY, rng)  # type: ignore[misc]
        ]
        row: Row = {"corruption": name, "profile": flag}
        if table:
            theirs = table[flag][name]
            calls.append(lambda t=theirs: reference.apply(t, images[0], SEVERITY))  # type: ignore[misc]
            row["max"], row["mean"], row["of means"] = apart(name, relation, theirs, images)
        taken = alternate(calls, rounds)
        rows.append(row | dict(zip(("ms", "ms, package"), taken, strict=False)))
    frame = pd.DataFrame(rows)
    total = {"corruption": "sum"} | frame.filter(like="ms").sum().to_dict()
    frame = pd.concat([frame, pd.DataFrame([total])], ignore_index=True)
    if table:
        frame["ratio"] = frame["ms"] / frame["ms, package"]
    return frame


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, arguments, quick={"pictures": 1, "rounds": 3}, pictures=4, rounds=101)
    reference.seed(0)
    frame = compare(chosen.rounds, [picture(seed) for seed in range(chosen.pictures)])
    save_table(frame.round(4).fillna(""), chosen.out / "corruption_speed.csv")


if __name__ == "__main__":
    main()
