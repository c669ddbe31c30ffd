"""What an audit believed as it went on, as tables, from its journal alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self, get_args

import numpy as np
import pandas as pd

from ...certify.tracks import Track, tracks
from ...errors import check_known
from ...journal import Journal
from ...journal.belief_groups import Believed, Group, Groups, Kind, column, of_images
from ...journal.facts import Facts
from ...journal.rows import BeliefRow, CallRow, DrawRow
from ...types import Floats, Indices
from ..outcomes import FAILED, judged
from ..run import Run

Told = Literal[
    "cell",
    "overall",
    "concept",
    "relation",
    "severity",
    "relation-concept",
    "images",
    "uncertainty",
    "predictions",
]
"""What ``beliefs`` may be of."""
KINDS: tuple[Kind, ...] = get_args(Kind)
COLUMNS = (
    "concept",
    "relation",
    "severity",
    "draws",
    "predicted",
    "sd",
    "spread",
    "drawn",
    "asked",
    "failed",
    "lower",
    "upper",
)
IMAGES = ("sample", "x", "y", "draws", "predicted", "sd", "asked", "failed")
UNCERTAINTY = ("concept", "side", "draws", "uncertainty")
PREDICTIONS = ("draw", "concept", "relation", "severity", "predicted", "loss")


def beliefs(source: Journal | Run, of: Told = "cell") -> pd.DataFrame:
    """One row per group of questions and moment, a moment being how many ``draws`` had been learnt
    from; no rows where none were journaled.

    ``of`` "cell": concept x relation x severity. "overall", "concept", "relation", "severity" (a
    relation at one severity) and "relation-concept": all their questions, whatever is not named
    being None. Columns: ``predicted``, their mean loss as the surrogate has it; ``sd``, how unsure
    that mean is, which more answers lower; ``spread``, that of single losses, which none do; how
    many were ``drawn`` (a draw names one question; its call may ask of other concepts, too),
    ``asked`` and ``failed`` (loss 0.5 or more), the last two without those that do not count;
    ``lower`` and ``upper``, the certified interval where these questions are a target. In
    comparisons of two models losses are (1 + L_A - L_B) / 2. NaN: not known; of an audit that
    explores, everything predicted; ``sd``, too, of a surrogate without a latent process, and of
    groups of which fewer than two questions are looked at.

    "images": per image its ``sample``, its place ``x``, ``y`` among the others by its features,
    ``predicted`` and ``sd`` (root mean square of two of its questions), asked and failed.
    "uncertainty": u- (``side`` 0, where the concept is absent) and u+ (1) per concept, as shares
    of their prior. "predictions": per draw, what its question was expected to lose before it was
    asked, and what it lost. No rows of questions without an answer that counts, and none at all
    of another strategy than ``certify``, which alone journals what it expected.

    Raises InputError for another ``of``.
    """
    return Beliefs.of(source).table(of)


@dataclass(frozen=True)
class Beliefs:
    """What a journal tells of beliefs, to make tables of it.

    ``about``: None where none stand there; ``history``: every target's interval over the draws,
    None where it is yet to be worked out.
    """

    facts: Facts
    about: Believed | None
    rows: Sequence[BeliefRow]
    draws: Sequence[DrawRow]
    calls: Sequence[CallRow]
    history: Sequence[Track] | None = None

    @classmethod
    def of(cls, source: Journal | Run) -> Self:
        run = Run.of(source)
        return cls(run.facts, run.believed, run.belief_rows, run.draws, run.calls)

    def table(self, of: Told) -> pd.DataFrame:
        """See ``beliefs``."""
        check_known("table", of, get_args(Told), "beliefs")
        if of == "predictions":
            return _predictions(self.facts, self.draws, self.calls)
        if of == "uncertainty":
            return _uncertainty(self.facts, self.rows)
        if self.about is None:
            return pd.DataFrame(columns=[*(IMAGES if of == "images" else COLUMNS)])
        if of == "images":
            return _images(self.about, self.rows, judged(self.facts, self.draws, self.calls))
        return self._groups(of, self.about)

    @cached_property
    def _tracks(self) -> Sequence[Track]:
        if self.history is not None or self.facts.certificate is None:
            return self.history or ()
        return tracks(self.facts.certificate, self.draws, self.calls)

    @cached_property
    def _drawn(self) -> Indices:
        """The cell of the question of every draw."""
        space = self.facts.space
        parts = [space.numbering.parts(draw.question) for draw in self.draws]
        cells = [concept * len(space.variants) + variant for _, variant, concept in parts]
        return np.array(cells, np.int64)

    def _groups(self, kind: Kind, about: Believed) -> pd.DataFrame:
        space = self.facts.space
        groups = Groups(space.concepts, space.variants)
        sizes = np.array(about.sizes, np.float64)
        start, place = groups.start[kind], groups.of[kind]
        end = start + int(place.max()) + 1
        named, known = groups.all[start:end], groups.sums(sizes)[start:end] > 0
        at = _certified(self.facts, groups, sizes, kind, self._tracks)
        parts = []
        for row in self.rows:
            predicted, spread = (column(row, n, groups.cells) for n in ("predicted", "spread"))
            weight = np.where(np.isnan(predicted), 0, sizes)
            total = groups.sums(weight)[start:end]
            with np.errstate(invalid="ignore", divide="ignore"):
                mean = groups.sums(weight * predicted)[start:end] / total
                squares = groups.sums(weight * spread**2)[start:end] / total
            counts = {n: groups.sums(column(row, n, groups.cells))[start:end] for n in COUNTS}
            drawn = np.bincount(self._drawn[: row.draws], minlength=groups.cells)
            counts["drawn"] = groups.sums(drawn)[start:end]
            told = {"predicted": mean, "sd": column(row, "sd", len(groups.all))[start:end]}
            told |= {"spread": np.sqrt(squares)} | counts
            ends = [_at(track, row.draws) for track in at]
            told |= {"lower": np.array([low for low, _ in ends])}
            told |= {"upper": np.array([high for _, high in ends])}
            part = pd.DataFrame(_named(named)).assign(draws=row.draws, **told)
            parts.append(part[known])
        if not parts:
            return pd.DataFrame(columns=[*COLUMNS])
        table = pd.concat(parts, ignore_index=True)
        whole = dict.fromkeys(("drawn", *COUNTS), "int64")
        return table.astype({"severity": "Int64", **whole})[[*COLUMNS]]


COUNTS = ("asked", "failed")


def _named(groups: Sequence[Group]) -> dict[str, Any]:
    return {
        "concept": pd.Series([g.concept for g in groups], dtype=object),
        "relation": pd.Series([g.relation for g in groups], dtype=object),
        "severity": pd.array([g.severity for g in groups], dtype="Int64"),
    }


def _certified(
    facts: Facts,
    groups: Groups,
    sizes: Floats,
    kind: Kind,
    history: Sequence[Track],
) -> list[Track | None]:
    """For each group of a kind the track of the target that has the same questions, or None."""
    cells = [
        np.flatnonzero((groups.of[kind] == k) & (sizes > 0)).tobytes()
        for k in range(int(groups.of[kind].max()) + 1)
    ]
    if facts.certificate is None:
        return [None] * len(cells)
    found: dict[bytes, Track] = {}
    places = {group: k for k, group in enumerate(groups.all)}
    for target, track in zip(facts.certificate.ids, history, strict=True):
        told = target.columns()
        group = Group(told["kind"], told["concept"], told["relation"], told["severity"])
        if told["side"] is None and group in places:
            of = group.kind
            inside = groups.of[of] == places[group] - groups.start[of]
            found[np.flatnonzero(inside & (sizes > 0)).tobytes()] = track
    return [found.get(mine) for mine in cells]


def _at(track: Track | None, draws: int) -> tuple[float, float]:
    if track is None or draws >= len(track.lower):
        return np.nan, np.nan
    return float(track.lower[draws]), float(track.upper[draws])


def _images(about: Believed, rows: Sequence[BeliefRow], table: pd.DataFrame) -> pd.DataFrame:
    count, parts = len(about.samples), []
    places = np.full((count, 2), np.nan) if about.places is None else np.array(about.places)
    counting = table[~table["unanswered"].fillna("").astype(str).str.startswith("excluded: ")]
    for row in rows:
        if "images" not in row.figures:
            continue
        then = counting[counting["draw"] < row.draws]
        asked = then["sample"].value_counts()
        failed = then.loc[then["loss"] >= FAILED, "sample"].value_counts()
        named = pd.Series(about.names, dtype=object)
        parts.append(
            pd.DataFrame(
                {
                    "sample": named,
                    "x": places[:, 0],
                    "y": places[:, 1],
                    "draws": row.draws,
                    "predicted": of_images(row, "predicted", count),
                    "sd": of_images(row, "sd", count),
                    "asked": named.map(asked).fillna(0).astype(int),
                    "failed": named.map(failed).fillna(0).astype(int),
                }
            )
        )
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*IMAGES])


def _uncertainty(facts: Facts, rows: Sequence[BeliefRow]) -> pd.DataFrame:
    records = []
    for row in rows:
        sides = np.array(row.figures.get("uncertainty", ()), np.float64).reshape(-1, 2)
        for concept, both in zip(facts.space.concepts, sides.tolist(), strict=True):
            records += [(concept, side, row.draws, both[side]) for side in (0, 1)]
    return pd.DataFrame(records, columns=[*UNCERTAINTY])


def _predictions(facts: Facts, draws: Sequence[DrawRow], calls: Sequence[CallRow]) -> pd.DataFrame:
    losses = {
        a.question: a.loss
        for c in calls
        for a in c.answers
        if a.loss is not None and not a.excluded
    }
    numbering, records = facts.space.numbering, []
    for draw in draws:
        predicted = draw.why.get("predicted_loss")
        if draw.question not in losses or not isinstance(predicted, float | int):
            continue
        _, variant, concept = numbering.parts(draw.question)
        about = facts.space.concepts[concept], *facts.space.variants[variant]
        records.append((draw.draw, *about, float(predicted), losses[draw.question]))
    return pd.DataFrame(records, columns=[*PREDICTIONS])
