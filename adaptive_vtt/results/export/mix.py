"""A training set: original images, and as many changed by relations.

MedTest (thesis LYU2308, CUHK 2024, RQ3) takes the original frames and as many perturbed ones in
equal shares of every relation. Shares in proportion to certified failure rates are our addition.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from ...datasets.view import as_loaded
from ...errors import listed, unexpected
from ...families import OfRelation
from ...journal import Journal
from ...relations.augment import cumulated
from ...space import QuestionSpace
from ...types import IDENTITY
from ...utils.files import whole_folder, write_text
from ...utils.random_streams import generator
from ...utils.tables import csv_text
from ..result import summarise
from ..run import Run
from .failures import DatasetFolder, expected_of, names_of

MIN_SHARE = 0.01
"""The weight of a relation under which an audit observed no failures: nothing is left out."""


def write_mix(
    space: QuestionSpace, out: Path, weights: Mapping[str, float] | None = None, seed: int = 0
) -> dict[str, int]:
    """Write every image of a space unchanged, and once under a relation, into a folder.

    Shares are met to within an image. The folder, images/, labels.csv, masks/CONCEPT/, mix.csv (id,
    sample, relation, severity) and dataset.toml, which reads it back, appears whole or not at all.

    Args:
        space: Images to train on, with the identity and the relations that change them.
        out: The folder, new or empty.
        weights: Relation -> relative share; None: equal ones.
        seed: Seed of the relation and severity that change each image.

    Returns:
        Relation -> number of images.

    Raises:
        InputError: The folder is in use, weights are such as ``Augment`` refuses, samples have no
            images, or questions are in words.
    """
    places: dict[str, list[int]] = {}
    for place, variant in enumerate(space.variants):
        places.setdefault(variant.relation.name, []).append(place)
    changing = [name for name in places if name != IDENTITY]
    if not space.dataset.has_images or space.dataset.asks(0):
        words = "questions in words" if space.dataset.has_images else "samples without images"
        raise unexpected("mix", "images with labels or masks", words)
    if not changing:
        raise unexpected("mix", "a relation other than identity in [space]", "none")
    ends, rng, count = cumulated(changing, weights), generator(seed, "mix"), len(space.dataset)
    spread = (rng.permutation(count) + 0.5) / count
    drawn = [changing[k] for k in np.searchsorted(ends, spread, side="right")]
    chosen = np.array([rng.choice(places[name]) for name in drawn])
    by_image = np.concatenate([np.full(count, places[IDENTITY][0]), chosen])  # unchanged ones first
    numbers = np.tile(np.arange(count), 2) * len(space.variants) + by_image
    rows = []
    with whole_folder(out) as folder:
        dataset = DatasetFolder(folder, as_loaded(space.dataset).concepts)
        for number, name in names_of(space, numbers).items():
            dataset.add(*expected_of(space, number, name))
            index, place = space.numbering.image_parts(number)
            variant = space.variants[place]
            sample = space.dataset.sample_id(index)
            rows.append((name, sample, variant.relation.name, variant.severity))
        dataset.finish()
        table = pd.DataFrame(rows, columns=["id", "sample", "relation", "severity"])
        write_text(folder / "mix.csv", csv_text(table))
    return {name: int((table["relation"] == name).sum()) for name in places}


def weights_of(source: Journal | Run, relations: list[str], where: str) -> dict[str, float]:
    """Return relation -> its certified failure rate, at least MIN_SHARE. Raise InputError, naming
    ``where``, for relations that are no targets."""
    result = summarise(source)
    rates = {s.id.relation: s.estimate for s in result.statuses if isinstance(s.id, OfRelation)}
    missing = [name for name in relations if name not in rates]
    if missing:
        wanted = "an audit with a target for each relation (--targets relations)"
        raise unexpected(where, wanted, f"none for {listed(missing, 3)}")
    return {name: max(rates[name], MIN_SHARE) for name in relations}
