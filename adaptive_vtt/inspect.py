"""Certify a model's error on a task of Inspect with few samples (https://inspect.aisi.org.uk).

``audit`` lets Inspect evaluate the samples that an audit draws, a batch at a time.
``CertifiedStop`` ends an evaluation that Inspect runs by itself. In both, samples are items of a
``Pool``, and the loss of an item is 1 - its score. They need inspect-ai (the extra ``inspect``).
"""

import copy
import glob
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from .audit import Audit
from .audit.one_line import HALF_WIDTH
from .audit.progress import Hooks
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
    from inspect_ai import Task
    from inspect_ai.dataset import Sample
    from inspect_ai.log import EvalLog, EvalSample, EvalSpec
    from inspect_ai.model import Model, ModelUsage
    from inspect_ai.scorer import SampleScore
    from inspect_ai.util import EarlyStop

TaskSource: TypeAlias = "Task | Callable[[], Task]"
__all__ = ["CertifiedStop", "InspectTask", "audit"]

BATCH = 20
"""Default number of samples that are evaluated together; each batch writes a log."""
MOST_VALUES = 10
"""Most values of metadata that are groups by default."""
RESERVED = ("limit", "sample_id", "sample_shuffle", "run_samples", "score", "log_samples")
"""Arguments of Inspect's ``eval`` that choose samples, or that leave them without scores."""


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
    """Certify a model's error on a task, 1 - its mean score, as a whole and by groups of samples.

    Only as many samples are evaluated as the precision takes. A sample without a score counts as a
    loss of 1.

    Args:
        task: An Inspect task, or a function that makes one.
        model: The model, as Inspect's ``eval`` takes it.
        half_width: Half-width of the intervals to reach, in (0, 0.5).
        cohort: Logs of three or more other models on the task, folders of logs, or a Cohort.
        by: Names of metadata whose values are groups. Default: all with two to ten values. With ()
            only the whole task is certified, which takes fewer samples.
        scorer: Name of the scorer to use, if there are several; its scores are numbers in [0, 1] or
            grades.
        out: Folder for journal, result and report, and for Inspect's logs in ``logs``. An audit in
            it with the same settings is resumed. Default: Inspect writes logs to its own folder,
            and nothing else is kept.
        on_progress: See ``Audit.run``.
        options: Options of ``Audit`` (``budget``, ``confidence``, ``seed``, ``batch`` ...); all
            others are passed to Inspect's ``eval`` (``token_limit``, ``epochs``, ``log_dir`` ...).
            ``max_cost`` needs Inspect's ``cost_limit``, the most that a sample may cost.

    Returns:
        The result of the audit.

    Raises:
        InputError: The task cannot be audited.
        ModelError: Inspect ended a batch before all its samples.
    """
    of_audit = {name: options.pop(name) for name in {*options} & {*Shorthands.__annotations__}}
    if out is not None:
        options.setdefault("log_dir", str(Path(out) / "logs"))
    evaluated = InspectTask(_task_of(task), model, scorer, options)
    if "max_cost" in of_audit and evaluated.most_cost is None:
        expected = "expected cost_limit, too, the most that a sample may cost"
        raise InputError(f"inspect: max_cost: {expected}, as nothing else keeps the cap; got none")
    pool = _pool(evaluated.task, by)
    of_audit = {"batch": BATCH, **_certified(pool, half_width, cohort, scorer), **of_audit}
    with Audit(pool, evaluated, journal=_journal(out), **of_audit) as running:
        result = running.run(on_progress)
    if out is not None:
        result.save(out)
    return result


class InspectTask(ModelDefaults):
    """Model whose answers are the losses of a task's samples, evaluated by Inspect's ``eval``.

    No key is checked beforehand, as no nets are trained on a pool first.

    Args:
        task: The task.
        model: The model, as Inspect's ``eval`` takes it.
        scorer: Name of the scorer to use; None: the only one.
        options: Options of ``eval``.

    Raises:
        InputError: An option is one of ``RESERVED``, or there are several models.
    """

    answers: CallMode = "one"
    needs_image = False
    takes_words = True
    gives_losses = True

    def __init__(
        self, task: "Task", model: "str | Model", scorer: str | None, options: Mapping[str, Any]
    ) -> None:
        reserved = [name for name in RESERVED if name in options]
        if reserved:
            expected = "inspect: expected samples to be chosen and scored by the audit"
            raise InputError(f"{expected}, got {reserved[0]}; leave it out")
        if isinstance(model, list | tuple) or "," in str(model):
            raise InputError(f"inspect: model: expected one model, got {model!r:.80}")
        self.task, self.scorer = task, scorer
        self.name, self._model = str(model), model
        self._options = {"display": "none", "fail_on_error": False, **options}
        self._ids = {str(sample.id): sample.id for sample in task.dataset}
        cost, retries = options.get("cost_limit"), int(options.get("retry_on_error") or 0)
        if cost is not None:  # the limit is that of each attempt at a sample
            epochs: Any = options.get("epochs", task.epochs)
            self.most_attempts = int(getattr(epochs, "epochs", epochs) or 1) * (1 + retries)
            self.most_cost = float(cost) * self.most_attempts

    def content(self) -> str:
        """Return a hash of the samples."""
        texts = [s.model_dump(mode="json", include={"input", "target"}) for s in self.task.dataset]
        return CONTENT + hashlib.blake2b(json.dumps(texts).encode(), digest_size=8).hexdigest()

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        from inspect_ai import eval as inspect_eval

        ids = [self._ids[prompt.sample_id] for prompt in prompts]
        # Inspect reads texts as patterns
        ids = [glob.escape(name) if isinstance(name, str) else name for name in ids]
        (log,) = inspect_eval(self.task, model=self._model, sample_id=ids, **self._options)
        samples: dict[str, list[EvalSample]] = {}  # the epochs of each
        for sample in log.samples or ():
            samples.setdefault(str(sample.id), []).append(sample)
        missing = [prompt.sample_id for prompt in prompts if prompt.sample_id not in samples]
        if missing:
            why = "" if log.error is None else f": {_line(log.error.message)}"
            raise ModelError(
                f"inspect: {log.location}: expected all of {len(ids)} samples to be evaluated, got "
                f"none of {listed(missing)} ({log.status}{why})"
            )
        evaluated = [samples[prompt.sample_id] for prompt in prompts]
        pairs = zip(evaluated, _costs(log, evaluated), strict=True)
        return [self._loss(epochs, log.location, cost) for epochs, cost in pairs]

    def _loss(self, epochs: "list[EvalSample]", where: str, cost: float) -> Answer | Unanswered:
        """Return the mean loss over the epochs of a sample."""
        losses = []
        for sample in epochs:
            place = f"inspect: {where}, sample {sample.id!r}"
            loss = score_loss(sample.scores or {}, self.scorer, place)
            if loss is None:
                why = "no score" if sample.error is None else _line(sample.error.message)
                return Unanswered(why, cost)
            losses.append(loss)
        return Answer((sum(losses) / len(losses),), cost)


class CertifiedStop:
    """Inspect's ``EarlyStopping`` that ends an evaluation once the task's error is certified.

    ``eval(CertifiedStop(half_width=0.05).of(task), model=...)`` evaluates samples as Inspect always
    does, in a uniformly random order that the audit draws beforehand. Predictions from a cohort are
    control variates and change no draw. ``result`` is set when the evaluation has ended.

    A sample that ends with an error counts as a loss of 1, once the evaluation has ended. Until
    then no later sample is learnt from, so the evaluation may not stop early: set
    ``retry_on_error``.

    Args:
        half_width: Half-width of the interval to reach, in (0, 0.5).
        cohort: As ``audit`` takes it.
        scorer: As ``audit`` takes it.
        out: As ``audit`` takes it.
        options: Options of ``Audit`` (``confidence``, ``seed`` ...) that do not choose questions.
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
        """Return the task with its samples in the order drawn, and with this early stopping.

        Raises:
            InputError: The task cannot be audited, or ``out`` has an audit already.
        """
        from inspect_ai import task_with
        from inspect_ai.dataset import MemoryDataset

        journal = _journal(self._out)
        if journal is not None and journal.exists():
            expected = "inspect: out: expected a folder without an audit, as Inspect cannot resume"
            raise InputError(f"{expected}, got {str(self._out)!r}; name another")
        task = _task_of(task)
        # One target alone: with several, draws turn to those that are open. Uniform draws follow
        # from the audit's key, so an audit without answers draws as the one that learns.
        pool = _pool(task, by=())
        certified = _certified(pool, self._half_width, self._cohort, self._scorer)
        options = {"seed": fresh_seed(), **self._options, **certified, "strategy": "random"}
        with Audit(pool, **options) as ahead:
            order = [call.item for call in ahead.ask(pool.size)]
        self._audit = Audit(pool, journal=journal, **options)
        self._drawn: dict[str, int] = {}  # sample -> number of its call
        self._begun: dict[str, int] = {}  # the same, of samples that are being evaluated
        samples = [task.dataset[item] for item in order]
        shuffled = MemoryDataset(samples, task.dataset.name, task.dataset.location, shuffled=True)
        return task_with(copy.copy(task), dataset=shuffled, early_stopping=self)

    async def start_task(self, task: "EvalSpec", samples: "list[Sample]", epochs: int) -> str:
        if epochs != 1:
            expected = "inspect: expected one epoch, as Inspect evaluates second ones at the end"
            raise InputError(f"{expected}, got {epochs}; avtt.inspect.audit takes several")
        self._audit.journal.set_facts(inspect={"task": task.task, "model": task.model})
        return "adaptive_vtt"

    async def schedule_sample(self, id: str | int, epoch: int) -> "EarlyStop | None":
        """Return None if the sample is to be evaluated."""
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
        values = {name: score.score for name, score in scores.items()}
        loss = score_loss(values, self._scorer, f"inspect: sample {id!r}")
        number = self._begun.pop(str(id))
        self._audit.tell(number, Unanswered("no score") if loss is None else loss)

    async def complete_task(self) -> JsonObject:
        """Return the status of every target, for Inspect's log."""
        with self._audit as audit:
            failed = Unanswered("Inspect ended it with an error")
            audit.tell_all((number, failed) for number in self._begun.values())
            self.result = audit.result()
            if self._out is not None:
                self.result.save(self._out)
            rows = [status.row() for status in audit.statuses()]
            return {"intervals": rows or None, "stopped": audit.stopped}


# -- tasks and their samples -----------------------------------------------------------------------


def _task_of(source: TaskSource) -> "Task":
    """Return the task; samples without ids get the numbers that Inspect gives them, from 1."""
    with needed("inspect", "Inspect needs inspect-ai"):
        from inspect_ai import Task
    task = source if isinstance(source, Task) or not callable(source) else source()
    if not isinstance(task, Task):
        expected = "inspect: expected a task of Inspect or a function that makes one"
        raise InputError(f"{expected}, got {task!r:.80}; import the task that a name stands for")
    for number, sample in enumerate(task.dataset, 1):
        sample.id = number if sample.id is None else sample.id
    return task


def _pool(task: "Task", by: Sequence[str] | None) -> Pool:
    """Return the samples as a pool, grouped by metadata; "none" if a sample has no value."""
    import pandas as pd

    rows = [
        {n: str(v) for n, v in (s.metadata or {}).items() if v is not None} for s in task.dataset
    ]
    columns = pd.DataFrame(rows, index=range(len(rows))).fillna("none")
    names = list(map(str, columns))
    if by is None:
        by = [name for name in names if 2 <= columns[name].nunique() <= MOST_VALUES]
    for name in by:
        if name not in names:
            raise unknown("name of metadata", name, names, "inspect: by")
    ids = [str(sample.id) for sample in task.dataset]
    return Pool(len(ids), groups=columns[list(by)] if by else None, ids=ids, name=task.name)


def _certified(
    pool: Pool, half_width: float, cohort: Cohort | Iterable[Path | str], scorer: str | None
) -> dict[str, Any]:
    """Return the options of the audit that define its targets and predictions."""
    if not isinstance(cohort, Cohort):
        cohort = Cohort.from_inspect(*cohort, scorer=scorer)
    targets = ["overall", *(f"group:{column}" for column in pool.dataset.metadata_columns)]
    return {"half_width": half_width, "targets": targets, "cohort": cohort if len(cohort) else None}


def _journal(out: Path | str | None) -> Path | None:
    return None if out is None else Path(out) / JOURNAL


def _costs(log: "EvalLog", evaluated: "Sequence[list[EvalSample]]") -> list[float]:
    """Return the cost of each sample in all its epochs.

    The usage of a sample is that of its last attempt. The rest of the log's total cost is divided
    among samples by their failed attempts.
    """
    costs = [sum(_cost(sample.model_usage) for sample in epochs) for epochs in evaluated]
    failed = [sum(len(sample.error_retries or ()) for sample in epochs) for epochs in evaluated]
    rest = max(0.0, _cost(log.stats.model_usage) - sum(costs))
    weights = failed if any(failed) else [1] * len(evaluated)
    shares = [rest * weight / sum(weights) for weight in weights]
    return [cost + share for cost, share in zip(costs, shares, strict=True)]


def _cost(usage: "Mapping[str, ModelUsage]") -> float:
    return sum(of_model.total_cost or 0.0 for of_model in usage.values())


def _line(message: str) -> str:
    return " ".join(message.split())
