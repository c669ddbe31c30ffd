"""MedMNIST-C: agreement with the PyPI package medmnistc 0.1.0, and time, side by side.

One pass of the 21 corruptions at severity 3 over a 224 x 224 colour image, each in the
profile of the first data set that has it. Ours and the package's calls alternate in one
process on one core; times are medians of the process's CPU time. See
``medmnistc_reference.py`` beside this file for what must be installed; without the package
only our times are shown.
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
    """A 224 x 224 colour image of blobs and fine texture, with flat and extreme parts."""
    rng = np.random.default_rng(seed)
    blobs = cv2.GaussianBlur(rng.random((224, 224, 3)), (0, 0), 2 + 4 * seed)
    blobs = 255 * (blobs - blobs.min()) / (blobs.max() - blobs.min())
    image = np.clip(blobs + rng.normal(0, 6, blobs.shape), 0, 255).astype(np.uint8)
    image[:30, :30], image[40:60, 20:90], image[70:90, 20:90] = (90, 160, 200), 0, 255
    return image


def corruptions() -> dict[str, tuple[str, Corruption]]:
    """Corruption -> the first data set that has it, and the relation."""
    found: dict[str, tuple[str, Corruption]] = {}
    for flag in medmnistc.flags():
        for relation in medmnistc.relations(flag):
            found.setdefault(relation.name.rsplit("/", 1)[-1], (flag, relation))
    return found


def alternate(calls: Sequence[Callable[[], Any]], rounds: int) -> list[float]:
    """The median CPU time of each call in milliseconds, one after the other in each round."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds + 1):
        for call, taken in zip(calls, times, strict=True):
            start = time.process_time()
            call()
            taken.append(time.process_time() - start)
    return [1000 * float(np.median(taken[1:])) for taken in times]  # the first fills tables


def apart(name: str, relation: Corruption, theirs: Any, images: Sequence[Image]) -> Any:
    """Greatest and mean difference in grey levels, over images and all five severities.

    For corruptions by chance, that of the means over the images instead (see the tests for
    their deviations); motion blur is compared at fixed angles.
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
    """One row per corruption, and the sum."""
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
