"""Three or more other models, from wherever what they lost was kept."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError
from ..space import QuestionSpace
from .members import Known, Member
from .readers import inspect_members, lm_eval_members, runs, table_members

if TYPE_CHECKING:
    import pandas as pd

MIN_MODELS = 3
"""Models that make a cohort: of fewer no spread can be learned."""


class Cohort:
    """Three or more models and what they lost, NaN where that is unknown: for ``Audit(cohort=)``.

    ``from_runs``, ``from_table``, ``from_inspect`` and ``from_lm_eval`` make one of what there is;
    ``+`` puts two together. Raises InputError for names that repeat.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = tuple(members)
        names = self.names
        again = next((name for name in names if names.count(name) > 1), None)
        if again is not None:
            raise InputError(
                f"cohort: expected every model once, got {again!r} twice; a model's own answers "
                "would count for two"
            )

    @property
    def names(self) -> list[str]:
        return [member.name for member in self.members]

    @property
    def keys(self) -> list[str | None]:
        """Those of the members' audits, None for members without a journal."""
        return [None if m.journal is None else m.journal.key for m in self.members]

    def __len__(self) -> int:
        return len(self.members)

    def __add__(self, other: "Cohort") -> "Cohort":
        return Cohort((*self.members, *other.members))

    def __repr__(self) -> str:
        return f"Cohort({', '.join(self.names)})"

    def on(self, space: QuestionSpace) -> list[Known]:
        """What is known of each member in a space.

        Raises InputError for fewer than three of which anything is known.
        """
        found = [member.on(space) for member in self.members]
        some = sum(len(known.questions) > 0 for known in found)
        if some < MIN_MODELS:
            raise InputError(
                f"cohort: expected {MIN_MODELS} models or more with losses on questions of this "
                f"space, got {some} ({len(self)} in all); samples, relations, severities and "
                "concepts go by the names that the dataset and [space] give them"
            )
        return found

    @classmethod
    def from_runs(cls, *folders: Path | str) -> "Cohort":
        """Of run folders or journals of earlier audits; a pattern such as "runs/*" is all that it
        matches. The name is the model's, and with it the folder's where models share one.

        Raises InputError where nothing matches, JournalError for a file that is no journal.
        """
        return cls(runs(folders))

    @classmethod
    def from_table(cls, table: "pd.DataFrame", *, scores: bool = False) -> "Cohort":
        """Of a table item x model of losses in [0, 1], or of ``scores``, 1 where all is right.

        Columns ``sample`` (else the index), ``relation``, ``severity`` and ``concept`` name the
        item, every other column is a model. NaN: unknown.
        """
        return cls(table_members(table, scores))

    @classmethod
    def from_inspect(cls, *logs: Path | str, scorer: str | None = None) -> "Cohort":
        """Of Inspect's logs (``.eval``), a model each, by inspect-ai's own reader.

        The sample's id is the question's or the dataset's sample; samples of ``avtt``'s own tasks
        say all in their metadata. ``scorer``: whose scores count, where there are several.
        """
        return cls(inspect_members(logs, scorer))

    @classmethod
    def from_lm_eval(
        cls, *files: Path | str, metric: str | None = None, item: str = "doc_id"
    ) -> "Cohort":
        """Of per-sample results of lm-evaluation-harness (``samples_*.jsonl``), a file or the
        folder of a model each.

        ``metric``: which field is the score, where there are several. ``item``: the field of a row,
        or of its ``doc``, that names the dataset's sample.
        """
        return cls(lm_eval_members(files, metric, item))
