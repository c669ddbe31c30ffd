"""Check before an audit that a model's columns are in the order of the data's classes."""

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
"""Images that are looked at."""
BETTER, ERRORS = 0.3, 3.0
"""How much better another order fits at the least: share of images, and standard errors."""
NAMED = 4
"""Classes of an order that a message names."""


def check_order(space: QuestionSpace, model: ModelDefaults, batch: int, journal: Journal) -> None:
    """Raise InputError if the first answers fit the true classes clearly better once the model's
    columns are taken to be in the order of the names, as text or as numbers.

    Classes count alike, so that a model which always says the same fits no order better than
    another. ``batch``: images of a call of ``ask``; ``journal``: takes note of the number of
    calls.
    """
    dataset = adapted_dataset(as_loaded(space.dataset))
    names = [*dataset.concepts]
    orders = [order for order in (sorted(names), sorted(names, key=by_number)) if order != names]
    judged = space.oracle.concepts_are in ("labels", "classes") and dataset.has_images
    unsaid = model.unnamed_columns and not dataset.asks(0)
    if not (orders and judged and unsaid) or model.costs_money:
        return
    prompts, true = [], []
    for sample, name in _one_class(dataset):
        with suppress(InputError):  # of an unreadable image, raised again when it is asked about
            shown = dataset.sample(sample)
            prompts.append(Prompt(shown.image, dataset.concepts, shown.id, IDENTITY, 0))
            true.append(name)
    if len(true) < FEWEST:
        return
    starts = range(0, len(prompts), batch)
    answers = [a for k in starts for a in checked(model, prompts[k : k + batch])]
    journal.set_facts(trial_calls=journal.facts().get("trial_calls", 0) + len(answers))
    classes = [likeliest(a.values) if isinstance(a, Answer) else None for a in answers]
    weights = np.array([1 / true.count(name) for name in true])
    weights /= weights.sum()

    def right(order: Sequence[str]) -> np.ndarray:
        pairs = zip(classes, true, strict=True)
        return np.array([k is not None and order[k] == name for k, name in pairs], float)

    own = right(names)
    for order in orders:
        gained = right(order) - own
        mean = float(weights @ gained)
        error = float(np.sqrt(weights**2 @ (gained - mean) ** 2))
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
                f"of the data, {some(names, NAMED)}: {weights @ right(order):.0%} of "
                f"{len(true)} images right against {weights @ own:.0%} (classes count alike); "
                f"{remedy}"
            )


def _one_class(dataset: Dataset) -> Iterator[tuple[int, str]]:
    """Yield samples that have one class and lack all others, evenly from all classes, and the name
    of the class."""
    present, columns = dataset.counts[:, 1], np.arange(len(dataset.concepts))
    known = np.flatnonzero(present)
    known = known[np.linspace(0, len(known) - 1, min(len(known), MOST)).astype(int)]
    for k in known.tolist():
        ranks = np.linspace(0, present[k] - 1, min(int(present[k]), MOST // len(known)))
        samples = dataset.members(k, 1, ranks.astype(np.int64))
        truths = dataset.truth(samples[:, None], columns[None, :])
        for sample in samples[(truths == (columns == k)).all(axis=1)].tolist():
            yield sample, dataset.concepts[k]
