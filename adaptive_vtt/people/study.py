"""A reader study: people answer what the model was asked, and know as little of the truth.

They are shown the audit's questions in the order of its draws. What a question was drawn by, its
proposal, was fixed by the model's earlier answers and drawn by the audit's key, neither of which
knows anything of the reader. So a draw is random given all that comes before it, for the reader as
for the model, and the draws so far certify the reader's own error rate at every moment: whoever
stops anywhere has a valid interval. What comes after a question that was left out cannot count,
since it is no longer what the draws were made of; "cannot tell" is an answer, and counts as one
that was not given.

It holds for who has not seen what the audit found, and while one reads alike from the first
picture to the last: someone who remembers a source image, tires or learns is not one reader.
"""

import hashlib
import json
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import pandas as pd

from ..audit import Audit, Certify, Limits, Sampling
from ..audit.versus import Verdict, Versus, key_of_call
from ..engine.judge import Judge, asks_of
from ..engine.selector import Replay
from ..errors import AvttError, InputError
from ..journal import Journal
from ..journal.facts import Facts, read_facts
from ..journal.files import JOURNAL
from ..journal.halves import key_of
from ..models.base import ModelDefaults
from ..results.report.beside_journal import Compared, Reader, Reading, identity
from ..results.result import Result, summarise
from ..space import QuestionSpace
from ..types import Answer, Ask, Prompt, Unanswered, Value
from ..utils.web import sentences
from .answers import Answers, by_question
from .cards import UNSURE, YES, Asked, Card, Key, yes_or_no
from .realism import agreement

CLASS = "class"
"""The one question about a picture that is of exactly one class."""
CANNOT_TELL = Unanswered("the reader cannot tell")
NOT_ASKED = Unanswered("not asked")


class Study:
    """The questions of the audit in ``journal``, over its ``space``, to be put to people.

    Raises InputError where people's answers could not be judged against the truth: masks,
    captions, and whatever is compared with an answer about the source image.
    """

    def __init__(self, journal: Journal, space: QuestionSpace) -> None:
        self.journal, self.space = journal, space
        self.facts = read_facts(journal.facts())
        _check(self.facts, space)
        self._judge = Judge(space, self.facts.settings.answers)
        calls = journal.calls()
        self.draws = list(_answered(journal, {call.call for call in calls}))
        self._cards: dict[int, Card] = {}  # kept: to make one, its image is made
        self._in_words = any(row.said is not None for call in calls for row in call.answers)

    def cards(self, count: int | None = None) -> Iterator[Card]:
        """The first ``count`` questions (None: all), in the order in which they were drawn.
        Raises InputError for a count below 1."""
        if count is not None and count < 1:
            raise InputError(f"--sample: expected 1 or more questions, got {count}")
        for question, call in self.draws[:count]:
            if call not in self._cards:
                self._cards[call] = self._card(question, call)
            yield self._cards[call]

    def known(self) -> dict[Key, Asked]:
        """Every question of all cards, for which no picture is made."""
        return {(call, one.id): one for _, call in self.draws for one in self._asked(call)}

    def answer(self, card: Card, own: Answers) -> Answer | None:
        """What a reader answered to a card, as a model would have; None where anything is left."""
        given = [own.get(key) for key in card.all]
        said = {one.question: one.answer for one in given if one is not None}
        if len(said) < len(card.asked):
            return None
        concepts = self._sent(card.number)
        if [one.id for one in card.asked] == [CLASS]:
            chosen = said[CLASS]
            return Answer(
                tuple(CANNOT_TELL if chosen == UNSURE else float(chosen == c) for c in concepts)
            )
        asked = {one.id: one for one in card.asked}
        return Answer(
            tuple(_value(asked[c], said[c]) if c in asked else NOT_ASKED for c in concepts)
        )

    def losses(self, card: Card, answer: Answer) -> list[float]:
        """What an answer lost, for each question that counts."""
        rows = self._judge.row(card.number, answer, 0.0).answers
        self._judge.forget(card.number)
        return [row.loss for row in rows if row.loss is not None and not row.excluded]

    def sample_of(self, call: int) -> int:
        """The source image that a call is about."""
        numbering, one = self.space.numbering, self.facts.settings.answers == "one"
        return numbering.image_parts(numbering.image_of(call) if one else call)[0]

    def _sent(self, call: int) -> tuple[str, ...]:
        """The concepts of a call, as the model was asked about them."""
        if self.facts.settings.answers == "all":
            return tuple(self.space.asked)
        return (self.space.asked[self.space.asked_by[call % len(self.space.concepts)]],)

    def _card(self, question: int, call: int) -> Card:
        prompt = self._judge.prompt(call)
        self._judge.forget(call)
        return Card(call, question, call, ("picture",), self._asked(call), prompt.words)

    def _asked(self, call: int) -> tuple[Asked, ...]:
        concepts = self._sent(call)
        if self.space.oracle.concepts_are == "classes":
            choices = {name: name for name in concepts}
            return (Asked(CLASS, "Which of these does the picture show?", choices),)
        last = len(self.space.concepts)
        counted = {
            self.space.asked[self.space.asked_by[q % last]]
            for q in self._judge.questions_of(call).tolist()
        }
        sample, dataset = self.sample_of(call), self.space.dataset
        words = asks_of(dataset.sample_id(sample), dataset.asks(sample), concepts)
        asks: Sequence[Ask | None] = words or [None] * len(concepts)
        return tuple(
            self._put(concept, ask)
            for concept, ask in zip(concepts, asks, strict=True)
            if concept in counted
        )

    def _put(self, concept: str, ask: Ask | None) -> Asked:
        if ask is None:
            return yes_or_no(concept, f"Does the picture show this: {concept}?")
        if ask.options:
            lettered = zip(ascii_uppercase, ask.options, strict=False)
            return Asked(concept, ask.text, dict(lettered))
        return Asked(concept, ask.text, {}) if self._in_words else yes_or_no(concept, ask.text)


class Person(ModelDefaults):
    """A reader as a model: ``cards`` with the answers of a ``study``, in their order."""

    needs_image = False
    takes_words = True

    def __init__(self, name: str, study: Study, answered: Sequence[tuple[Card, Answer]]) -> None:
        self.name = f"reader {name}"
        self.answers = study.facts.settings.answers
        self._said = {
            key_of_call(study.space, self.answers, card.number): answer for card, answer in answered
        }

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        keys = [key_of(p.sample_id, p.relation, p.severity, p.concepts) for p in prompts]
        return [self._said.get(key, Unanswered("not read")) for key in keys]

    def content(self) -> str:
        """Other answers are another reader."""
        text = json.dumps({key: repr(said.values) for key, said in self._said.items()})
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def before_the_gap(
    study: Study, cards: Sequence[Card], own: Answers
) -> tuple[list[tuple[Card, Answer]], int]:
    """The cards that certify, those before the first that was left out, with the reader's
    answers; and how many were answered in all."""
    answers = [study.answer(card, own) for card in cards]
    found = []
    for card, answer in zip(cards, answers, strict=True):
        if answer is None:
            break
        found.append((card, answer))
    return found, sum(answer is not None for answer in answers)


def _value(asked: Asked, said: str) -> Value:
    if said == UNSURE:
        return CANNOT_TELL
    return float(said == YES) if YES in asked.choices else said


def _answered(journal: Journal, calls: Container[int]) -> Iterator[tuple[int, int]]:
    """Question and call of every draw, up to the first that the model did not answer."""
    for draw in journal.draws(proposals=False):
        if draw.call not in calls:
            return
        yield draw.question, draw.call


def _check(facts: Facts, space: QuestionSpace) -> None:
    if facts.certificate is not None and facts.certificate.versus is not None:
        raise InputError("--questions: expected an audit of one model, got a comparison of two")
    if space.oracle.judges_masks or space.oracle.needs_source:
        judged = "masks" if space.oracle.judges_masks else "answers by those about the source image"
        raise InputError(
            "--questions: expected an oracle that judges answers by the truth alone, got one that "
            f"judges {judged}, which people cannot give on a page"
        )


# -- what a reader's answers certify ---------------------------------------------------------------
# An audit of the reader's own, and the comparison with the model. Both go through the model's draws
# again, by the proposals of then (``engine.selector``), and are written as run folders, so that
# ``avtt verify``, ``report`` and ``gate`` read them as any other.


FOLDER = "readers"
"""Where answers and audits of readers stand in the folder of the model's audit."""
VERSUS = "versus"
"""Where the comparison stands in a reader's folder."""


class Then(ModelDefaults):
    """The model that was audited, as the journal names it; it is not asked again."""

    def __init__(self, facts: Facts) -> None:
        self.name, self.version = facts.settings.model, facts.model_version
        self.answers = facts.settings.answers
        self.template_hash = facts.begun_with.get("template")
        self.takes_words, self.needs_image = True, False

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return [Unanswered("the model is not asked again") for _ in prompts]


def read_by_all(
    study: Study,
    terms: Mapping[str, Any],
    readers: Mapping[str, Answers],
    run: Path,
) -> Reading:
    """What every reader's answers come to; their audits are written into FOLDER/NAME of ``run``,
    the folder of the model's audit.

    ``terms``: what the model's audit certified, as keywords of ``Certify``; {} where it certified
    nothing.
    """
    cards = list(study.cards())
    found = [_reader(study, cards, terms, name, own, run) for name, own in readers.items()]
    return Reading(
        audit=identity(study.facts),
        confidence=terms.get("confidence"),
        readers=found,
        kappa=agreement(by_question(readers), None, len(readers)),
    )


def _reader(
    study: Study,
    cards: Sequence[Card],
    terms: Mapping[str, Any],
    name: str,
    own: Answers,
    run: Path,
) -> Reader:
    answered, count = before_the_gap(study, cards, own)
    losses = [loss for card, answer in answered for loss in study.losses(card, answer)]
    targets: list[Compared] = []
    notes = _notes(study, answered, count, len(cards))
    if answered and terms:
        person, mine = Person(name, study, answered), run / FOLDER / name
        result = audited(study, person, terms, len(answered), mine)
        try:
            apart = compared(study, person, terms, len(answered), run, mine / VERSUS)
            differences = apart.targets
        except AvttError as error:
            differences = pd.DataFrame()
            notes.append(f"not compared with the model: {error}")
        targets = _side_by_side(summarise(study.journal), result, differences)
    elif answered:
        notes.append("the audit certifies nothing, so neither do these answers")
    return Reader(
        name=name,
        answered=count,
        certified=len(answered),
        wrong=sum(losses) / len(losses) if losses else None,
        targets=targets,
        notes=notes,
    )


def audited(
    study: Study, person: ModelDefaults, terms: Mapping[str, Any], count: int, folder: Path
) -> Result:
    """An audit of a reader over the first ``count`` draws of the model's, in a new ``folder``."""
    _clear(folder)
    replay = Replay(study.journal, study.facts, "the audit")
    sampling = Sampling(replay=replay, seed=study.facts.settings.seed)
    with Audit(
        study.space,
        person,
        certify=Certify(**terms, self_taught=False),
        sampling=sampling,
        limits=Limits(budget=count, fail_on_error=1),
        journal=folder / JOURNAL,
    ) as audit:
        result = audit.run()
        result.save(folder)
    return result


def compared(
    study: Study,
    person: ModelDefaults,
    terms: Mapping[str, Any],
    count: int,
    run: Path,
    folder: Path,
) -> Verdict:
    """Model and reader on the same draws: A is the model, audited in ``run``, B the reader."""
    _clear(folder)
    aims = ("half_width", "at_most")
    with Versus(
        study.space,
        Then(study.facts),
        person,
        journal_a=run / JOURNAL,
        use="replay",
        budget=count + 1,  # a pair that may have to ask both is reserved as two calls
        fail_on_error=1,
        self_taught=False,
        seed=study.facts.settings.seed,
        journal=folder / JOURNAL,
        **{name: value for name, value in terms.items() if name not in aims},
    ) as versus:
        verdict = versus.run()
        verdict.result.save(folder)
    return verdict


def _clear(folder: Path) -> None:
    """Takes away what an earlier summary wrote: all of it follows from the answers."""
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in (f"{JOURNAL}*", "result.json", "report.html"):
        for path in folder.glob(pattern):
            path.unlink()


def _side_by_side(model: Result, reader: Result, differences: pd.DataFrame) -> list[Compared]:
    """Every target of both audits, by its name."""
    theirs = {str(row["target"]): row for row in model.targets.to_dict("records")}
    apart = {str(row["target"]): row for row in differences.to_dict("records")}
    found = []
    for row in reader.targets.to_dict("records"):
        name = str(row["target"])
        if name in theirs:
            other = apart.get(name)
            found.append(
                Compared(
                    target=name,
                    model=_interval(theirs[name]),
                    reader=_interval(row),
                    difference=None
                    if other is None
                    else (other["delta"], other["lower"], other["upper"]),
                    decision="" if other is None else other["decision"],
                )
            )
    return found


def _interval(row: Mapping[Any, Any]) -> tuple[float, float, float]:
    return float(row["estimate"]), float(row["lower"]), float(row["upper"])


def _notes(
    study: Study, answered: Sequence[tuple[Card, Answer]], count: int, drawn: int
) -> list[str]:
    samples, certificate = [study.sample_of(c.number) for c, _ in answered], study.facts.certificate
    return sentences(
        Path(__file__).with_name("study_notes.txt"),
        count=count,
        answered=len(answered),
        drawn=drawn,
        unsure=sum(CANNOT_TELL in answer.values for _, answer in answered),
        both=certificate is not None and certificate.unanswered == "both",
        again=len(set(samples)) < len(samples),
    )
