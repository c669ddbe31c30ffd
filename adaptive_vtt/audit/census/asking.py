"""Asking everything, in large batches, and going on with what was asked before."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import numpy as np

from ...engine.audit_key import version_of
from ...engine.judge import Judge
from ...engine.options import Filters
from ...engine.settings import describe_oracle
from ...errors import InputError
from ...journal.files import BATCH, RECORD
from ...models.base import ModelSource, adapted_model
from ...models.checking import name_of
from ...models.local.python import model_of
from ...oracles import Correctness, TopClass
from ...relations import RelationDefaults
from ...space import QuestionSpace
from ...types import Answer, JsonObject, Unanswered
from .everything import asked, calls_in_order
from .figures import CensusResult
from .making import Making
from .record import Columns, Record


def columns_of(judge: Judge, calls: Sequence[int], said: Sequence[Answer | Unanswered]) -> Columns:
    """The judged answers of a batch: at once where that comes to the same, else one by one."""
    found = _at_once(judge, calls, said)
    if found is not None:
        return found
    pairs = zip(calls, said, strict=True)
    return Columns.of([row for call, answer in pairs for row in judge.judged(call, answer)])


def _at_once(
    judge: Judge, calls: Sequence[int], said: Sequence[Answer | Unanswered]
) -> Columns | None:
    """None where a rule is another, an answer no number, or a relation changes truths."""
    space, oracle = judge.space, judge.space.oracle.original
    relations = {type(v.relation) for v in space.variants}
    if any(kind.expect is not RelationDefaults.expect for kind in relations):
        return None
    given = [answer.values for answer in said if isinstance(answer, Answer)]
    if len(given) < len(said) or {*map(type, chain.from_iterable(given))} != {float}:
        return None
    places = [0] if judge.answers == "one" else list(space.asked_by)
    answers = np.array(given)[:, places]
    questions = np.stack([judge.all_questions_of(call) for call in calls])
    truth = space.truth(questions.ravel()).reshape(questions.shape)
    if type(oracle) is Correctness:
        yes = answers >= oracle.threshold
    elif type(oracle) is TopClass:
        yes = np.arange(answers.shape[1]) == answers.argmax(axis=1)[:, None]
    else:
        return None
    there = space.eligible(questions.ravel()).reshape(questions.shape)
    nothing = np.full(int(there.sum()), "")
    loss = (yes != (truth == 1)).astype(float)
    return Columns(questions[there], truth[there], answers[there], loss[there], nothing, nothing)


Advance = Callable[[int], object]


class Census:
    """Everything asked of a model, once, and kept in ``out`` as it is answered.

    ``model``: as an audit's, but none that costs money. ``processes``: see ``Making``. ``calls``:
    how many there are, source images apart; ``done``: those answered in an earlier run of the same
    census. ``targets`` and ``where``: rates beside those of every kind, as an audit has them.
    Raises InputError for a model that costs money, JournalError where ``out`` holds another census.
    """

    def __init__(
        self,
        space: QuestionSpace,
        model: ModelSource,
        *,
        out: Path | str | None = None,
        processes: int | None = None,
        targets: Iterable[str] = (),
        where: Filters | None = None,
    ) -> None:
        self.space = space
        self.model = adapted_model(model_of(model))
        self._refuse()
        self._making = Making(space, processes)
        self._targets, self._where = tuple(targets), where
        self._judge = Judge(space, self.model.answers)
        self.calls = len(calls_in_order(space, self.model))
        with ExitStack() as held:
            folder = Path(out or held.enter_context(TemporaryDirectory()))
            self.record = held.enter_context(Record(folder / RECORD, self._facts()))
            self._held = held.pop_all()

    @property
    def done(self) -> int:
        return min(self.calls, self.record.batches * BATCH)

    def run(self, advance: Advance = lambda calls: None) -> CensusResult:
        """Asks what is not known yet; ``advance`` is told of calls as they are answered."""
        if self.done < self.calls:
            done = self.record.batches
            for calls, said in asked(
                self._judge, self.model, advance, done=done, follow_ups=self._making
            ):
                self.record.add(columns_of(self._judge, calls, said))
        return CensusResult(
            self.space,
            self.record.answers(),
            model=name_of(self.model),
            calls=self.calls,
            head=self.record.head,
            targets=self._targets,
            where=self._where,
        )

    def close(self) -> None:
        """Lets go of the record; the model is its maker's to close."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _refuse(self) -> None:
        if self.model.costs_money:
            raise InputError(
                f"census: expected a model that costs nothing, got {name_of(self.model)!r}, of "
                "which every call may cost money; 'avtt audit --max-cost' keeps to a cap"
            )
        if self.space.oracle.judge_by is not None:
            raise InputError(
                "census: expected an oracle whose rule reads replies alone, got one with a judge "
                "model; take [oracle.judge] out, or audit"
            )

    def _facts(self) -> JsonObject:
        return {
            "space": self.space.fingerprint,
            "model": [name_of(self.model), version_of(self.model)],
            "oracle": describe_oracle(self.space),
        }
