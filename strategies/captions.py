"""Strategies for captions: the search for distinct violations, and REIC's own scheme.

``distinct-violations``: as many of them per call as possible, each of an object. A follow-up is
worth what it may find that was not found: of the objects it retains or makes disappear, those whose
violation is not known yet, each with the rate at which things of its name, and this one itself,
were got wrong so far. An image that was not captioned costs its source first, and whatever versions
of that; it is worth the best rate per call that some few follow-ups of it promise, as in the index
of Gittins (Bandit Processes and Dynamic Allocation Indices, J. R. Stat. Soc. B, 1979).

``reic``: so many follow-ups of every image and relation, chosen by its scores. Metamorphic Testing
of Image Captioning Systems via Image-Level Reduction (TSE 2024), sections IV-D and V. Images come
in random order, one is finished before the next. The first follow-up of an image is drawn before
its caption is known, and so is the best by what a detector found; all others go by the objects of
the caption. Of an image without any located object no more is asked. An audit with this strategy
should look at all ``candidates`` of the space, or it chooses among those that come up.
"""

from typing import TYPE_CHECKING, Annotated

import numpy as np
import torch
from torch import Tensor

from adaptive_vtt.errors import InputError
from adaptive_vtt.relations.reic import select
from adaptive_vtt.types import Candidates, Floats, Indices
from adaptive_vtt.utils.options import Option

from .base import BeliefView
from .common import Power, sharpened

if TYPE_CHECKING:
    from adaptive_vtt.oracles.caption_memory import CaptionMemory


def caption_memory(belief: BeliefView, name: str) -> "CaptionMemory":
    """The belief's memory of captions; raises InputError where it has none."""
    from adaptive_vtt.oracles.caption_memory import CaptionMemory

    if not isinstance(belief.memory, CaptionMemory):
        raise InputError(f"strategy {name!r}: needs an audit of captions (oracle.kind 'captions')")
    return belief.memory


class DistinctViolations:
    """Of captions: objects whose violation is not known yet, by their promise per call."""

    def __init__(
        self,
        power: Power = 16.0,
        ahead: Annotated[
            int,
            Option(
                "follow-ups of an image that was not captioned yet that are looked at together, at "
                "most",
                ge=1,
            ),
        ] = 9,
    ) -> None:
        self.power = power
        self.ahead = ahead

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        memory = caption_memory(belief, "distinct-violations")
        rows, variants = memory.rows(candidates.sample), candidates.variant.numpy()
        checks = memory.checks(rows, variants)
        rates = memory.rates(rows) * memory.fresh(rows)[:, :, None]
        other = memory.surprise(rows, variants)
        known = memory.known(rows)
        rates = np.where(known[:, None, None], rates, rates * memory.named)
        worth = (checks * rates).sum(axis=(1, 2))
        late = self._per_call(checks, rates, other, memory)
        return sharpened(torch.from_numpy(np.where(known, worth, late)), self.power)

    def _per_call(
        self, checks: Floats, rates: Floats, other: Floats, memory: "CaptionMemory"
    ) -> Floats:
        """(n,): the best rate that 1 .. ahead follow-ups like this one promise per call, all
        calls about the source included; each check that finds nothing lets rates fade."""
        best, total = np.zeros(len(rates)), np.zeros(len(rates))
        for count in range(1, self.ahead + 1):
            total += (checks * rates).sum(axis=(1, 2)) + other
            best = np.maximum(best, total / (1 + memory.extra + count))
            left = (1 - rates) * memory.fading
            rates = rates * (1 - checks * (1 - left))
        return best


class Reic:
    """Of captions: image by image, so many follow-ups of each relation, as REIC chooses them."""

    def __init__(
        self,
        follow_ups: Annotated[
            int, Option("follow-ups of each image and relation; the paper's are 3", ge=1)
        ] = 3,
        by_ambiguity: Annotated[
            bool, Option("count REIC's score of ambiguity, as in all but an ablation")
        ] = True,
        by_diversity: Annotated[
            bool, Option("count REIC's score of diversity, as in all but an ablation")
        ] = True,
    ) -> None:
        self.follow_ups = follow_ups
        self.by_ambiguity = by_ambiguity
        self.by_diversity = by_diversity

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        memory = caption_memory(belief, "reic")
        samples, variants = candidates.sample.numpy(), candidates.variant.numpy()
        weights = torch.zeros(len(candidates), dtype=torch.float64)
        for sample in memory.drawn:
            here = np.flatnonzero(samples == sample)
            place = self._next(memory, sample, variants[here])
            if place is not None:
                weights[here[place]] = 1.0
                return weights
        begun = np.isin(samples, list(memory.drawn))
        first = np.array([v.severity for v in belief.space.variants])[variants]
        fresh = ~begun if (~begun).any() else np.ones(len(begun), bool)
        best = fresh & (first == first[fresh].min())
        weights[torch.from_numpy(best)] = 1.0
        return weights

    def _next(self, memory: "CaptionMemory", sample: int, there: Indices) -> int | None:
        """The place in ``there`` (variants) of the image's next follow-up; None: it is done."""
        drawn = np.array(memory.drawn[sample])
        if memory.is_blank(sample):
            return None
        for relation in np.unique(memory.relation):
            mine = np.flatnonzero(memory.relation == relation)
            chosen = np.flatnonzero(np.isin(mine, drawn))
            if len(chosen) >= min(self.follow_ups, len(mine)):
                continue
            order = self._ranked(memory, sample, mine, chosen.tolist())
            for variant in order:
                if variant in there:
                    return int(np.flatnonzero(there == variant)[0])
        return None

    def _ranked(
        self, memory: "CaptionMemory", sample: int, mine: Indices, chosen: list[int]
    ) -> list[int]:
        """The relation's other variants, the best first."""
        spans = memory.spans(sample)
        if spans is None:
            return [int(v) for v in np.delete(mine, chosen)]
        places = select(
            memory.ambiguity(sample)[mine],
            spans[mine],
            len(mine),
            chosen=chosen,
            by_ambiguity=self.by_ambiguity,
            by_diversity=self.by_diversity,
        )
        return [int(mine[place]) for place in places]
