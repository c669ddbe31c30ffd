"""The judged questions of a journal as a table, and confusion counts."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..certify.status import TargetStatus
from ..certify.verify_draws import Membership
from ..datasets.base import CompleteDataset
from ..journal import Journal
from ..journal.facts import Facts, SpaceFacts, read_facts
from ..journal.rows import EXCLUDED, CallRow, DrawRow
from ..models.unanswered import MUTE
from ..oracles.base import LABEL_ERROR
from ..types import IDENTITY, Floats, Indices

FAILED = 0.5
"""A question with this loss, or more, was answered wrongly."""
COLUMNS = [
    *("draw", "call", "question", "sample", "relation", "severity", "concept"),
    *("truth", "answer", "unanswered", "loss", "coordinate", "elapsed"),
]
"""Columns of a table of outcomes."""
SURE = 1.96
"""Standard deviations to either side of a 95 % interval."""
METRICS = ("sensitivity", "specificity", "precision", "f1", "kappa")


def sample_word(space: SpaceFacts, pictures: Mapping[int, object]) -> str:
    """Return "item" where nothing shows that samples are images, as none was changed and no picture
    was kept (of a pool, or of recorded answers about texts or rows), else "image"."""
    return "image" if pictures or space.relations != [IDENTITY] else "item"


def unanswered(calls: Sequence[CallRow]) -> tuple[int, Counter[str]]:
    """Return how many questions were asked, and how often each reason left one without an answer;
    questions that do not count give none."""
    rows = [row for call in calls for row in call.answers if row.loss is not None]
    return len(rows), Counter(r.unanswered for r in rows if r.unanswered and not r.excluded)


def is_mute(calls: Sequence[CallRow]) -> bool:
    """Return whether so much went unanswered that nothing is certified."""
    asked, reasons = unanswered(calls)
    return reasons.total() > MUTE * asked


def outcomes(journal: Journal) -> pd.DataFrame:
    """Return one row per judged question, in draw order.

    Columns: draw, call, question, sample, relation, severity, concept, truth, answer (NaN:
    unanswered), unanswered (reason or None), loss, coordinate, elapsed.
    """
    return judged(read_facts(journal.facts()), journal.draws(proposals=False), journal.calls())


def judged(facts: Facts, draws: Sequence[DrawRow], calls: Sequence[CallRow]) -> pd.DataFrame:
    """Return the table of ``outcomes``, from rows that were read already."""
    space, by_call = facts.space, {row.call: row for row in draws}
    records = []
    for call in sorted(calls, key=lambda c: by_call[c.call].draw):
        drawn = by_call[call.call]
        asked = drawn.draw, drawn.sample, call.call, call.elapsed
        records += [
            (*asked, row.question, row.truth, row.answer, row.unanswered, row.loss, row.coordinate)
            for row in call.answers
            if row.loss is not None
        ]
    names = ("draw", "sample", "call", "elapsed", "question", *COLUMNS[7:12])
    values = zip(*records, strict=True) if records else [np.empty(0, object)] * len(names)
    columns: dict[str, Any] = dict(zip(names, values, strict=True))
    columns |= {name: np.array(columns[name], float) for name in ("answer", "coordinate", "loss")}
    _, variant, concept = space.numbering.parts(np.array(columns["question"], np.int64))
    relations, severities = zip(*space.variants, strict=True)
    columns["relation"] = np.array(relations, object)[variant]
    columns["severity"] = np.array(severities)[variant]
    columns["concept"] = np.array(space.concepts, object)[concept]
    return pd.DataFrame(columns)[COLUMNS]


def with_metadata(table: pd.DataFrame, dataset: CompleteDataset, samples: Indices) -> pd.DataFrame:
    """Return the table with a further column for each of the dataset's metadata; ``samples`` (n,):
    the sample of each row. A column whose name is taken is called "NAME (metadata)"."""
    rows = dataset.profile_row(samples)
    metadata = {
        f"{name} (metadata)" if name in table else name: dataset.metadata_values(name)[rows]
        for name in dataset.metadata_columns
    }
    return table.assign(**metadata)


def any_wrong(
    facts: Facts, calls: Sequence[CallRow], statuses: Sequence[TargetStatus]
) -> list[float | None]:
    """Return per target the share of its images that have any wrong label: a label error of 2 % may
    be one wrong label in each of many images.

    None if a target is not about several labels, or not certified, as not all was asked.
    """
    population, space = facts.population, facts.space
    shares: list[float | None] = [None] * len(statuses)
    if population is None or space.concepts_are != "labels" or len(space.concepts) < 2:
        return shares
    rows = [row for call in calls for row in call.answers if not (row.loss is None or row.excluded)]
    questions = np.array([row.question for row in rows], np.int64)
    losses = pd.Series([row.loss for row in rows], space.numbering.image_of(questions), float)
    for k, (status, masks) in enumerate(zip(statuses, population["targets"], strict=True)):
        of_labels = status.id.rate == LABEL_ERROR and "concept" not in status.id.as_dict()
        if status.certified and of_labels:
            inside = Membership(population, [masks]).inside(questions)[:, 0]
            shares[k] = float(losses[inside].groupby(level=0).max().mean())
    return shares


def counting(table: pd.DataFrame) -> pd.DataFrame:
    """Return outcomes without the questions that turned out not to count."""
    return table[~table["unanswered"].fillna("").astype(str).str.startswith(EXCLUDED)]


def wilson(wrong: float, count: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval for a share (Wilson, 1927), as if questions were drawn evenly.

    ``wrong`` of ``count``, which may be a sum of losses.
    """
    share, square = wrong / count, SURE**2 / count
    centre = (share + square / 2) / (1 + square)
    reach = SURE * math.sqrt(share * (1 - share) / count + square / (4 * count)) / (1 + square)
    return max(0.0, centre - reach), min(1.0, centre + reach)


def clopper_pearson(
    share: Floats | float, count: npt.ArrayLike, confidence: float
) -> tuple[Floats, Floats]:
    """Return the exact interval of a share seen in so many independent draws, each (K,); NaN if
    there are none. Clopper & Pearson, Biometrika 26 (1934); conservative for draws without
    replacement."""
    from scipy.special import betaincinv  # a tenth of a second that most commands do not need

    n = np.asarray(count, float)
    seen, tail = share * n, (1 - confidence) / 2
    with np.errstate(invalid="ignore"):
        lower = np.where(seen > 0, betaincinv(seen, n - seen + 1, tail), 0.0)
        upper = np.where(seen < n, betaincinv(seen + 1, n - seen, 1 - tail), 1.0)
    known = ~np.isnan(share)
    return np.where(known, lower, np.nan), np.where(known, upper, np.nan)


def confusion(table: pd.DataFrame, by: str | Sequence[str]) -> pd.DataFrame:
    """Return counts tn, fp, fn, tp and unanswered, and METRICS, per group of an outcomes table.

    A metric whose denominator is zero is NaN. Unanswered questions have a column of their own.
    """
    keys = [by] if isinstance(by, str) else list(by)
    true, answered = table["truth"] == 1, table["answer"].notna()
    yes = true ^ (table["loss"] >= 0.5)  # by the oracle, whatever its threshold
    parts = table[keys].assign(
        tn=answered & ~yes & ~true,
        fp=answered & yes & ~true,
        fn=answered & ~yes & true,
        tp=answered & yes & true,
        unanswered=~answered,
    )
    counts = parts.groupby(keys, sort=False).sum()
    tn, fp, fn, tp = (counts[c].astype(float) for c in ("tn", "fp", "fn", "tp"))
    total = tn + fp + fn + tp
    chance = (tp + fp) * (tp + fn) + (tn + fn) * (tn + fp)
    figures = {
        "sensitivity": tp / (tp + fn),
        "specificity": tn / (tn + fp),
        "precision": tp / (tp + fp),
        "f1": 2 * tp / (2 * tp + fp + fn),
        "kappa": ((tp + tn) * total - chance) / (total**2 - chance),
    }
    return counts.join(pd.DataFrame(figures).replace([np.inf, -np.inf], np.nan))
