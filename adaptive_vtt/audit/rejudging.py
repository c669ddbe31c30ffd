"""Judge the answers of an audit again by another oracle, without asking the model.

The intervals are valid for the new losses. An answer does not depend on when its call is drawn, so
the loss that any oracle assigns to it is as fixed as the old one was. The proposal q and the
predictions f of each draw are in the journal, committed before its call was sent. f predicted the
old loss, but predictions may be arbitrary. So the pseudo-outcomes

    N a = S + r ( sum over candidates of F + (L_I - F_I) / q(I) )

with the new losses L, and the sum S of the losses of earlier draws, have the target's mean loss
under the new oracle as their expectation. Their bounds depend on f and q alone, and allow any loss
in [0, 1]. Bets are made again, draw by draw, from the new losses of earlier draws. The reason why
the audit ended does not matter, since intervals hold at every moment; nor does the number of
answers that are excluded, or missing, under either oracle. There are three conditions:

1. The oracle is chosen without regard to these answers. A threshold that was tuned on them depends
   on the draws, and nothing is certified for it. Several oracles must share alpha.
2. Targets select the same questions: the truths of samples, and the questions that can be judged,
   are unchanged. Otherwise another number of calls belongs to them, and r is wrong.
3. All answers are known exactly as the model gave them.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
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
from ..engine.judge_calls import hash_of
from ..engine.repeat_probes import repeated
from ..engine.selector import teach
from ..engine.settings import describe_oracle, describe_space, other_pictures
from ..errors import InputError
from ..families import OfConcept, OfRelationConcept, TargetId
from ..journal import Journal, SQLiteJournal, open_journal, read_journal
from ..journal.answer_json import from_json, to_json
from ..journal.facts import read_facts
from ..journal.files import JOURNAL, journal_at
from ..journal.rows import CallRow, SourceRow
from ..results.cautions import drifted
from ..results.result import Result
from ..space import QuestionSpace
from ..types import Answer, JsonObject, Value
from .inspection import result_of
from .rereading import Rereading

ENDED = "judged again: nothing was asked"
ASK_AGAIN = "an audit with this oracle has to ask again"
SPEC = ("spec", "base", "program", "parts")
"""Facts that rebuild a SPEC.toml; they are dropped, as it has the old oracle."""


def rejudge(
    source: Path | str | Journal,
    space: QuestionSpace,
    *,
    out: Path | str | None = None,
    notes: Mapping[str, Any] | None = None,
    reading: Rereading | None = None,
) -> Result:
    """Judge the answers of an audit again by the oracle of ``space``, without asking the model.

    Intervals are valid if the oracle was chosen without looking at these answers.

    Args:
        source: A run folder, a journal's file, or a Journal. It is verified, and not changed.
        space: The same dataset, relations and severities, with another oracle.
        out: A new folder for journal.db, result.json and report.html. Default None: no files.
        notes: As in ``Audit``.
        reading: A way to read journaled replies of a chat model again. Default None: answers stay
            as they were read.

    Returns:
        The result under the new oracle.

    Raises:
        InputError: The new losses would belong to other targets, or the journal lacks something
            that the oracle needs.
        JournalError: The journal is damaged.
    """
    folder = None if out is None else Path(out)
    if folder is not None and (folder / JOURNAL).exists():
        raise InputError(f"{folder}: holds an audit already; name a new folder")
    opened: AbstractContextManager[Journal]
    if isinstance(source, Path | str):
        where, opened = str(source), closing(read_journal(journal_at(source)))
    else:
        where = str(source.path) if isinstance(source, SQLiteJournal) else "memory"
        opened = nullcontext(source)
    with opened as journal:
        audit = _Rejudged(journal, where, space, reading)
    audit.check()
    sources, rows = audit.judge_sources(), audit.judge_calls()
    facts = audit.new_facts(rows) | dict(notes or {}) | {"warnings": audit.warnings}
    with closing(open_journal(None if folder is None else folder / JOURNAL)) as made:
        made.add(audit.draws)
        made.add(sources)
        made.add(audit.judging)
        made.add(rows)
        made.set_facts(**facts)  # last, so that a crash leaves no audit in the folder
        result = result_of(made, space)
    if folder is not None:
        result.save(folder)
    return result


class _Rejudged:
    """The rows of a verified journal, and the judge of another oracle."""

    def __init__(
        self, journal: Journal, where: str, space: QuestionSpace, reading: Rereading | None
    ) -> None:
        verify(journal)  # else an edited journal would become a valid one
        self.where, self.head, self.space, self.reading = where, journal.head, space, reading
        self.raw, self.draws, self.calls = journal.facts(), journal.draws(), journal.calls()
        # slices depend on the old losses, so their targets, the last ones, are dropped
        if "slices" in self.raw:
            self.raw = {name: value for name, value in self.raw.items() if name != "slices"}
            registered = len(self.raw["certificate"]["targets"])
            self.draws = [replace(d, moves=d.moves[:registered]) for d in self.draws]
        self.facts = read_facts(self.raw)
        # without repeat probes, since the answers before them are not journaled in full
        self.sources = [row for row in journal.sources() if not row.repeat_probe]
        self.judging = [] if space.oracle.judge_by is None else journal.judging()
        probes = repeated(journal.sources(), self.calls)
        drift = [drifted(probes)] if probes is not None and probes.differ else []
        self.warnings = [*self.facts.warnings, *drift]
        self.oracle_name = type(space.oracle.original).__name__

    def _refusal(self, reason: str, remedy: str = ASK_AGAIN) -> InputError:
        return InputError(f"rejudge: {self.where}: {reason}; {remedy}")

    # -- checks ------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise InputError if questions or targets would differ, or a judge model would have to be
        asked."""
        facts, oracle, certificate = self.facts, self.space.oracle, self.facts.certificate
        if oracle.judge_by is not None:
            now, before = oracle.judge_by.describe(), facts.settings.oracle.judge
            if before is None or any(now[n] != before.get(n) for n in ("name", "regime", "prompt")):
                asked = (
                    "none" if before is None else f"{before.get('name')}, {before.get('regime')}"
                )
                raise self._refusal(
                    f"expected the judge that read its replies ({asked}), got {now['name']}, "
                    f"{now['regime']}, which would have to be asked and paid",
                    "begin an audit with it, or take it out (--set oracle.judge=false)",
                )
        if self.space.needs_answers:
            raise self._refusal(
                "expected follow-ups that were chosen beforehand, got those that own captions "
                "chose, as its oracle read them"
            )
        if oracle.needs_source and self.calls and not self.sources:
            raise self._refusal(
                f"{self.oracle_name} compares with answers about source images, and that audit "
                "asked about none"
            )
        if certificate is not None and (certificate.versus is not None or certificate.drops):
            got = "one of drops" if certificate.drops else "a comparison of two"
            raise self._refusal(
                f"expected an audit of one model, got {got}",
                "its certificate stands for the oracle that it was made with",
            )
        if difference := self._difference():
            raise self._refusal(
                f"expected the same questions under another oracle, got others: {difference}",
                f"its certificate remains valid for its oracle, and {ASK_AGAIN}",
            )
        by_image = facts.space.concepts_are == "classes"
        if certificate is not None and by_image != (oracle.concepts_are == "classes"):
            unit = "of images by their likeliest class" if by_image else "of questions one by one"
            raise self._refusal(
                f"expected an oracle that judges as rates were certified, {unit}, got "
                f"{self.oracle_name}"
            )

    def _difference(self) -> str | None:
        """Return a text on the difference between the questions, None if there is none."""
        then, space = self.facts.space, self.space
        variants = tuple((v.relation.name, v.severity) for v in space.variants)
        pairs: list[tuple[str, Any, Any]] = [
            ("samples", then.samples, len(space.dataset)),
            ("relations and severities", then.variants, variants),
            ("concepts", len(then.concepts), len(space.concepts)),
            ("seed of follow-ups", then.seed, space.seed),
        ]
        for name, before, now in pairs:
            if before != now:
                return f"{name} {before} then and {now} now"
        for draw in self.draws:
            name = space.dataset.sample_id(int(space.parts(draw.question)[0]))
            if name != draw.sample:
                return f"sample {draw.sample!r} then and {name!r} now"
        difference = None
        if self.facts.population:
            difference = differs(self.facts.population, space)
        elif self.facts.certificate is not None:
            difference = "its journal does not say which questions belong to which target"
        elif tuple(map(tuple, space.cell_counts.tolist())) != then.cell_counts:
            difference = "which questions can be judged"
        # relations with other options would render other images than those that were answered
        return difference or other_pictures(then.shown, space.shown)

    # -- losses ------------------------------------------------------------------------------

    def judge_sources(self) -> list[SourceRow]:
        """Return the answers about source images, read again if requested, and give them to the
        judge, which needs them for the calls."""
        self.judge = Judge(self.space, self.facts.settings.answers, keep_masks=True)
        rows = []
        for row in self.sources:
            if self.reading is not None and row.reply:
                prompt = self.judge.sources.prompt(row.source)
                before = tuple(from_json(value, "journal: sources") for value in row.answers)
                values = self.reading.values(row.reply, prompt, before)
                row = replace(row, answers=tuple(map(to_json, values)))
            self.judge.sources.keep(row)
            rows.append(row)
        return rows

    def judge_calls(self) -> list[CallRow]:
        """Return the calls with their answers, read again if requested, and their new losses.

        Raises:
            InputError: The journal lacks something that the oracle needs.
        """
        judge, verdicts, rows = self.judge, self._verdicts(), []
        for call in self.calls:
            source = judge.sources.source_of(int(judge.all_questions_of(call.call)[0]))
            if self.space.oracle.needs_source and judge.sources.missing(source):
                raise self._refusal(
                    f"{self.oracle_name} compares with answers about source images, and one that "
                    f"it needs for call {call.call} was not asked"
                )
            values = values_of(self.space, judge.answers, call)
            if self.reading is not None and call.reply:
                values = self.reading.values(call.reply, judge.prompt(call.call), values)
            self._check_kinds(values)
            answer = Answer(values, call.cost, call.unconfirmed, call.reply)
            opinions: dict[int, Value] = {}
            for question, query in judge.queries(call.call, answer).items():
                asked = hash_of(query.text)
                verdict = verdicts.get((question, asked), verdicts.get((None, asked)))
                if verdict is not None:
                    opinions[question] = verdict
                elif not query.sure:
                    raise self._refusal(
                        f"the judge was not asked about the answer to question {question}, which "
                        "the rule cannot read now",
                        f"{ASK_AGAIN}, or take the judge out (--set oracle.judge=false)",
                    )
            answers = judge.judged(call.call, answer, opinions)
            row = judge.row(call.call, answer, call.elapsed, answers)
            if any(value is LOST for value in values):
                self._check_lost(call, row)
            judge.forget(call.call)
            rows.append(row)
        return rows

    def _verdicts(self) -> dict[tuple[int | None, str], Value]:
        """Return the judge model's verdicts by question and by the hash of what it was asked.

        A verdict in words holds for any question (None), as it depends on that text alone.
        """
        verdicts: dict[tuple[int | None, str], Value] = {}
        for step in (step for step in self.judging if not step.received):
            verdict = from_json(step.answers[0], "journal: judging")
            verdicts[step.question, step.asked] = verdict
            if isinstance(verdict, str):
                verdicts[None, step.asked] = verdict
        return verdicts

    def _check_kinds(self, values: tuple[Value, ...]) -> None:
        """Raise InputError for masks, or scores of masks, that the oracle cannot judge."""
        oracle = self.space.oracle
        if not oracle.judges_masks and any(isinstance(value, np.ndarray) for value in values):
            raise self._refusal(
                f"answers are masks, and {self.oracle_name} judges none",
                "take mask-drop or mask-consistency",
            )
        if not any(isinstance(value, float) for value in values):
            return
        if oracle.judges_masks:
            before, now = self.facts.begun_with.get("oracle") or {}, describe_oracle(self.space)
            same = all(before.get(name) == now.get(name) for name in ("name", "metric"))
            fits = oracle.judges_scores and same
        else:
            kept = (value for row in self.sources for value in row.answers)
            fits = not any(isinstance(value, dict) and "mask" in value for value in kept)
        if not fits:
            raise self._refusal(
                "expected masks, got the scores that its oracle gave them",
                "an audit keeps masks with keep_masks = true in [audit], and without them only the "
                "thresholds of mask-drop may differ",
            )

    def _check_lost(self, before: CallRow, now: CallRow) -> None:
        """Raise InputError if a question counts now that was excluded, as its answer is not
        journaled."""
        reasons = {row.question: row.unanswered for row in before.answers if row.excluded}
        lost = [row for row in now.answers if row.question in reasons and row.answer_text is None]
        same = all(row.excluded and row.unanswered == reasons[row.question] for row in lost)
        if not same or self.space.oracle.whole_call:
            raise self._refusal(
                f"the answers to call {before.call} did not count "
                f"({next(iter(reasons.values()), 'not judged')}), so they were not journaled, and "
                f"{self.oracle_name} needs them"
            )

    # -- the new journal ---------------------------------------------------------------------

    def new_facts(self, rows: list[CallRow]) -> JsonObject:
        """Return the facts of the new journal: the old ones, with those that the oracle changes."""
        facts, space, certificate = self.facts, self.space, self.facts.certificate
        reading = self.reading if any(row.reply for row in self.calls) else None
        rejudged = {
            "source": self.where,
            "head": self.head,
            "oracle": (facts.begun_with.get("oracle") or {}).get("name", ""),
            "reading": None if reading is None else reading.words,
        }
        new = {name: value for name, value in self.raw.items() if name not in SPEC} | {
            "space": describe_space(space),
            "settings": {**self.raw["settings"], "oracle": describe_oracle(space)},
            "rejudged": rejudged,
            "ended": {"reason": ENDED, "elapsed": facts.ended.elapsed if facts.ended else 0},
        }
        if certificate is None or not facts.population:
            return new
        targets = selected_by(facts.population, [self._renamed(id) for id in certificate.ids])
        names, ids = tuple(t.name for t in targets), tuple(t.id for t in targets)
        if certificate.counted:
            renamed = certificate.model_copy(update={"targets": names, "ids": ids})
            statuses = counted(renamed, facts.population, rows)
        else:
            rules = Rules.of(certificate)
            certifier = Certifier(space, targets, answers=self.judge.answers, rules=rules)
            self._play(certifier, rows, certificate.both)
            statuses = [replace(status, drawn=status.estimate) for status in certifier.table()]
        changed = {"targets": [*names], "ids": [id.as_dict() for id in ids]}
        intervals = [status.row() for status in statuses]
        return new | {"certificate": {**self.raw["certificate"], **changed}, "intervals": intervals}

    def _renamed(self, id: TargetId) -> TargetId:
        """Return a target's identity with the names of concept and rate in the new oracle."""
        space = self.space
        if not isinstance(id, OfConcept | OfRelationConcept):
            return replace(id, rate=space.oracle.error)
        concept = space.concepts[self.facts.space.concepts.index(id.concept)]
        rates: dict[int | None, str] = {side: rate for rate, side in space.oracle.rates.items()}
        return replace(id, concept=concept, rate=rates.get(id.side, id.rate))

    def _play(self, certifier: Certifier, rows: list[CallRow], both: bool) -> None:
        """Repeat the journaled bets with the new losses, up to the first unanswered call."""
        answered = {row.call: row for row in rows}
        for draw in self.draws:
            if draw.call not in answered:
                return  # an audit learns in the order of draws, so not from those after this one
            questions, bet = self.judge.questions_of(draw.call), Bet.of(draw.moves)
            certifier.restore(bet, certifier.members(questions))
            judged = (row for row in answered[draw.call].answers if row.loss is not None)
            teach(certifier, bet, questions, [Observation.of(row, both) for row in judged])
