"""Expected costs of calls, from what they send and from what earlier calls cost.

A call sends an image of p pixels and questions of c characters, each relative to the space's
typical number. With x = (1, p, c), its expected cost is b . x. The coefficients b are the
least-squares fit to the costs so far and to the price table's guess g, which counts as PRIOR calls:

    b = argmin  sum over draws learnt from of (cost - s b . x)^2  +  PRIOR |b - g|^2

s is the share of the models that a call asks: below 1 only in comparisons where A's answer is
known. The cost is linear in x as providers charge so much per call, per token of the image and per
token of the words. The mean cost of replies is fitted, too.

Weights are proportional to 1 / sqrt(b . x). Only the past decides b, as draws are learnt from in
their order, so certificates are valid whatever the prices are. Still, the effect of a server that
reports wrong counts is bounded, with C the mean cost of a call:

- The proposal takes each cost to be between C / MAX_RATIO and MAX_RATIO C. So within a target a
  probability changes by a factor of MAX_RATIO at most, and never falls below the exploration's
  share.
- A cost is learnt as between 1 / MAX_RATIO and MAX_RATIO times its expected value.

Each draw journals its x, s and expected cost, from which ``verify`` computes b again.
"""

from collections import deque
from collections.abc import Mapping

import numpy as np

from ..certify.strata import Strata
from ..journal.facts import Facts
from ..journal.rows import Reasons
from ..models.base import ModelDefaults, PriceGuess
from ..space import QuestionSpace
from ..types import CallMode, Floats, Indices
from ..utils.random_streams import generator

PRIOR = 4.0
"""Number of calls that the price table's guess counts as."""
MAX_RATIO = 8.0
"""Largest factor between the expected cost of a call and the mean cost."""
REFERENCE = 2_000
"""Questions of a space that its typical numbers are computed from."""
PER_STRATUM = 64
"""Questions that a stratum's price is computed from."""
DIGITS = 6
"""Decimals of relative pixels and characters: they are journaled as they are used."""
PARTS = ("call", "pixels", "characters")


class Prices:
    """The expected prices of one audit's calls.

    ``facts`` is the journal's ``settings.prices``: the guessed cost of a typical call, by
    ``PARTS``, and its typical pixels and characters.
    """

    def __init__(self, space: QuestionSpace, answers: CallMode, facts: Mapping[str, float]) -> None:
        self.facts = dict(facts)
        self._space, self._answers = space, answers
        guess = np.array([facts[part] for part in PARTS])
        self._matrix, self._vector = PRIOR * np.eye(len(PARTS)), PRIOR * guess
        self._total, self._calls = PRIOR * guess.sum(), PRIOR
        self._fit = guess
        self._waiting: deque[Floats] = deque()  # s x of each draw that was not learnt from
        self._strata: Floats | None = None  # C x n x 2, p and c of n calls of each stratum

    @classmethod
    def of(
        cls, space: QuestionSpace, model: ModelDefaults, wanted: bool, begun: Facts | None
    ) -> "Prices | None":
        """Return the prices of an audit's calls, as its journal or else its model has them.

        Args:
            space: All questions.
            model: The model, whose ``price_guess`` is used in a new audit.
            wanted: False if proposals ignore prices.
            begun: Facts of the journal that is resumed; None: a new audit.

        Returns:
            None if prices are not wanted, not known, or the same for all questions.
        """
        if begun is not None:
            facts = begun.settings.prices
            return None if facts is None else cls(space, model.answers, facts)
        guess = model.price_guess
        if not wanted or guess is None or guess.pixel == guess.character == 0 or not space.size:
            return None
        prices = cls.guessed(space, model.answers, guess)
        expected = prices.expected(prices.sent(*_reference(space)))
        return prices if np.ptp(expected) > 0 else None

    @classmethod
    def guessed(cls, space: QuestionSpace, answers: CallMode, guess: PriceGuess) -> "Prices":
        """Return the prices of a space's calls by a guess, before any call was made."""
        sent = _sent(space, answers, *_reference(space), guess.most_pixels)
        pixels, characters = _mean(sent[:, 0]), _mean(sent[:, 1])
        facts = {
            "call": guess.call,
            "pixels": guess.pixel * pixels,
            "characters": guess.character * characters,
            "typical_pixels": pixels,
            "typical_characters": characters,
            "most_pixels": guess.most_pixels,
        }
        return cls(space, answers, facts)

    # -- pixels, characters and prices -----------------------------------------------------

    def sent(self, samples: Indices, concepts: Indices) -> Floats:
        """Return pixels and characters (m x 2) of calls, relative to the typical numbers.

        Args:
            samples: (m,) sample of each call.
            concepts: (m,) concept of each call; ignored if a call is about all concepts.
        """
        most = self.facts["most_pixels"]
        sent = _sent(self._space, self._answers, samples, concepts, most)
        typical = [self.facts["typical_pixels"], self.facts["typical_characters"]]
        relative = np.where(np.isnan(sent), 1.0, sent / typical)
        return np.asarray(np.round(relative, DIGITS), np.float64)

    def expected(self, sent: Floats) -> Floats:
        """Return the expected costs (m,) of calls of all models that send this (m x 2)."""
        mean = self._total / self._calls
        cost = self._fit[0] + sent @ self._fit[1:]
        return np.asarray(np.clip(cost, mean / MAX_RATIO, mean * MAX_RATIO))

    def likely(self, exploration: float) -> float:
        """Return the mean cost of drawn calls with this exploration, if all needs are equal."""
        costs = self.expected(self.sent(*_reference(self._space)))
        roots = 1 / np.sqrt(costs)
        return float((1 - exploration) * (costs @ roots) / roots.sum() + exploration * costs.mean())

    def of_strata(self, strata: Strata) -> Floats:
        """Return the price p (C,) of each stratum: 1 / sqrt(p) is the mean of 1 / sqrt(cost).

        It is estimated from ``PER_STRATUM`` of its calls, the same ones each time.
        """
        if self._strata is None:
            per_call = len(self._space.concepts) if self._answers == "all" else 1
            sent = []
            for place, ranks in enumerate(strata.ranks.tolist()):
                rng = generator(self._space.fingerprint, "stratum prices", place)
                calls = strata.nth(place, rng.integers(int(ranks), size=PER_STRATUM))
                samples, _, concepts = self._space.parts(calls * per_call)
                sent.append(self.sent(samples, concepts))
            self._strata = np.stack(sent)
        costs = self.expected(self._strata.reshape(-1, 2)).reshape(len(strata), -1)
        return np.asarray((1 / np.sqrt(costs)).mean(axis=1) ** -2)

    # -- draws and their costs -------------------------------------------------------------

    def reasons(self, sent: Floats, share: float) -> Reasons:
        """Return a drawn call's quantities for the journal.

        Args:
            sent: (2,) its pixels and characters.
            share: Share of the models that it asks, in (0, 1].
        """
        cost = share * float(self.expected(sent[None])[0])
        pixels, characters = sent.tolist()
        reasons = Reasons(expected_cost=cost, pixels=pixels, characters=characters)
        return reasons if share == 1 else {**reasons, "models": share}

    def take(self, why: Reasons) -> None:
        """Count a draw, by its journaled reasons."""
        share = why.get("models", 1.0)
        self._waiting.append(share * np.array([1.0, why["pixels"], why["characters"]]))

    def learn(self, cost: float) -> None:
        """Learn what the next draw, in draw order, cost."""
        sent = self._waiting.popleft()
        share = sent[0]
        expected = share * float(self.expected(sent[None, 1:] / share)[0])
        cost = min(max(cost, expected / MAX_RATIO), expected * MAX_RATIO)
        self._matrix += np.outer(sent, sent)
        self._vector += cost * sent
        self._total, self._calls = self._total + cost, self._calls + share
        self._fit = np.linalg.solve(self._matrix, self._vector)


def _reference(space: QuestionSpace) -> tuple[Indices, Indices]:
    """Return sample and concept of random questions, the same for all audits of a space."""
    ranks = generator(space.fingerprint, "prices").integers(space.size, size=REFERENCE)
    samples, _, concepts = space.parts(space.nth(ranks))
    return samples, concepts


def _sent(
    space: QuestionSpace, answers: CallMode, samples: Indices, concepts: Indices, most: float
) -> Floats:
    """Return pixels (NaN: unknown) and characters (m x 2) of calls about these samples.

    A follow-up counts as many pixels as its source, and no more than ``most``.
    """
    pixels = np.minimum(space.dataset.pixels(samples), most)
    if answers == "one":
        return np.stack([pixels, space.dataset.characters(samples, concepts)], axis=1)
    concept_asked = {asked: concept for concept, asked in enumerate(space.asked_by)}
    words = [
        space.dataset.characters(samples, np.full_like(samples, concept))
        for concept in concept_asked.values()
    ]
    return np.stack([pixels, np.sum(words, axis=0)], axis=1)


def _mean(values: Floats) -> float:
    """Return the mean of the finite values; 1 if there is none, or if it is 0."""
    known = values[np.isfinite(values)]
    mean = float(known.mean()) if len(known) else 0.0
    return mean or 1.0
