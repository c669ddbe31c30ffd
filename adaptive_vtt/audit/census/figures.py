"""What follows from all answers: exact rates, figures per perturbation and class, papers' tables.

Rates are exact for the questions there are. For the images they stand for, as far as those were
drawn at random from where others will come from, every rate has an interval (Clopper and Pearson,
1934, at 95 % each by itself) that counts each image as one answer: what an image loses varies no
more than a coin of the same mean does.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from ...certify import named_targets
from ...certify.derived import Bounds
from ...certify.derived import figures as derived
from ...certify.targets import Target, fingerprint
from ...datasets.vqa.taxonomy import TASKS
from ...engine.options import Filters
from ...engine.settings import describe_oracle, describe_space
from ...families import OfRelation
from ...journal.facts import SpaceFacts
from ...results.census import CONFIDENCE, PAGE, TOLD, page
from ...results.outcomes import clopper_pearson, confusion
from ...results.report import endobench_beside, medtest_beside, published
from ...space import QuestionSpace
from ...types import Floats, Indices, JsonObject
from ...utils.files import write_text
from ...utils.tables import write_tables
from .everything import MAX_CALLS, members

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
        return _without_empty(pd.DataFrame([*self._perturbed()]))

    @cached_property
    def classes(self) -> pd.DataFrame:
        """The same per relation, severity and concept. ``note`` says where no image has it."""
        return _without_empty(pd.concat(self._per_class, ignore_index=True))

    @cached_property
    def derived(self) -> pd.DataFrame:
        """Balanced accuracy, kappa, BE and the like, as they follow from the rates: quantity,
        value, note."""
        ids = zip(self.targets, self.rates["exact"], strict=True)
        points = {t.id: Bounds(rate, rate, rate) for t, rate in ids}
        facts = SpaceFacts.model_validate(describe_space(self.space))
        self._figures = derived(facts, points)
        rows = [(f.name, float(f.bounds.estimate), f.note) for f in self._figures]
        return pd.DataFrame(rows, columns=["quantity", "value", "note"])

    @cached_property
    def beside(self) -> dict[str, pd.DataFrame]:
        """The papers' tables that this census has rows of, in their order: by paper, ours first and
        then each published model (NaN: not published)."""
        made = {
            "medtest": self._beside(self._medtest) if self._binary else self._classified(),
            "medmnistc": self._medmnistc(),
            "reic": self._beside(self._reic),
            "endobench": self._endobench(),
        }
        return {paper: table for paper, table in made.items() if len(table)}

    def tables(self) -> dict[str, pd.DataFrame]:
        """All of them by name, as they are saved."""
        found = {"rates": self.rates, "perturbations": self.perturbations, "classes": self.classes}
        if len(self.derived):
            found["derived"] = self.derived
        return found | {f"beside-{paper}": table for paper, table in self.beside.items()}

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
        write_tables(folder, self.tables())
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

    @cached_property
    def _per_class(self) -> list[pd.DataFrame]:
        """A table per variant: a row per concept."""
        return [self._of_variant(variant) for variant in range(len(self.space.variants))]

    def _of_variant(self, number: int) -> pd.DataFrame:
        mine = self._where_asked(number)
        told = mine.assign(answer=mine["answer"].where(mine["unanswered"] == ""))
        counts = confusion(told.assign(concept=told["concept"].astype(str)), "concept")
        counts = counts.reindex([str(concept) for concept in self.space.concepts])
        present, absent = counts["tp"] + counts["fn"], counts["tn"] + counts["fp"]
        by_concept = mine.groupby("concept", observed=False)
        variant = self.space.variants[number]
        found = pd.DataFrame(
            {
                "relation": variant.relation.name,
                "severity": variant.severity,
                "concept": list(self.space.concepts),
                "questions": by_concept.size().to_numpy(),
                "unanswered": counts["unanswered"].to_numpy(),
                "error": by_concept["loss"].mean().to_numpy(),
                "precision": counts["precision"].to_numpy(),
                "recall": counts["sensitivity"].to_numpy(),
                "specificity": counts["specificity"].to_numpy(),
                "f1": counts["f1"].to_numpy(),
                "kappa": counts["kappa"].to_numpy(),
                "auc": [auc(part) for _, part in by_concept],
            }
        )
        missing = np.where((present == 0) & (absent > 0), "no image has it", "")
        return found.assign(note=missing)

    def _where_asked(self, variant: int) -> pd.DataFrame:
        chosen = self.space.variants[variant]
        table = self.outcomes
        here = (table["relation"] == chosen.relation.name) & (table["severity"] == chosen.severity)
        return table[here & table["loss"].notna()]

    def _perturbed(self) -> Iterator[dict[str, object]]:
        classes = self.space.oracle.concepts_are == "classes"
        for number, variant in enumerate(self.space.variants):
            mine, by_class = self._where_asked(number), self._per_class[number]
            row = {
                "relation": variant.relation.name,
                "severity": variant.severity,
                "questions": len(mine),
                "unanswered": int((mine["unanswered"] != "").sum()),
                "error": float(mine["loss"].mean()),
            }
            yield row | (_one_class(mine) if classes else _means(by_class))

    # -- beside what was published ----------------------------------------------------------

    def _beside(self, published_of: Any) -> pd.DataFrame:
        """A row per target of which something was published."""
        rows = []
        for target, rate in zip(self.targets, self.rates["exact"], strict=True):
            known: Mapping[str, float] = published_of(target)
            if known:
                rows.append({"target": target.name, "ours": rate, **known})
        return pd.DataFrame(rows)

    def _medtest(self, target: Target) -> Mapping[str, float]:
        if not self._all_of(medtest_beside.FAMILY):
            return {}
        oracle = describe_oracle(self.space)
        name, metric = oracle["name"], oracle.get("metric")
        return medtest_beside.rates(target.id, self.space.concepts, name, metric)

    @property
    def _binary(self) -> bool:
        """Whether an image misclassified is every answer about it."""
        return self.space.oracle.concepts_are != "classes" or len(self.space.concepts) <= 2

    def _classified(self) -> pd.DataFrame:
        """MedTest's shares of images misclassified, of more than two classes."""
        found = self.perturbations
        if not self._all_of(medtest_beside.FAMILY) or "accuracy" not in found:
            return pd.DataFrame()
        means = found.groupby("relation", sort=False)["accuracy"].mean()
        return pd.DataFrame(
            {"target": f"relation {name}: misclassified", "ours": 1 - accuracy, **known}
            for name, accuracy in means.items()
            if (known := medtest_beside.misclassified(str(name)))
        )

    def _reic(self, target: Target) -> Mapping[str, float]:
        if not isinstance(target.id, OfRelation) or not self._all_of(published.REIC):
            return {}
        return published.violation_rates(target.id.relation.removeprefix(published.REIC))

    def _all_of(self, family: str) -> bool:
        names = {v.relation.name for v in self.space.variants} - {"identity"}
        return bool(names) and all(name.startswith(family) for name in names)

    def _medmnistc(self) -> pd.DataFrame:
        table = published.published_tables("medmnistc")
        known = len(self.derived) and published.medmnistc_figures(self._figures)
        rows = [
            {"row": what, "ours": float(b.estimate)}
            | dict(zip(table["models"], table["rows"][what], strict=True))
            for what, b in (known or {}).items()
        ]
        return pd.DataFrame(rows)

    def _endobench(self) -> pd.DataFrame:
        point = self.rates["exact"]
        found = endobench_beside.beside(self.rates.assign(estimate=point, lower=point, upper=point))
        return found.drop(columns=["lower", "upper"]) if self._asks_endobench() else found[:0]

    def _asks_endobench(self) -> bool:
        return not {task.name for task in TASKS}.isdisjoint(self.space.concepts)


def auc(part: pd.DataFrame) -> float:
    """Of answers (P(yes)) for truths: the share of pairs in the right order (Mann and Whitney);
    NaN where a truth is missing, or no answer is a number."""
    told = part[part["answer"].notna()]
    yes = (told["truth"] == 1).to_numpy()
    pairs = int(yes.sum()) * int((~yes).sum())
    if not pairs:
        return float("nan")
    ranks = rankdata(told["answer"].to_numpy())[yes]
    return float((ranks.sum() - len(ranks) * (len(ranks) + 1) / 2) / pairs)


def _one_class(mine: pd.DataFrame) -> dict[str, float]:
    """Figures of the class with the largest answer, where every image has one. An image of which
    no class was answered is given none."""
    images = mine.assign(sample=mine["sample"].astype(str))
    answers = images.pivot(index="sample", columns="concept", values="answer").to_numpy(float)
    truths = images.pivot(index="sample", columns="concept", values="truth").to_numpy()
    count, right = truths.shape[1], truths.argmax(axis=1)
    given = np.where(
        np.isnan(answers).all(axis=1), count, np.nan_to_num(answers, nan=-np.inf).argmax(axis=1)
    )
    table = np.zeros((count, count + 1))
    np.add.at(table, (right, given), 1)
    total, hits = table.sum(), table[:, :count].diagonal()
    there, said = table.sum(axis=1), table.sum(axis=0)[:count]
    chance = float(there @ said) / total**2
    accuracy = hits.sum() / total
    with np.errstate(invalid="ignore", divide="ignore"):
        recall, precision = hits / there, np.where(said > 0, hits / said, 0.0)
        f1 = np.where(there + said > 0, 2 * hits / (there + said), np.nan)
    known = there > 0
    areas = [auc(part) for _, part in mine.groupby("concept", observed=True)]
    return {
        "accuracy": float(accuracy),
        "balanced accuracy": float(recall[known].mean()),
        "precision": float(precision[known].mean()),
        "recall": float(recall[known].mean()),
        "f1": float(f1[known].mean()),
        "kappa": float((accuracy - chance) / (1 - chance)) if chance < 1 else float("nan"),
        "auc": float(np.nanmean(areas)) if not np.isnan(areas).all() else float("nan"),
    }


def _means(by_class: pd.DataFrame) -> dict[str, float]:
    """Over concepts of which the figure is known."""
    balanced = (by_class["recall"] + by_class["specificity"]) / 2
    names = ("precision", "recall", "f1", "kappa", "auc")
    means = {name: float(by_class[name].mean()) for name in names}
    return {"balanced accuracy": float(balanced.mean()), **means}


def _without_empty(table: pd.DataFrame) -> pd.DataFrame:
    """Without columns that say nothing of any row, as of figures that answers have not."""
    silent = [c for c in table if table[c].isna().all() or (table[c] == "").all()]
    return table.drop(columns=silent)
