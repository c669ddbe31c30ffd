"""A model before and after it was trained again: figures under each relation, and what they gained.

MedTest, Tables 19 to 23 (thesis LYU2308, CUHK 2024, RQ3), and MedMNIST-C, Table 3 (Di Salvo et al.,
2024), of somebody's own model.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..datasets.base import Dataset
from ..datasets.view import Subset
from ..engine.judge import Judge
from ..engine.options import Filters
from ..engine.settings import describe_oracle
from ..errors import InputError, listed
from ..families import OfRelation
from ..models.base import ModelUnderTest
from ..types import IDENTITY
from ..utils.random_streams import generator
from .census import CensusResult
from .census.everything import ask_sources, calls_in_order, source_scores
from .versus import Verdict

FIGURES = ("accuracy", "balanced accuracy", "f1", "kappa", "auc", "error")
ORIGINAL, AVERAGE, CHANGED = "original", "average", "average of changed images"
"""Rows beside those of relations: images as they are; means over rows, MedTest's with the images as
they are, MedMNIST-C's without."""


def halves(dataset: Dataset, seed: int) -> tuple[Subset, Subset]:
    """Images to train on, and those to ask about. Raises InputError for a single image."""
    if len(dataset) < 2:
        raise InputError("retrain: expected two images at least, to train on and to ask about")
    order = generator(seed, "retrain halves").permutation(len(dataset))
    parts = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    return Subset(dataset, parts[0]), Subset(dataset, parts[1])


def check_apart(training: Dataset, tested: Dataset) -> None:
    """Raises InputError where the images to train on are those asked about, or have no label of
    something that is asked about."""
    if training.fingerprint == tested.fingerprint:
        raise InputError(
            "--data: expected other images than the spec's, which the models are asked about "
            "afterwards, got the same; leave it out to train on one half and ask about the other"
        )
    if missing := [name for name in tested.concepts if name not in training.concepts]:
        raise InputError(
            f"--data: expected labels of what the spec asks about, found none of "
            f"{listed(missing, 3)}; there are {listed(training.concepts, 6)}"
        )


def by_relation(census: CensusResult, model: ModelUnderTest) -> pd.DataFrame:
    """One row per relation, means over its severities: of masks the mean Dice or IoU with what is
    expected, else FIGURES as far as they are known; and the error.

    ``model``: whose census it is. Where masks are judged by those of the images as they are, which
    are then no questions, it is asked about these again, for their score.
    """
    space = census.space
    table = census.perturbations.groupby("relation", sort=False).mean(numeric_only=True)
    metric = describe_oracle(space).get("metric")
    if not space.oracle.judges_masks or metric is None:
        return table[[name for name in FIGURES if name in table]]
    scores = census.outcomes.groupby("relation", observed=True, sort=False)["answer"].mean()
    found = pd.DataFrame({metric: scores.reindex(table.index), "error": table["error"]})
    if not space.oracle.needs_source:
        return found
    judge = Judge(space, model.answers)
    ask_sources(judge, model, calls_in_order(space, model), lambda calls: None)
    original = pd.DataFrame({metric: np.nanmean(source_scores(judge)[1])}, [IDENTITY])
    return pd.concat([original, found.drop(index=IDENTITY, errors="ignore")])


def table_of(figures: Sequence[pd.DataFrame], verdict: Verdict, where: Filters) -> pd.DataFrame:
    """One row per relation, ORIGINAL first, and AVERAGE and CHANGED.

    ``figures``: ``by_relation`` of both models, of none where not everything was asked: their
    columns "NAME before" and "NAME after" are left out then. ``verdict``: how error rates differ,
    after less before: "difference", its certified "lower" and "upper", and "decision"; ``where``
    names the questions of a relation, as targets of it.
    """
    differences = _differences(verdict, where)
    found = differences[[]]
    if len(figures) == 2:
        before, after = (part.rename(index={IDENTITY: ORIGINAL}) for part in figures)
        found = pd.DataFrame(
            {
                f"{name} {when}": part[name]
                for name in before
                if name in after
                for when, part in (("before", before), ("after", after))
            }
        )
        means = {AVERAGE: found.mean(), CHANGED: found.drop(index=ORIGINAL, errors="ignore").mean()}
        found = pd.concat([found, pd.DataFrame(means).T])
    return found.join(differences).rename_axis("relation")


def _differences(verdict: Verdict, where: Filters) -> pd.DataFrame:
    """By relation, after less before."""
    named = {name: str(fields["relation"][0]) for name, fields in where.items()}
    rates = verdict.result.targets
    mine = rates["kind"] == OfRelation.kind
    named |= dict(rates[mine].set_index("target")["relation"])
    told = verdict.targets[verdict.targets["target"].isin(named)]
    return pd.DataFrame(
        {
            "difference": -told["delta"].to_numpy(),
            "lower": -told["upper"].to_numpy(),
            "upper": -told["lower"].to_numpy(),
            "decision": told["decision"].to_numpy(),
        },
        index=[named[name].replace(IDENTITY, ORIGINAL) for name in told["target"]],
    )
