"""REIC's published results, to stand beside those of an audit.

Source: Metamorphic Testing of Image Captioning Systems via Image-Level Reduction (TSE 2024),
Tables I to VIII: 300 images each of MSCOCO and PASCAL VOC, three follow-ups per image and
relation, with people as judges. Its images and captioners are not ours to run: the figures are
kept as printed.
"""

from functools import cache

import pandas as pd

from ..errors import unknown
from .beside import published_tables

NUMBERS = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII")


@cache
def table(number: str) -> pd.DataFrame:
    """A table of the paper, a row per figure or group of figures; relations by our names.

    Kept: never write to it. Raises InputError for a number that is none of NUMBERS.
    """
    if number not in NUMBERS:
        raise unknown("table", number, NUMBERS, "REIC's published tables")
    found = published_tables("reic")[number]
    return pd.DataFrame(found["rows"], columns=found["columns"])


def violation_rates(relation: str) -> dict[str, float]:
    """Captioner -> share of its follow-ups (Table I, case level, both sets of images) in which
    REIC reports a violation; ``relation``: "crop", "stretch" or "rotate", none for others."""
    cases = table("I")
    cases = cases[(cases["level"] == "case") & (cases["relation"] == relation)]
    sums = cases.groupby("captioner", sort=False)[["TP", "FN", "FP", "TN"]].sum()
    shares = (sums["TP"] + sums["FP"]) / sums.sum(axis=1)
    return {str(name): float(share) for name, share in shares.items()}
