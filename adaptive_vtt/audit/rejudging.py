"""The answers of an audit judged by another oracle: other losses of the same questions.

Nothing is asked, and intervals hold for the new losses. What a call is answered does not depend on
when it is drawn, so the loss that any oracle makes of it is as fixed as the old one was. The
proposal q and the predictions f of every draw are in the journal, committed before its call was
sent; f was to foresee the old loss, and may be anything. So the pseudo-outcomes

    N a = S + r ( sum over candidates of F + (L_I - F_I) / q(I) )

with the new losses L, and with S the sum of those that were seen before, have the mean that the
target has under the new oracle. Their bounds are of f and q alone and take any loss in [0, 1]. Bets
are made anew, draw by draw, of the new losses of the draws before. Why the audit ended does not
matter, since intervals hold at every moment; nor how many answers count, or stay unanswered, under
either oracle. Three things do:

1. The oracle is chosen without regard to these answers. A threshold that was tuned on them knows
   the draws, and nothing is certified of it; who tries several rules has to share alpha among them.
2. Targets select the same questions: what is true of the samples, and what can be judged, is as it
   was. Else another number of calls touches them, and r is wrong.
3. Every answer is known as it was given. Where it is not, nothing is guessed.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..certify import Bet, Certifier
from ..certify.rules import Rules
from ..certify.targets import differs, selected_by
from ..certify.verify import verify
from ..certify.verify_counting import counted
from ..engine.belief import Observation
from ..engine.judge import LOST, Judge, values_of
from ..engine.judging import hash_of
from ..engine.repeat_probes import repeated
from ..engine.selector import teach
from ..engine.settings import describe_oracle, describe_space, other_pictures
from ..errors import InputError
from ..families import OfConcept, OfRelationConcept, TargetId
from ..journal import Journal, SQLiteJournal, open_journal, read_journal
from ..journal.answer_json import from_json, to_json
from ..journal.facts import Facts, read_facts
from ..journal.files import JOURNAL, journal_at
from ..journal.rows import CallRow, DrawRow, JudgingRow, SourceRow
from ..results.cautions import drifted
from ..results.result import Result, summarise
from ..space import QuestionSpace
from ..types import Answer, JsonObject, Value
from .inspection import Inspection
from .rereading import Rereading

ENDED = "judged anew: nothing was asked"
SPEC = ("spec", "base", "program", "parts")
"""Facts by which a journal's SPEC.toml is built again; its oracle would be the old one."""

Verdicts = dict[tuple[int | None, str], Value]
"""What a judge said, by question and the hash of what it was asked; None: of any question."""


@dataclass(frozen=True)
class _Audit:
    """What a journal holds, read and verified; ``where`` it stands, for messages."""

    where: str
    head: str
    raw: Mapping[str, Any]
    facts: Facts
    draws: list[DrawRow]
    calls: list[CallRow]
    sources: list[SourceRow]
    judging: list[JudgingRow]

    @classmethod
    def of(cls, journal: Journal, where: str) -> "_Audit":
        verify(journal)  # what was altered must not come out whole
        raw, draws = journal.facts(), journal.draws()
        if "slices" in raw:  # of the old losses; their targets stand behind the registered ones
            raw = {name: value for name, value in raw.items() if name != "slices"}
            registered = len(raw["certificate"]["targets"])
            draws = [replace(draw, moves=draw.moves[:registered]) for draw in draws]
        received = [row for row in journal.sources() if not row.repeat_probe]
        facts, calls = read_facts(raw), journal.calls()
        return cls(where, journal.head, raw, facts, draws, calls, received, journal.judging())


def rejudge(
    source: Path | str | Journal,
    space: QuestionSpace,
    *,
    out: Path | str | None = None,
    notes: Mapping[str, Any] | None = None,
    reading: Rereading | None = None,
) -> Result:
    """What an audit's answers come to under the oracle of ``space``; nothing is asked.

    - ``source``: a run folder, a journal's file, or a Journal. It is verified, and not changed.
    - ``space``: dataset, relations and severities as they were, with another oracle.
    - ``out``: a new folder for journal.db, result.json and report.html. Default None: the result
      alone.
    - ``notes``: as in ``Audit``.
    - ``reading``: how the replies of a chat model, as far as the journal keeps them, are read
      anew. Default None: what was read in them stays.

    Intervals hold if the oracle was chosen without looking at these answers; see above. Raises
    InputError where the new losses would not be those of the same targets, or the journal does
    not hold what the oracle judges by, and JournalError for a journal that is damaged.
    """
    folder = None if out is None else Path(out)
    if folder is not None and (folder / JOURNAL).exists():
        raise InputError(f"{folder}: holds an audit already; name a new folder")
    with _opened(source) as (journal, where):
        then = _Audit.of(journal, where)
        told = _trouble(journal)
    _check_same(then, space)
    judge = Judge(space, then.facts.settings.answers, keep_masks=True)
    sources = _sources(then, judge, reading)
    rows = _judged(then, judge, reading)
    facts = _facts(then, judge, rows, reading) | dict(notes or {})
    facts["warnings"] = [*then.facts.warnings, *told]
    with closing(open_journal(None if folder is None else folder / JOURNAL)) as made:
        made.add(then.draws)
        made.add(sources)
        made.add(then.judging if space.oracle.judge_by is not None else [])
        made.add(rows)
        made.set_facts(**facts)  # last: until then the folder holds no audit
        result = summarise(made).inspected(Inspection(made, space))
    if folder is not None:
        result.save(folder)
    return result


@contextmanager
def _opened(source: Path | str | Journal) -> Iterator[tuple[Journal, str]]:
    if isinstance(source, Path | str):
        with closing(read_journal(journal_at(source))) as journal:
            yield journal, str(source)
    else:
        yield source, str(source.path) if isinstance(source, SQLiteJournal) else "memory"


def _trouble(journal: Journal) -> list[str]:
    """What answers asked again told of the model. They stay behind: what they are compared with is
    not journaled as it was said."""
    repeat_probes = repeated(journal.sources(), journal.calls())
    return [drifted(repeat_probes)] if repeat_probes is not None and repeat_probes.differ else []


# -- whether it can be done ----------------------------------------------------------------


def _check_same(then: _Audit, space: QuestionSpace) -> None:
    """Raises InputError where the questions, or the targets, would be other ones."""
    facts = then.facts
    _check_judge(then, space)
    if space.needs_answers:
        raise InputError(
            f"rejudge: {then.where}: expected follow-ups that were chosen beforehand, got those "
            "that own captions chose, as its oracle read them; an audit with another asks anew"
        )
    if space.oracle.needs_source and then.calls and not then.sources:
        raise InputError(
            f"rejudge: {then.where}: {_name(space)} compares with answers about source images, and "
            "that audit asked about none; an audit with this oracle has to ask anew"
        )
    if facts.certificate is not None and facts.certificate.versus is not None:
        raise InputError(
            f"rejudge: {then.where}: expected an audit of one model, got a comparison of two; "
            "its certificate stands for the oracle that it was made with"
        )
    if difference := _difference(facts, space, then.draws):
        raise InputError(
            f"rejudge: {then.where}: expected the same questions under another oracle, got others: "
            f"{difference}; what was certified there still holds of the oracle that it was made "
            "with, and an audit with this one has to ask anew"
        )
    before, now = facts.space.concepts_are == "classes", space.oracle.concepts_are == "classes"
    if facts.certificate is not None and before != now:
        unit = "of images by their likeliest class" if before else "of questions one by one"
        raise InputError(
            f"rejudge: {then.where}: expected an oracle that judges as rates were certified, "
            f"{unit}, got {_name(space)}; an audit with this one has to ask anew"
        )


def _check_judge(then: _Audit, space: QuestionSpace) -> None:
    """Raises InputError where another judge would have to be asked: that takes calls and money."""
    if space.oracle.judge_by is None:
        return
    now, before = space.oracle.judge_by.describe(), then.facts.settings.oracle.judge
    if before is None or any(now[n] != before.get(n) for n in ("name", "regime", "prompt")):
        asked = "none" if before is None else f"{before.get('name')}, {before.get('regime')}"
        raise InputError(
            f"rejudge: {then.where}: expected the judge that read its replies ({asked}), got "
            f"{now['name']}, {now['regime']}, which would have to be asked and paid; begin an "
            "audit with it, or take it out (--set oracle.judge=false) to go by the rule alone"
        )


def _difference(facts: Facts, space: QuestionSpace, draws: list[DrawRow]) -> str | None:
    """In what the questions differ, in words; None: in nothing."""
    variants = tuple((v.relation.name, v.severity) for v in space.variants)
    pairs: list[tuple[str, Any, Any]] = [
        ("samples", facts.space.samples, len(space.dataset)),
        ("relations and severities", facts.space.variants, variants),
        ("concepts", len(facts.space.concepts), len(space.concepts)),
        ("seed of follow-ups", facts.space.seed, space.seed),
    ]
    for name, before, now in pairs:
        if before != now:
            return f"{name} {before} then and {now} now"
    for draw in draws:
        name = space.dataset.sample_id(int(space.parts(draw.question)[0]))
        if name != draw.sample:
            return f"sample {draw.sample!r} then and {name!r} now"
    # answers are about the pictures that were asked about, not about those of other options
    pictures = other_pictures(facts.space.shown, space.shown)
    return _counted_otherwise(facts, space) or pictures


def _counted_otherwise(facts: Facts, space: QuestionSpace) -> str | None:
    if facts.population:
        return differs(facts.population, space)
    if facts.certificate is not None:
        return "its journal does not say which questions belong to which target"
    counts = tuple(map(tuple, space.cell_counts.tolist()))
    return None if counts == facts.space.cell_counts else "which questions can be judged"


def _name(space: QuestionSpace) -> str:
    return type(space.oracle.original).__name__


# -- losses --------------------------------------------------------------------------------


def _sources(then: _Audit, judge: Judge, reading: Rereading | None) -> list[SourceRow]:
    """The answers about source images, read anew where that is wanted; the judge knows them."""
    rows = []
    for row in then.sources:  # those of versions come last, and follow from the others
        if reading is not None and row.reply:
            prompt = judge.sources.prompt(row.source)
            before = tuple(from_json(said, "journal: sources") for said in row.answers)
            values = reading.values(row.reply, prompt, before)
            row = replace(row, answers=tuple(map(to_json, values)))
        judge.sources.know(row)
        rows.append(row)
    return rows


def _judged(then: _Audit, judge: Judge, reading: Rereading | None) -> list[CallRow]:
    """The calls with their answers judged anew; raises InputError where that takes what the journal
    does not hold."""
    rows, said = [], _verdicts(then, judge.space)
    for call in then.calls:
        _check_source(then, judge, call.call)
        values = values_of(judge.space, judge.answers, call)
        if reading is not None and call.reply:
            values = reading.values(call.reply, judge.prompt(call.call), values)
        _check_kinds(then, judge.space, values)
        answer = Answer(values, call.cost, call.unconfirmed, call.reply)
        mine = _said_of(then, judge, call.call, answer, said)
        row = judge.row(call.call, answer, call.elapsed, mine)
        if any(value is LOST for value in values):
            _check_lost(then, judge, call, row)
        judge.forget(call.call)
        rows.append(row)
    return rows


def _verdicts(then: _Audit, space: QuestionSpace) -> Verdicts:
    """What the judge said, by question and the hash of what it was asked, and, of any question
    (None), by that alone; nothing where it is not wanted."""
    found: Verdicts = {}
    judging = then.judging if space.oracle.judge_by is not None else ()
    for row in (row for row in judging if not row.received):
        value = from_json(row.said[0], "journal: judging")
        found[row.question, row.asked] = value
        if isinstance(value, str):
            found[None, row.asked] = value
    return found


def _said_of(
    then: _Audit,
    judge: Judge,
    call: int,
    answer: Answer,
    said: Verdicts,
) -> dict[int, Value]:
    """What the judge said of an answer, by question. Raises InputError where it was not asked, and
    the rule is not sure."""
    found: dict[int, Value] = {}
    for question, query in judge.queries(call, answer).items():
        asked = hash_of(query.text)
        verdict = said.get((question, asked), said.get((None, asked)))
        if verdict is not None:
            found[question] = verdict
        elif not query.sure:
            raise InputError(
                f"rejudge: {then.where}: the judge was not asked about the answer to question "
                f"{question}, which the rule cannot read now; an audit with this oracle has to ask "
                "anew, or take the judge out (--set oracle.judge=false)"
            )
    return found


def _check_source(then: _Audit, judge: Judge, call: int) -> None:
    """Raises InputError where the oracle compares with what was never asked."""
    if not judge.space.oracle.needs_source:
        return
    source = judge.sources.of(int(judge.all_questions_of(call)[0]))
    if judge.sources.missing(source):
        raise InputError(
            f"rejudge: {then.where}: {_name(judge.space)} compares with answers about source "
            f"images, and one that it needs for call {call} was not asked; an audit with this "
            "oracle has to ask anew"
        )


def _check_kinds(then: _Audit, space: QuestionSpace, values: tuple[Value, ...]) -> None:
    """Raises InputError for values that the oracle does not judge: masks, or scores of masks in
    their place."""
    masks = any(isinstance(value, np.ndarray) for value in values)
    if masks and not space.oracle.judges_masks:
        raise InputError(
            f"rejudge: {then.where}: answers are masks, and {_name(space)} judges none; take "
            "mask-drop or mask-consistency"
        )
    numbers = any(isinstance(value, float) for value in values)
    if not numbers or _scores_do(then, space):
        return
    raise InputError(
        f"rejudge: {then.where}: expected masks, got the scores that its oracle gave them; masks "
        "are kept where an audit is begun with keep_masks = true in [audit], and without them only "
        "the thresholds of mask-drop can be others"
    )


def _scores_do(then: _Audit, space: QuestionSpace) -> bool:
    """Whether numbers stand for themselves, or are scores of masks that the oracle itself would
    give."""
    before, now = then.facts.begun_with.get("oracle") or {}, describe_oracle(space)
    if space.oracle.judges_masks:
        same = all(before.get(name) == now.get(name) for name in ("name", "metric"))
        return space.oracle.judges_scores and same
    return not any(
        isinstance(said, dict) and "mask" in said for row in then.sources for said in row.answers
    )


def _check_lost(then: _Audit, judge: Judge, before: CallRow, now: CallRow) -> None:
    """Raises InputError where an answer that is not journaled would matter: one to a question that
    did not count, and does now."""
    reasons = {row.question: row.unanswered for row in before.answers if row.excluded}
    lost = [row for row in now.answers if row.question in reasons and row.said is None]
    same = all(row.excluded and row.unanswered == reasons[row.question] for row in lost)
    if not same or judge.space.oracle.whole_call:
        raise InputError(
            f"rejudge: {then.where}: the answers to call {before.call} did not count "
            f"({next(iter(reasons.values()), 'not judged')}), so they were not journaled, and "
            f"{_name(judge.space)} needs them; an audit with this oracle has to ask anew"
        )


# -- the new journal -----------------------------------------------------------------------


def _facts(
    then: _Audit, judge: Judge, rows: list[CallRow], reading: Rereading | None
) -> JsonObject:
    """The facts of the new journal: the old ones, but for what the oracle changes."""
    space, raw, certificate = judge.space, then.raw, then.facts.certificate
    oracle = (then.facts.begun_with.get("oracle") or {}).get("name", "")
    replies = any(row.reply for row in then.calls)
    found = {name: value for name, value in raw.items() if name not in SPEC}
    found |= {
        "space": describe_space(space),
        "settings": {**raw["settings"], "oracle": describe_oracle(space)},
        "rejudged": {
            "source": then.where,
            "head": then.head,
            "oracle": oracle,
            "reading": reading.words if reading is not None and replies else None,
        },
        "ended": {"reason": ENDED, "elapsed": then.facts.ended.elapsed if then.facts.ended else 0},
    }
    if certificate is None or not then.facts.population:
        return found
    targets = selected_by(
        then.facts.population, [_renamed(i, then, space) for i in certificate.ids]
    )
    names = tuple(target.name for target in targets)
    told = {"targets": [*names], "ids": [target.id.as_dict() for target in targets]}
    if certificate.counted:
        ids = tuple(target.id for target in targets)
        renamed = certificate.model_copy(update={"targets": names, "ids": ids})
        statuses = counted(renamed, then.facts.population, rows)
    else:
        certifier = Certifier(space, targets, answers=judge.answers, rules=Rules.of(certificate))
        _play(certifier, judge, then.draws, rows, certificate.both)
        statuses = [replace(status, drawn=status.estimate) for status in certifier.table()]
    intervals = [status.row() for status in statuses]
    return found | {"certificate": {**raw["certificate"], **told}, "intervals": intervals}


def _renamed(id: TargetId, then: _Audit, space: QuestionSpace) -> TargetId:
    """The target's identity with what the oracle calls its concept and its rate."""
    if not isinstance(id, OfConcept | OfRelationConcept):
        return replace(id, rate=space.oracle.error)
    concept = space.concepts[then.facts.space.concepts.index(id.concept)]
    rates: dict[int | None, str] = {side: rate for rate, side in space.oracle.rates.items()}
    return replace(id, concept=concept, rate=rates.get(id.side, id.rate))


def _play(
    certifier: Certifier, judge: Judge, draws: list[DrawRow], rows: list[CallRow], both: bool
) -> None:
    """The game again: the journaled bets, with the new losses, as far as calls are answered."""
    answered = {row.call: row for row in rows}
    for draw in draws:
        if draw.call not in answered:
            return  # what comes after an open call is not learnt from
        questions, bet = judge.questions_of(draw.call), Bet.of(draw.moves)
        certifier.restore(bet, certifier.members(questions))
        judged = (row for row in answered[draw.call].answers if row.loss is not None)
        teach(certifier, bet, questions, [Observation.of(row, both) for row in judged])
