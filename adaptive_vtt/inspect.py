"""Any task of Inspect, certified with few of its samples (https://inspect.aisi.org.uk).

``audit`` has Inspect evaluate the samples that an audit draws, a batch at a time. ``CertifiedStop``
leaves a whole evaluation to Inspect, and ends it early. Both take 1 - the score of a sample for the
loss of an item of a ``Pool``. Needs inspect-ai (the extra ``inspect``).
"""

import copy
import glob
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from .audit import Audit
from .audit.progress import Hooks
from .audit.shortcut import HALF_WIDTH
from .cohort import Cohort, score_loss
from .engine.audit_key import fresh_seed
from .engine.options import Shorthands
from .errors import InputError, ModelError, listed, unknown
from .journal.files import JOURNAL
from .models.base import ModelDefaults
from .models.versions import CONTENT
from .pool import Pool
from .results.result import Result
from .types import Answer, CallMode, JsonObject, Prompt, Unanswered
from .utils.importing import needed

if TYPE_CHECKING:
    import pandas as pd
    from inspect_ai import Task
    from inspect_ai.dataset import Sample
    from inspect_ai.log import EvalLog, EvalSample, EvalSpec
    from inspect_ai.model import Model, ModelUsage
    from inspect_ai.scorer import SampleScore
    from inspect_ai.util import EarlyStop

TaskSource: TypeAlias = "Task | Callable[[], Task]"
__all__ = ["CertifiedStop", "InspectTask", "audit"]

BATCH = 20
"""Samples that are evaluated together, unless said otherwise: each batch leaves a log."""
MOST_VALUES = 10
"""Metadata with more values than this is no column of groups unless ``by`` names it."""
OURS = ("limit", "sample_id", "sample_shuffle", "run_samples", "score", "log_samples")
"""Arguments of Inspect's ``eval`` by which samples would be chosen, or their scores not be had."""


def audit(
    task: TaskSource,
    *,
    model: "str | Model",
    half_width: float = HALF_WIDTH,
    cohort: Cohort | Iterable[Path | str] = (),
    by: Sequence[str] | None = None,
    scorer: str | None = None,
    out: Path | str | None = None,
    on_progress: Hooks = True,
    **options: Any,
) -> Result:
    """The error of ``model`` on a task, 1 - its mean score, to +- ``half_width``, and that of every
    group of its samples; no more samples are evaluated than that takes.

    - ``task``: an Inspect task, or what makes one.
    - ``model``: as Inspect's ``eval`` takes it.
    - ``cohort``: logs of three or more other models on the task, or folders of logs, or a Cohort.
    - ``by``: names of metadata by whose values samples are grouped. Default: all that have two to
      ten values; (): the task as a whole is certified alone, with fewer samples.
    - ``scorer``: whose scores count, where there are several: numbers in [0, 1] or grades.
    - ``out``: folder for the journal, result, report, and in ``logs`` Inspect's logs, a batch each.
      An audit with the same settings that stands there is gone on with. Default: logs go where
      Inspect puts them, and nothing else is kept.
    - ``on_progress``: see ``Audit.run``.
    - ``options``: those of ``Audit`` (``budget``, ``confidence``, ``seed``, ``batch`` ...); all
      others are those of Inspect's ``eval`` (``token_limit``, ``epochs``, ``log_dir`` ...).
      ``max_cost`` needs Inspect's ``cost_limit``, the most that a sample may cost.

    A sample without a score counts as lost. Raises InputError for what cannot be audited,
    ModelError where Inspect ends a batch before all its samples did.
    """
    ours = {name: options.pop(name) for name in {*options} & {*Shorthands.__annotations__}}
    if out is not None:
        options.setdefault("log_dir", str(Path(out) / "logs"))
    asked = InspectTask(_made(task), model, scorer, options)
    if "max_cost" in ours and asked.most_cost is None:
        raise InputError(
            "inspect: max_cost: expected cost_limit, too, the most that a sample may cost, as the "
            "cap could not be kept otherwise; got none"
        )
    pool = _pool(asked.task, by)
    ours = {"batch": BATCH, **_certified(pool, half_width, cohort, scorer), **ours}
    with Audit(pool, asked, journal=_journal(out), **ours) as begun:
        result = begun.run(on_progress)
    if out is not None:
        result.save(out)
    return result


class InspectTask(ModelDefaults):
    """What was lost on samples of a task, as Inspect's ``eval`` with the options ``how`` finds.

    No key is checked beforehand: a pool has no images on which nets could be taught first.

    Raises InputError for options by which samples would be chosen, or not be scored.
    """

    answers: CallMode = "one"
    needs_image = False
    takes_words = True
    tells_losses = True

    def __init__(
        self, task: "Task", model: "str | Model", scorer: str | None, how: Mapping[str, Any]
    ) -> None:
        chosen = [name for name in OURS if name in how]
        if chosen:
            raise InputError(
                f"inspect: expected samples to be chosen and scored by the audit, got {chosen[0]}; "
                "leave it out"
            )
        if isinstance(model, list | tuple) or "," in str(model):
            raise InputError(f"inspect: model: expected one model, got {model!r:.80}")
        self.task, self.scorer = task, scorer
        self.name, self._model = str(model), model
        self._how = {"display": "none", "fail_on_error": False, **how}
        self._ids = {str(sample.id): sample.id for sample in task.dataset}
        cost, again = how.get("cost_limit"), int(how.get("retry_on_error") or 0)
        if cost is not None:  # each attempt at a sample has the limit for itself
            self.most_attempts = _epochs(how.get("epochs", task.epochs)) * (1 + again)
            self.most_cost = float(cost) * self.most_attempts

    def content(self) -> str:
        """A hash of what the samples say."""
        told = [(s.model_dump(mode="json", include={"input", "target"})) for s in self.task.dataset]
        return CONTENT + hashlib.blake2b(json.dumps(told).encode(), digest_size=8).hexdigest()

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        from inspect_ai import eval as evaluated

        ids = [_pattern(self._ids[prompt.sample_id]) for prompt in prompts]
        (log,) = evaluated(self.task, model=self._model, sample_id=ids, **self._how)
        samples: dict[str, list[EvalSample]] = {}
        for sample in log.samples or ():
            samples.setdefault(str(sample.id), []).append(sample)
        lacking = [prompt.sample_id for prompt in prompts if prompt.sample_id not in samples]
        if lacking:
            why = "" if log.error is None else f": {_line(log.error.message)}"
            raise ModelError(
                f"inspect: {log.location}: expected all of {len(ids)} samples to be evaluated, got "
                f"none of {listed(lacking)} ({log.status}{why})"
            )
        asked = [samples[prompt.sample_id] for prompt in prompts]
        return [
            self._loss(epochs, log.location, cost)
            for epochs, cost in zip(asked, _costs(log, asked), strict=True)
        ]

    def _loss(self, epochs: "list[EvalSample]", where: str, cost: float) -> Answer | Unanswered:
        """The mean over the epochs of a sample."""
        losses = []
        for sample in epochs:
            place = f"inspect: {where}, sample {sample.id!r}"
            loss = score_loss(sample.scores or {}, self.scorer, place)
            if loss is None:
                return Unanswered(_why(sample), cost)
            losses.append(loss)
        return Answer((sum(losses) / len(losses),), cost)


class CertifiedStop:
    """Inspect's ``EarlyStopping``: an evaluation ends once the task's error is certified.

    ``eval(CertifiedStop(half_width=0.05).of(task), model=...)``: Inspect evaluates samples in its
    own way, in a uniformly random order that the audit drew beforehand. A cohort's predictions are
    control variates: they move no draw. ``cohort``, ``scorer`` and ``out`` as ``audit`` takes them;
    ``options`` are those of ``Audit`` (``confidence``, ``seed`` ...), but what says which questions
    are asked. ``result`` is there when the evaluation has ended.

    A sample that Inspect ends with an error is told at the end, as lost. It holds up what is learnt
    of those after it, so that the evaluation may not stop: ``retry_on_error`` helps.
    """

    def __init__(
        self,
        half_width: float = HALF_WIDTH,
        *,
        cohort: Cohort | Iterable[Path | str] = (),
        scorer: str | None = None,
        out: Path | str | None = None,
        **options: Any,
    ) -> None:
        self.result: Result | None = None
        self._half_width, self._cohort, self._scorer = half_width, cohort, scorer
        self._out, self._options = out, options

    def of(self, task: TaskSource) -> "Task":
        """The task in the order drawn, ended by this.

        Raises InputError for what cannot be audited, and where ``out`` holds an audit already.
        """
        from inspect_ai import task_with
        from inspect_ai.dataset import MemoryDataset

        journal = _journal(self._out)
        if journal is not None and journal.exists():
            raise InputError(
                f"inspect: out: expected a folder without an audit, as Inspect begins a task anew, "
                f"got {str(self._out)!r}; name another"
            )
        made = _made(task)
        # One target alone: with several, draws turn to those that are open. Uniform draws follow
        # from the audit's key, so an audit that is told nothing draws as the one that learns.
        pool = _pool(made, by=())
        certified = _certified(pool, self._half_width, self._cohort, self._scorer)
        options = {"seed": fresh_seed(), **self._options, **certified, "strategy": "random"}
        with Audit(pool, **options) as ahead:
            order = [call.item for call in ahead.ask(pool.size)]
        self._audit = Audit(pool, journal=journal, **options)
        self._drawn: dict[str, int] = {}
        self._begun: dict[str, int] = {}
        samples = [made.dataset[item] for item in order]
        shuffled = MemoryDataset(samples, made.dataset.name, made.dataset.location, shuffled=True)
        return task_with(copy.copy(made), dataset=shuffled, early_stopping=self)

    async def start_task(self, task: "EvalSpec", samples: "list[Sample]", epochs: int) -> str:
        if epochs != 1:
            raise InputError(
                f"inspect: expected one epoch, as Inspect comes to a sample's second one after all "
                f"samples, got {epochs}; avtt.inspect.audit takes several"
            )
        self._audit.journal.set_facts(inspect={"task": task.task, "model": task.model})
        return "adaptive_vtt"

    async def schedule_sample(self, id: str | int, epoch: int) -> "EarlyStop | None":
        """None where the sample is to be evaluated."""
        from inspect_ai.util import EarlyStop

        while str(id) not in self._drawn:
            calls = self._audit.ask()
            if not calls:
                return EarlyStop(id=id, epoch=epoch, reason=self._audit.stopped)
            self._drawn |= {call.prompt.sample_id: call.number for call in calls}
        self._begun[str(id)] = self._drawn[str(id)]
        return None

    async def complete_sample(
        self, id: str | int, epoch: int, scores: "dict[str, SampleScore]"
    ) -> None:
        found = {name: score.score for name, score in scores.items()}
        loss = score_loss(found, self._scorer, f"inspect: sample {id!r}")
        number = self._begun.pop(str(id))
        self._audit.tell(number, Unanswered("no score") if loss is None else loss)

    async def complete_task(self) -> JsonObject:
        """Where every target stands, for Inspect's log."""
        with self._audit as audit:
            failed = Unanswered("Inspect ended it with an error")
            audit.tell_all((number, failed) for number in self._begun.values())
            self.result = audit.result()
            if self._out is not None:
                self.result.save(self._out)
            rows = [status.row() for status in audit.statuses()]
            return {"intervals": rows or None, "stopped": audit.stopped}


# -- tasks and their samples -----------------------------------------------------------------------


def _made(task: TaskSource) -> "Task":
    """The task, whose samples have ids, as Inspect gives them: from 1 on."""
    with needed("inspect", "Inspect needs inspect-ai"):
        from inspect_ai import Task
    made = task if isinstance(task, Task) or not callable(task) else task()
    if not isinstance(made, Task):
        raise InputError(
            f"inspect: expected a task of Inspect or a function that makes one, got {made!r:.80}; "
            "import the task that a name stands for"
        )
    for number, sample in enumerate(made.dataset, 1):
        sample.id = number if sample.id is None else sample.id
    return made


def _pool(task: "Task", by: Sequence[str] | None) -> Pool:
    groups = _groups([sample.metadata or {} for sample in task.dataset], by)
    ids = [str(sample.id) for sample in task.dataset]
    return Pool(len(ids), groups=groups, ids=ids, name=task.name)


def _groups(
    metadata: Sequence[Mapping[str, Any]], by: Sequence[str] | None
) -> "pd.DataFrame | None":
    """A row per sample, "none" where it lacks a value; None where there is nothing to group by."""
    import pandas as pd

    columns: dict[str, list[str]] = {}
    for name in {name: None for row in metadata for name in row}:
        found = [row.get(name) for row in metadata]
        columns[name] = ["none" if value is None else str(value) for value in found]
    if by is None:
        by = [name for name in columns if 2 <= len({*columns[name]}) <= MOST_VALUES]
    for name in by:
        if name not in columns:
            raise unknown("name of metadata", name, columns, "inspect: by")
    return pd.DataFrame({name: columns[name] for name in by}) if by else None


def _certified(
    pool: Pool, half_width: float, cohort: Cohort | Iterable[Path | str], scorer: str | None
) -> dict[str, Any]:
    """The options of the audit that say what is certified, and by which predictions."""
    found = cohort if isinstance(cohort, Cohort) else Cohort.from_inspect(*cohort, scorer=scorer)
    targets = ["overall", *(f"group:{column}" for column in pool.dataset.metadata_columns)]
    return {"half_width": half_width, "targets": targets, "cohort": found if len(found) else None}


def _journal(out: Path | str | None) -> Path | None:
    return None if out is None else Path(out) / JOURNAL


def _pattern(sample: str | int) -> str | int:
    """An id that Inspect, which takes texts for patterns, finds this sample alone by."""
    return glob.escape(sample) if isinstance(sample, str) else sample


def _costs(log: "EvalLog", asked: "Sequence[list[EvalSample]]") -> list[float]:
    """Return the cost of each sample in all its epochs. A sample's own usage is that of its last
    attempt; what the log's totals hold beyond is shared among samples by their failed attempts."""
    costs = [sum(_cost(sample.model_usage) for sample in epochs) for epochs in asked]
    failed = [sum(len(sample.error_retries or ()) for sample in epochs) for epochs in asked]
    beyond = max(0.0, _cost(log.stats.model_usage) - sum(costs))
    weights = failed if any(failed) else [1] * len(asked)
    shares = [beyond * weight / sum(weights) for weight in weights]
    return [cost + share for cost, share in zip(costs, shares, strict=True)]


def _cost(usage: "Mapping[str, ModelUsage]") -> float:
    return sum(one.total_cost or 0.0 for one in usage.values())


def _epochs(epochs: Any) -> int:
    return int(getattr(epochs, "epochs", epochs) or 1)


def _why(sample: "EvalSample") -> str:
    return "no score" if sample.error is None else _line(sample.error.message)


def _line(message: str) -> str:
    return " ".join(message.split())
