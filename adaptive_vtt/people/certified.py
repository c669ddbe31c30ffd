"""What a reader's answers certify: an audit of their own, and the comparison with the model.

Both go through the model's draws again, by the proposals of then (``engine.selector``), and are
written as run folders, so that ``avtt verify``, ``report`` and ``gate`` read them as any other.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..audit import Audit, Certify, Limits, Sampling
from ..audit.versus import Verdict, Versus
from ..engine.selector import Replay
from ..errors import AvttError
from ..journal.facts import Facts
from ..journal.files import JOURNAL
from ..models.base import ModelDefaults
from ..results.report.beside_journal import Compared, Reader, Reading, identity
from ..results.result import Result, summarise
from ..types import Answer, Prompt, Unanswered
from .answers import Answers, by_question
from .cards import Card
from .realism import agreement
from .study import Person, Study, before_the_gap

FOLDER = "readers"
"""Where answers and audits of readers stand in the folder of the model's audit."""
VERSUS = "versus"
"""Where the comparison stands in a reader's folder."""
SEVERAL = (
    "pictures of one source image are asked about more than once: who remembers the first answers "
    "the next by it"
)


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


def _notes(study: Study, answered: Sequence[Any], count: int, drawn: int) -> list[str]:
    """What to know before trusting a reader's figures."""
    notes = []
    if count > len(answered):
        notes.append(
            f"{count - len(answered)} answers after the first question that was left out do not "
            "count: a certificate takes the questions in the order in which they were drawn"
        )
    if len(answered) < drawn:
        notes.append(f"{len(answered)} of {drawn} questions: more answers, narrower intervals")
    samples = [study.sample_of(card.number) for card, _ in answered]
    if len(set(samples)) < len(samples):
        notes.append(SEVERAL)
    return notes
