"""Every question asked once, in the order of the space: nothing is drawn, believed or bet.

Takes the places of ``Selector`` and ``DrawOrder`` in an audit's loop. Calls, caps, retries, journal
and resuming stay those of any audit; a draw is the next call, with probability 1. Follow-up images
are made a batch at a time, ahead of the model, those of a source image together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

import numpy as np

from ..certify.constants import constants_of
from ..certify.sequences import BETS
from ..certify.status import TargetStatus
from ..certify.targets import Target, fingerprint, named_targets, size
from ..engine.belief import Belief, Observation
from ..engine.draw_order import DrawOrder
from ..engine.judge import Judge
from ..engine.options import DEFAULT_TARGETS, Certify, Sampling
from ..engine.selector import Draw, Proposal, Selector, Why
from ..errors import InputError
from ..families import Fields
from ..journal.rows import CallRow, DrawRow, Reasons
from ..space import QuestionSpace
from ..types import Floats, Indices, JsonObject
from .at_once import judged_at_once
from .counting import Counting
from .making import Making, Pair

BATCH = 256
"""Calls that are made at a time, and images that are at hand."""
MAX_TARGETS = 2_000
"""Relations by concepts are left out where they would be more targets than this."""
MAX_VALUES = 30
"""Metadata columns with more values than this, or with one, make no groups."""
PICTURED = 4
"""Failing calls of which pictures are kept, per relation and severity."""
CERTAIN = Proposal(np.zeros(0, np.int64), np.zeros(0))
WHY = Why(1, 1)
GOALS = ("half_width", "at_most", "discover", "set_aside", "compare")
PREDICTIONS = ("prior_journal", "cohort", "proxies")
CHOICES = ("replay", "repeat_probes", "exploration")


def check_goals(certify: Certify, sampling: Sampling) -> None:
    """Raise InputError for a goal, a prediction or a choice: nothing is drawn or estimated."""
    for group, names in ((certify, GOALS + PREDICTIONS), (sampling, CHOICES)):
        for name in names:
            if value := getattr(group, name):
                raise InputError(
                    f"strategy 'everything': expected no {name}, as every question is asked and "
                    f"rates are exact, got {value!r:.60}; leave it out"
                )


def every_target(
    space: QuestionSpace, names: Sequence[str], where: Mapping[str, Fields] | None
) -> list[Target]:
    """Return targets of every kind that the space has, and those of ``names``, as
    ``certify.named_targets`` takes them."""
    return named_targets(space, list(_kinds(space, names)), where)


def _kinds(space: QuestionSpace, names: Sequence[str]) -> Iterator[str]:
    concepts = "concepts" in space.kinds  # which items of a pool have not
    yield "overall"
    if concepts:
        yield from ("relations", "concepts")
    for column in space.dataset.metadata_columns:
        if 1 < len({*space.dataset.metadata_values(column).tolist()}) <= MAX_VALUES:
            yield f"group:{column}"
    if concepts:
        yield "severities"
    if names is not DEFAULT_TARGETS:
        yield from names
    relations = len({v.relation.name for v in space.variants})
    if concepts and relations * len(space.concepts) * len(space.oracle.rates) <= MAX_TARGETS:
        yield "relation-sides"


class InOrder(Selector):
    """Gives every call that answers a question, ascending, each with probability 1.

    ``processes``: that make images ahead of the model, see ``Making``. It goes by nothing that
    ``Selector`` keeps to choose with, so that none of that is made.
    """

    exact = True
    batch = BATCH

    def __init__(
        self,
        judge: Judge,
        belief: Belief,
        certify: Certify,
        *,
        processes: int | None = None,
    ) -> None:
        space = judge.space
        self.space, self.belief, self._judge = space, belief, judge
        questions = np.sort(space.nth(np.arange(space.size)))
        about = space.image_of(questions) if judge.answers == "all" else questions
        self._calls, first = np.unique(about, return_index=True)
        self._questions = questions[first]
        sources = judge.sources
        self._sources = len({*map(sources.of, questions)}) if sources.count else 0
        self.draws = 0
        both = certify.unanswered == "both"
        self._targets = every_target(space, certify.targets, certify.where)
        self.counting = Counting(space, self._targets, questions, both=both)
        self._making = Making(space, processes)
        self._ready: Iterator[dict[int, Pair]] | None = None
        self._made = 0

    @property
    def targets(self) -> list[Target]:
        return self._targets

    def counted(self) -> list[TargetStatus]:
        return self.counting.statuses()

    def draw(self, together: int = 1) -> Draw | None:
        """Return the next call, None after the last one."""
        place = self.draws
        if place == len(self._calls):
            return None
        if place >= self._made and not self.space.needs_answers:
            self._make_more(place)
        call, question = int(self._calls[place]), int(self._questions[place])
        return Draw(place, call, question, 1.0, CERTAIN, WHY)

    def _make_more(self, place: int) -> None:
        """Have the images of the next calls made, a batch of them."""
        if self._ready is None:
            starts = range(place, len(self._calls), BATCH)
            self._ready = self._making([self._images(at) for at in starts])
        pairs = next(self._ready)
        calls = self._calls[place : place + BATCH].tolist()
        self._judge.hold({call: pairs[self._image(call)] for call in calls})
        self._made = place + len(calls)

    def _images(self, place: int) -> list[int]:
        """The images of a batch that begins at ``place``, each once."""
        calls = self._calls[place : place + BATCH].tolist()
        return list(dict.fromkeys(map(self._image, calls)))

    def _image(self, call: int) -> int:
        return call if self._judge.answers == "all" else self.space.numbering.image_of(call)

    def row(self, draw: Draw, questions: Indices, learned: int, elapsed: float) -> DrawRow:
        sample = self.space.numbering.parts(draw.question)[0]
        sample_id = self.space.dataset.sample_id(sample)
        return DrawRow(
            draw.number, draw.question, draw.call, sample_id, 0, 1.0, b"", Reasons(), elapsed
        )

    def take(self, questions: Indices, bet: object = None, why: object = None) -> None:
        self.draws += 1

    def restore(self, questions: Indices, bet: object, why: object) -> None:
        self.draws += 1

    def learn(self, outcomes: Sequence[Observation], cost: float = 0.0) -> None:
        pass

    def open_uncertainty(self) -> Floats:
        """C x 2: the share of calls that is left, those about source images among them; NaN once
        there are none."""
        sources = self._judge.sources
        done = self.draws + min(len(sources.known), self._sources)
        left = 1 - done / (len(self._calls) + self._sources)
        left *= self.draws < len(self._calls)
        return np.full((len(self.space.concepts), 2), left or np.nan)

    def certificate(self, certify: Certify) -> JsonObject:
        """For the journal: what is counted."""
        targets = self._targets
        return {
            "half_width": None,
            "at_most": None,
            "aim": 0.0,
            "confidence": 1.0,
            "guarantee": "all",
            "decided": "by counting",
            "weights": None,
            "unanswered": certify.unanswered,
            "targets": [target.name for target in targets],
            "ids": [target.id.as_dict() for target in targets],
            "sizes": [size(self.space, target) for target in targets],
            "subsets": fingerprint(targets),
            "constants": constants_of(self.space, targets),
            "bets": asdict(BETS),
        }


class AsAnswered(DrawOrder):
    """Answers are counted as they come: no draw knows any of them."""

    def __init__(self, selector: InOrder, both: bool) -> None:
        super().__init__(selector, both, None, lambda outcomes: None)
        self._counting = selector.counting

    def keep(self, row: CallRow) -> None:
        self.questions += self._counting.note(row.answers)

    def ready(self) -> bool:
        return True

    def learn(self, until: int | None = None) -> None:
        pass


def in_order(
    judge: Judge, belief: Belief, certify: Certify, sampling: Sampling
) -> tuple[Selector, DrawOrder]:
    """What gives the calls of an audit that asks everything, and takes in their answers."""
    judge.pictured, judge.at_once = PICTURED, judged_at_once
    selector = InOrder(judge, belief, certify, processes=sampling.processes)
    return selector, AsAnswered(selector, certify.unanswered == "both")
