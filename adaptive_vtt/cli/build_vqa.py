"""``avtt build-vqa``: multiple-choice questions about images that somebody labelled."""

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any

import pandas as pd
import typer
from rich.console import Console
from rich.progress import Progress

from ..config.datasets import read_dataset
from ..config.oracles import read_model_of_words
from ..datasets import Dataset
from ..datasets.recognition import Layout, recognised
from ..datasets.vqa.paraphrasing import PARAPHRASES, WORDED_BY, Paraphrases, paraphrased
from ..datasets.vqa.question_building import SIZES, Built, Chosen, Embed, choose, line_of, look
from ..datasets.vqa.question_making import MAKERS
from ..datasets.vqa.question_table import write_questions
from ..datasets.vqa.taxonomy import LESION, SCENES, named
from ..engine.judging import prompt_of
from ..errors import InputError, check_known, unknown
from ..models.checking import name_of
from ..types import Image, JsonObject, Unanswered
from ..utils.figures import money
from ..utils.files import whole_folder, write_text
from ..utils.tables import csv_text
from ..utils.web import text_of
from .options import Json, arg, names, opt, pairs

PER_CLASS = 20
QUESTIONS, SOURCES, SPEC = "questions.tsv", "sources.csv", "SPEC.toml"
WIDTH = 78
FEATURES = ("auto", "efficientnet-lite0", "thumbnails")


@dataclass(frozen=True)
class Written:
    """What was written: how many questions about how many images, by task and by kind, the kinds
    of which none could be made, and what each label was taken for."""

    questions: int
    images: int
    tasks: dict[str, int]
    kinds: dict[str, int]
    not_made: list[str]
    features: str
    roles: dict[str, str]
    paraphrases: Paraphrases | None = None


def build_vqa(  # noqa: PLR0913, PLR0917 - a command's options
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
    sizes: Annotated[
        tuple[float, float], opt("Sides of wrong boxes over those of the right one.", "LOW HIGH")
    ] = SIZES,
    features: Annotated[
        str,
        opt(
            "What makes images alike: efficientnet-lite0 (extra 'embedding'), thumbnails, "
            "or auto: the first where it is installed."
        ),
    ] = "auto",
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
    scene, features = _scene(scene), _features(features)
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
            similar=sizes,
            embed=_embed(features),
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
        rows = _write_questions(folder, chosen, scene, dataset.name, more)
    made = Counter(row["kind"] for row in rows)
    written = Written(
        questions=len(rows),
        images=len({row["sample"] for row in rows}),
        tasks=dict(Counter(row["task"] for row in rows)),
        kinds={kind: made[kind] for kind in chosen_kinds or MAKERS if made[kind]},
        not_made=[kind for kind in chosen_kinds or MAKERS if not made[kind]],
        features=features,
        roles=dict(chosen.roles),
        paraphrases=more,
    )
    typer.echo(json.dumps(asdict(written), indent=1) if as_json else _told(written, out))


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


def _write_questions(
    folder: Path, chosen: Chosen, scene: str, name: str, more: Paraphrases | None
) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("writing questions", total=len(chosen))
        noted = _noted(chosen, rows, lambda: bar.advance(task), more)
        write_questions(folder / QUESTIONS, (line_of(one, scene, name) for one in noted))
    write_text(folder / SOURCES, csv_text(pd.DataFrame(rows)))
    write_text(folder / SPEC, spec_text())
    return rows


def spec_text() -> str:
    return text_of(__package__, "questions.toml", questions=json.dumps(QUESTIONS))


def _noted(
    built: Iterable[Built],
    rows: list[dict[str, str]],
    advance: Callable[[], object],
    more: Paraphrases | None,
) -> Iterator[Built]:
    for one in built:
        rows.append(
            {
                "index": str(len(rows)),
                "sample": one.sample_id,
                "kind": one.kind,
                "about": one.about,
                "task": one.made.task,
                "answer": one.answer,
                "question": one.made.question,
            }
            | ({} if more is None else {WORDED_BY: more.author(one.made.question)})
        )
        advance()
        yield one


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


def _scene(said: str) -> str:
    if said and named(said) not in SCENES:
        raise unknown("scene", said, SCENES, "--scene")
    return named(said)


def _features(said: str) -> str:
    check_known("kind of features", said, FEATURES, "--features")
    if said != "auto":
        return said
    from ..surrogates.features import installed

    return FEATURES[1] if installed() else FEATURES[2]


def _embed(features: str) -> Embed:
    if features == FEATURES[2]:
        return look
    from ..surrogates.features import embedder

    features_of = embedder()

    def embed(image: Image) -> Any:
        return features_of([image])[0]

    return embed


def _told(written: Written, out: Path) -> str:
    wide = max(map(len, written.tasks))
    tasks = [f"  {task:{wide}}  {count:5}" for task, count in written.tasks.items()]
    missing = wrap(f"none of the kinds {', '.join(written.not_made)}", WIDTH)
    spec = shlex.quote(str(out / SPEC))
    others = [f"{label} ({role})" for label, role in written.roles.items() if role != LESION]
    more = [] if written.paraphrases is None else _more(written.paraphrases)
    taken = wrap(f"not taken for lesions: {', '.join(others)}; --role says otherwise", WIDTH)
    return "\n".join(
        [
            f"wrote {out}: {written.questions} questions about {written.images} images "
            f"(chosen by {written.features})",
            *tasks,
            *(missing if written.not_made else []),
            *(taken if others else []),
            *more,
            "next:",
            f"  avtt label {shlex.quote(str(out))} --reader NAME    # accept or reject each",
            "  avtt serve-demo    # a model that guesses, to try them on",
            f"  avtt audit {spec}",
        ]
    )


def _more(more: Paraphrases) -> list[str]:
    count = sum(map(len, more.wordings.values()))
    what = "wording" if count == 1 else "wordings"
    lines = [f"{count} more {what} by {more.by}, for {money(more.cost)} now; {PARAPHRASES} has all"]
    lines += [f"  refused: {each}" for each in more.refused]
    if more.left:
        lines.append(f"  not asked about, as --max-cost is reached: {', '.join(more.left)}")
    return [each for line in lines for each in wrap(line, WIDTH, subsequent_indent="    ")]
