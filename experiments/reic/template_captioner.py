"""A captioner with known faults at set rates, for trials of audits.

It recognises objects from pixels alone (``recognition``), so it can describe any follow-up image.
With every caption it reports which objects it left out, mistook and made up.

It makes a fault about an object if a hidden standard normal score is below the quantile of the
fault's rate. One part of the score, a smooth random function of the object's colour, is the same in
every picture of the object. The other part is random for every picture. ``persistence`` is the
first part's share of the variance. As with real captioners, rates vary by kind, by a seeded factor
of 0.2 to 3 with mean 1. Rates of omission also vary in proportion to area^-0.5, by a factor of 0.3
to 3.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from types import MappingProxyType
from typing import Annotated

import numpy as np

from adaptive_vtt.errors import InputError, check_known
from adaptive_vtt.models.base import ModelDefaults
from adaptive_vtt.types import Answer, CallMode, Floats, Image, Prompt, Unanswered
from adaptive_vtt.utils.options import Option
from adaptive_vtt.utils.random_streams import generator

from .recognition import ColourSight, Sight, Sighting
from .vocabulary import EVERYDAY, Item, Vocabulary, compose

_TYPICAL = 0.015
"""Share of the picture's area at which the size factor of the omission rate is 1. It is chosen so
that the mean rate over the objects of ``scenes()`` is the rate that was set."""
_SPREAD = 0.8  # standard deviation of the logarithms of the factors of kinds
_WAVES, _SCALE = 16, 1.5  # number of waves in a lasting score, and their scale in CIE Lab


@dataclass(frozen=True)
class Explanation:
    """A caption and the truth about it.

    Attributes:
        caption: The caption.
        seen: Everything that was recognised.
        named: Each name of the caption, and the kind that it stands for, None for nothing.
        omitted: Recognised kinds that are left out.
        misclassified: Kind -> the kind that it is taken for.
        fabricated: Names that stand for nothing.
    """

    caption: str
    seen: tuple[Sighting, ...]
    named: tuple[tuple[str, str | None], ...]
    omitted: tuple[str, ...]
    misclassified: Mapping[str, str]
    fabricated: tuple[str, ...]


class TemplateCaptioner(ModelDefaults):
    """Model that describes a picture in one sentence.

    Captions are a function of ``seed`` and the image's bytes. Shares are in 0..1.

    Args:
        sight: Recognises the content of pictures; by default ``ColourSight``, for drawn scenes.
        vocabulary: Names of kinds, and the kinds that they are taken for.
        omission: Mean share of objects that are left out.
        misclassification: Mean share of objects that are named as another kind.
        fabrication: Mean share of captions that add an object, which would suit the others.
        synonyms: Share of names that are not the usual ones.
        setting: Share of captions that name the place.
        persistence: See the module's docstring.
        even: True for the same rates for every kind and size.
        price: Price of a call.
        seed: Seed of all choices.

    Raises:
        InputError: A share is not in 0..1, or the price is below 0.
    """

    answers: CallMode = "one"
    name = "template captioner"
    most_cost: float

    def __init__(
        self,
        sight: Sight | None = None,
        *,
        vocabulary: Vocabulary = EVERYDAY,
        omission: Annotated[float, Option("share of objects left out", ge=0, le=1)] = 0.1,
        misclassification: Annotated[
            float, Option("share of objects taken for others", ge=0, le=1)
        ] = 0.05,
        fabrication: Annotated[
            float, Option("share of captions that add an object", ge=0, le=1)
        ] = 0.03,
        synonyms: float = 0.2,
        setting: float = 0.1,
        persistence: float = 0.5,
        even: bool = False,
        price: Annotated[float, Option("price of a call", name="price_per_call", ge=0)] = 0.0,
        seed: int = 0,
    ) -> None:
        self.rates = {
            "omission": omission,
            "misclassification": misclassification,
            "fabrication": fabrication,
        }
        shares = {"synonyms": synonyms, "setting": setting, "persistence": persistence}
        for name, share in {**self.rates, **shares}.items():
            if not 0 <= share <= 1:
                raise InputError(f"TemplateCaptioner: expected {name} in 0..1, got {share}")
        if not 0 <= price < np.inf:
            raise InputError(f"TemplateCaptioner: expected a price of at least 0, got {price}")
        self.sight = ColourSight() if sight is None else sight
        self.vocabulary = vocabulary
        self.synonyms, self.setting, self.persistence = synonyms, setting, persistence
        self.even, self.most_cost, self.seed = even, price, seed
        self._waves: dict[str, tuple[Floats, Floats]] = {}

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        """Return a caption for each prompt, whatever it asks."""
        return [self._answer(prompt) for prompt in prompts]

    def caption(self, image: Image) -> str:
        """Return the caption of an image, H x W x C uint8."""
        return self.explain(image).caption

    def explain(self, image: Image) -> Explanation:
        """Return the caption of an image, H x W x C uint8, and the truth about it."""
        sightings, digest = self._sightings(image), digest_of(image)
        omitted = [s.kind for s in sightings if self._errs("omission", s, digest)]
        taken_for = {
            s.kind: self.vocabulary.taken_for[s.kind]
            for s in sightings
            if s.kind not in omitted and self._errs("misclassification", s, digest)
        }
        by_name: dict[str, list[Sighting]] = {}
        for s in sightings:
            if s.kind not in omitted:
                by_name.setdefault(taken_for.get(s.kind, s.kind), []).append(s)
        fabricated = self._fabricated(sightings, digest)
        rng = generator(self.seed, f"captioner/words/{digest}")
        items = [
            self._item(name, sum(s.count for s in things), digest)
            for name, things in by_name.items()
        ]
        items += [self._item(name, 1, digest) for name in fabricated]
        caption, words = compose(items, rng, self.setting)
        sources = [tuple(s.kind for s in things) for things in by_name.values()]
        stand_for: list[tuple[str | None, ...]] = [*sources, *((None,) for _ in fabricated)]
        named = tuple(
            (word, kind) for word, kinds in zip(words, stand_for, strict=True) for kind in kinds
        )
        taken = MappingProxyType(taken_for)
        return Explanation(caption, sightings, named, tuple(omitted), taken, fabricated)

    def _sightings(self, image: Image) -> tuple[Sighting, ...]:
        sightings = self.sight.see(image)
        for sighting in sightings:
            check_known("kind", sighting.kind, self.vocabulary.taken_for, "TemplateCaptioner")
        return sightings

    def rate(self, fault: str, kind: str, share: float = _TYPICAL) -> float:
        """Return the rate of a fault about an object.

        Args:
            fault: "omission", "misclassification" or "fabrication" (of an object next to it).
            kind: Kind of the object.
            share: Share of the picture's area that it takes up, 0..1.
        """
        if self.even:
            return self.rates[fault]
        factor = self._factors[fault][kind]
        if fault == "omission":
            factor *= float(np.clip(np.sqrt(_TYPICAL / share), 0.3, 3.0))
        return min(1.0, factor * self.rates[fault])

    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        if prompt.image is None:
            return Unanswered("no image to describe", self.most_cost)
        return Answer((self.caption(prompt.image),) * len(prompt.concepts), self.most_cost)

    def _errs(self, fault: str, thing: Sighting, digest: str) -> bool:
        rate = self.rate(fault, thing.kind, thing.share)
        if rate in (0.0, 1.0):
            return rate == 1.0
        fresh = generator(self.seed, f"captioner/{fault}/{thing.kind}/{digest}").standard_normal()
        score = np.sqrt(self.persistence) * self._lasting(fault, thing)
        score += np.sqrt(1 - self.persistence) * fresh
        return bool(score < NormalDist().inv_cdf(rate))

    def _lasting(self, fault: str, thing: Sighting) -> float:
        """Return the lasting part of a score: waves of random direction and phase, added up.

        They are random Fourier features, so the sum is a smooth random function of the colour.
        """
        key = f"captioner/lasting/{fault}/{thing.kind}"
        if key not in self._waves:
            rng = generator(self.seed, key)
            directions = rng.standard_normal((_WAVES, 3)) / _SCALE
            self._waves[key] = directions, rng.uniform(0, 2 * np.pi, _WAVES)
        directions, phases = self._waves[key]
        return float(np.sqrt(2 / _WAVES) * np.cos(directions @ thing.colour + phases).sum())

    def _fabricated(self, sightings: Sequence[Sighting], digest: str) -> tuple[str, ...]:
        """Return the made-up name, at most one, which goes with the largest object."""
        if not sightings or not self._errs("fabrication", sightings[0], digest):
            return ()
        present = {s.kind for s in sightings}
        companions = self.vocabulary.goes_with[sightings[0].kind]
        return tuple(name for name in companions if name not in present)[:1]

    def _item(self, name: str, count: int, digest: str) -> Item:
        """Return ``count`` objects with one of the words for them, mostly the usual one."""
        others = len(self.vocabulary.words[name].others)
        rng = generator(self.seed, f"captioner/called/{name}/{digest}")
        other = others and rng.random() < self.synonyms
        return Item(name, count, 1 + int(rng.integers(others)) if other else 0, self.vocabulary)

    @cached_property
    def _factors(self) -> dict[str, dict[str, float]]:
        """Fault -> kind -> factor, of mean 1 over the kinds."""
        by_fault = {}
        for fault in self.rates:
            rng = generator(self.seed, f"captioner/factors/{fault}")
            factors = np.exp(_SPREAD * rng.standard_normal(len(self.vocabulary.taken_for)))
            for _ in range(100):  # clipping moves the mean a little
                factors = np.clip(factors / factors.mean(), 0.2, 3.0)
            by_fault[fault] = dict(zip(self.vocabulary.taken_for, factors.tolist(), strict=True))
        return by_fault


def digest_of(image: Image) -> str:
    """Return a hash of an image's shape and bytes."""
    shape = "x".join(map(str, image.shape)).encode()
    return hashlib.blake2b(shape + image.tobytes(), digest_size=16).hexdigest()
