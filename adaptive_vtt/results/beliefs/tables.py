"""Tables of what an audit believed at its checkpoints, from its journal alone."""

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
"""Names of the tables of ``beliefs``."""
COLUMNS = (
    *("concept", "relation", "severity", "draws", "predicted", "sd", "spread"),
    *("drawn", "asked", "failed", "lower", "upper"),
)
IMAGES = ("sample", "x", "y", "draws", "predicted", "sd", "asked", "failed")
UNCERTAINTY = ("concept", "side", "draws", "uncertainty")
PREDICTIONS = ("draw", "concept", "relation", "severity", "predicted", "loss")


def beliefs(source: Journal | Run, of: TableName = "cell") -> pd.DataFrame:
    """Return what an audit believed: a row per group of questions and checkpoint (``draws``).

    Args:
        source: The journal of an audit, or its run.
        of: The subject of a row. "cell": a concept under a relation at one severity. "overall",
            "concept", "relation", "severity" (a relation at one severity) and "relation-concept":
            all questions of that kind. Columns that are not named hold None. "images": an image.
            "uncertainty": one side of a concept. "predictions": a draw.

    Returns:
        No rows where nothing was journaled. NaN if a figure is not known, as in everything
        predicted of an audit that explores. Losses lie in [0, 1]; those of two models are
        (1 + L_A - L_B) / 2.

        Columns of groups: ``predicted`` is the expected mean loss, ``sd`` the uncertainty of that
        mean, which more answers reduce. ``spread`` is the standard deviation of single losses.
        ``drawn``, ``asked`` and ``failed`` (loss 0.5 or more) count questions, the last two without
        excluded ones. A draw names one question, and its call may ask of other concepts, too.
        ``lower`` and ``upper`` are the certified interval where these questions are a target.

        "images" has the ``sample``, its place ``x``, ``y`` by its features, ``predicted`` and
        ``sd`` (root mean square over two of its questions), asked and failed.

        "uncertainty" has u- (``side`` 0, concept absent) and u+ (1) as shares of their prior.

        "predictions" has the loss expected before the question was asked, and the actual one. The
        strategy ``certify`` alone journals these.

    Raises:
        InputError: There is no such table.
    """
    check_known("table", of, get_args(TableName), "beliefs")
    run = Run.of(source)
    if of == "predictions":
        return _predictions(run)
    if of == "uncertainty":
        return _uncertainty(run)
    columns, parts = (IMAGES if of == "images" else COLUMNS), list[pd.DataFrame]()
    if run.belief_rows and (about := run.believed) is not None:
        parts = _of_images(run, about) if of == "images" else _of_groups(run, of, about)
    if not parts:
        return pd.DataFrame(columns=[*columns])
    return pd.concat(parts, ignore_index=True)[[*columns]]


def _of_groups(run: Run, kind: Kind, about: Believed) -> list[pd.DataFrame]:
    """Return the table of the groups of a kind that have questions, checkpoint by checkpoint."""
    space = run.facts.space
    groups, sizes = Groups(space.concepts, space.variants), np.array(about.sizes, np.float64)
    part = slice(groups.start[kind], groups.start[kind] + int(groups.group_of[kind].max()) + 1)
    types: Any = {"concept": object, "relation": object, "severity": "Int64"}
    names = pd.DataFrame(groups.all[part], columns=Group._fields).drop(columns="kind").astype(types)
    questions = np.array([draw.question for draw in run.draws], np.int64)
    _, variant, concept = space.numbering.parts(questions)
    cells = np.asarray(concept * len(space.variants) + variant, np.int64)  # of every draw
    certified, known = _certified(run, groups, sizes, kind), groups.sums(sizes)[part] > 0
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS[len(names.columns) :]}
    for row in run.belief_rows:
        predicted, spread, asked, failed = (
            column(row, name, groups.cells) for name in ("predicted", "spread", "asked", "failed")
        )
        weight = np.where(np.isnan(predicted), 0, sizes)
        drawn = np.bincount(cells[: row.draws], minlength=groups.cells)
        figures = (weight, weight * predicted, weight * spread**2, drawn, asked, failed)
        total, losses, squares, *counts = (groups.sums(values)[part] for values in figures)
        ends: Floats = np.full((2, len(names)), np.nan)
        for k, track in certified.items():
            if row.draws < len(track.lower):
                ends[:, k] = track.lower[row.draws], track.upper[row.draws]
        with np.errstate(invalid="ignore", divide="ignore"):
            means = (
                losses / total,
                column(row, "sd", len(groups.all))[part],
                np.sqrt(squares / total),
            )
        moment = np.full(len(names), row.draws), *means, *np.array(counts, np.int64), *ends
        for each, values in zip(columns.values(), moment, strict=True):
            each.append(values[known])
    repeated = pd.concat([names[known]] * len(run.belief_rows), ignore_index=True)
    return [repeated.assign(**{name: np.concatenate(parts) for name, parts in columns.items()})]


def _certified(run: Run, groups: Groups, sizes: Floats, kind: Kind) -> dict[int, Track]:
    """Return, by the place of a group within its kind, the track of a target of its questions."""

    def cells(of: Kind, place: int) -> bytes:
        return np.flatnonzero((groups.group_of[of] == place) & (sizes > 0)).tobytes()

    by_cells: dict[bytes, Track] = {}
    places = {group: k for k, group in enumerate(groups.all)}
    ids = run.certificate.ids if run.certificate else ()
    for target, track in zip(ids, run.history, strict=True):
        names = target.columns()
        group = Group(names["kind"], names["concept"], names["relation"], names["severity"])
        if names["side"] is None and group in places:
            by_cells[cells(group.kind, places[group] - groups.start[group.kind])] = track
    keys = {place: cells(kind, place) for place in range(int(groups.group_of[kind].max()) + 1)}
    return {place: by_cells[key] for place, key in keys.items() if key in by_cells}


def _of_images(run: Run, about: Believed) -> list[pd.DataFrame]:
    count, table = len(about.samples), counting(run.table)
    names = pd.Series(about.names, dtype=object)
    places = np.full((count, 2), np.nan) if about.places is None else np.array(about.places)
    parts = []
    for row in run.belief_rows:
        if "images" in row.figures:
            then = table[table["draw"] < row.draws]
            failed = then[then["loss"] >= FAILED]
            columns = {"sample": names, "x": places[:, 0], "y": places[:, 1], "draws": row.draws}
            columns |= {name: of_images(row, name, count) for name in ("predicted", "sd")}
            for name, part in (("asked", then), ("failed", failed)):
                columns[name] = names.map(part["sample"].value_counts()).fillna(0).astype(int)
            parts.append(pd.DataFrame(columns))
    return parts


def _uncertainty(run: Run) -> pd.DataFrame:
    records = []
    for row in run.belief_rows:
        sides = np.array(row.figures.get("uncertainty", ()), np.float64).reshape(-1, 2)
        for concept, both in zip(run.facts.space.concepts, sides.tolist(), strict=True):
            records += [(concept, side, row.draws, both[side]) for side in (0, 1)]
    return pd.DataFrame(records, columns=[*UNCERTAINTY])


def _predictions(run: Run) -> pd.DataFrame:
    answers = (answer for call in run.calls for answer in call.answers)
    losses = {a.question: a.loss for a in answers if a.loss is not None and not a.excluded}
    space, records = run.facts.space, []
    for draw in run.draws:
        predicted = draw.why.get("predicted_loss")
        if draw.question in losses and isinstance(predicted, float | int):
            _, variant, concept = space.numbering.parts(draw.question)
            about = space.concepts[concept], *space.variants[variant]
            records.append((draw.draw, *about, float(predicted), losses[draw.question]))
    return pd.DataFrame(records, columns=[*PREDICTIONS])
