"""``avtt build-vqa``: multiple-choice questions about images that somebody labelled."""

import json
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from textwrap import wrap
from typing import Annotated

import pandas as pd
import typer

from ..config.datasets import read_dataset
from ..config.oracles import read_model_of_words
from ..datasets import Dataset
from ..datasets.recognition import Layout, recognised
from ..datasets.vqa.paraphrasing import PARAPHRASES, Paraphrases, paraphrased
from ..datasets.vqa.question_building import Built, Chosen, choose, line_of
from ..datasets.vqa.question_making import MAKERS
from ..datasets.vqa.question_table import Line, write_questions
from ..datasets.vqa.taxonomy import LESION, SCENES, named
from ..engine.judging import prompt_of
from ..errors import InputError, unknown
from ..models.checking import name_of
from ..types import JsonObject, Unanswered
from ..utils.figures import money
from ..utils.files import whole_folder, write_text
from ..utils.tables import csv_text
from ..utils.web import text_of
from .options import Json, arg, names, opt, pairs
from .progress import counting

PER_CLASS = 20
QUESTIONS, SOURCES, SPEC = "questions.tsv", "sources.csv", "SPEC.toml"
WIDTH = 78


def build_vqa(  # noqa: C901 - a command's options
    data: Annotated[
        Path,
        arg(
            "A folder of images with masks, boxes or classes, a table of labels, or a "
            "SPEC.toml, for its \\[dataset].",
            "DATA",
        ),
    ],
    out: Annotated[Path, opt("Folder to write into; new, or empty.")],
    kinds: Annotated[
        str | None, opt("Kinds of questions, with commas. Default: all that can be made.")
    ] = None,
    concepts: Annotated[str | None, opt("Labels to ask about, with commas. Default: all.")] = None,
    role: Annotated[
        list[str] | None,
        opt(
            "What a label names: lesion, instrument, landmark, organ, grade ... Default: "
            "what its words tell of.",
            "LABEL=ROLE",
        ),
    ] = None,
    word: Annotated[
        list[str] | None, opt("What a label is called in questions.", "LABEL=TEXT")
    ] = None,
    count: Annotated[
        list[str] | None, opt("The column that counts a label's objects.", "LABEL=COLUMN")
    ] = None,
    grade: Annotated[
        list[str] | None, opt("The column that grades a label.", "LABEL=COLUMN")
    ] = None,
    per_class: Annotated[
        int, opt("Most questions per kind, label and right answer, of images unlike each other.")
    ] = PER_CLASS,
    scene: Annotated[str, opt("EndoBench's scene, such as Colonoscopy.")] = "",
    seed: Annotated[int, opt("Same seed, same questions.")] = 0,
    paraphrase: Annotated[
        Path | None,
        opt(
            "A file with a \\[model] of words, which is asked for more wordings; what it is "
            "asked and says is kept in paraphrases.jsonl beside OUT, and never paid for again.",
            "SPEC.toml",
        ),
    ] = None,
    wordings: Annotated[
        int, opt("With --paraphrase: how many more per kind of question.", min=1)
    ] = 3,
    max_cost: Annotated[
        float | None, opt("With --paraphrase: the most that all in paraphrases.jsonl may cost.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make multiple-choice questions, as EndoBench's, from labels, masks or boxes.

    Presence, type, severity, counting, position, grounding, selection and
    recognition of regions; a question that the labels cannot answer for sure is
    not made.

    Example: avtt build-vqa Kvasir-SEG --out questions --scene Colonoscopy
    """
    chosen_kinds, chosen_concepts = names(kinds), names(concepts)
    roles, words = pairs(role, "--role", "LABEL=ROLE"), pairs(word, "--word", "LABEL=TEXT")
    counts = pairs(count, "--count", "LABEL=COLUMN")
    grades = pairs(grade, "--grade", "LABEL=COLUMN")
    if scene and named(scene) not in SCENES:
        raise unknown("scene", scene, SCENES, "--scene")
    dataset = _dataset(data, {*counts.values(), *grades.values()})
    if not dataset.has_images:
        raise InputError(f"{data}: expected images to ask about, found labels alone")
    for option, given in (("--kinds", chosen_kinds), ("--concepts", chosen_concepts)):
        if given is not None and not given:
            raise InputError(f"{option}: expected names with commas between them, got none")
    with whole_folder(out) as folder:
        chosen = choose(
            dataset,
            chosen_kinds or [*MAKERS],
            concepts=chosen_concepts,
            per_class=per_class,
            counts=counts,
            seed=seed,
            roles=roles,
            words=words,
            grades=grades,
        )
        if not len(chosen):
            of_kinds = f" of the kinds {', '.join(chosen_kinds)}" if chosen_kinds else ""
            raise InputError(
                f"{data}: no question{of_kinds} can be made from its labels; presence needs "
                "labels, type two labels or more that exclude each other, questions about places "
                "masks or boxes"
            )
        more = None
        if paraphrase is not None:
            journal = out.absolute().parent / PARAPHRASES
            more = _asked_for(chosen, paraphrase, wordings, max_cost, journal)
            chosen = replace(chosen, plan=replace(chosen.plan, wordings=more.together()))
        rows: list[dict[str, str]] = []
        with counting("writing questions", len(chosen), as_json) as advance:

            def lines() -> Iterator[Line]:
                for one in chosen:
                    rows.append(_source(one, len(rows)))
                    advance(1)
                    yield line_of(one, named(scene), dataset.name)

            write_questions(folder / QUESTIONS, lines())
        write_text(folder / SOURCES, csv_text(pd.DataFrame(rows)))
        write_text(folder / SPEC, spec_text())
    made = Counter(row["kind"] for row in rows)
    written: JsonObject = {
        "questions": len(rows),
        "images": len({row["sample"] for row in rows}),
        "tasks": dict(Counter(row["task"] for row in rows)),
        "kinds": {kind: made[kind] for kind in chosen_kinds or MAKERS if made[kind]},
        "not_made": [kind for kind in chosen_kinds or MAKERS if not made[kind]],
        "roles": dict(chosen.roles),
        "paraphrases": None if more is None else asdict(more),
    }
    if as_json:
        typer.echo(json.dumps(written, indent=1))
    else:
        for line in _sentences(written, out):
            typer.echo("\n".join(wrap(line, WIDTH, subsequent_indent="    ")))


def _asked_for(
    chosen: Chosen, spec: Path, count: int, max_cost: float | None, journal: Path
) -> Paraphrases:
    """More wordings of the questions, by the model of a file; raises InputError for one whose money
    nothing bounds."""
    with read_model_of_words(spec, chosen.dataset) as model:
        if model.costs_money and max_cost is None:
            raise InputError(
                f"--max-cost: expected the most that wordings by {name_of(model)!r} may cost, got "
                "none; --max-cost 1, say, or 0 where its prices in [model] are 0"
            )
        if max_cost is not None and not model.prices_known:
            raise InputError(
                f"{spec}: model: expected prices, so that --max-cost can be kept, got none; "
                "price_input and price_output are what a million tokens cost"
            )

        def say(text: str) -> tuple[str | None, str, float]:
            reply = model.ask([prompt_of(text, 0)])[0]
            if isinstance(reply, Unanswered):
                return None, reply.reason, reply.cost
            said = reply.values[0]
            return (
                (said, "", reply.cost) if isinstance(said, str) else (None, "no words", reply.cost)
            )

        return paraphrased(
            chosen.worded,
            say,
            journal,
            by=name_of(model),
            count=count,
            most=model.most_cost or 0.0,
            max_cost=max_cost,
        )


def spec_text() -> str:
    return text_of(__package__, "questions.toml", questions=json.dumps(QUESTIONS))


def _source(one: Built, index: int) -> dict[str, str]:
    return {
        "index": str(index),
        "sample": one.sample_id,
        "kind": one.kind,
        "about": one.about,
        "task": one.made.task,
        "answer": one.answer,
        "question": one.made.question,
    }


def _dataset(data: Path, columns: set[str]) -> Dataset:
    """The data of a SPEC.toml, or whatever is recognised; ``columns``, of counts and grades, are
    none to ask about."""
    if data.suffix == ".toml":
        return read_dataset(data)
    layout = recognised(data)
    if layout.kind == "masks":
        layout = replace(layout, options={**layout.options, "empty": "absent"})
    if layout.kind == "table" and columns:
        layout = replace(layout, options=_apart(layout, columns))
    return layout.load()


def _apart(layout: Layout, columns: set[str]) -> JsonObject:
    """The options of a table whose ``columns`` describe samples and are no concepts."""
    options = dict(layout.options)
    concepts = [c for c in options.get("concepts", ()) if c not in columns]
    described = [*options.get("metadata", ())]
    options["metadata"] = [*described, *sorted(columns - {*described})]
    return {**options, "concepts": concepts} if concepts else options


def _sentences(written: JsonObject, out: Path) -> Iterator[str]:
    yield f"wrote {out}: {written['questions']} questions about {written['images']} images"
    for task, count in written["tasks"].items():
        yield f"  {task}: {count}"
    if written["not_made"]:
        yield f"none of the kinds {', '.join(written['not_made'])}"
    others = [f"{label} ({role})" for label, role in written["roles"].items() if role != LESION]
    if others:
        yield f"not taken for lesions: {', '.join(others)}; --role says otherwise"
    if (more := written["paraphrases"]) is not None:
        yield f"{sum(map(len, more['wordings'].values()))} more wordings for {money(more['cost'])}"
        yield from (f"  refused: {each}" for each in more["refused"])
        if more["left"]:
            yield f"  not asked about, as --max-cost is reached: {', '.join(more['left'])}"
    yield f"next: avtt label {shlex.quote(str(out))} --reader NAME    # accept or reject each"
    yield "  avtt serve-demo    # a model that guesses, to try them on"
    yield f"  avtt audit {shlex.quote(str(out / SPEC))}"
