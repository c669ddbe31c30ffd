"""EndoBench's physicians: how many questions they had right, and how much that says.

Source: EndoBench (2025), section 4.1, B.2, Tables 2 and 5. It prints percentages and, of counts,
only that 255 questions were asked. The counts follow: each percentage is k / n, the percentages
of MP, MO, IM and RR are those of their subtasks together, and all are 189 of 255 (74.12 %). With
at most 20 questions each only one set of counts does all this, but for PA and Mul (both 80 %),
which have 15 and 20 in either order: 15 each are taken, which gives the wider interval. (The
text says 5, 10 or 15 each; no such counts give 65, 70 and 85 % and the total.) Two
physicians' scores were averaged, yet no column needs half a question: each counts once here.

Not known: the counts of LC and PT. Their percentages (86.67, 70.00) cannot together be the 70.00
of LT, which fits the total.
"""

from dataclasses import dataclass
from functools import cache

import pandas as pd
from scipy.special import betaincinv

from ..datasets.vqa.taxonomy import TASKS
from .beside import published_tables
from .endobench_published import column_of, full_names
from .section import span

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Compared:
    """One target of the audit that physicians were asked about, too."""

    what: str
    ours: float
    interval: str
    theirs: float
    count: str
    their_interval: str


@cache
def baseline() -> pd.DataFrame:
    """What the physicians had right, one row per "overall", task and subtask with known counts.

    Columns: right and asked (questions), accuracy, lower and upper (0..1, Clopper-Pearson,
    0.95 each by itself).
    """
    stored: dict[str, list[int]] = dict(published_tables("endobench")["physicians"])
    for task in TASKS:
        parts = [stored[short] for _, short, _ in task.subtasks if short in stored]
        if task.short not in stored and parts:
            stored[task.short] = [sum(column) for column in zip(*parts, strict=True)]
    names = full_names()
    rows = {
        names.get(short, short): (k, n, k / n, *clopper_pearson(k, n, CONFIDENCE))
        for short, (k, n) in stored.items()
    }
    columns = ["right", "asked", "accuracy", "lower", "upper"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    return table.astype({"right": int, "asked": int})


def compared(table: pd.DataFrame) -> list[Compared]:
    """Rows of ``endobench_published.beside`` of which physicians' counts are known, each once."""
    theirs = baseline().to_dict(orient="index")
    found: dict[str, Compared] = {}
    for r in table.to_dict(orient="records"):
        column = column_of(r["kind"], r["what"])
        if column not in theirs or column in found:
            continue
        them = theirs[column]
        found[column] = Compared(
            column,
            r["accuracy"],
            span(r["lower"], r["upper"]),
            them["accuracy"],
            f"{them['right']} of {them['asked']}",
            span(them["lower"], them["upper"]),
        )
    return list(found.values())


def clopper_pearson(right: int, asked: int, confidence: float) -> tuple[float, float]:
    """The exact interval of a share of which ``right`` of ``asked`` independent draws are seen.

    Clopper & Pearson, Biometrika 26 (1934). Too wide, if anything, for draws without replacement.
    """
    tail = (1 - confidence) / 2
    wrong = asked - right
    lower = betaincinv(right, wrong + 1, tail) if right else 0.0
    upper = betaincinv(right + 1, wrong, 1 - tail) if wrong else 1.0
    return float(lower), float(upper)
