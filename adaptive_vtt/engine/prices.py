"""What calls are expected to cost, by what they send, learnt from what answered calls did cost.

A call whose image has p pixels and whose questions have c characters, each relative to what is
typical of the space, is expected to cost b . x, x = (1, p, c). b is the least-squares fit to the
costs booked so far, with PRIOR calls' worth of the price table's guess g at each of its parts:

    b = argmin  sum over draws learnt from of (cost - s b . x)^2  +  PRIOR |b - g|^2

s is the share of the models that a call asks (1, but in comparisons where model A is known). A
straight line is what providers charge, up to rounding: so much per call, per token of the image,
per token of the words; what replies cost on average is learnt with the rest.

Proposals go with 1 / sqrt(b . x), and the past alone fixes b, as draws are learnt from in their
order; so certificates hold whatever the prices are. What a server can do by lying about its counts
is bounded all the same, with C the mean cost of a call:

- for the proposal a call costs between C / MAX_RATIO and MAX_RATIO C: within a target the proposal
moves by
  a factor of at most MAX_RATIO either way, and by none below the exploration's share;
- a cost teaches as at most MAX_RATIO times what was expected of it, and at least that part of it.

Each draw journals its x, s and expected cost, from which ``verify`` computes b anew.
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
"""Calls that the price table's guess counts as."""
MAX_RATIO = 8.0
"""Factor from the mean cost beyond which no call is taken to be dearer or cheaper."""
REFERENCE = 2_000
"""Questions of a space, at most, by which it is known what is typical."""
PER_STRATUM = 64
"""Questions by which the price of a stratum is known."""
DIGITS = 6
"""Decimals of pixels and characters, which are journaled as they are used."""
PARTS = ("call", "pixels", "characters")


class Prices:
    """The prices of one audit's calls. ``facts``: the price table's guess for a typical call, by
    ``PARTS``, and what is typical, as the journal keeps them."""

    def __init__(self, space: QuestionSpace, answers: CallMode, facts: Mapping[str, float]) -> None:
        self.facts = dict(facts)
        self._space, self._answers = space, answers
        guess = np.array([facts[part] for part in PARTS])
        self._matrix, self._vector = PRIOR * np.eye(len(PARTS)), PRIOR * guess
        self._total, self._calls = PRIOR * guess.sum(), PRIOR
        self._fit = guess
        self._waiting: deque[Floats] = deque()  # s x of draws that are not learnt from yet
        self._strata: Floats | None = None  # C x n x 2: what a sample of each stratum sends

    @classmethod
    def of(
        cls, space: QuestionSpace, model: ModelDefaults, wanted: bool, begun: Facts | None
    ) -> "Prices | None":
        """The prices of an audit's calls: as its journal has them, else as the model guesses them;
        None where they are not wanted, not known, or the same for all questions."""
        if begun is not None:
            kept = begun.settings.prices
            return None if kept is None else cls(space, model.answers, kept)
        guess = model.price_guess
        if not wanted or guess is None or guess.pixel == guess.character == 0 or not space.size:
            return None
        prices = cls.guessed(space, model.answers, guess)
        expected = prices.expected(prices.sent(*_reference(space)))
        return prices if np.ptp(expected) > 0 else None

    @classmethod
    def guessed(cls, space: QuestionSpace, answers: CallMode, guess: PriceGuess) -> "Prices":
        """The prices of a space's calls by a guess, before any was made."""
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

    # -- what calls send -------------------------------------------------------------------

    def sent(self, samples: Indices, concepts: Indices) -> Floats:
        """m x 2: pixels and characters of calls about these samples and, where a call is one
        question, concepts (m,); relative to what is typical."""
        most = self.facts["most_pixels"]
        return self._relative(_sent(self._space, self._answers, samples, concepts, most))

    def _relative(self, sent: Floats) -> Floats:
        typical = [self.facts["typical_pixels"], self.facts["typical_characters"]]
        relative = np.where(np.isnan(sent), 1.0, sent / typical)
        return np.asarray(np.round(relative, DIGITS), np.float64)

    # -- what they cost --------------------------------------------------------------------

    def expected(self, sent: Floats) -> Floats:
        """(m,): what calls of all models that send this (m x 2) are expected to cost."""
        mean = self._total / self._calls
        cost = self._fit[0] + sent @ self._fit[1:]
        return np.asarray(np.clip(cost, mean / MAX_RATIO, mean * MAX_RATIO))

    def likely(self, exploration: float) -> float:
        """The mean price of calls drawn by proposals of this exploration, where all needs are the
        same."""
        every = self.expected(self.sent(*_reference(self._space)))
        roots = 1 / np.sqrt(every)
        return float((1 - exploration) * (every @ roots) / roots.sum() + exploration * every.mean())

    def of_strata(self, strata: Strata) -> Floats:
        """(C,): the price p of each stratum for which 1 / sqrt(p) is the mean over its questions,
        estimated from a sample of them."""
        if self._strata is None:
            self._strata = np.stack([self._sampled(strata, c) for c in range(len(strata))])
        every = self.expected(self._strata.reshape(-1, 2)).reshape(len(strata), -1)
        return np.asarray((1 / np.sqrt(every)).mean(axis=1) ** -2)

    def _sampled(self, strata: Strata, place: int) -> Floats:
        rng = generator(self._space.fingerprint, "stratum prices", place)
        calls = strata.nth(place, rng.integers(int(strata.ranks[place]), size=PER_STRATUM))
        per_call = len(self._space.concepts) if self._answers == "all" else 1
        return self.sent(*_asked(self._space, calls * per_call))

    # -- what was drawn, and what it cost --------------------------------------------------

    def reasons(self, sent: Floats, share: float) -> Reasons:
        """For the journal: what the call drawn sends (2,), which share of the models it asks, and
        what it is expected to cost."""
        cost = share * float(self.expected(sent[None])[0])
        pixels, characters = sent.tolist()
        reasons = Reasons(expected_cost=cost, pixels=pixels, characters=characters)
        return reasons if share == 1 else {**reasons, "models": share}

    def take(self, why: Reasons) -> None:
        """A draw was made, of which the journal says ``why``."""
        share = why.get("models", 1.0)
        self._waiting.append(share * np.array([1.0, why["pixels"], why["characters"]]))

    def learn(self, cost: float) -> None:
        """The next draw, in draw order, cost so much."""
        sent = self._waiting.popleft()
        share = sent[0]
        usual = share * float(self.expected(sent[None, 1:] / share)[0])
        cost = min(max(cost, usual / MAX_RATIO), usual * MAX_RATIO)
        self._matrix += np.outer(sent, sent)
        self._vector += cost * sent
        self._total, self._calls = self._total + cost, self._calls + share
        self._fit = np.linalg.solve(self._matrix, self._vector)


def _asked(space: QuestionSpace, questions: Indices) -> tuple[Indices, Indices]:
    """Sample and concept of each question."""
    sample, _, concept = space.parts(questions)
    return sample, concept


def _reference(space: QuestionSpace) -> tuple[Indices, Indices]:
    """Sample and concept of some questions; all the same for audits of one space."""
    ranks = generator(space.fingerprint, "prices").integers(space.size, size=REFERENCE)
    return _asked(space, space.nth(ranks))


def _sent(
    space: QuestionSpace, answers: CallMode, samples: Indices, concepts: Indices, most: float
) -> Floats:
    """m x 2: pixels, NaN where they are not known, and characters of the calls about these
    samples. A follow-up counts as large as its source."""
    pixels = np.minimum(space.dataset.pixels(samples), most)
    if answers == "one":
        return np.stack([pixels, space.dataset.characters(samples, concepts)], axis=1)
    by_place = {asked: place for place, asked in enumerate(space.asked_by)}
    words = [space.dataset.characters(samples, np.full_like(samples, k)) for k in by_place.values()]
    return np.stack([pixels, np.sum(words, axis=0)], axis=1)


def _mean(sent: Floats) -> float:
    """Of what is known of it; 1 where nothing is, or it is 0 throughout."""
    known = sent[np.isfinite(sent)]
    return float(known.mean()) or 1.0 if len(known) else 1.0
