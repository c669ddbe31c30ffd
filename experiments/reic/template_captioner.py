"""A captioner that sees everything and errs at rates that are set, for trials of audits.

It looks at pixels alone (``recognition``), so it can be shown any follow-up
image, and it reports for every caption what it left out, mistook and made up.

Whether it errs about a thing is decided by a hidden score, standard normal, against the rate.
The score has a lasting part, a smooth random function of the thing's own colour, which is the
same in every picture of that thing, and a part that is drawn anew for every picture:
``persistence`` is the lasting part's share of the variance. Rates vary, as those of real
captioners do, by kind (a seeded factor of 0.2 to 3 with mean 1) and, for omissions, by size:
in proportion to area^-0.5, within 0.3 and 3 of the rate.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from types import MappingProxyType
from typing import Annotated

import numpy as np

from adaptive_vtt.errors import InputError, unknown
from adaptive_vtt.models.base import ModelDefaults
from adaptive_vtt.types import Answer, CallMode, Floats, Image, Prompt, Unanswered
from adaptive_vtt.utils.options import Option
from adaptive_vtt.utils.random_streams import generator

from .recognition import ColourSight, Sight, Sighting
from .vocabulary import EVERYDAY, Item, Vocabulary, compose

_TYPICAL = 0.015
"""Share of the picture's area at which the size factor of the omission rate is 1. It is chosen so
that the mean rate over the objects of ``scenes()`` is the rate that was set."""
_SPREAD = 0.8  # of the logarithms of the factors of kinds
_WAVES, _SCALE = 16, 1.5  # how many make up a lasting score, and their scale in CIE Lab


@dataclass(frozen=True)
class Explanation:
    """A caption and the truth about it.

    ``seen``: all there is to be told. ``named``: each name as it stands in the caption, and
    the kind it stands for, None where there is nothing of the sort. ``omitted``: kinds seen
    and not told. ``misclassified``: kind -> what it was taken for. ``fabricated``: names of
    what is not there.
    """

    caption: str
    seen: tuple[Sighting, ...]
    named: tuple[tuple[str, str | None], ...]
    omitted: tuple[str, ...]
    misclassified: Mapping[str, str]
    fabricated: tuple[str, ...]


class TemplateCaptioner(ModelDefaults):
    """Describes pictures in one sentence.

    ``sight`` tells what is there: the colours of drawn scenes unless given, else for instance
    ``recognition.RegisteredSight``. ``vocabulary``: what that is called and
    taken for. ``omission`` and ``misclassification``: the mean share of things that are left out,
    and that are named but mistaken; ``fabrication``: of captions that add a thing which would go
    with what is there. ``synonyms``: of names that are not the usual ones; ``setting``: of captions
    that name the place. All are in 0..1, as ``persistence``. ``even``: the same rates for every
    kind and size. ``price`` per call. Everything is a function of ``seed`` and the image's bytes.
    Raises InputError for a share that is none.
    """

    answers: CallMode = "one"
    name = "template captioner"
    most_cost: float

    def __init__(
        self,
        sight: Sight | None = None,
        *,
        vocabulary: Vocabulary = EVERYDAY,
        omission: Annotated[float, Option("share of things left out", ge=0, le=1)] = 0.1,
        misclassification: Annotated[
            float, Option("share of things taken for others", ge=0, le=1)
        ] = 0.05,
        fabrication: Annotated[
            float, Option("share of captions that add a thing", ge=0, le=1)
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
        """A caption for each prompt, whatever it asks."""
        return [self._answer(prompt) for prompt in prompts]

    def caption(self, image: Image) -> str:
        """What it says of H x W x C uint8."""
        return self.explain(image).caption

    def explain(self, image: Image) -> Explanation:
        """What it says of H x W x C uint8, and why."""
        seen, digest = self._seen(image), digest_of(image)
        left = {s.kind for s in seen if self._errs("omission", s, digest)}
        taken = {
            s.kind: self.vocabulary.taken_for[s.kind]
            for s in seen
            if s.kind not in left and self._errs("misclassification", s, digest)
        }
        told: dict[str, list[Sighting]] = {}
        for s in seen:
            if s.kind not in left:
                told.setdefault(taken.get(s.kind, s.kind), []).append(s)
        added = self._fabricated(seen, digest)
        rng = generator(self.seed, f"captioner/words/{digest}")
        items = [
            self._item(name, sum(s.count for s in things), digest) for name, things in told.items()
        ]
        items += [self._item(name, 1, digest) for name in added]
        caption, words = compose(items, rng, self.setting)
        sources = [tuple(s.kind for s in things) for things in told.values()]
        stand_for: list[tuple[str | None, ...]] = [*sources, *((None,) for _ in added)]
        named = tuple(
            (word, kind) for word, kinds in zip(words, stand_for, strict=True) for kind in kinds
        )
        return Explanation(
            caption,
            seen,
            named,
            tuple(s.kind for s in seen if s.kind in left),
            MappingProxyType(taken),
            added,
        )

    def _seen(self, image: Image) -> tuple[Sighting, ...]:
        seen = self.sight.see(image)
        for sighting in seen:
            if sighting.kind not in self.vocabulary.taken_for:
                known = self.vocabulary.taken_for
                raise unknown("kind", sighting.kind, known, "TemplateCaptioner")
        return seen

    def rate(self, fault: str, kind: str, share: float = _TYPICAL) -> float:
        """The rate of a fault ("omission", "misclassification", "fabrication") for a thing of
        ``kind`` that takes up ``share`` of the picture (0..1); "fabrication" beside it."""
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
        """A sum of waves of random direction and phase (random Fourier features)."""
        key = f"captioner/lasting/{fault}/{thing.kind}"
        if key not in self._waves:
            rng = generator(self.seed, key)
            directions = rng.standard_normal((_WAVES, 3)) / _SCALE
            self._waves[key] = directions, rng.uniform(0, 2 * np.pi, _WAVES)
        directions, phases = self._waves[key]
        return float(np.sqrt(2 / _WAVES) * np.cos(directions @ thing.colour + phases).sum())

    def _fabricated(self, seen: Sequence[Sighting], digest: str) -> tuple[str, ...]:
        """What would go with the most prominent thing, if it errs about that."""
        if not seen or not self._errs("fabrication", seen[0], digest):
            return ()
        there = {s.kind for s in seen}
        beside = self.vocabulary.goes_with[seen[0].kind]
        return tuple(name for name in beside if name not in there)[:1]

    def _item(self, name: str, count: int, digest: str) -> Item:
        """Mostly by the usual one of its words, else by one of the others."""
        others = len(self.vocabulary.words[name].others)
        rng = generator(self.seed, f"captioner/called/{name}/{digest}")
        other = others and rng.random() < self.synonyms
        return Item(name, count, 1 + int(rng.integers(others)) if other else 0, self.vocabulary)

    @cached_property
    def _factors(self) -> dict[str, dict[str, float]]:
        """Fault -> kind -> factor, of mean 1 over the kinds."""
        found = {}
        for fault in self.rates:
            rng = generator(self.seed, f"captioner/factors/{fault}")
            factors = np.exp(_SPREAD * rng.standard_normal(len(self.vocabulary.taken_for)))
            for _ in range(100):  # clipping moves the mean a little
                factors = np.clip(factors / factors.mean(), 0.2, 3.0)
            found[fault] = dict(zip(self.vocabulary.taken_for, factors.tolist(), strict=True))
        return found


def digest_of(image: Image) -> str:
    """A grey picture in three channels is another picture, as its bytes are."""
    shape = "x".join(map(str, image.shape)).encode()
    return hashlib.blake2b(shape + image.tobytes(), digest_size=16).hexdigest()
