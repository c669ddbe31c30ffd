"""EndoBench: the audit's accuracies beside the published ones, and what distinguishes the two.

Source: EndoBench (2025), Tables 2, 3, 5 and 6, with the lesion tasks' names corrected; see
``taxonomy``. Overall accuracies are micro averages over all 6,832 questions; "Random" is about 24
to 25 % overall. Of the five granularities, box and contour are columns of Table 3, image-level
follows from what is printed, and the others have no figures.

Physicians (section 4.1, B.2) had 255 questions, without coordinates. Printed are percentages and,
of counts, only that sum. The counts follow: each percentage is k / n, the percentages
of MP, MO, IM and RR are those of their subtasks together, and all are 189 of 255 (74.12 %). With
at most 20 questions each only one set of counts does all this, but for PA and Mul (both 80 %),
which have 15 and 20 in either order: 15 each are taken, which gives the wider interval. (The
text says 5, 10 or 15 each; no such counts give 65, 70 and 85 % and the total.) Two
physicians' scores were averaged, yet no column needs half a question: each counts once here.

Not known: the counts of LC and PT. Their percentages (86.67, 70.00) cannot together be the 70.00
of LT, which fits the total.

The published regime (section 4.1, B.2): zero-shot, one question per prompt in words that the paper
prints, options in the order of the file, unchanged images, the reply's letter matched exactly, and,
where medical models gave none, Qwen2.5-VL-72B as judge. It states no temperature.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from ...datasets.vqa.taxonomy import GRANULARITIES, IMAGE_LEVEL, PROMPTS, SCENES, TASKS
from ...errors import some
from ...journal.facts import Facts
from ...models.network.prompt_templates import TEMPLATES
from ...types import IDENTITY, JsonObject
from ...utils.web import sentences
from ..outcomes import clopper_pearson
from ..result import Result
from .evidence import Evidence
from .published import Row, published_tables
from .section import Section, span, sure

# -- the section -----------------------------------------------------------------------------------


OVERALL = "overall"
GROUPS = ("task", "subtask", "scene", "prompt", "granularity")
"""Metadata columns by whose values results are published."""
_DRAWN = ("RS", "Box", "Cont", "Mul")
"""What is not image-level."""
SHOWN = 5
"""Published models that are shown, the best overall of those that are published by more than
that; a guessing one comes on top."""
CHANCE = "Random"
GROUPED = {"prompt": "visual prompt: ", "granularity": "granularity: "}
"""Before values that say little alone, or the same in both groups."""
CONFIDENCE = 0.95
"""Of a physician's interval, each by itself."""


def section(evidence: Evidence) -> Section | None:
    """None where nothing is certified, or no concept is one of EndoBench's tasks.

    Sets of one's own may ask other questions besides; their overall accuracy is then another's.
    """
    tasks = {task.name for task in TASKS}
    if not evidence.standings or tasks.isdisjoint(evidence.concepts):
        return None
    rows = [
        {**asdict(s.id), "estimate": s.estimate, "lower": s.lower, "upper": s.upper}
        for s in evidence.standings
    ]
    table = beside(pd.DataFrame(rows))
    if not tasks.issuperset(evidence.concepts):
        table = table[table["kind"] != OVERALL]
    if table.empty:
        return None
    table = _in_order(table)
    models, left_out = _models(table)
    return Section.of(
        "Beside published results",
        "published",
        "endobench_beside.html",
        rows=[
            Row(
                GROUPED.get(r["kind"], "") + r["what"],
                r["accuracy"],
                span(r["lower"], r["upper"]),
                tuple(None if pd.isna(r[m]) else r[m] for m in models),
            )
            for r in table.to_dict(orient="records")
        ],
        models=models,
        left_out=left_out,
        physicians=compared(table),
        sure=sure(CONFIDENCE),
        levels=bool((table["kind"] == "granularity").any()),
        differences=differences(evidence.facts),
        temperature=temperature(evidence.facts),
    )


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    """Granularities as EndoBench names them; a task that is its own subtask once."""
    once = table[~(table["what"].duplicated() & (table["kind"] == "subtask"))]
    kinds, levels = list(dict.fromkeys(once["kind"])), list(GRANULARITIES)
    places = [
        (kinds.index(kind), levels.index(what) if kind == "granularity" and what in levels else 9)
        for kind, what in zip(once["kind"], once["what"], strict=True)
    ]
    return once.iloc[sorted(range(len(once)), key=places.__getitem__)]


def _models(table: pd.DataFrame) -> tuple[list[str], list[tuple[str, float]]]:
    """Who is shown; and whoever did better, but of whom the overall figure alone is published."""
    overall = accuracies()[OVERALL].dropna().drop(CHANCE, errors="ignore")
    ranked = overall.sort_values(ascending=False)
    parts = table[table["kind"] != OVERALL]
    told = [m for m in ranked.index if parts.empty or parts[m].notna().any()][:SHOWN]
    least = min((ranked[m] for m in told), default=1.0)
    left_out = [(str(m), float(v)) for m, v in ranked.items() if v > least and m not in told]
    shown = left_out if OVERALL in set(table["kind"]) else []
    return [*told, *([CHANCE] if CHANCE in accuracies().index else [])], shown


# -- what is published -------------------------------------------------------------------------


@cache
def accuracies() -> pd.DataFrame:
    """Accuracy in 0..1, one row per model, columns as ``counts``; NaN where none is published."""
    table = pd.DataFrame.from_dict(published_tables("endobench")["accuracy"], orient="index") / 100
    table = table.rename(columns=full_names())
    table[IMAGE_LEVEL] = _image_level(table)
    return table.reindex(columns=list(counts()))


def _image_level(table: pd.DataFrame) -> pd.Series:
    """Right answers to everything less those to what has something drawn, over the questions left.

    All of these are known to the question. NaN where one is not published, and for physicians,
    who had other questions.
    """
    size = pd.Series(counts())
    drawn = [full_names()[short] for short in _DRAWN]
    right = (table[[OVERALL, *drawn]] * size[[OVERALL, *drawn]]).round()
    found = right[OVERALL] - right[drawn].sum(axis=1, skipna=False)
    return (found / size[IMAGE_LEVEL]).drop("Physician")


def counts() -> dict[str, int]:
    """How many questions: overall, by task, by subtask where a task has several, by scene, and
    image-level."""
    found = {OVERALL: sum(task.questions for task in TASKS)}
    found |= {task.name: task.questions for task in TASKS}
    found |= {name: count for task in TASKS for name, _, count in task.subtasks}
    found |= {scene: count for scene, (_, count) in SCENES.items()}
    return found | {IMAGE_LEVEL: GRANULARITIES[IMAGE_LEVEL] or 0}


def compare(result: Result) -> pd.DataFrame:
    """The audit's certified accuracies beside the published ones.

    One row per target of the audit that was published, and per granularity: kind ("overall",
    "task", "subtask", "scene", "prompt" or "granularity"), what, accuracy, lower and upper of the
    audit, and one column per published model (NaN: not published).
    """
    return beside(result.targets)


def beside(targets: pd.DataFrame) -> pd.DataFrame:
    """``compare`` for a table of targets, as ``Result.targets``."""
    published, rows = accuracies(), []
    nothing = pd.Series(math.nan, index=published.index)
    for target in targets.to_dict(orient="records"):
        place = _place(target)
        if place is None:
            continue
        kind, what = place
        mine = {
            "kind": kind,
            "what": what,
            "accuracy": 1 - target["estimate"],
            "lower": 1 - target["upper"],
            "upper": 1 - target["lower"],
        }
        rows.append(mine | published.get(column_of(kind, what), nothing).to_dict())
    first = ["kind", "what", "accuracy", "lower", "upper"]
    return pd.DataFrame(rows, columns=[*first, *published.index])


def column_of(kind: str, what: str) -> str:
    """Which column of ``accuracies`` is published of a row of ``compare``; "" for none."""
    if kind == "granularity" and what == IMAGE_LEVEL:
        return IMAGE_LEVEL
    if kind in ("prompt", "granularity"):
        what = full_names().get(PROMPTS.get(what, ""), "")
    return what if what in counts() else ""


def _place(target: Mapping[Hashable, Any]) -> tuple[str, str] | None:
    """Kind and name of a row of targets; None where nothing is published of it.

    A granularity has its place among the five even so.
    """
    kind, what = target["kind"], ""
    if kind == "overall":
        what = OVERALL
    elif kind == "concept" and target["rate"] == "error rate":
        kind, what = "task", target["concept"]
    elif kind == "group" and target["group"] in GROUPS:
        kind, what = target["group"], target["value"]
    return (kind, what) if kind == "granularity" or column_of(kind, what) else None


def full_names() -> dict[str, str]:
    """Abbreviation -> name."""
    found = {task.short: task.name for task in TASKS}
    found |= {short: name for task in TASKS for name, short, _ in task.subtasks}
    return found | {short: scene for scene, (short, _) in SCENES.items()}


# -- physicians --------------------------------------------------------------------------------


@cache
def baseline() -> pd.DataFrame:
    """What the physicians had right, one row per "overall", task and subtask with known counts.

    Columns: right and asked (questions), accuracy, lower and upper (0..1, Clopper-Pearson,
    0.95 each by itself).
    """
    stored: dict[str, list[int]] = dict(published_tables("endobench")["physicians"])
    for task in TASKS:
        parts = [stored[short] for _, short, _ in task.subtasks if short in stored]
        if task.short not in stored and parts:
            stored[task.short] = [sum(column) for column in zip(*parts, strict=True)]
    names = full_names()
    rows = {
        names.get(short, short): (k, n, k / n, *map(float, clopper_pearson(k / n, n, CONFIDENCE)))
        for short, (k, n) in stored.items()
    }
    columns = ["right", "asked", "accuracy", "lower", "upper"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    return table.astype({"right": int, "asked": int})


def compared(table: pd.DataFrame) -> list[JsonObject]:
    """Rows of ``beside`` of which physicians' counts are known, each once: ``what``, our accuracy
    with its ``interval``, ``theirs`` with the ``count`` behind it and ``their_interval``."""
    theirs = baseline().to_dict(orient="index")
    found: dict[str, JsonObject] = {}
    for r in table.to_dict(orient="records"):
        column = column_of(r["kind"], r["what"])
        if column not in theirs or column in found:
            continue
        them = theirs[column]
        found[column] = {
            "what": column,
            "ours": r["accuracy"],
            "interval": span(r["lower"], r["upper"]),
            "theirs": them["accuracy"],
            "count": f"{them['right']} of {them['asked']}",
            "their_interval": span(them["lower"], them["upper"]),
        }
    return list(found.values())


# -- what distinguishes the two --------------------------------------------------------------------


TEMPLATE = "endobench"
NAMED = 3
"""Relations that are named."""


def differences(facts: Facts) -> list[str]:
    """A sentence each; [] where the audit asked as the published models were asked."""
    every, oracle = sum(task.questions for task in TASKS), facts.begun_with.get("oracle")
    changed = [relation for relation in facts.space.relations if relation != IDENTITY]
    return sentences(
        Path(__file__).with_name("endobench_differences.txt"),
        space=facts.space,
        told=facts.protocol,
        own=TEMPLATE,
        own_hash=TEMPLATES[TEMPLATE].hash,
        every=every,
        questions=f"{every:,}",
        samples=f"{facts.space.samples:,}",
        changed=changed,
        listed=some(changed, NAMED),
        faithful=isinstance(oracle, dict) and oracle.get("faithful"),
        quoted=repr,
    )


def temperature(facts: Facts) -> str:
    """What is known of it, since the paper leaves it open."""
    at = facts.protocol.temperature
    here = "is not known" if at is None else f"was {at:g}"
    return f"EndoBench does not state at which temperature its models replied; here it {here}."
