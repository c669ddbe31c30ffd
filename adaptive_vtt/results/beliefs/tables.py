"""Tables of an audit's beliefs at its checkpoints, from the journal alone.

A checkpoint is a ``BeliefRow`` of the journal (``journal.belief_groups``), with figures per cell: a
concept under a relation at one severity. Groups are made of cells.
"""

from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from ...certify.tracks import Track
from ...errors import check_known
from ...journal import Journal
from ...journal.belief_groups import Believed, Group, Groups, Kind, column, of_images
from ...types import Floats
from ..outcomes import FAILED, counting
from ..run import Run

TableName = Literal[Kind, "images", "uncertainty", "predictions"]
"""Names of the tables."""
COLUMNS = (
    *("concept", "relation", "severity", "draws", "predicted", "sd", "spread"),
    *("drawn", "asked", "failed", "lower", "upper"),
)
IMAGES = ("sample", "x", "y", "draws", "predicted", "sd", "asked", "failed")
UNCERTAINTY = ("concept", "side", "draws", "uncertainty")
PREDICTIONS = ("draw", "concept", "relation", "severity", "predicted", "loss")


def beliefs(source: Journal | Run, of: TableName = "cell") -> pd.DataFrame:
    """Return a table of an audit's beliefs, with a row per subject and checkpoint.

    Args:
        source: The journal of an audit, or its run.
        of: The subject of a row. "cell": a concept under a relation at one severity. "overall",
            "concept", "relation", "severity" (a relation at one severity) and "relation-concept":
            all questions of that kind. Other columns of names hold None. "images": an image.
            "uncertainty": one side of a concept. "predictions": a draw.

    Returns:
        The table, without rows if nothing was journaled. ``draws`` is the number of draws before
        the checkpoint. Unknown figures are NaN, such as all predictions of an audit that explores.
        Losses are in [0, 1]; for two models a loss is (1 + L_A - L_B) / 2.

        Groups: ``predicted`` is the expected mean loss, ``sd`` the standard deviation of that mean,
        which more answers reduce, and ``spread`` the standard deviation of single losses.
        ``drawn``, ``asked`` and ``failed`` (loss 0.5 or more) count questions, the last two without
        excluded ones. A draw names one question, but its call may ask about other concepts, too.
        ``lower`` and ``upper`` are the certified interval if the group is a target.

        "images": ``sample``, its coordinates ``x`` and ``y`` by its features, ``predicted`` and
        ``sd`` (root mean square over two of its questions), ``asked`` and ``failed``.

        "uncertainty": u- (``side`` 0, concept absent) and u+ (``side`` 1), as shares of their
        prior.

        "predictions": the loss that was expected before the question was asked, and the actual one.
        Only the strategy ``certify`` journals these.

    Raises:
        InputError: There is no such table.
    """
    check_known("table", of, get_args(TableName), "beliefs")
    run = Run.of(source)
    if of == "predictions":
        return _predictions(run)
    if of == "uncertainty":
        return _uncertainty(run)
    columns, tables = (IMAGES if of == "images" else COLUMNS), list[pd.DataFrame]()
    if run.belief_rows and (believed := run.believed) is not None:
        tables = _of_images(run, believed) if of == "images" else _of_groups(run, of, believed)
    if not tables:
        return pd.DataFrame(columns=[*columns])
    return pd.concat(tables, ignore_index=True)[[*columns]]


def _of_groups(run: Run, kind: Kind, believed: Believed) -> list[pd.DataFrame]:
    """Return the table of the groups of a kind, without groups that have no questions."""
    space, sizes = run.facts.space, np.array(believed.sizes, np.float64)
    groups = Groups(space.concepts, space.variants)
    part = slice(groups.start[kind], groups.start[kind] + int(groups.group_of[kind].max()) + 1)
    types: Any = {"concept": object, "relation": object, "severity": "Int64"}
    names = pd.DataFrame(groups.all[part], columns=Group._fields).drop(columns="kind").astype(types)
    questions = np.array([draw.question for draw in run.draws], np.int64)
    _, variant, concept = space.numbering.parts(questions)
    drawn_cells = np.asarray(concept * len(space.variants) + variant, np.int64)
    tracks, asked_about = _tracks(run, groups, sizes, kind), groups.sums(sizes)[part] > 0
    tables = []
    for row in run.belief_rows:
        predicted, spread, asked, failed = (
            column(row, name, groups.cells) for name in ("predicted", "spread", "asked", "failed")
        )
        # means of a group are those of its cells, weighted by questions, where predictions exist
        weight = np.where(np.isnan(predicted), 0, sizes)
        drawn = np.bincount(drawn_cells[: row.draws], minlength=groups.cells)
        figures = (weight, weight * predicted, weight * spread**2, drawn, asked, failed)
        total, losses, squares, *counts = (groups.sums(values)[part] for values in figures)
        table: dict[str, Any] = {"draws": row.draws}
        table["sd"] = column(row, "sd", len(groups.all))[part]
        with np.errstate(invalid="ignore", divide="ignore"):
            table |= {"predicted": losses / total, "spread": np.sqrt(squares / total)}
        table |= zip(("drawn", "asked", "failed"), np.array(counts, np.int64), strict=True)
        ends: Floats = np.full((2, len(names)), np.nan)
        for k, track in tracks.items():
            if row.draws < len(track.lower):
                ends[:, k] = track.lower[row.draws], track.upper[row.draws]
        table |= {"lower": ends[0], "upper": ends[1]}
        tables.append(pd.DataFrame(table, index=names.index)[asked_about])
    return [pd.concat(tables).join(names)]


def _tracks(run: Run, groups: Groups, sizes: Floats, kind: Kind) -> dict[int, Track]:
    """Return the tracks of those groups of a kind whose questions are also a target's.

    The key is the group's number within its kind. The target may have another kind, since groups
    of several kinds have the same questions if, say, the space has one concept.
    """

    def cells(of: Kind, number: int) -> bytes:
        """Return a key of the cells of a group that have questions."""
        return np.flatnonzero((groups.group_of[of] == number) & (sizes > 0)).tobytes()

    by_cells: dict[bytes, Track] = {}
    places = {group: place for place, group in enumerate(groups.all)}
    ids = run.certificate.ids if run.certificate else ()
    for target, track in zip(ids, run.history, strict=True):
        names = target.columns()
        group = Group(names["kind"], names["concept"], names["relation"], names["severity"])
        if names["side"] is None and group in places:
            by_cells[cells(group.kind, places[group] - groups.start[group.kind])] = track
    keys = {number: cells(kind, number) for number in set(groups.group_of[kind].tolist())}
    return {number: by_cells[key] for number, key in keys.items() if key in by_cells}


def _of_images(run: Run, believed: Believed) -> list[pd.DataFrame]:
    """Return a table per checkpoint that describes images."""
    count, outcomes = len(believed.samples), counting(run.table)
    names = pd.Series(believed.names, dtype=object)
    places = np.full((count, 2), np.nan) if believed.places is None else np.array(believed.places)
    tables = []
    for row in run.belief_rows:
        if "images" in row.figures:
            earlier = outcomes[outcomes["draw"] < row.draws]
            failed = earlier[earlier["loss"] >= FAILED]
            columns = {"sample": names, "x": places[:, 0], "y": places[:, 1], "draws": row.draws}
            columns |= {name: of_images(row, name, count) for name in ("predicted", "sd")}
            for name, counted in (("asked", earlier), ("failed", failed)):
                columns[name] = names.map(counted["sample"].value_counts()).fillna(0).astype(int)
            tables.append(pd.DataFrame(columns))
    return tables


def _uncertainty(run: Run) -> pd.DataFrame:
    """Return the table "uncertainty"."""
    records = []
    for row in run.belief_rows:
        sides = np.array(row.figures.get("uncertainty", ()), np.float64).reshape(-1, 2)
        for concept, both in zip(run.facts.space.concepts, sides.tolist(), strict=True):
            records += [(concept, side, row.draws, both[side]) for side in (0, 1)]
    return pd.DataFrame(records, columns=[*UNCERTAINTY])


def _predictions(run: Run) -> pd.DataFrame:
    """Return the table "predictions", without draws whose question is unanswered or excluded."""
    answers = (answer for call in run.calls for answer in call.answers)
    losses = {a.question: a.loss for a in answers if a.loss is not None and not a.excluded}
    space, records = run.facts.space, []
    for draw in run.draws:
        predicted = draw.why.get("predicted_loss")
        if draw.question in losses and isinstance(predicted, float | int):
            _, variant, concept = space.numbering.parts(draw.question)
            names = space.concepts[concept], *space.variants[variant]
            records.append((draw.draw, *names, float(predicted), losses[draw.question]))
    return pd.DataFrame(records, columns=[*PREDICTIONS])
