"""What an audit believed as it went on, as tables, from its journal alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self, get_args

import numpy as np
import pandas as pd

from ...certify.tracks import Track, tracks
from ...errors import check_known
from ...journal import Journal
from ...journal.belief_groups import Believed, Group, Groups, Kind, column, of_images
from ...journal.facts import Facts
from ...journal.rows import BeliefRow, CallRow, DrawRow
from ...types import Floats, Indices
from ..outcomes import FAILED, counting, judged
from ..run import Run

Told = Literal[Kind, "images", "uncertainty", "predictions"]
"""What ``beliefs`` may be of."""
COLUMNS = (
    *("concept", "relation", "severity", "draws", "predicted", "sd", "spread"),
    *("drawn", "asked", "failed", "lower", "upper"),
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
            return self._predictions()
        if of == "uncertainty":
            return self._uncertainty()
        if self.about is None:
            return pd.DataFrame(columns=[*(IMAGES if of == "images" else COLUMNS)])
        return self._images(self.about) if of == "images" else self._groups(of, self.about)

    @cached_property
    def _tracks(self) -> Sequence[Track]:
        if self.history is not None or self.facts.certificate is None:
            return self.history or ()
        return tracks(self.facts.certificate, self.draws, self.calls)

    def _groups(self, kind: Kind, about: Believed) -> pd.DataFrame:
        space = self.facts.space
        groups = Groups(space.concepts, space.variants)
        sizes = np.array(about.sizes, np.float64)
        start = groups.start[kind]
        end = start + int(groups.of[kind].max()) + 1
        named, known = groups.all[start:end], groups.sums(sizes)[start:end] > 0
        questions = np.array([draw.question for draw in self.draws], np.int64)
        _, variant, concept = space.numbering.parts(questions)
        cells = np.asarray(concept * len(space.variants) + variant, np.int64)  # of every draw
        certified = self._certified(groups, sizes, kind)
        names = pd.DataFrame(
            {
                "concept": pd.Series([g.concept for g in named], dtype=object),
                "relation": pd.Series([g.relation for g in named], dtype=object),
                "severity": pd.array([g.severity for g in named], dtype="Int64"),
            }
        )

        def summed(values: Floats | Indices) -> Floats:
            return groups.sums(values)[start:end]

        parts = []
        for row in self.rows:
            predicted, spread = (column(row, n, groups.cells) for n in ("predicted", "spread"))
            weight = np.where(np.isnan(predicted), 0, sizes)
            total = summed(weight)
            with np.errstate(invalid="ignore", divide="ignore"):
                mean = summed(weight * predicted) / total
                squares = summed(weight * spread**2) / total
            drawn = np.bincount(cells[: row.draws], minlength=groups.cells)
            ends = np.array([_at(track, row.draws) for track in certified])
            part = names.assign(
                draws=row.draws,
                predicted=mean,
                sd=column(row, "sd", len(groups.all))[start:end],
                spread=np.sqrt(squares),
                drawn=summed(drawn),
                asked=summed(column(row, "asked", groups.cells)),
                failed=summed(column(row, "failed", groups.cells)),
                lower=ends[:, 0],
                upper=ends[:, 1],
            )
            parts.append(part[known])
        if not parts:
            return pd.DataFrame(columns=[*COLUMNS])
        whole = dict.fromkeys(("drawn", "asked", "failed"), "int64")
        return pd.concat(parts, ignore_index=True).astype(whole)[[*COLUMNS]]

    def _certified(self, groups: Groups, sizes: Floats, kind: Kind) -> list[Track | None]:
        """Return for each group of a kind the track of the target that has the same questions."""

        def cells(of: Kind, place: int) -> bytes:
            return np.flatnonzero((groups.of[of] == place) & (sizes > 0)).tobytes()

        by_cells: dict[bytes, Track] = {}
        places = {group: k for k, group in enumerate(groups.all)}
        ids = self.facts.certificate.ids if self.facts.certificate else ()
        for target, track in zip(ids, self._tracks, strict=True):
            names = target.columns()
            group = Group(names["kind"], names["concept"], names["relation"], names["severity"])
            if names["side"] is None and group in places:
                by_cells[cells(group.kind, places[group] - groups.start[group.kind])] = track
        count = int(groups.of[kind].max()) + 1
        return [by_cells.get(cells(kind, place)) for place in range(count)]

    def _images(self, about: Believed) -> pd.DataFrame:
        count, parts = len(about.samples), []
        places = np.full((count, 2), np.nan) if about.places is None else np.array(about.places)
        table = counting(judged(self.facts, self.draws, self.calls))
        named = pd.Series(about.names, dtype=object)
        for row in self.rows:
            if "images" in row.figures:
                then = table[table["draw"] < row.draws]
                counts = {
                    "asked": then["sample"].value_counts(),
                    "failed": then.loc[then["loss"] >= FAILED, "sample"].value_counts(),
                }
                part = {"sample": named, "x": places[:, 0], "y": places[:, 1], "draws": row.draws}
                part |= {name: of_images(row, name, count) for name in ("predicted", "sd")}
                part |= {n: named.map(each).fillna(0).astype(int) for n, each in counts.items()}
                parts.append(pd.DataFrame(part))
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*IMAGES])

    def _uncertainty(self) -> pd.DataFrame:
        records = []
        for row in self.rows:
            sides = np.array(row.figures.get("uncertainty", ()), np.float64).reshape(-1, 2)
            for concept, both in zip(self.facts.space.concepts, sides.tolist(), strict=True):
                records += [(concept, side, row.draws, both[side]) for side in (0, 1)]
        return pd.DataFrame(records, columns=[*UNCERTAINTY])

    def _predictions(self) -> pd.DataFrame:
        answers = (answer for call in self.calls for answer in call.answers)
        losses = {a.question: a.loss for a in answers if a.loss is not None and not a.excluded}
        space, records = self.facts.space, []
        for draw in self.draws:
            predicted = draw.why.get("predicted_loss")
            if draw.question in losses and isinstance(predicted, float | int):
                _, variant, concept = space.numbering.parts(draw.question)
                about = space.concepts[concept], *space.variants[variant]
                records.append((draw.draw, *about, float(predicted), losses[draw.question]))
        return pd.DataFrame(records, columns=[*PREDICTIONS])


def _at(track: Track | None, draws: int) -> tuple[float, float]:
    if track is None or draws >= len(track.lower):
        return np.nan, np.nan
    return float(track.lower[draws]), float(track.upper[draws])
