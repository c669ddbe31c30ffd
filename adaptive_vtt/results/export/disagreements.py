"""Where two models differ: the follow-ups at which one lost more than the other, as a dataset."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError, unexpected
from ...journal import Journal
from ...journal.facts import Facts
from ...space import QuestionSpace
from ...types import JsonObject
from ..difference import names_of
from ..run import Run
from .failures import ANSWER_COLUMNS, Exported, Format, in_words, write_dataset
from .questions import judged_of

OF_BOTH = ("loss_a", "loss_b", "answer_a", "answer_b")
"""Columns of disagreements.csv in place of one model's answer and loss."""


@dataclass(frozen=True)
class Disagreements:
    """The counts of an export.

    Attributes:
        folder: Images, answers and masks that were written.
        better_a: Number of questions at which model A lost less.
        better_b: Number of questions at which model B lost less.
        names: The models' names.
    """

    folder: Exported
    better_a: int
    better_b: int
    names: tuple[str, str]

    def as_dict(self) -> JsonObject:
        """Return the counts for JSON."""
        counts = {"better_a": self.better_a, "better_b": self.better_b}
        models = dict(zip("ab", self.names, strict=True))
        return {**self.folder.as_dict(), **counts, "models": models}


def export_disagreements(
    source: Journal | Run,
    space: QuestionSpace,
    out: Path | str,
    *,
    formats: Collection[Format] = (),
) -> Disagreements:
    """Write the follow-ups at which one of two compared models lost more than the other.

    The folder is that of ``export_failures``, with disagreements.csv in place of failures.csv. It
    has a row per question: id, sample, relation, severity, concept, truth, loss_a, loss_b,
    answer_a, answer_b, draw, and the metadata of the source image. A is the old model and B the
    new one. An answer is empty if there was none, and a mask's score for masks. The loss in a
    questions.tsv is the new model's.

    Args:
        source: A comparison's run or journal (``versus.audit.journal``).
        space: Its space (``versus.space``).
        out: The folder, new or empty.
        formats: Further files.

    Raises:
        InputError: One model alone was asked, or the models lost alike everywhere; else as
            ``export_failures``.
    """
    run = Run.of(source)
    check_paired(run.facts)
    rows = (row for call in run.calls for row in call.answers if not row.excluded)
    lost = {row.question: row.details for row in rows if row.details is not None}
    differing = [q for q, both in lost.items() if both["a"]["loss"] != both["b"]["loss"]]
    table = judged_of(run, space)
    table = table[table["question"].isin(differing)]
    if table.empty:
        raise InputError("export: the models lost alike at every question that was asked")
    pairs = [lost[question] for question in table["question"].tolist()]
    for model in ("a", "b"):
        answers = [both[model]["said"] for both in pairs]
        answers = [None if isinstance(each, dict) else each for each in answers]  # no answer
        losses = [both[model]["loss"] for both in pairs]
        table = table.assign(**{f"loss_{model}": losses, f"answer_{model}": answers})
    table = table.assign(loss=table["loss_b"])  # else it is that of the pair
    table, words = in_words(table, run)
    columns = [name for name in ANSWER_COLUMNS if name not in ("answer", "loss", "draw")]
    columns += [*OF_BOTH, "draw", *(word for word in words if word != "said")]
    written = write_dataset(space, table, Path(out), "disagreements.csv", columns, formats)
    less = int((table["loss_a"] < table["loss_b"]).sum())
    return Disagreements(written, less, len(table) - less, names_of(run.facts))


def check_paired(facts: Facts) -> None:
    """Raise InputError for a journal that does not hold the answers of two models."""
    if facts.certificate is None or not facts.certificate.paired:
        wanted = "a comparison in which both models were asked ('avtt versus' without --recorded-a)"
        remedy = "--failures has where that one erred"
        raise unexpected("export", wanted, "answers of one model", remedy)
