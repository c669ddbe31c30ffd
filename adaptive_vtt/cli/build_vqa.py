"""``avtt build-vqa``: make multiple-choice questions about labelled images."""

import json
from collections.abc import Iterator
from dataclasses import replace
from math import inf
from pathlib import Path

import pandas as pd
import typer

from ..config.datasets import read_dataset
from ..config.oracles import read_model_of_words
from ..datasets.recognition import recognised
from ..datasets.vqa.paraphrasing import Paraphrases, paraphrased
from ..datasets.vqa.question_making import MAKERS, Chosen, choose
from ..datasets.vqa.question_table import OPTIONS, Line, write_questions
from ..datasets.vqa.taxonomy import SCENES, named
from ..engine.judge_calls import prompt_of
from ..errors import InputError, unknown
from ..types import Unanswered
from ..utils.figures import money
from ..utils.files import whole_folder, write_text
from ..utils.tables import csv_text
from ..utils.web import text_of
from .options import names, pairs
from .printing import filled
from .progress import counting

QUESTIONS, SOURCES, SPEC = "questions.tsv", "sources.csv", "SPEC.toml"
SOURCE = ("index", "sample", "kind", "about", "task", "answer", "question")


def build_vqa(
    data: Path,
    *,
    out: Path,
    kinds: str | None = None,
    concepts: str | None = None,
    role: list[str] | None = None,
    word: list[str] | None = None,
    per_class: int = 20,
    scene: str = "",
    seed: int = 0,
    paraphrase: Path | None = None,
    max_cost: float | None = None,
) -> None:
    """Make multiple-choice questions from labels, masks or boxes.

    Kinds of questions are presence, type, counting, grounding, selection and
    recognition. Questions that the labels do not answer are left out.

    Example: avtt build-vqa Kvasir-SEG --out questions --scene Colonoscopy

    Args:
        data (DATA): A folder of images with masks, boxes or classes, a table of labels, or a
            SPEC.toml, for its [dataset].
        out: Folder to write into; new, or empty.
        kinds (NAMES): Kinds of questions, separated by commas. Default: all that can be made.
        concepts (NAMES): Labels to ask about, separated by commas. Default: all.
        role (LABEL=ROLE): Role of a label, such as instrument; repeatable. Default: by its words.
        word (LABEL=TEXT): Name of a label in questions; repeatable.
        per_class: Most questions per kind, label and right answer, drawn at random.
        scene: EndoBench's scene, such as Colonoscopy.
        seed: Same seed, same questions.
        paraphrase (SPEC.toml): A file whose [model], a language model, is asked for more wordings.
        max_cost (MONEY): With --paraphrase: the most that these wordings may cost.
    """
    if scene and named(scene) not in SCENES:
        raise unknown("scene", scene, SCENES, "--scene")
    if data.suffix == ".toml":
        dataset = read_dataset(data)
    else:
        layout = recognised(data)
        if layout.kind == "masks":  # an empty mask says that nothing is there
            layout = replace(layout, options={**layout.options, "empty": "absent"})
        dataset = layout.load()
    asked, more = names(kinds) or [*MAKERS], Paraphrases()
    with whole_folder(out) as folder:
        chosen = choose(
            dataset,
            asked,
            concepts=names(concepts),
            per_class=per_class,
            seed=seed,
            roles=pairs(role, "--role", "LABEL=ROLE"),
            words=pairs(word, "--word", "LABEL=TEXT"),
        )
        if not chosen.places:
            raise InputError(
                f"{data}: no question of the kinds {', '.join(asked)} can be made; presence "
                "needs labels, type labels that exclude each other, the others masks or boxes"
            )
        if paraphrase is not None:
            more = _more_wordings(chosen, paraphrase, max_cost)
            chosen = replace(chosen, plan=replace(chosen.plan, wordings=more.together()))
        rows: list[tuple[object, ...]] = []
        with counting("writing questions", len(chosen.places), False) as advance:

            def lines() -> Iterator[Line]:
                for one in chosen:
                    words = one.made.task, OPTIONS[one.made.right], one.made.question
                    rows.append((len(rows), one.sample_id, one.kind, one.about, *words))
                    advance(1)
                    yield replace(one.made, scene=named(scene), dataset=dataset.name)

            write_questions(folder / QUESTIONS, lines())
        sources = pd.DataFrame(rows, columns=[*SOURCE])
        write_text(folder / SOURCES, csv_text(sources))
        write_text(folder / SPEC, spec_text())
    paid = None if paraphrase is None else money(more.cost)
    counts = sources["kind"].value_counts()
    made = {"out": out, "sources": sources, "kinds": asked, "counts": counts, "roles": chosen.roles}
    typer.echo(filled("build_vqa", more=more, paid=paid, **made))


def _more_wordings(chosen: Chosen, spec: Path, max_cost: float | None) -> Paraphrases:
    """Ask the model of a file for more wordings; raise InputError if nothing bounds its cost."""
    with read_model_of_words(spec, chosen.dataset) as model:
        if model.costs_money and (max_cost is None or not model.prices_known):
            raise InputError(
                f"--paraphrase: expected --max-cost, and price_input and price_output in [model] "
                f"of {spec}, got {'no --max-cost' if max_cost is None else 'no prices'}"
            )

        def answer(text: str) -> tuple[str, float]:
            reply = model.ask([prompt_of(text, 0)])[0]
            return "" if isinstance(reply, Unanswered) else str(reply.values[0]), reply.cost

        most, cap = model.most_cost or 0.0, inf if max_cost is None else max_cost
        return paraphrased(chosen.wording_kinds, answer, most, cap)


def spec_text() -> str:
    """Return the SPEC.toml of an audit of the questions."""
    return text_of(__package__, "questions.toml", questions=json.dumps(QUESTIONS))
