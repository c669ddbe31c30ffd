"""Relations as a data augmentation, to train a model on the changes that an audit asks about.

One relation is applied per image, as in MedMNIST-C (Di Salvo et al., 2024, arXiv 2406.17536,
section 2.3). It is drawn uniformly from the listed relations and the identity, or in proportion to
weights, such as an audit's failure rates. The severity is uniform. With ``continuous``, as in the
paper, the strength is uniform between the mildest and the strongest severity.
"""

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from PIL.Image import Image as Picture
from PIL.Image import fromarray

from ..errors import check_known, unexpected
from ..types import Floats, Mask, Sample
from ..utils.image_files import as_image
from ..utils.mask_values import as_mask
from ..utils.random_streams import generator
from . import FollowUp, Identity, Relation, RelationDefaults, resolve

__all__ = ["Augment"]


class Augment:
    """Random transform of images; ``pair`` transforms images with their masks.

    Random numbers depend on ``seed`` and on the number of images so far, not on a global generator,
    so a run in one process is reproducible. In a worker of a torch DataLoader they also depend on
    the worker's seed, which DataLoader draws from torch's generator for every epoch and worker. So
    workers and epochs differ, and ``torch.manual_seed`` (or DataLoader's ``generator``) reproduces
    them. In other pools of processes all copies have the same stream: give them different seeds.

    Args:
        relations: Names ("rotation"), families ("medtest", "medmnistc/pathmnist") and Relation
            objects. ``identity`` is always added, once.
        seed: Seed of all random numbers.
        weights: Relative probabilities by full name, such as the failure rates of an audit
            ("medtest/blood": 0.4). Relations without a weight, also identity, are never drawn.
            Default: equal probabilities.
        continuous: Whether to draw strengths between the severities for relations with numeric
            strengths (graded ones, reductions, MedMNIST-C's and ImageNet-C's). MedTest's relations
            always draw a strength within a severity; other relations ignore this option.

    Raises:
        InputError: A relation is unknown or repeated, or weights name another relation, are
            negative or all zero.
    """

    def __init__(
        self,
        relations: Iterable[str | Relation],
        *,
        seed: int = 0,
        weights: Mapping[str, float] | None = None,
        continuous: bool = False,
    ) -> None:
        if isinstance(relations, str):
            raise unexpected("relations", "a list of names", f"{relations!r} alone")
        self.seed, self.continuous = seed, continuous
        self._names, self._seen = list(relations), 0
        self.relations = self._resolved()
        self._ends = cumulated([relation.name for relation in self.relations], weights)

    def __call__(self, image: Any) -> Any:
        """Return the follow-up of an image in the same form.

        Args:
            image: Array (H, W, C) or (H, W) of uint8, or a PIL image. Grey images stay grey, and
                every other mode of PIL becomes RGB.
        """
        return self.pair(image, {})[0]

    def pair(self, image: Any, masks: Mapping[str, Any]) -> tuple[Any, dict[str, Mask]]:
        """Return the follow-up of an image with its masks.

        Args:
            image: Image, as in a call of this object.
            masks: Concept -> mask (H, W), of bool or of two distant values of uint8. Relations do
                not cover masked areas.

        Returns:
            The follow-up and its masks, of bool.

        Raises:
            InputError: An array is not an image or not a mask.
        """
        array = image
        if isinstance(image, Picture) and image.mode not in ("L", "RGB"):
            array = image.convert("RGB")
        array = np.ascontiguousarray(as_image(array, "augment"))
        inside = {name: as_mask(mask, f"mask of {name!r}") for name, mask in masks.items()}
        relation, follow_up = self._follow_up(Sample("", array, {}, masks=inside))
        changed = array if follow_up.image is None else follow_up.image
        moved = {name: relation.expect_mask(mask, follow_up) for name, mask in inside.items()}
        if isinstance(image, Picture):
            return fromarray(changed[:, :, 0] if changed.shape[2] == 1 else changed), moved
        return changed[:, :, 0] if np.ndim(image) == 2 else changed, moved

    def _follow_up(self, sample: Sample) -> tuple[RelationDefaults, FollowUp]:
        rng = generator(self.seed, "augment", *_worker(), self._seen)
        self._seen += 1
        relation = self.relations[int(np.searchsorted(self._ends, rng.random(), side="right"))]
        if self.continuous:
            return relation, relation.apply_between(sample, rng)
        severity = relation.severities[int(rng.integers(len(relation.severities)))]
        return relation, relation.apply(sample, severity, rng)

    def _resolved(self) -> list[RelationDefaults]:
        relations = resolve(self._names)
        has_identity = any(relation.name == Identity().name for relation in relations)
        return relations if has_identity else [Identity(), *relations]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: relations by name."""
        return {name: value for name, value in vars(self).items() if name != "relations"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.relations = self._resolved()


def cumulated(names: list[str], weights: Mapping[str, float] | None) -> Floats:
    """Return the cumulative probabilities of relations.

    Args:
        names: Names of the relations.
        weights: See ``Augment``.
    """
    if weights is None:
        weights = dict.fromkeys(names, 1.0)
    for name, weight in weights.items():
        check_known("relation", name, names, "weights")
        if not 0 <= weight < np.inf:
            raise unexpected(f"weights: {name!r}", "a number from 0 on", weight)
    sums = np.cumsum([float(weights.get(name, 0)) for name in names])
    if sums[-1] == 0:
        raise unexpected("weights", "one above zero", "none")
    return sums / sums[-1]


def _worker() -> tuple[int, ...]:
    """Return the seed of the current DataLoader worker, or () outside a worker."""
    torch = sys.modules.get("torch.utils.data")
    info = torch.get_worker_info() if torch is not None else None
    return () if info is None else (int(info.seed),)
