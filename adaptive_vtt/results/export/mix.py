"""What a model is trained on again: images as they are, and as many changed by relations.

MedTest (thesis LYU2308, CUHK 2024, RQ3) takes the original frames and as many perturbed ones in
equal shares of every relation. Shares in proportion to certified failure rates are our addition.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from ...datasets.view import as_loaded
from ...errors import InputError, listed
from ...families import OfRelation
from ...journal import Journal
from ...relations.augment import shares
from ...space import QuestionSpace
from ...types import IDENTITY, Floats, Indices
from ...utils.files import whole_folder, write_text
from ...utils.random_streams import generator
from ...utils.tables import csv_text
from ..result import summarise
from ..run import Run
from .failures import DatasetFolder, expected_of, names_of

MIN_SHARE = 0.01
"""The weight of a relation under which an audit found no failures: nothing is left out."""


def write_mix(
    space: QuestionSpace, out: Path, weights: Mapping[str, float] | None = None, seed: int = 0
) -> dict[str, int]:
    """Writes every image of ``space`` as it is, and once under a relation, into the folder ``out``;
    relation -> number of images.

    ``space``: of the images to train on, under the identity and what they are changed by.
    ``weights``: relation -> relative share; None: equal ones. Shares are met to within an image,
    which relation changes which image is drawn by ``seed``, and so are severities, evenly. The
    folder, images/, labels.csv, masks/CONCEPT/, mix.csv (id, sample, relation, severity) and
    dataset.toml, which reads it back, is there whole or not at all.

    Raises InputError for a folder in use, weights as ``Augment`` does, samples without images, and
    questions in words.
    """
    names = [*dict.fromkeys(v.relation.name for v in space.variants)]
    changing = [name for name in names if name != IDENTITY]
    if not space.dataset.has_images or space.dataset.asks(0):
        raise InputError(
            "mix: expected images with labels or masks, got "
            + ("questions in words" if space.dataset.has_images else "samples without images")
        )
    if not changing:
        raise InputError("mix: expected a relation beside identity in [space], got none")
    numbers = _numbers(space, changing, shares(changing, weights), seed)
    rows = []
    with whole_folder(out) as folder:
        written = DatasetFolder(folder, as_loaded(space.dataset).concepts)
        for number, name in names_of(space, numbers).items():
            written.add(*expected_of(space, number, name))
            index, place = space.numbering.image_parts(number)
            variant = space.variants[place]
            sample = space.dataset.sample_id(index)
            rows.append((name, sample, variant.relation.name, variant.severity))
        written.finish()
        table = pd.DataFrame(rows, columns=["id", "sample", "relation", "severity"])
        write_text(folder / "mix.csv", csv_text(table))
    return {name: int((table["relation"] == name).sum()) for name in names}


def _numbers(space: QuestionSpace, changing: list[str], ends: Floats, seed: int) -> Indices:
    """(2 n,): the images of the mix, all unchanged ones first."""
    places: dict[str, list[int]] = {}
    for place, variant in enumerate(space.variants):
        places.setdefault(variant.relation.name, []).append(place)
    samples, rng = np.arange(len(space.dataset)), generator(seed, "mix")
    spread = (rng.permutation(len(samples)) + 0.5) / len(samples)
    drawn = [changing[k] for k in np.searchsorted(ends, spread, side="right")]
    chosen = np.array([rng.choice(places[name]) for name in drawn])
    by_image = np.concatenate([np.full(len(samples), places[IDENTITY][0]), chosen])
    return np.tile(samples, 2) * len(space.variants) + by_image


def weights_of(source: Journal | Run, relations: list[str], where: str) -> dict[str, float]:
    """Relation -> how often the model failed under it, as an audit certifies, at least MIN_SHARE.
    Raises InputError, naming ``where``, for relations that are no targets."""
    result = summarise(source)
    rates = {s.id.relation: s.estimate for s in result.statuses if isinstance(s.id, OfRelation)}
    missing = [name for name in relations if name not in rates]
    if missing:
        raise InputError(
            f"{where}: expected an audit with a target for each relation (--targets relations), "
            f"found none for {listed(missing, 3)}"
        )
    return {name: max(rates[name], MIN_SHARE) for name in relations}
