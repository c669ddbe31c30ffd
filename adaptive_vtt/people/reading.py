"""Reading: people answer the model's questions, without seeing the truth.

They see the audit's questions in the order of its draws. Their answers are a model of
``kind = "recorded"``, whose census or audit gives a reader's error rates. ``avtt versus --journal-a
RUN --use replay`` compares model and reader on the same draws.
"""

from string import ascii_uppercase

import pandas as pd

from ..engine.judge import Judge
from ..engine.source_calls import asks_of
from ..errors import InputError, unexpected
from ..journal import Journal
from ..journal.facts import read_facts
from ..models.local.recorded import CLASS, card_id
from ..space import QuestionSpace
from .agreement import agreement, answered
from .cards import Asked, Card, Pictures, Summary, Task, yes_or_no

ABOUT = (
    'Please answer in this order, and each question. "I am not sure" is an answer. '
    "A click on a picture shows it larger."
)


def reading_task(
    journal: Journal, space: QuestionSpace, pictures: Pictures, sample: int | None
) -> Task:
    """Return the reading of the first ``sample`` questions of an audit, or all.

    Raise InputError if the truth alone cannot judge people's answers: for masks, captions, and
    oracles that compare with the answer about the source image.
    """
    if sample is not None and sample < 1:
        raise InputError(f"--sample: expected 1 or more questions, got {sample}")
    oracle, certificate = space.oracle, read_facts(journal.facts()).certificate
    if certificate is not None and certificate.versus is not None:
        raise InputError("--questions: expected an audit of one model, got a comparison of two")
    if oracle.judges_masks or oracle.needs_source:
        judged = "masks" if oracle.judges_masks else "answers by those about the source image"
        got = f"one that judges {judged}, which people cannot give on a page"
        raise unexpected("--questions", "an oracle that judges answers by the truth alone", got)
    cards, option = questions(journal, space), "--questions"
    shown, show = cards[:sample], pictures.of
    return Task("readers", "Questions", ABOUT, lambda: shown, cards, show, summarise, option)


def questions(journal: Journal, space: QuestionSpace) -> list[Card]:
    """Return the model's questions in the order of the draws, without truths and sample names."""
    judge = Judge(space, read_facts(journal.facts()).settings.answers)
    calls = journal.calls()
    in_words = any(row.answer_text is not None for call in calls for row in call.answers)
    answered_calls = {call.call for call in calls}
    cards: dict[int, Card] = {}
    for draw in journal.draws(proposals=False):
        if draw.call in answered_calls:
            question = space.question(draw.question)
            card = card_id(draw.sample, question.relation, question.severity)
            asked = _asked(judge, draw.call, in_words)
            cards[draw.call] = Card(card, draw.question, draw.call, ("picture",), asked)
    return list(cards.values())


def _asked(judge: Judge, call: int, in_words: bool) -> tuple[Asked, ...]:
    """Return the questions of a call whose answers count."""
    space = judge.space
    if space.oracle.concepts_are == "classes":
        choices = {name: name for name in space.asked}
        return (Asked(CLASS, "Which of these does the picture show?", choices),)
    places = judge.questions_of(call) % len(space.concepts)
    concepts = tuple(dict.fromkeys(space.asked[space.asked_by[place]] for place in places.tolist()))
    sample = int(space.numbering.parts(int(judge.all_questions_of(call)[0]))[0])
    dataset = space.dataset
    asks = asks_of(dataset.sample_id(sample), dataset.asks(sample), concepts)
    if not asks:
        return tuple(yes_or_no(c, f"Does the picture show this: {c}?") for c in concepts)
    lettered = [dict(zip(ascii_uppercase, ask.options, strict=False)) for ask in asks]
    return tuple(
        Asked(concept, ask.text, options) if options or in_words else yes_or_no(concept, ask.text)
        for concept, ask, options in zip(concepts, asks, lettered, strict=True)
    )


def summarise(answers: pd.DataFrame) -> Summary:
    """Return how many questions each reader answered, and their agreement."""
    readers = answers["reader"].value_counts(sort=False).to_dict()
    kappa = {"answers": agreement(answered(answers).values(), len(readers))}
    notes = ["to audit a reader: kind = 'recorded', answers = 'readers/NAME.csv' in [model]"]
    return Summary({"readers": readers, "kappa": kappa}, {}, notes)
