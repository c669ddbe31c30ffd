"""What the audit believed as it went on: surface and curves at every moment, images, and what came
of predictions. The figures are those of ``Result.plot``; their data stands in the page once.
"""

from functools import cache

from markupsafe import Markup

from ...journal.rows import DrawRow
from ...types import JsonObject
from ..beliefs import figures
from ..beliefs.figures import Drawing
from ..beliefs.moments import Moments, unbound
from ..beliefs.tables import Told
from .appendix import chance, target_of
from .evidence import Evidence
from .plots import chart, frame
from .section import Section, amount, packed, percent, plain

VALUES = 20_000
"""Of each column of a table, at most: beyond it moments are left out."""
CHOICES = 60
"""Concepts, and relations, that may be looked at alone, at most."""
LISTED = 100
"""Draws between two moments whose reasons are listed, at most."""
ROWS = 40
"""Of the tables that stand for figures."""
REASONS = {
    "target": "counts most for",
    "predicted_loss": "expected loss",
    "uncertainty": "uncertainty",
    "unpredictability": "unpredictability",
    "by_need": "by need",
    "curiosity": "by uncertainty × unpredictability",
    "even": "evenly",
}
"""Of a draw's ``why``; the last three are the parts that its probability is the sum of."""
PARTS = ("by_need", "curiosity", "even")
NONE = (
    "Nothing was kept of what it believed: nothing was learnt yet, or its answers were judged anew."
)
PAIRS = (
    "Both models were asked, so what is predicted is the loss of a pair, (1 + loss of A − loss of "
    "B) / 2, which is neither model’s own: result.plot(“beliefs”) shows it, this page does not."
)
UNPLACED = "There is no map of the {}: this audit explores, or its surrogate has no features."
OF_GROUPS: tuple[Told, ...] = ("relation-concept", "cell", "relation", "severity")


def pairs_section(evidence: Evidence) -> Section:
    """Show why nothing of what is believed of pairs stands in the page."""
    return Section.of(evidence, "Predicted losses", "surface", "sentence.html", sentence=PAIRS)


def section(evidence: Evidence) -> Section:
    """Show surface and curves, moved through the audit together, and why each question was
    asked."""
    title = "Predicted losses"
    if evidence.beliefs.about is None or not evidence.beliefs.rows:
        return Section.of(evidence, title, "surface", "sentence.html", sentence=NONE)

    @cache
    def tell(of: Told) -> Moments:
        return Moments.of(evidence.beliefs.table(of), VALUES)

    tables = {of: tell(of) for of in OF_GROUPS}
    moments = tables["relation-concept"].draws
    concepts, relations = evidence.concepts[:CHOICES], evidence.relations[:CHOICES]
    graded = [r for r in relations if sum(r == name for name, _ in evidence.variants) > 1]
    surfaces, curves = {"": figures.surface(tell)}, {"": figures.curves(tell)}
    if tables["cell"].groups:
        surfaces |= {r: figures.surface(tell, r) for r in graded}
        curves |= {f"c{k}": figures.curves(tell, name) for k, name in enumerate(concepts)}
        curves |= {f"r{k}": figures.curves(tell, relation=name) for k, name in enumerate(relations)}
    shown = [name for name in figures.SHOWN if name in surfaces[""].data[0]["meta"]["looks"]]
    columns = tables["severity"].columns
    ends = [v for name in ("above", "below") for v in columns[name][-1] if v is not None]
    content = {
        "tables": {
            of: {
                "draws": table.draws,
                "groups": [list(group) for group in table.groups],
                "columns": {name: plain(values) for name, values in table.columns.items()},
            }
            for of, table in tables.items()
        },
        "surfaces": {name: _hollow(figure) for name, figure in surfaces.items()},
        "curves": {name: _hollow(figure) for name, figure in curves.items()},
        "concepts": evidence.concepts,
        "relations": evidence.relations,
        "of_concepts": evidence.answers.of_concepts,
        "moments": moments,
        "draws": _draws(evidence, moments),
    }
    return Section.of(
        evidence,
        title,
        "surface",
        "believed.html",
        late=packed("believed-data", content),
        moments=moments,
        predicts=tables["cell"].predicts,
        widest=f"{100 * max(ends):.2g} points" if ends else None,
        shown=[(name, figures.SHOWN[name]) for name in shown],
        graded=graded if len(surfaces) > 1 else [],
        concepts=concepts if len(evidence.concepts) > 1 else [],
        relations=relations if len(evidence.concepts) > 1 else [],
        surface=_place("surface-chart", tables["relation-concept"], "Predicted losses"),
        curves=_place("curves-chart", tables["severity"], "Loss by severity"),
    )


def images(evidence: Evidence) -> Section | None:
    """Show a map of the images; None where none are told of."""
    table = evidence.beliefs.table("images")
    if not len(table):
        return None
    last = table[table["draws"] == table["draws"].max()]
    sample = evidence.sample
    title = f"{sample.capitalize()}s"
    if last[["x", "predicted"]].isna().all(axis=None):
        sentence = UNPLACED.format(title.lower())
        return Section.of(evidence, title, "images", "sentence.html", sentence=sentence)
    figure = figures.image_map(table, sample).bare
    order = last.sort_values(["failed", "asked"], ascending=False, kind="stable")
    rows = [
        [str(name), percent(predicted), percent(sd), amount(asked), amount(failed)]
        for name, predicted, sd, asked, failed in order.head(ROWS)[
            ["sample", *figures.ABOUT_IMAGE]
        ].to_numpy()
    ]
    heads, label = [sample, *figures.ABOUT_IMAGE.values()], f"Map of the {title.lower()}"
    return Section.of(
        evidence,
        title,
        "images",
        "believed_images.html",
        late=packed("images-data", {**figure, "samples": last["sample"].tolist()}),
        looks=[(n, figures.ABOUT_IMAGE[n]) for n in figure["data"][0]["meta"]["looks"]],
        placed=bool(last["x"].notna().any()),
        chart=frame("images-chart", label, heads, rows, len(last) - len(rows)),
    )


def trust(evidence: Evidence) -> Section | None:
    """Show what was expected of each question against what came; None where nothing was
    expected."""
    table = evidence.beliefs.table("predictions")
    if not len(table):
        return None
    figure = figures.reliability(table)
    drawn = chart("trust-chart", {"": figure.bare}, "Expected and actual losses")
    title = "Calibration of predictions"
    return Section.of(
        evidence, title, "trust", "believed_trust.html", gain=figure.note, chart=drawn
    )


def _hollow(figure: Drawing) -> JsonObject:
    """Return a figure without the values that the tables have."""
    return {"data": [unbound(trace) for trace in figure.data], "layout": figure.layout}


def _place(id: str, moments: Moments, label: str) -> Markup:
    heads = ["questions", "predicted", "sd", "asked", "failed", "raw"]
    columns = [moments.columns[name][-1] for name in heads[1:]]
    rows = [
        [group.words, percent(p), percent(sd), amount(asked), amount(failed), percent(raw)]
        for group, p, sd, asked, failed, raw in zip(moments.groups, *columns, strict=True)
    ]
    return frame(id, label, heads, rows[:ROWS], len(rows[ROWS:]))


def _draws(evidence: Evidence, moments: list[int]) -> JsonObject:
    """Return, between each two moments, how many draws, and the first of them with their reasons:
    number, question (before, in, and after what is bold), reasons, probability, verdict."""
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
        verdict, _ = evidence.answers.verdict(evidence.answered.get(row.question))
        return [row.draw + 1, question, plain([*reasons.values()]), chance(row), verdict]

    gaps = [evidence.draws[a:b] for a, b in zip([0, *moments[:-1]], moments, strict=True)]
    return {
        "heads": [REASONS[name] for name in names],
        "shares": [name in PARTS for name in names],
        "gaps": [[line(row) for row in gap[:LISTED]] for gap in gaps],
        "counts": [len(gap) for gap in gaps],
    }


SECTIONS = (section, images, trust)
