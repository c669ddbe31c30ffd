"""Images that look alike: k-means (scikit-learn) over the features that predictions go by.

A cluster has no name of its own, so it is described by the samples that lie nearest to its centre.
"""

import numpy as np

from ...errors import InputError
from ...space import QuestionSpace
from ...types import Floats
from ...utils.extras import pip_install
from .atoms import Atom, by_rows

NAME = "clusters"
COUNTS = (4, 8, 16)
"""Numbers of clusters; those of one number are one field."""
MIN = 5
"""Samples per cluster on the average, at least."""
NEAREST = 2
"""Samples that stand for a cluster."""
MAX_SAMPLES = 20_000
"""Samples above which images are not looked at, as each would have to be decoded."""


def atoms(space: QuestionSpace) -> list[Atom]:
    """One atom per cluster; none where samples have neither features nor images.

    Raises InputError where scikit-learn is not installed.
    """
    dataset = space.dataset
    truths, _ = dataset.profile
    apart = len(truths) == len(dataset)  # else no set of samples can be written down as rows
    looks = dataset.features is not None or dataset.has_images
    if not (apart and looks) or len(dataset) > MAX_SAMPLES:
        return []
    import torch

    from ...surrogates.features import sample_features

    numbers = torch.arange(len(dataset))
    every = sample_features(dataset, seed=dataset.fingerprint)(numbers).numpy()
    table = every[:, len(dataset.concepts) :]  # the truths come first, and are no look
    return [
        atom for count in COUNTS if count * MIN <= len(table) for atom in _of(space, table, count)
    ]


def _of(space: QuestionSpace, table: Floats, count: int) -> list[Atom]:
    try:
        from sklearn.cluster import KMeans
    except ImportError:
        raise InputError(
            f"discover_by: 'clusters' needs scikit-learn: {pip_install('slices')}"
        ) from None
    found = KMeans(count, n_init=4, random_state=0).fit(table)
    away = found.transform(table)
    rows = space.dataset.profile_row(np.arange(len(table)))
    made = []
    for cluster in range(count):
        nearest = np.argsort(away[:, cluster])[:NEAREST]
        like = " and ".join(space.dataset.sample_id(int(sample)) for sample in nearest)
        mask = np.zeros(len(table), bool)
        mask[rows[found.labels_ == cluster]] = True
        words = f"looks like {like}"
        made.append(by_rows(space, NAME, f"one of {count} clusters", mask, words))
    return made
