"""What a model said in an earlier audit of the same space, taken as it is."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ..cohort.members import Known
from ..errors import InputError
from ..journal import Journal
from ..journal.facts import Facts, read_facts
from ..journal.halves import key_of
from ..journal.rows import AnswerRow, CallRow
from ..models.base import ModelUnderTest, adapted_model
from ..models.checking import name_of
from ..space import QuestionSpace
from ..types import Answer, CallMode, Floats, Indices, Unanswered, Value
from .audit_key import version_of
from .settings import describe_oracle


@dataclass(frozen=True)
class Earlier:
    """``answers`` by key of the prompt; ``asked`` (a,), ascending: the questions they are about;
    of those that count the ``questions`` (n,), ascending, and their ``losses`` (n,)."""

    answers: Mapping[str, Answer | Unanswered]
    asked: Indices
    questions: Indices
    losses: Floats

    def losses_of(self, question: Indices) -> Floats:
        """(n,): NaN where none is known."""
        return Known(self.questions, self.losses).of(question)


def earlier_answers(
    space: QuestionSpace, model: ModelUnderTest, journal: Journal, where: str
) -> Earlier:
    """What ``model`` said in the audit in a journal; ``where`` it stands, for errors.

    A call of which anything turned out not to count is left out, as no answer is journaled that
    could be judged again. Raises InputError where that audit was of another space, model,
    version, template or oracle, or its answers were masks, which journals do not keep;
    JournalError where there is no audit.
    """
    facts = read_facts(journal.facts())
    check_same(space, model, facts, where)
    if space.oracle.judges_masks:
        raise InputError(
            f"journal_a {where!r}: expected answers that journals keep, got masks, of which only "
            "scores are kept; with use = 'proxy' what they lost is a hint"
        )
    calls = [call for call in journal.calls() if not any(row.excluded for row in call.answers)]
    mode = facts.settings.answers
    answers = {key_of_call(space, mode, call.call): _answer(space, call, mode) for call in calls}
    rows = sorted((row for call in calls for row in call.answers), key=lambda row: row.question)
    judged = [(row.question, row.loss) for row in rows if row.loss is not None]
    return Earlier(
        answers,
        np.array([row.question for row in rows], np.int64),
        np.array([question for question, _ in judged], np.int64),
        np.array([loss for _, loss in judged], float),
    )


def key_of_call(space: QuestionSpace, answers: CallMode, call: int) -> str:
    """What the prompt of a call is told by; see ``journal.halves``."""
    image = space.numbering.image_of(call) if answers == "one" else call
    sample, variant = space.numbering.image_parts(image)
    mine = space.asked[space.asked_by[call % len(space.concepts)]]
    concepts = (mine,) if answers == "one" else space.asked
    chosen = space.variants[variant]
    return key_of(space.dataset.sample_id(sample), chosen.relation.name, chosen.severity, concepts)


def answered_keys(space: QuestionSpace, journal: Journal) -> Counter[str]:
    """How often a journal holds an answer to a prompt, by its key; repeat probes count, too."""
    mode = read_facts(journal.facts()).settings.answers
    again = [-1 - row.source for row in journal.sources() if row.repeat_probe]
    calls: Iterable[int] = [*(row.call for row in journal.calls()), *again]
    return Counter(key_of_call(space, mode, call) for call in calls)


def check_same(space: QuestionSpace, model: ModelUnderTest, facts: Facts, where: str) -> None:
    """Raises InputError, naming the first thing in which the audit of ``facts`` differs from one of
    ``model`` that would be begun now."""
    then = facts.begun_with
    pairs = {
        "space": (facts.space.fingerprint, space.fingerprint),
        "model": (facts.settings.model, name_of(model)),
        "model's version": (facts.model_version, version_of(model)),
        "prompt template": (then.get("template"), adapted_model(model).template_hash),
        "oracle": (then.get("oracle"), describe_oracle(space)),
        "answers per call": (facts.settings.answers, adapted_model(model).answers),
    }
    for name, (before, now) in pairs.items():
        if before != now:
            raise InputError(
                f"journal_a {where!r}: expected an audit of the same {name}, got {before!r} "
                f"then and {now!r} now; with use = 'proxy' its answers are hints alone"
            )


def _answer(space: QuestionSpace, call: CallRow, answers: CallMode) -> Answer:
    values = [_value(row) for row in sorted(call.answers, key=lambda row: row.question)]
    if answers == "one":
        return Answer((values[0],))
    said: list[Value] = [Unanswered("not journaled")] * len(space.asked)
    for place, value in enumerate(values):
        said[space.asked_by[place]] = value
    return Answer(tuple(said))


def _value(row: AnswerRow) -> Value:
    said = row.answer if row.said is None else row.said
    return Unanswered(row.unanswered or "nothing was journaled") if said is None else said
