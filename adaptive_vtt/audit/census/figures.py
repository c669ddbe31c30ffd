"""What follows from all answers: exact rates, figures per perturbation and class.

Rates are exact for the questions there are. For the images they stand for, as far as those were
drawn at random from where others will come from, every rate has an interval (Clopper and Pearson,
1934, at 95 % each by itself) that counts each image as one answer: what an image loses varies no
more than a coin of the same mean does.
"""

import json
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...certify import named_targets
from ...certify.derived import Bounds, Figure
from ...certify.derived import figures as derived
from ...certify.targets import Target, fingerprint
from ...engine.options import Filters
from ...engine.settings import describe_space
from ...journal.facts import SpaceFacts
from ...results.census import CONFIDENCE, PAGE, TOLD, page
from ...results.outcomes import clopper_pearson
from ...space import QuestionSpace
from ...types import Floats, Indices, JsonObject
from ...utils.files import write_text
from ...utils.tables import write_tables
from .everything import MAX_CALLS, members
from .per_class import of_concepts, of_variant

FOR_PAPER = {"rates": ("target", "questions", "unanswered", "images", "exact", "lower", "upper")}
"""Columns of the rates that a page of LaTeX has room for, where it has none for all."""
MAX_TARGETS = 2000
"""Relations by concepts are left out where they would be more."""
MAX_VALUES = 30
"""Metadata columns of more values than this, or of one, say nothing of groups."""


class CensusResult:
    """A census, answered. ``model``: its name; ``calls``: how many were made; ``head``: the last
    seal of the record. Tables are made when they are asked for.
    """

    def __init__(
        self,
        space: QuestionSpace,
        answers: pd.DataFrame,
        *,
        model: str,
        calls: int,
        head: str,
        targets: Iterable[str] = (),
        where: Filters | None = None,
    ) -> None:
        self.space = space
        self.model = model
        self.calls = calls
        self.head = head
        self._answers = answers
        self._named, self._where = tuple(targets), where

    @cached_property
    def outcomes(self) -> pd.DataFrame:
        """One row per judged question: question, sample, relation, severity, concept, truth,
        answer (NaN: none), loss (NaN: it does not count), unanswered (why, or ""), said."""
        sample, variant, concept = self.space.parts(self._questions)
        there = self.space.variants
        names = [v.relation.name for v in there]
        relations = pd.Index([*dict.fromkeys(names)])
        at, row = np.unique(sample, return_inverse=True)
        ids = pd.Index([self.space.dataset.sample_id(int(s)) for s in at])
        named: dict[str, Any] = {
            "sample": pd.Categorical.from_codes(row, ids),
            "relation": pd.Categorical.from_codes(
                relations.get_indexer(pd.Index(names))[variant], relations
            ),
            "severity": np.array([v.severity for v in there])[variant],
            "concept": pd.Categorical.from_codes(concept, pd.Index(self.space.concepts)),
        }
        found = self._answers[["question"]].assign(**named)
        return found.join(self._answers.drop(columns="question"))

    @cached_property
    def rates(self) -> pd.DataFrame:
        """One row per target: what it is called and is about (``families``), its ``exact``
        mean loss, ``questions``, ``unanswered`` ones among them, ``images``, and ``lower`` and
        ``upper``, an interval for images of which these are a random sample."""
        sums, count, silent, images = self._sums()
        rate = np.where(count > 0, sums / np.maximum(count, 1), np.nan)
        lower, upper = clopper_pearson(rate, images, CONFIDENCE)
        found = pd.DataFrame([{"target": t.name, **t.id.columns()} for t in self.targets])
        counts = {"questions": count, "unanswered": silent, "images": images}
        return found.assign(exact=rate, **counts, lower=lower, upper=upper)

    @cached_property
    def targets(self) -> list[Target]:
        """Every kind there is, and those asked for; two of the same questions are one."""
        kept: dict[str, Target] = {}
        for name in dict.fromkeys(self._names()):
            for target in named_targets(self.space, [name], self._where):
                kept.setdefault(fingerprint([target]), target)
        return list(kept.values())

    @cached_property
    def perturbations(self) -> pd.DataFrame:
        """One row per relation and severity: questions, unanswered, error (the mean loss), and
        where answers are yes or no what people know of classifiers: accuracy, balanced accuracy,
        precision, recall, F1, Cohen's kappa and AUC. Where every image has one class they are those
        of the class with the largest answer, means over classes; else means over concepts."""
        pairs = zip(self.space.variants, self._per_class, strict=True)
        rows = [of_variant(self.outcomes, self.space, v, each) for v, each in pairs]
        return _without_empty(pd.DataFrame(rows))

    @cached_property
    def classes(self) -> pd.DataFrame:
        """The same per relation, severity and concept. ``note`` says where no image has it."""
        return _without_empty(pd.concat(self._per_class, ignore_index=True))

    @cached_property
    def derived(self) -> pd.DataFrame:
        """Balanced accuracy, kappa, BE and the like, as they follow from the rates: quantity,
        value, note."""
        rows = [(f.name, float(f.bounds.estimate), f.note) for f in self._figures]
        return pd.DataFrame(rows, columns=["quantity", "value", "note"])

    def tables(self) -> dict[str, pd.DataFrame]:
        """All of them by name, as they are saved."""
        found = {"rates": self.rates, "perturbations": self.perturbations, "classes": self.classes}
        if len(self.derived):
            found["derived"] = self.derived
        return found

    def to_dict(self) -> JsonObject:
        """For JSON; what is unknown is null."""
        tables = {
            name: json.loads(table.to_json(orient="records", double_precision=15))
            for name, table in self.tables().items()
        }
        return {
            "census": self.space.dataset.name,
            "model": self.model,
            "calls": self.calls,
            "questions": len(self._answers),
            "head": self.head,
            **tables,
        }

    def save(self, folder: Path | str) -> Path:
        """Writes census.json, census.html and every table as tables/NAME.csv and .tex; gives the
        page's path."""
        folder, told = Path(folder), self.to_dict()
        write_text(folder / TOLD, json.dumps(told, indent=1) + "\n")
        write_tables(folder, self.tables(), FOR_PAPER)
        write_text(folder / PAGE, page(told))
        return folder / PAGE

    # -- what tables are made of -----------------------------------------------------------

    @property
    def _questions(self) -> Indices:
        return self._answers["question"].to_numpy(np.int64)

    def _names(self) -> Iterator[str]:
        space = self.space
        yield "overall"
        if space.oracle.concepts_are == "classes":
            yield "misclassified"
        yield from ("relations", "concepts")
        for column in space.dataset.metadata_columns:
            if 1 < len({*space.dataset.metadata_values(column).tolist()}) <= MAX_VALUES:
                yield f"group:{column}"
        yield from ("severities", *self._named)
        relations = len({v.relation.name for v in space.variants})
        if relations * len(space.concepts) * len(space.oracle.rates) <= MAX_TARGETS:
            yield "relation-sides"

    @cached_property
    def _figures(self) -> list[Figure]:
        ids = zip(self.targets, self.rates["exact"], strict=True)
        points = {t.id: Bounds(rate, rate, rate) for t, rate in ids}
        facts = SpaceFacts.model_validate(describe_space(self.space))
        return derived(facts, points)

    @cached_property
    def _per_class(self) -> list[pd.DataFrame]:
        """A table per variant: a row per concept."""
        return [of_concepts(self.outcomes, self.space, v) for v in self.space.variants]

    def _sums(self) -> tuple[Floats, Indices, Indices, Indices]:
        """(K,) each: losses, questions that count, unanswered ones, and images they are about."""
        loss = self._answers["loss"].to_numpy(float)
        silent = (self._answers["unanswered"] != "").to_numpy() & ~np.isnan(loss)
        sums = np.zeros((3, len(self.targets)))
        seen = np.zeros((len(self.targets), len(self.space.dataset)), bool)
        for start in range(0, len(loss), MAX_CALLS):
            part = slice(start, start + MAX_CALLS)
            counts = ~np.isnan(loss[part])
            inside = members(self.space, self.targets, self._questions[part]) & counts
            of = np.stack([np.where(counts, loss[part], 0.0), counts, silent[part]]).astype(float)
            sums += of @ inside.T
            sample = self.space.parts(self._questions[part])[0]
            for row, mine in zip(seen, inside, strict=True):
                row[sample[mine]] = True
        losses, *others = sums
        return losses, *(n.astype(np.int64) for n in others), seen.sum(axis=1)


def _without_empty(table: pd.DataFrame) -> pd.DataFrame:
    """Without columns that say nothing of any row, as of figures that answers have not."""
    silent = [c for c in table if table[c].isna().all() or (table[c] == "").all()]
    return table.drop(columns=silent)
