"""Predictions at every moment of the audit: surface and curves, images, calibration, and the answer
GP of each concept. Figures are those of ``Result.plot``; their data stands in the page once.

The answer GP is that of Concept-centric VTT (Figures 2 to 4): a GP per concept over one coordinate,
the answer. Performance GPs extend it to questions: over image, relation and severity, of the margin
by which an answer is right (``question_gp``). ``marginal`` leads back: every answer is predicted
from those about other images, and predictions are summed up over all questions, so that the
coordinate alone is left. They are learnt from the journal, in which images are numbers: pixels and
proxies, which these GPs use while an audit runs, are not in it.
"""

import numpy as np
from markupsafe import Markup

from ...journal.rows import DrawRow
from ...oracles.labels import margin
from ...types import Floats, JsonObject
from ..beliefs import beliefs, figures
from ..beliefs.figures import Moments, reader
from ..beliefs.tables import TableName
from ..outcomes import confusion
from .appendix import chance, sentence_section, target_of
from .evidence import Evidence, Replay
from .plots import chart, figure_of, frame
from .section import Section, amount, data, exact, packed, percent, plain

VALUES = 20_000
"""Values of each column of a table, at most: beyond it moments are left out."""
CHOICES = 60
"""Concepts, and relations, that may be looked at alone, at most."""
LISTED = 100
"""Draws between two moments whose reasons are listed, at most."""
ROWS = 40
"""Rows of the tables that stand for figures."""
REASONS = {
    "target": "counts most for",
    "predicted_loss": "expected loss",
    "uncertainty": "uncertainty",
    "unpredictability": "unpredictability",
    "by_need": "by need",
    "curiosity": "by uncertainty × unpredictability",
    "even": "evenly",
}
"""Entries of a draw's ``why``; its probability is the sum of the last three."""
PARTS = ("by_need", "curiosity", "even")
NONE = "No predictions were kept: nothing was learnt yet, or the answers were judged again."
UNPLACED = "There is no map of the {}: this audit explores, or its surrogate has no features."
TABLES: tuple[TableName, ...] = ("relation-concept", "cell", "relation", "severity")


def losses_section(evidence: Evidence) -> Section:
    """Show surface and curves, moved through the audit together, and why each question was
    asked."""
    if evidence.run.believed is None or not evidence.run.belief_rows:
        return sentence_section("Predicted losses", "surface", NONE)
    read = reader(lambda name: beliefs(evidence.run, name), VALUES)
    tables = {name: read(name) for name in TABLES}
    moments = tables["relation-concept"].draws
    concepts, relations = evidence.concepts[:CHOICES], evidence.relations[:CHOICES]
    graded = [r for r in relations if sum(r == name for name, _ in evidence.variants) > 1]
    surfaces, curves = {"": figures.surface(read)}, {"": figures.curves(read)}
    if tables["cell"].groups:
        surfaces |= {name: figures.surface(read, name) for name in graded}
        curves |= {f"c{k}": figures.curves(read, name) for k, name in enumerate(concepts)}
        for k, name in enumerate(relations):
            curves[f"r{k}"] = figures.curves(read, relation=name)
    looks = surfaces[""].data[0]["meta"]["looks"]
    ends = [
        v for name in ("above", "below") for v in tables["severity"].last(name) if v is not None
    ]
    contents = {
        of: {
            "draws": table.draws,
            "groups": [list(group) for group in table.groups],
            "columns": {name: plain(values) for name, values in table.columns.items()},
        }
        for of, table in tables.items()
    }

    content = {
        "tables": contents,
        "surfaces": {name: drawing.bare for name, drawing in surfaces.items()},
        "curves": {name: drawing.bare for name, drawing in curves.items()},
        "concepts": evidence.concepts,
        "relations": evidence.relations,
        "of_concepts": evidence.of_concepts,
        "moments": moments,
        "draws": _draws(evidence, moments),
    }
    several = len(evidence.concepts) > 1
    return evidence.section(
        "Predicted losses",
        "surface",
        late=packed("believed-data", content),
        moments=moments,
        predicts=tables["cell"].predicts,
        widest=f"{100 * max(ends):.2g} points" if ends else None,
        shown=[(name, title) for name, title in figures.SHOWN.items() if name in looks],
        graded=graded if len(surfaces) > 1 else [],
        concepts=concepts if several else [],
        relations=relations if several else [],
        surface=_place("surface-chart", tables["relation-concept"], "Predicted losses"),
        curves=_place("curves-chart", tables["severity"], "Loss by severity"),
    )


def images_section(evidence: Evidence) -> Section | None:
    """Show a map of the images; None if there are no predictions of images."""
    table, sample = beliefs(evidence.run, "images"), evidence.sample
    if not len(table):
        return None
    last, title = table[table["draws"] == table["draws"].max()], f"{sample.capitalize()}s"
    if last[["x", "predicted"]].isna().all(axis=None):
        return sentence_section(title, "images", UNPLACED.format(title.lower()))
    drawing = figures.image_map(table, sample)
    content = {**drawing.bare, "samples": last["sample"].tolist()}
    order = last.sort_values(["failed", "asked"], ascending=False, kind="stable")
    names = figures.ABOUT_IMAGE
    rows = [
        [str(name), percent(predicted), percent(sd), amount(asked), amount(failed)]
        for name, predicted, sd, asked, failed in order[["sample", *names]].to_numpy()
    ]
    heads, label = [sample, *names.values()], f"Map of the {title.lower()}"
    return evidence.section(
        title,
        "images",
        late=packed("images-data", content),
        looks=[(name, names[name]) for name in drawing.data[0]["meta"]["looks"]],
        placed=bool(last["x"].notna().any()),
        chart=frame("images-chart", label, heads, rows, ROWS),
    )


def trust_section(evidence: Evidence) -> Section | None:
    """Show expected against actual losses; None if no loss was expected."""
    table = beliefs(evidence.run, "predictions")
    if not len(table):
        return None
    drawing = figures.reliability(table)
    drawn = chart("trust-chart", {"": drawing.bare}, "Expected and actual losses")
    return evidence.section("Calibration of predictions", "trust", gain=drawing.note, chart=drawn)


def _place(id: str, moments: Moments, label: str) -> Markup:
    heads = ["questions", "predicted", "sd", "asked", "failed", "raw"]
    columns = [moments.last(name) for name in heads[1:]]
    rows = [
        [group.words, percent(p), percent(sd), amount(asked), amount(failed), percent(raw)]
        for group, p, sd, asked, failed, raw in zip(moments.groups, *columns, strict=True)
    ]
    return frame(id, label, heads, rows, ROWS)


def _draws(evidence: Evidence, moments: list[int]) -> JsonObject:
    """Return, between each two moments, the number of draws, and the first of them with their
    reasons: number, question (before, in, and after bold type), reasons, probability, verdict."""
    given = set().union(*(row.why for row in evidence.draws))
    names = [name for name in REASONS if name in given]

    def line(row: DrawRow) -> list[object]:
        reasons: JsonObject = {name: row.why.get(name) for name in names}
        if "target" in reasons:
            reasons["target"] = target_of(evidence, row) or reasons["target"]
        for name in PARTS:
            if reasons.get(name) is not None:
                reasons[name] /= row.probability
        question = evidence.question(row.question, row.sample)
        verdict, _ = evidence.verdict(row.question)
        return [row.draw + 1, question, plain([*reasons.values()]), chance(row), verdict]

    gaps = [evidence.draws[a:b] for a, b in zip([0, *moments[:-1]], moments, strict=True)]
    return {
        "heads": [REASONS[name] for name in names],
        "shares": [name in PARTS for name in names],
        "gaps": [[line(row) for row in gap[:LISTED]] for gap in gaps],
        "counts": [len(gap) for gap in gaps],
    }


HELD = 0.95
"""Share of a concept's bins that its band holds."""
CARDS = 60
"""Concepts with a small picture, at most; the list names them all."""
MAX_CALLS = 300
"""Calls that are learnt from, evenly spread over the audit."""
UNFITTED = MAX_CALLS * 1000
"""More answers than there are: the kernel keeps its usual weights, as fitting takes seconds."""
AXES = {"questions": "questions asked so far", "calls": "calls answered so far"}


def answers_section(evidence: Evidence) -> Section | None:
    """Show one large plot, a list to choose the concept from, and all concepts small. None for
    words."""
    if evidence.in_words:
        return None
    concepts, replay = evidence.concepts, evidence.replay
    low, high = band(replay)
    counts = confusion(evidence.table, "concept")[["tn", "fp", "fn", "tp"]]
    quarters: list[list[int]] = counts.reindex(concepts).fillna(0).to_numpy(int).tolist()
    # per concept mean and band, [bin, count] of bins hit, and [tn, fp, fn, tp]
    curves = {
        "grid": replay.grid.tolist(),
        "mean": np.round(np.maximum(replay.mean, 0), 3).tolist(),
        "low": np.round(low, 3).tolist(),
        "high": np.round(high, 3).tolist(),
        "hits": [[[int(b), int(row[b])] for b in np.flatnonzero(row)] for row in replay.counts],
        "marginal": marginal(evidence, len(replay.grid)),
        "sided": evidence.sided,
        "quarters": quarters,
    }
    heads = ["concept", "true negatives", "false positives", "false negatives", "true positives"]
    rows = [[name, *map(amount, row)] for name, row in zip(concepts, quarters, strict=True)]
    label = "Answer model of the chosen concept"
    return evidence.section(
        "Answer GPs per concept",
        "beliefs",
        quarters=quarters if len(concepts) > 1 else [],
        most=CARDS,
        chart=frame("beliefs-chart", label, heads, rows, CARDS),
        data=data("beliefs-data", curves),
    )


def band(replay: Replay) -> tuple[Floats, Floats]:
    """Return the ends (C x bins) between which HELD of each concept's counts lie.

    A count scatters as a Poisson count does, about a mean that is itself uncertain; smoothing hides
    peaks, so the band is widened until it holds that share.
    """
    mean = np.maximum(replay.mean, 0.0)
    spread = np.sqrt(replay.deviation**2 + mean)
    off = np.abs(replay.counts - mean) / np.maximum(spread, 1e-9)
    times = np.quantile(off, HELD, axis=1, method="higher")[:, None]
    return np.maximum(mean - times * spread, 0.0), mean + times * spread


def marginal(evidence: Evidence, bins: int) -> list[list[float]] | list[None]:
    """Return C x bins, the answers that performance GPs expect in each bin of the coordinate.

    Nones where answers have no margins: fewer than two, words, or all of them 0 or 1.
    """
    import torch
    from scipy.special import ndtr

    from ...surrogates import QuestionGP
    from ...surrogates.loss_mean import Losses

    calls, unknown = evidence.calls, [None] * len(evidence.concepts)
    places = np.unique(np.linspace(0, len(calls) - 1, min(len(calls), MAX_CALLS)).astype(int))
    rows = [
        (a.question, a.truth, a.loss, m)
        for k in places.tolist()
        for a in calls[k].answers
        if a.loss is not None
        and a.truth is not None
        and (m := margin(a.truth, a.coordinate, a.details)) is not None
    ]
    if len(rows) < 2 or not evidence.sided:
        return unknown
    question, truth, loss, value = (np.array(column) for column in zip(*rows, strict=True))
    sample, variant, concept = evidence.space.numbering.parts(question)
    gp = QuestionGP(
        [evidence.relations.index(relation) for relation, _ in evidence.variants],
        [severity for _, severity in evidence.variants],
        len(evidence.concepts),
        shared=evidence.settings.answers == "all",
        first_fit=UNFITTED,
    )
    columns = sample, variant, concept, truth.astype(np.int64), loss, value
    at, which, about, side, lost, margins_of = map(torch.from_numpy, columns)
    gp.observe(Losses(at, which, about, side, lost, margins_of))
    margins = gp.margins()
    if margins is None:
        return unknown
    # Answer by bin, the probability of the coordinate a. With P the probability given to the
    # truth, a = P / 2 + 1/2 where the concept is present, and 1/2 - P / 2 where it is absent; the
    # margin is the logit of P.
    mean, deviation = margins.mean.numpy(), margins.variance.sqrt().numpy()
    edges, present = (np.arange(1, bins) - 0.5) / (bins - 1), truth[:, None] == 1
    right = np.clip(np.where(present, 2 * edges - 1, 1 - 2 * edges), 0, 1)
    with np.errstate(divide="ignore"):
        logit = np.log(right) - np.log1p(-right)
    below = ndtr((logit - mean[:, None]) / deviation[:, None])
    inside = np.diff(np.where(present, below, 1 - below), axis=1, prepend=0.0, append=1.0)
    total = np.zeros((len(evidence.concepts), bins))
    np.add.at(total, concept.astype(np.int64), inside)
    expected: list[list[float]] = np.round(
        np.maximum(total * len(calls) / len(places), 0), 3
    ).tolist()
    return expected


def uncertainty_section(evidence: Evidence) -> Section | None:
    """Show mean, maximum, and one concept of choice. None for words."""
    if evidence.in_words:
        return None
    replay = evidence.replay
    # T x C x 2, masked where nothing is left to ask
    sides = np.ma.masked_invalid(replay.uncertainty)
    of_concepts = sides.mean(axis=2).filled(np.nan).T.tolist()
    mean = sides.mean(axis=(1, 2)).filled(np.nan).tolist()
    most = sides.max(axis=(1, 2)).filled(np.nan).tolist()
    lines: list[JsonObject] = [
        {"y": y, "name": name, "colour": "third", "only": str(k)}
        for k, (name, y) in enumerate(zip(evidence.concepts, of_concepts, strict=True))
    ]
    lines.append({"y": most, "name": "most uncertain side", "colour": "muted", "dash": "dot"})
    lines.append({"y": mean, "name": "mean", "colour": "accent", "width": 3})
    levels = [
        {
            "at": tau,
            "text": f"stops when the {over} is at most {exact(tau)}",
            "colour": "accent" if over == "mean" else "muted",
        }
        for over, tau in evidence.facts.stop_levels
    ]
    axis, views = {"title": "share of the prior", "range": [0, 1.06], "unit": "%"}, {}
    for view, title in AXES.items():
        x = getattr(replay, view).tolist()
        drawn = [{"x": x, **line} for line in lines]
        views[view] = figure_of({"title": title}, axis, drawn, levels)
    return evidence.section(
        "Uncertainty of the answer GPs",
        "uncertainty",
        all=evidence.certificate is None,
        last=mean[-1],
        chart=chart("uncertainty-chart", views, "Uncertainty over questions asked"),
    )
