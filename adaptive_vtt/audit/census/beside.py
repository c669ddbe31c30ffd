"""The papers' tables that a census has rows of: ours first, then each published model."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from ...certify.derived import Figure
from ...certify.targets import Target
from ...datasets.vqa.taxonomy import TASKS
from ...engine.settings import describe_oracle
from ...families import OfRelation
from ...results.report import endobench_beside, medtest_beside, published
from ...space import QuestionSpace
from ...types import IDENTITY

Published = Callable[[Target], Mapping[str, float]]
"""By model, what was published of a target; nothing of most."""


def beside(
    space: QuestionSpace,
    targets: Sequence[Target],
    rates: pd.DataFrame,
    perturbations: pd.DataFrame,
    figures: list[Figure],
) -> dict[str, pd.DataFrame]:
    """By paper, the tables that have rows. ``rates`` is of ``targets``, ``perturbations`` has a row
    per relation and severity, and ``figures`` follow from the rates."""
    exact = rates["exact"].tolist()
    made = {
        "medtest": _medtest(space, targets, exact, perturbations),
        "medmnistc": _medmnistc(figures),
        "reic": _rows(targets, exact, lambda target: _reic(space, target)),
        "endobench": _endobench(space, rates),
    }
    return {paper: table for paper, table in made.items() if len(table)}


def _rows(
    targets: Sequence[Target], exact: Sequence[float], published_of: Published
) -> pd.DataFrame:
    """A row per target of which something was published."""
    rows = []
    for target, rate in zip(targets, exact, strict=True):
        if known := published_of(target):
            rows.append({"target": target.name, "ours": rate, **known})
    return pd.DataFrame(rows)


def _medtest(
    space: QuestionSpace,
    targets: Sequence[Target],
    exact: Sequence[float],
    perturbations: pd.DataFrame,
) -> pd.DataFrame:
    if not _all_of(space, medtest_beside.FAMILY):
        return pd.DataFrame()
    if space.oracle.concepts_are == "classes" and len(space.concepts) > 2:
        return _misclassified(perturbations)
    # of two classes an image misclassified is every answer about it
    oracle = describe_oracle(space)
    name, metric = oracle["name"], oracle.get("metric")
    return _rows(targets, exact, lambda t: medtest_beside.rates(t.id, space.concepts, name, metric))


def _misclassified(perturbations: pd.DataFrame) -> pd.DataFrame:
    """MedTest's shares of images misclassified, of more than two classes."""
    if "accuracy" not in perturbations:
        return pd.DataFrame()
    means = perturbations.groupby("relation", sort=False)["accuracy"].mean()
    return pd.DataFrame(
        {"target": f"relation {name}: misclassified", "ours": 1 - accuracy, **known}
        for name, accuracy in means.items()
        if (known := medtest_beside.misclassified(str(name)))
    )


def _medmnistc(figures: list[Figure]) -> pd.DataFrame:
    table = published.published_tables("medmnistc")
    known = published.medmnistc_figures(figures) if figures else {}
    return pd.DataFrame(
        {"row": what, "ours": float(bounds.estimate)}
        | dict(zip(table["models"], table["rows"][what], strict=True))
        for what, bounds in known.items()
    )


def _reic(space: QuestionSpace, target: Target) -> Mapping[str, float]:
    if not isinstance(target.id, OfRelation) or not _all_of(space, published.REIC):
        return {}
    return published.violation_rates(target.id.relation.removeprefix(published.REIC))


def _endobench(space: QuestionSpace, rates: pd.DataFrame) -> pd.DataFrame:
    if {task.name for task in TASKS}.isdisjoint(space.concepts):
        return pd.DataFrame()
    exact = rates["exact"]
    found = endobench_beside.beside(rates.assign(estimate=exact, lower=exact, upper=exact))
    return found.drop(columns=["lower", "upper"])


def _all_of(space: QuestionSpace, family: str) -> bool:
    """Whether all relations are of a family, and there are some."""
    names = {v.relation.name for v in space.variants} - {IDENTITY}
    return bool(names) and all(name.startswith(family) for name in names)
