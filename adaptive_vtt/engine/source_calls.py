"""Calls about source images, for oracles that compare a follow-up's answer with its source's.

The model is asked about each source image once. Some oracles also need answers about versions of it
(``oracles.Version``).
"""

from collections.abc import Mapping
from functools import lru_cache

from ..errors import InputError
from ..journal import Journal
from ..journal.answer_json import from_json, to_json
from ..journal.facts import read_facts
from ..journal.rows import SourceRow
from ..oracles import Received, Version
from ..oracles.captioned import Captioned
from ..space import QuestionSpace
from ..types import IDENTITY, Answer, Ask, CallMode, Prompt, SourceAnswer, Unanswered, Value
from ..utils.other_code import naming


class SourceCalls:
    """Calls about source images and versions of them, by number.

    The source of sample i is number i; if a call is about one concept, that of concept k is number
    i * concepts + k. Version v of source s is number ``s + (1 + v) * count``.

    - ``known``: number -> values of the answer, one per concept sent.
    - ``per_sample``: the number of sources of a sample.
    - ``most_per_source``: the most calls about a source, versions included.
    """

    def __init__(self, space: QuestionSpace, answers: CallMode) -> None:
        self.space = space
        self.answers = answers
        self.known: dict[int, tuple[Value, ...]] = {}
        # Calls about one source come in a row, and decoding is slow, so a few samples are kept.
        self._sample = lru_cache(maxsize=16)(space.dataset.sample)
        self.per_sample = len(space.asked) if answers == "one" else 1
        with naming("oracle", space.oracle.code[-1], "most_versions"):
            self.most_per_source = 1 + space.oracle.most_versions(space.dataset)

    @property
    def count(self) -> int:
        """The number of sources; 0 if the oracle needs none."""
        return len(self.space.dataset) * self.per_sample if self.space.oracle.needs_source else 0

    def source_of(self, question: int) -> int:
        """Return the number of the source that a question's answer is compared with."""
        sample, _, concept = self.space.numbering.parts(int(question))
        return sample * self.per_sample + (concept if self.answers == "one" else 0)

    def root(self, number: int) -> int:
        """Return the source that a call is about, whether about a version of it or not."""
        return number % self.count

    def missing(self, source: int) -> list[int]:
        """Return the calls to make before follow-ups of ``source`` can be judged.

        Their answers may show that further versions are needed.
        """
        if source not in self.known:
            return [source]
        numbers = (source + (1 + v) * self.count for v in self._versions(source))
        return [number for number in numbers if number not in self.known]

    def received(self, source: int, place: int) -> SourceAnswer:
        """Return the answer about ``source`` for the concept at ``place``; None: none yet."""
        values = self.known.get(source)
        if values is None:
            return None
        if self.space.oracle.whole_source:
            places = [0] if self.answers == "one" else self.space.asked_by
            return tuple(values[place] for place in places)
        sent = 0 if self.answers == "one" else self.space.asked_by[place]
        return values[sent] if self.most_per_source == 1 else self._with_versions(source, sent)

    def _with_versions(self, source: int, place: int) -> Received:
        """Return the answers about ``source`` and its versions, at a place among the values."""
        versions = {}
        for version in range(self.most_per_source - 1):
            number = source + (1 + version) * self.count
            if number in self.known:
                versions[version] = self.known[number][place]
        return Received(self.known[source][place], versions)

    def _versions(self, source: int) -> Mapping[int, Version]:
        if self.most_per_source == 1:
            return {}
        sample = self._sample(source // self.per_sample)
        return self.space.oracle.versions(sample, self._with_versions(source, 0))

    def prompt(self, number: int) -> Prompt:
        """Return the prompt of a call about a source, or about a version of one."""
        source = self.root(number)
        index, concept = divmod(source, self.per_sample)
        sample = self._sample(index)
        concepts = (self.space.asked[concept],) if self.answers == "one" else self.space.asked
        asks = asks_of(sample.id, sample.asks, concepts)
        if number < self.count:
            return Prompt(sample.image, concepts, sample.id, IDENTITY, 0, asks)
        version = self._versions(source)[number // self.count - 1]
        image, relation, severity = version.make(), version.relation, version.severity
        return Prompt(image, concepts, sample.id, relation, severity, asks)

    def row(self, number: int, answer: Answer | Unanswered, elapsed: float) -> SourceRow:
        """Return the journal's row of the answer to call ``number``, after ``elapsed`` seconds."""
        count = 1 if self.answers == "one" else len(self.space.asked)
        values = (answer,) * count if isinstance(answer, Unanswered) else answer.values
        encoded = tuple(to_json(value) for value in values)
        return SourceRow(number, encoded, answer.cost, elapsed, answer.unconfirmed, answer.reply)

    def keep(self, row: SourceRow) -> None:
        """Keep a journaled answer, to judge follow-ups with it."""
        where = f"journal: sources, row {row.source}"
        self.known[row.source] = tuple(from_json(value, where) for value in row.answers)
        source = self.root(row.source)
        dataset = self.space.dataset
        if self.space.needs_answers and isinstance(dataset, Captioned) and not self.missing(source):
            # The dataset makes a sample's follow-ups from the model's captions of it.
            dataset.received[source // self.per_sample] = self._with_versions(source, 0)


def with_answers(space: QuestionSpace, journal: Journal) -> QuestionSpace:
    """Return the space with a journal's answers about sources, if follow-ups depend on them."""
    if space.needs_answers:
        space = space.without_answers()
        sources = SourceCalls(space, read_facts(journal.facts()).settings.answers)
        for row in journal.sources():
            if not row.repeat_probe:
                sources.keep(row)
    return space


def asks_of(sample_id: str, asks: Mapping[str, Ask], concepts: tuple[str, ...]) -> tuple[Ask, ...]:
    """Return the words in which a sample asks about each concept; () if it has none.

    Raises:
        InputError: If it has words for some of the concepts alone.
    """
    if not asks:
        return ()
    missing = [concept for concept in concepts if concept not in asks]
    if missing:
        raise InputError(
            f"sample {sample_id!r}: expected words for concept {missing[0]!r}, got none; ask one "
            "question per call (answers = 'one')"
        )
    return tuple(asks[concept] for concept in concepts)
