"""Check, before an audit, that the columns of a model are in the order of the dataset's classes."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np

from ..datasets.base import Dataset, adapted_dataset
from ..datasets.scanning import by_number
from ..datasets.view import as_loaded
from ..errors import InputError, some
from ..journal import Journal
from ..models.base import ModelDefaults
from ..models.checking import checked, name_of
from ..oracles.labels import likeliest
from ..space import QuestionSpace
from ..types import IDENTITY, Answer, Prompt
from ..utils.options import parameters_of

FEWEST, MOST = 20, 50
"""Minimum and maximum number of images that the check uses."""
BETTER, ERRORS = 0.3, 3.0
"""Minimum gain in accuracy of another order, absolute and in standard errors."""
NAMED = 4
"""Maximum number of classes that a message names."""


def check_order(space: QuestionSpace, model: ModelDefaults, batch: int, journal: Journal) -> None:
    """Raise InputError if the columns of a model seem to be in another order than the classes.

    Other orders are those of the names as text, and as numbers. For each, balanced accuracy on some
    images is compared with that in the dataset's order. A constant answer fits all orders alike.

    Args:
        space: The questions.
        model: The model; one that costs money, or names its columns, is not checked.
        batch: Number of images per call of ``ask``.
        journal: The audit's journal, where the number of calls is noted.
    """
    dataset = adapted_dataset(as_loaded(space.dataset))
    names = [*dataset.concepts]
    orders = [order for order in (sorted(names), sorted(names, key=by_number)) if order != names]
    judged = space.oracle.concepts_are in ("labels", "classes") and dataset.has_images
    unnamed = model.unnamed_columns and not dataset.asks(0)
    if not (orders and judged and unnamed) or model.costs_money:
        return
    prompts, true = [], []
    for index, name in _one_class(dataset):
        with suppress(InputError):  # an unreadable image raises again when it is asked about
            sample = dataset.sample(index)
            prompts.append(Prompt(sample.image, dataset.concepts, sample.id, IDENTITY, 0))
            true.append(name)
    if len(true) < FEWEST:
        return
    starts = range(0, len(prompts), batch)
    answers = [a for k in starts for a in checked(model, prompts[k : k + batch])]
    journal.set_facts(trial_calls=journal.facts().get("trial_calls", 0) + len(answers))
    classes = [likeliest(a.values) if isinstance(a, Answer) else None for a in answers]
    weights = np.array([1 / true.count(name) for name in true])
    weights /= weights.sum()

    def correct(order: Sequence[str]) -> np.ndarray:
        """Return 1 for each image that is classified correctly if columns have this order."""
        pairs = zip(classes, true, strict=True)
        return np.array([k is not None and order[k] == name for k, name in pairs], float)

    present = correct(names)
    for order in orders:
        gain = correct(order) - present
        mean = float(weights @ gain)
        error = float(np.sqrt(weights**2 @ (gain - mean) ** 2))
        if mean >= max(BETTER, ERRORS * error):
            places = [order.index(name) for name in names]
            remedy = f"let it return its columns in the order of the data: columns[:, {places}]"
            if "concepts" in parameters_of(type(model)):
                remedy = (
                    f"set concepts = {json.dumps(order, ensure_ascii=False)} in [model] (in Python "
                    f"{type(model).__name__}(..., concepts=[...]))"
                )
            raise InputError(
                f"model {name_of(model)!r} fits the order {some(order, NAMED)} better than that "
                f"of the data, {some(names, NAMED)}: {weights @ correct(order):.0%} of "
                f"{len(true)} images right against {weights @ present:.0%} (classes count alike); "
                f"{remedy}"
            )


def _one_class(dataset: Dataset) -> Iterator[tuple[int, str]]:
    """Yield the index and class of samples with exactly one class, evenly over all classes."""
    present, columns = dataset.counts[:, 1], np.arange(len(dataset.concepts))
    used = np.flatnonzero(present)
    used = used[np.linspace(0, len(used) - 1, min(len(used), MOST)).astype(int)]
    for k in used.tolist():
        ranks = np.linspace(0, present[k] - 1, min(int(present[k]), MOST // len(used)))
        samples = dataset.members(k, 1, ranks.astype(np.int64))
        truths = dataset.truth(samples[:, None], columns[None, :])
        for sample in samples[(truths == (columns == k)).all(axis=1)].tolist():
            yield sample, dataset.concepts[k]
