"""What the audit believed as it went on: surface and curves at every moment, images, and what came
of predictions. The figures are those of ``Result.plot``; their data stands in the page once.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from ...journal.rows import DrawRow
from ...types import JsonObject
from ..beliefs import figures
from ..beliefs.moments import Moments, unbound
from ..beliefs.tables import Told
from .appendix import chance, verdict_of
from .content import question_in_words
from .evidence import Evidence
from .plots import chart, frame
from .section import Section, amount, packed, percent, plain

VALUES = 20_000
"""Of each column of a table, at most: beyond it moments are left out."""
CHOICES = 60
"""Concepts, and relations, that may be looked at alone, at most."""
LISTED = 100
"""Draws between two moments whose reasons are told, at most."""
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
PAIRS = (
    "Both models were asked, so what is predicted is the loss of a pair, (1 + loss of A − loss of "
    "B) / 2, which is neither model’s own: result.plot(“beliefs”) shows it, this page does not."
)
NONE = (
    "Nothing was kept of what it believed: nothing was learnt yet, or its answers were judged anew."
)
UNPLACED = "There is no map of the {}: this audit explores, or its surrogate has no features."
OF_GROUPS: tuple[Told, ...] = ("relation-concept", "cell", "relation", "severity")


def section(evidence: Evidence) -> Section:
    """Surface and curves, moved through the audit together, and why each question was asked."""
    if evidence.paired:
        return _said(PAIRS)
    if evidence.beliefs.about is None or not evidence.beliefs.rows:
        return _said(NONE)

    @cache
    def tell(of: Told) -> Moments:
        return Moments.of(evidence.beliefs.table(of), VALUES)

    tables = {of: tell(of) for of in OF_GROUPS}
    moments = tables["relation-concept"].draws
    concepts, relations = evidence.concepts[:CHOICES], evidence.relations[:CHOICES]
    surfaces = {"": figures.surface(tell)}
    curves = {"": figures.curves(tell)}
    if tables["cell"].groups:
        graded = [r for r in relations if sum(r == name for name, _ in evidence.variants) > 1]
        surfaces |= {r: figures.surface(tell, r) for r in graded}
        curves |= {f"c{k}": figures.curves(tell, name) for k, name in enumerate(concepts)}
        curves |= {f"r{k}": figures.curves(tell, relation=name) for k, name in enumerate(relations)}
    shown = [name for name in figures.SHOWN if name in surfaces[""]["data"][0]["meta"]["looks"]]
    told = {
        "tables": {of: _columns(moments) for of, moments in tables.items()},
        "surfaces": {name: _hollow(figure) for name, figure in surfaces.items()},
        "curves": {name: _hollow(figure) for name, figure in curves.items()},
        "concepts": evidence.concepts,
        "relations": evidence.relations,
        "captioned": evidence.captioned,
        "moments": moments,
        "draws": _draws(evidence, moments),
    }
    return Section.of(
        "Surface and curves",
        "surface",
        "believed.html",
        late=packed("believed-data", told),
        moments=moments,
        predicts=tables["cell"].predicts,
        widest=_widest(tables["severity"]),
        certifies=evidence.certificate is not None,
        shown=[(name, figures.SHOWN[name]) for name in shown],
        graded=[name for name in surfaces if name],
        concepts=concepts if len(evidence.concepts) > 1 else [],
        relations=relations if len(evidence.concepts) > 1 else [],
        surface=_place("surface-chart", tables["relation-concept"], "Predicted losses"),
        curves=_place("curves-chart", tables["severity"], "Loss by severity"),
    )


def images(evidence: Evidence) -> Section | None:
    """A map of the images; None where none are told of."""
    table = None if evidence.paired else evidence.beliefs.table("images")
    if table is None or not len(table):
        return None
    last = table[table["draws"] == table["draws"].max()]
    title = f"{evidence.sample_word.capitalize()}s"
    if last[["x", "predicted"]].isna().all(axis=None):
        sentence = UNPLACED.format(title.lower())
        return Section.of(title, "images", "sentence.html", sentence=sentence)
    figure = figures.image_map(table, evidence.sample_word)
    order = last.sort_values(["failed", "asked"], ascending=False, kind="stable")
    names = list(figures.ABOUT_IMAGE)
    rows = [
        [str(sample), percent(predicted), percent(sd), amount(asked), amount(failed)]
        for sample, predicted, sd, asked, failed in order.head(ROWS)[["sample", *names]].to_numpy()
    ]
    heads = [evidence.sample_word, *figures.ABOUT_IMAGE.values()]
    looks = figure["data"][0]["meta"]["looks"]
    return Section.of(
        title,
        "images",
        "believed_images.html",
        sample=evidence.sample_word,
        late=packed("images-data", {**_bare(figure), "samples": last["sample"].tolist()}),
        looks=[(name, figures.ABOUT_IMAGE[name]) for name in looks],
        placed=bool(last["x"].notna().any()),
        chart=frame(
            "images-chart", f"Map of the {title.lower()}", heads, rows, len(last) - len(rows)
        ),
    )


def trust(evidence: Evidence) -> Section | None:
    """What was expected of each question against what came; None where nothing was expected."""
    table = None if evidence.paired else evidence.beliefs.table("predictions")
    if table is None or not len(table):
        return None
    figure = _bare(figures.reliability(table))
    return Section.of(
        "Is it to be trusted?",
        "trust",
        "believed_trust.html",
        gain=figures.gain(table),
        chart=chart("trust-chart", {"": figure}, "Expected and actual losses"),
    )


def _said(sentence: str) -> Section:
    return Section.of("Surface and curves", "surface", "sentence.html", sentence=sentence)


def _columns(moments: Moments) -> JsonObject:
    return {
        "draws": moments.draws,
        "groups": [list(group) for group in moments.groups],
        "columns": {name: plain(moments.columns[name]) for name in moments.columns},
    }


def _bare(figure: Mapping[str, Any]) -> JsonObject:
    """The figure without what the page says around it: title, menu, note."""
    layout = {k: v for k, v in figure["layout"].items() if k not in ("title", "updatemenus")}
    notes = [a for a in layout.pop("annotations", []) if a.get("name") != "note"]
    return {"data": figure["data"], "layout": {**layout, "annotations": notes}}


def _hollow(figure: Mapping[str, Any]) -> JsonObject:
    """``_bare``, without the values that the tables have."""
    bare = _bare(figure)
    return {**bare, "data": [unbound(trace) for trace in bare["data"]]}


def _widest(moments: Moments) -> str | None:
    """How far the last moment's bands reach, in points; None where there are none."""
    ends = (moments.columns[name][-1] for name in ("above", "below"))
    reach = [value for end in ends for value in end if value is not None]
    return f"{100 * max(reach):.2g} points" if reach else None


def _place(id: str, moments: Moments, label: str) -> Any:
    heads = ["questions", "predicted", "sd", "asked", "failed", "raw"]
    told = [moments.columns[name][-1] for name in heads[1:]]
    rows = [
        [group.words, percent(p), percent(sd), amount(asked), amount(failed), percent(raw)]
        for group, p, sd, asked, failed, raw in zip(moments.groups, *told, strict=True)
    ]
    return frame(id, label, heads, rows[:ROWS], len(rows[ROWS:]))


def _draws(evidence: Evidence, moments: list[int]) -> JsonObject:
    """Between each two moments: how many draws, and the first of them with their reasons."""
    told = set().union(*(row.why for row in evidence.draws))
    names = [name for name in REASONS if name in told]
    starts, gaps = [0, *moments[:-1]], []
    for start, end in zip(starts, moments, strict=True):
        gaps.append([_draw(evidence, row, names) for row in evidence.draws[start:end][:LISTED]])
    return {
        "heads": [REASONS[name] for name in names],
        "shares": [name in PARTS for name in names],
        "gaps": gaps,
        "counts": [end - start for start, end in zip(starts, moments, strict=True)],
    }


def _draw(evidence: Evidence, row: DrawRow, names: list[str]) -> list[Any]:
    """Number, question (before, in, and after what is bold), reasons, probability, verdict."""
    asked, why, certificate = evidence.asked(row.question), row.why, evidence.certificate
    told: JsonObject = {name: why.get(name) for name in names}
    if certificate is not None and isinstance(told.get("target"), int):
        told["target"] = certificate.targets[told["target"]]
    for name in PARTS:
        if told.get(name) is not None:
            told[name] /= row.probability
    told = {name: plain(value) for name, value in told.items()}
    change = evidence.change_in_words(asked)
    image = f"{row.sample} after {change}" if change else row.sample
    answer = evidence.answers.get(row.question)
    worded = None if answer is None else question_in_words(answer)
    question = ["Is ", asked.concept, f" present in {image}?"]
    if evidence.captioned:
        question = ["", "", image]
    elif worded is not None:
        question = [f"“{worded['question']}” of {image}", "", ""]
    reasons = list(told.values())
    return [row.draw + 1, question, reasons, chance(row), verdict_of(answer)[0]]
