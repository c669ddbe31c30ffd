"""Relations as a training transform: what an audit asks about, a model can be trained on.

One operation per image, as in MedMNIST-C (Di Salvo et al., 2024, arXiv 2406.17536, section 2.3):
the relation is uniform over those given and the identity. Its severity is uniform over the
relation's own levels or, with ``continuous`` and as there, its strength is uniform between those
of the mildest and the strongest level. With weights, what an audit found worst can take the
largest share.
"""

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from PIL.Image import Image as Picture
from PIL.Image import fromarray

from ..errors import check_known, unexpected
from ..types import Floats, Image, Mask, Sample
from ..utils.image_files import as_image
from ..utils.mask_values import as_mask
from ..utils.random_streams import generator
from . import FollowUp, Identity, Relation, RelationDefaults, resolve

__all__ = ["Augment"]


class Augment:
    """A transform of images; and of images with their masks, by ``pair``.

    Randomness comes from ``seed`` and a count of the images that this object has seen, never from a
    global generator, so a run in one process repeats exactly. In a worker of a torch DataLoader the
    key also takes the worker's seed, which DataLoader draws for every epoch and worker from torch's
    generator: workers and epochs differ, and ``torch.manual_seed`` (or DataLoader's ``generator``)
    repeats them. Copies in other pools of processes continue the same stream; give each a ``seed``.

    Args:
        relations: names ("rotation"), families ("medtest", "medmnistc/pathmnist") and Relation
            objects. ``identity`` is always among the operations, and counts once.
        seed: of all random numbers.
        weights: relative shares by full name, such as the failure rates of an audit
            ("medtest/blood": 0.4). Relations without one, identity too, are then never drawn.
            Default: equal shares.
        continuous: strengths between the levels, too, for relations whose strength is in numbers
            (graded ones, reductions, MedMNIST-C's and ImageNet-C's). MedTest's always draw theirs
            within a level; others keep to whole levels.

    Raises:
        InputError: for unknown and repeated relations, and for weights of none of them, below zero
            or all zero.
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
        self._ends = shares([relation.name for relation in self.relations], weights)

    def __call__(self, image: Any) -> Any:
        """Return the follow-up of ``image`` in the form it came in: uint8 H x W x C or H x W, or a
        PIL image, where grey stays grey and every other mode becomes RGB."""
        return self.pair(image, {})[0]

    def pair(self, image: Any, masks: Mapping[str, Any]) -> tuple[Any, dict[str, Mask]]:
        """Return the follow-up of ``image``, and where ``masks`` (concept -> H x W) are in it.

        Masks are bool, or uint8 of two values far apart; those returned are bool. Relations that
        keep off what a mask protects see them.

        Raises:
            InputError: for arrays that are no image or no mask.
        """
        array = _array(image)
        inside = {name: as_mask(mask, f"mask of {name!r}") for name, mask in masks.items()}
        relation, follow_up = self._follow_up(Sample("", array, {}, masks=inside))
        changed = array if follow_up.image is None else follow_up.image
        moved = {name: relation.expect_mask(mask, follow_up) for name, mask in inside.items()}
        return _like(changed, image), moved

    def _follow_up(self, sample: Sample) -> tuple[RelationDefaults, FollowUp]:
        rng = generator(self.seed, "augment", *_worker(), self._seen)
        self._seen += 1
        place = int(np.searchsorted(self._ends, rng.random(), side="right"))
        relation = self.relations[place]
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


def shares(names: list[str], weights: Mapping[str, float] | None) -> Floats:
    """Return where in 0..1 the share of each relation ends; the last with a share ends at 1.
    ``weights``: see ``Augment``."""
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
    """Return the seed of the DataLoader worker this runs in; without torch there is none."""
    torch = sys.modules.get("torch.utils.data")
    info = torch.get_worker_info() if torch is not None else None
    return () if info is None else (int(info.seed),)


def _array(image: Any) -> Image:
    """Return H x W x C; of a PIL image, grey as one channel and all other modes as RGB."""
    if isinstance(image, Picture) and image.mode not in ("L", "RGB"):
        image = image.convert("RGB")
    return np.ascontiguousarray(as_image(image, "augment"))


def _like(array: Image, image: Any) -> Any:
    if isinstance(image, Picture):
        return fromarray(array[:, :, 0] if array.shape[2] == 1 else array)
    return array[:, :, 0] if np.ndim(image) == 2 else array
