"""What a model said in an earlier audit of the same space, taken as it is."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..journal import Journal
from ..journal.facts import Facts, read_facts
from ..journal.halves import key_of
from ..journal.rows import AnswerRow, CallRow
from ..models.base import ModelUnderTest
from ..models.checking import name_of
from ..space import QuestionSpace
from ..types import Answer, CallMode, Floats, Indices, Unanswered, Value
from .audit_key import version_of
from .settings import describe_oracle


@dataclass(frozen=True)
class Earlier:
    """``answers`` by key of the prompt; the judged ``questions`` (n,), ascending, and their
    ``losses`` (n,)."""

    answers: Mapping[str, Answer | Unanswered]
    questions: Indices
    losses: Floats

    def losses_of(self, question: Indices) -> Floats:
        """(n,): NaN where none is known."""
        if not len(self.questions):
            return np.full(len(question), np.nan)
        place = np.searchsorted(self.questions, question).clip(max=len(self.questions) - 1)
        return np.where(self.questions[place] == question, self.losses[place], np.nan)


def earlier_answers(
    space: QuestionSpace, model: ModelUnderTest, journal: Journal, where: str
) -> Earlier:
    """What ``model`` said in the audit in a journal; ``where`` it stands, for errors.

    Raises InputError where that audit was of another space, model, version, oracle or template, or
    its answers were masks, which journals do not keep; JournalError where there is no audit.
    """
    facts, calls = read_facts(journal.facts()), journal.calls()
    _check_same(space, model, facts, where)
    losses = {
        row.question: row.loss
        for call in calls
        for row in call.answers
        if row.loss is not None and not row.excluded
    }
    questions = np.array(sorted(losses), np.int64)
    keys = keys_of_calls(space, facts.settings.answers, calls)
    answers = {
        key: _answer(space, call, facts.settings.answers, where)
        for key, call in zip(keys, calls, strict=True)
    }
    return Earlier(answers, questions, np.array([losses[q] for q in questions.tolist()], float))


def keys_of_calls(space: QuestionSpace, answers: CallMode, calls: list[CallRow]) -> list[str]:
    """What the prompts of journaled calls are told by; see ``journal.halves``."""
    found = []
    for call in calls:
        image = space.numbering.image_of(call.call) if answers == "one" else call.call
        sample, variant = space.numbering.image_parts(image)
        place = call.call % len(space.concepts)
        concepts = (space.asked[space.asked_by[place]],) if answers == "one" else space.asked
        chosen = space.variants[variant]
        name = space.dataset.sample_id(sample)
        found.append(key_of(name, chosen.relation.name, chosen.severity, concepts))
    return found


def answered_keys(space: QuestionSpace, journal: Journal) -> set[str]:
    """The keys of all prompts that a journal holds answers to."""
    facts = read_facts(journal.facts())
    return set(keys_of_calls(space, facts.settings.answers, journal.calls()))


def _check_same(space: QuestionSpace, model: ModelUnderTest, facts: Facts, where: str) -> None:
    """Raises InputError, naming the first thing in which the audit differs."""
    then = facts.begun_with
    pairs = {
        "space": (facts.space.fingerprint, space.fingerprint),
        "model": (facts.settings.model, name_of(model)),
        "model's version": (facts.model_version, version_of(model)),
        "oracle": (then.get("oracle"), describe_oracle(space)),
    }
    for name, (before, now) in pairs.items():
        if before != now:
            raise InputError(
                f"journal_a {where!r}: expected an audit of the same {name}, got {before!r} "
                f"then and {now!r} now; with use = 'proxy' its answers are hints alone"
            )


def _answer(
    space: QuestionSpace, call: CallRow, answers: CallMode, where: str
) -> Answer | Unanswered:
    rows = sorted(call.answers, key=lambda row: row.question)
    values = [_value(row, where) for row in rows]
    if answers == "one":
        return Answer((values[0],))
    said: list[Value] = [Unanswered("not journaled")] * len(space.asked)
    for place, value in enumerate(values):
        said[space.asked_by[place]] = value
    return Answer(tuple(said))


def _value(row: AnswerRow, where: str) -> Value:
    if row.said is not None:
        return row.said
    if row.answer is not None:
        return row.answer
    if row.unanswered is None:
        raise InputError(
            f"journal_a {where!r}: expected journaled answers, got none for question "
            f"{row.question} (masks are not kept); use = 'proxy' needs losses alone"
        )
    return Unanswered(row.unanswered)
