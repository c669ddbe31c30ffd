"""The calls about source images: which there are, what they send, what was said.

Where an oracle compares a follow-up with its source, the source image is asked about first,
once. Some oracles then have to hear of versions of it, too (``oracles.Version``).
"""

from collections.abc import Mapping
from functools import lru_cache

from ..errors import InputError
from ..journal.answer_json import from_json, to_json
from ..journal.rows import SourceRow
from ..oracles import Received, Version
from ..space import QuestionSpace
from ..types import IDENTITY, Answer, Ask, CallMode, Prompt, Unanswered, Value


class SourceCalls:
    """Source calls by number.

    A source is a sample's place; where a call answers one concept, that times the number of
    concepts plus the concept's place. Version v of source s is call ``s + (1 + v) * count``.
    ``known``: what was said, by number.
    """

    def __init__(self, space: QuestionSpace, answers: CallMode) -> None:
        self.space = space
        self.answers = answers
        self.known: dict[int, tuple[Value, ...]] = {}
        # a few samples stay decoded: calls about one source come in a row, and decoding is slow
        self._sample = lru_cache(maxsize=16)(space.dataset.sample)
        self.per_sample = len(space.asked) if answers == "one" else 1
        self.most = 1 + space.oracle.most_versions(space.dataset)

    @property
    def count(self) -> int:
        """How many sources there can be; 0 where the oracle needs none."""
        return len(self.space.dataset) * self.per_sample if self.space.oracle.needs_source else 0

    def of(self, question: int) -> int:
        """The source that a question's answer is compared with."""
        sample, _, concept = self.space.numbering.parts(int(question))
        return sample * self.per_sample + (concept if self.answers == "one" else 0)

    def root(self, number: int) -> int:
        """The source that a call is about, itself or a version of it."""
        return number % self.count

    def missing(self, source: int) -> list[int]:
        """The calls still to make before follow-ups of ``source`` can be judged, as far as what
        was said of it and its versions tells."""
        if source not in self.known:
            return [source]
        numbers = (source + (1 + v) * self.count for v in self._versions(source))
        return [number for number in numbers if number not in self.known]

    def received(self, source: int, place: int) -> Value | Received | None:
        """What was said of ``source`` about the space's concept at ``place``; None: nothing."""
        said = self.known.get(source)
        if said is None:
            return None
        where = 0 if self.answers == "one" else self.space.asked_by[place]
        return said[where] if self.most == 1 else self._received(source, where)

    def _received(self, source: int, where: int) -> Received:
        numbers = {v: source + (1 + v) * self.count for v in range(self.most - 1)}
        versions = {v: self.known[n][where] for v, n in numbers.items() if n in self.known}
        return Received(self.known[source][where], versions)

    def _versions(self, source: int) -> Mapping[int, Version]:
        if self.most == 1:
            return {}
        sample = self._sample(source // self.per_sample)
        return self.space.oracle.versions(sample, self._received(source, 0))

    def prompt(self, number: int) -> Prompt:
        """What is sent."""
        source = self.root(number)
        index, concept = divmod(source, self.per_sample)
        sample = self._sample(index)
        concepts = (self.space.asked[concept],) if self.answers == "one" else self.space.asked
        image, relation, severity = sample.image, IDENTITY, 0
        if number >= self.count:
            version = self._versions(source)[number // self.count - 1]
            image, relation, severity = version.make(), version.relation, version.severity
        asks = asks_of(sample.id, sample.asks, concepts)
        return Prompt(image, concepts, sample.id, relation, severity, asks)

    def row(self, number: int, answer: Answer | Unanswered, elapsed: float) -> SourceRow:
        """The answer, ready for the journal."""
        count = 1 if self.answers == "one" else len(self.space.asked)
        values = (answer,) * count if isinstance(answer, Unanswered) else answer.values
        said = (to_json(value) for value in values)
        return SourceRow(number, tuple(said), answer.cost, elapsed, answer.unconfirmed)

    def know(self, row: SourceRow) -> None:
        """Keeps the answer, to judge follow-ups by."""
        where = f"journal: sources, row {row.source}"
        self.known[row.source] = tuple(from_json(said, where) for said in row.answers)


def asks_of(sample_id: str, asks: Mapping[str, Ask], concepts: tuple[str, ...]) -> tuple[Ask, ...]:
    """The words of each concept; none where the sample has none."""
    if not asks:
        return ()
    missing = [concept for concept in concepts if concept not in asks]
    if missing:
        raise InputError(
            f"sample {sample_id!r}: expected words for concept {missing[0]!r}, got none; ask one "
            "question per call (answers = 'one')"
        )
    return tuple(asks[concept] for concept in concepts)
